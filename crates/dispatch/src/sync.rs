//! Where locks and parked threads come from. The tests of interleavings have a module of the same name over shuttle, so
//! that they run this crate's own code.

pub(crate) use std::sync::{Mutex, MutexGuard};
pub(crate) use std::thread::{self, Thread};
