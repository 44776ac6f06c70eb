//! Shared resources of synthetic jobs: priority-inheriting mutexes of the kernel (`FUTEX_LOCK_PI`).
//!
//! A job that waits lends its priority to the one that holds the resource, so a chosen job that waits has the holder run
//! in its place, as under [`Protocol::Inheritance`](temponet_task::Protocol) in the simulator. Nobody asks the
//! scheduler. Priorities count on one core, so this is for one core.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use rustix::time::Timespec;

use super::monotonic_ns;
use crate::job::Job;

/// Time after which a job that waits looks whether it should return, in nanoseconds.
const PATIENCE: u64 = 2_000_000;

/// A mutex whose holder inherits the priority of those that wait.
#[derive(Debug, Default)]
pub struct PiMutex {
    /// The kernel's id of the thread that holds it; zero if it is free. The kernel adds flags.
    holder: AtomicU32,
}

impl PiMutex {
    /// Locks it for the calling thread. Returns whether it did; otherwise the job should return.
    pub fn lock(&self, job: &Job<'_>) -> bool {
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        if self.holder.compare_exchange(0, own, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return true;
        }
        loop {
            if job.expired() {
                return false;
            }
            let until = monotonic_ns() + PATIENCE;
            let timeout = Timespec { tv_sec: (until / 1_000_000_000) as i64, tv_nsec: (until % 1_000_000_000) as i64 };
            match futex::lock_pi2(&self.holder, Flags::PRIVATE, Some(&timeout)) {
                Ok(()) => return true,
                // Jobs that wait for each other in a circle do so until one of them should return.
                Err(Errno::DEADLK) => std::thread::sleep(Duration::from_nanos(PATIENCE)),
                // It waited long enough to look again, or was interrupted.
                Err(_) => {}
            }
        }
    }

    /// Unlocks it. The calling thread must hold it.
    pub fn unlock(&self) {
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        if self.holder.compare_exchange(own, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            let _ = futex::unlock_pi(&self.holder, Flags::PRIVATE);
        }
    }
}
