//! The doorbell: how other threads wake the dispatcher, and the requests that they leave for it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// A counter that the dispatcher sleeps on.
#[derive(Debug, Default)]
pub(crate) struct Doorbell {
    rings: AtomicU32,
    /// Whether completions can wait until the dispatcher wakes up for another reason.
    is_quiet: AtomicBool,
}

impl Doorbell {
    /// Wakes the dispatcher. What was written before is visible to it.
    pub fn ring(&self) {
        self.rings.fetch_add(1, Ordering::Release);
        #[cfg(target_os = "linux")]
        let _ = rustix::thread::futex::wake(&self.rings, rustix::thread::futex::Flags::PRIVATE, 1);
    }

    /// Wakes the dispatcher because a job has returned, unless it does not need to know now. The completion was written
    /// before, in sequentially consistent order, as [`Doorbell::set_quiet`] is: either this sees that the bell is not
    /// quiet any more, or the dispatcher sees the completion.
    pub fn ring_for_completion(&self) {
        if !self.is_quiet.load(Ordering::SeqCst) {
            self.ring();
        }
    }

    /// Says whether completions can wait. Completions have to be looked at after this and before the next sleep.
    pub fn set_quiet(&self, is_quiet: bool) {
        if self.is_quiet.load(Ordering::Relaxed) != is_quiet {
            self.is_quiet.store(is_quiet, Ordering::SeqCst);
        }
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
