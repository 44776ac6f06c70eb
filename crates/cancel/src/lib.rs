//! Cancellation of long computations from outside, such as by Ctrl-C in an interpreter.
//!
//! Long loops of the simulator, the optimum and the training call [`checkpoint`]. After [`request`] it unwinds the
//! stack with [`Cancelled`] as its payload, through thread pools as well, up to whoever started the computation and
//! catches it. No function needs another result type, and a checkpoint costs one relaxed load.
//!
//! The request concerns the whole process: every computation with checkpoints ends. A program that never calls
//! [`request`], such as the command line, never unwinds here.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of requests that are in force.
static REQUESTS: AtomicUsize = AtomicUsize::new(0);

/// Payload with which a cancelled computation unwinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

/// A request that every computation end. It is in force until it is dropped.
#[derive(Debug)]
#[must_use = "a request ends when it is dropped"]
pub struct Request(());

/// Asks every computation in this process to end at its next checkpoint.
pub fn request() -> Request {
    REQUESTS.fetch_add(1, Ordering::Relaxed);
    Request(())
}

impl Drop for Request {
    fn drop(&mut self) {
        REQUESTS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Unwinds with [`Cancelled`] if a request is in force.
#[inline]
pub fn checkpoint() {
    if REQUESTS.load(Ordering::Relaxed) > 0 {
        unwind();
    }
}

#[cold]
fn unwind() -> ! {
    std::panic::resume_unwind(Box::new(Cancelled))
}
