//! The deadlines to come.
//!
//! Most jobs complete long before their deadline, so a new deadline first waits in a plain list, of which only a lower
//! bound is known. It enters the heap when time gets near that bound and its job is still there; most never do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use temponet_task::{JobId, Time};

#[derive(Clone)]
pub(crate) struct DeadlineQueue {
    fresh: Vec<(Time, JobId, u32)>,
    /// No fresh deadline is earlier.
    fresh_bound: Time,
    heap: BinaryHeap<Reverse<(Time, JobId, u32)>>,
}

impl DeadlineQueue {
    pub fn new() -> DeadlineQueue {
        DeadlineQueue { fresh: Vec::new(), fresh_bound: Time::NEVER, heap: BinaryHeap::new() }
    }

    /// Adds the deadline of a job; an id is told from its later uses by the generation.
    #[inline]
    pub fn add(&mut self, deadline: Time, job: JobId, generation: u32) {
        self.fresh.push((deadline, job, generation));
        self.fresh_bound = self.fresh_bound.min(deadline);
    }

    /// The earliest deadline of an active job, if it is not later than `until`.
    #[inline]
    pub fn next(&mut self, until: Time, is_active: impl Fn(JobId, u32) -> bool) -> Option<Time> {
        if self.fresh_bound <= until {
            let still_there = self.fresh.drain(..).filter(|(_, job, generation)| is_active(*job, *generation));
            self.heap.extend(still_there.map(Reverse));
            self.fresh_bound = Time::NEVER;
        }
        while let Some(Reverse((deadline, job, generation))) = self.heap.peek().copied() {
            if deadline > until {
                return None;
            }
            if is_active(job, generation) {
                return Some(deadline);
            }
            self.heap.pop();
        }
        None
    }

    /// Takes out a job whose deadline is `now`, the lowest id first. [`DeadlineQueue::next`] must have been asked for `now`.
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<(JobId, u32)> {
        let Reverse((deadline, job, generation)) = self.heap.peek().copied()?;
        if deadline > now {
            return None;
        }
        self.heap.pop();
        Some((job, generation))
    }
}
