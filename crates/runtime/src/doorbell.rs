//! The doorbell: how other threads wake the dispatcher, and the requests that they leave for it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// A counter that the dispatcher sleeps on.
#[derive(Debug, Default)]
pub(crate) struct Doorbell {
    rings: AtomicU32,
}

impl Doorbell {
    /// Wakes the dispatcher. What was written before is visible to it.
    pub fn ring(&self) {
        self.rings.fetch_add(1, Ordering::Release);
        #[cfg(target_os = "linux")]
        let _ = rustix::thread::futex::wake(&self.rings, rustix::thread::futex::Flags::PRIVATE, 1);
    }

    /// Number of rings so far. Requests have to be looked at after this is read and before it is slept on.
    pub fn rings(&self) -> u32 {
        self.rings.load(Ordering::Acquire)
    }

    /// The counter, to sleep on.
    #[cfg(target_os = "linux")]
    pub fn counter(&self) -> &AtomicU32 {
        &self.rings
    }
}

/// What other threads ask of one task.
#[derive(Debug)]
pub(crate) struct TaskRequests {
    /// Number of releases asked for and not yet taken.
    pub asked: AtomicU32,
    /// Date of the last request on the machine's clock, in nanoseconds.
    pub asked_at: AtomicU64,
    /// Whether the task releases jobs at present.
    pub is_present: AtomicBool,
}

impl Default for TaskRequests {
    fn default() -> TaskRequests {
        TaskRequests { asked: AtomicU32::new(0), asked_at: AtomicU64::new(0), is_present: AtomicBool::new(true) }
    }
}
