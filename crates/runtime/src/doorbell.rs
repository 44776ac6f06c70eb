//! The doorbell: how other threads wake the dispatcher, and the requests that they leave for it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// A counter that the dispatcher sleeps on.
#[derive(Debug, Default)]
pub(crate) struct Doorbell {
    rings: AtomicU32,
    /// Whether completions can wait until the dispatcher wakes up for another reason.
    is_quiet: AtomicBool,
    /// Whether a task was asked for something since the dispatcher looked.
    has_requests: AtomicBool,
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

    /// Wakes the dispatcher because something is asked of a task, which was written before.
    pub fn ring_for_request(&self) {
        self.has_requests.store(true, Ordering::Release);
        self.ring();
    }

    /// Whether a request may have been left since the last call.
    #[cfg(target_os = "linux")]
    pub fn take_requests(&self) -> bool {
        self.has_requests.load(Ordering::Relaxed) && self.has_requests.swap(false, Ordering::Acquire)
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

/// Places that other threads mark and the dispatcher looks for, so that it does not have to look at every place.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct Marks(Vec<AtomicU64>);

#[cfg(target_os = "linux")]
impl Marks {
    /// This many places, none of them marked.
    pub fn for_places(places: usize) -> Marks {
        Marks((0..places.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Marks a place. What was written before is visible to the thread that takes the mark. In sequentially consistent
    /// order, as [`Doorbell::ring_for_completion`] needs it.
    pub fn mark(&self, place: usize) {
        self.0[place / 64].fetch_or(1 << (place % 64), Ordering::SeqCst);
    }

    /// Whether a place is marked.
    pub fn is_any(&self) -> bool {
        self.0.iter().any(|word| word.load(Ordering::SeqCst) != 0)
    }

    /// Takes the mark of the first marked place away.
    pub fn take(&self) -> Option<usize> {
        let is_marked = |(_, word): &(usize, &AtomicU64)| word.load(Ordering::Relaxed) != 0;
        let (index, word) = self.0.iter().enumerate().find(is_marked)?;
        let bit = word.load(Ordering::Acquire).trailing_zeros();
        word.fetch_and(!(1 << bit), Ordering::AcqRel);
        Some(64 * index + bit as usize)
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
