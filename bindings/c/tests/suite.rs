//! Tests of the C interface from Rust; those from C and C++ are run by `./test`.
#![allow(unsafe_code, reason = "calls of the C interface")]

#[path = "suite/calls.rs"]
mod calls;
#[path = "suite/documents.rs"]
mod documents;
#[path = "suite/header.rs"]
mod header;
#[path = "suite/schedule.rs"]
mod schedule;
#[path = "suite/texts.rs"]
mod texts;
