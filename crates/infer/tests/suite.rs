//! All integration tests of the crate in one program: it is linked once, and the slow ones run beside each other.

mod agreement;
mod files;
mod kernels;
mod network;
