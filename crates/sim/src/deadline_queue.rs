//! Queue of future deadlines.
//!
//! Most jobs complete long before their deadline. A new deadline is therefore first kept in an unsorted list, of which
//! only a lower bound is known. When time reaches that bound, the deadlines of jobs that are still active move to a
//! heap; most deadlines never get there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use temponet_task::{JobId, Time};

/// Deadlines of the active jobs. Deadlines of jobs that have left are dropped lazily.
#[derive(Clone)]
pub(crate) struct DeadlineQueue {
    /// Deadlines that are not in the heap yet, each with job id and generation.
    fresh: Vec<(Time, JobId, u32)>,
    /// Lower bound of the fresh deadlines.
    fresh_bound: Time,
    heap: BinaryHeap<Reverse<(Time, JobId, u32)>>,
}

impl DeadlineQueue {
    pub fn new() -> DeadlineQueue {
        DeadlineQueue { fresh: Vec::new(), fresh_bound: Time::NEVER, heap: BinaryHeap::new() }
    }

    /// Adds the deadline of a job. `generation` tells the job apart from later jobs with the same id.
    #[inline]
    pub fn add(&mut self, deadline: Time, job: JobId, generation: u32) {
        self.fresh.push((deadline, job, generation));
        self.fresh_bound = self.fresh_bound.min(deadline);
    }

    /// Returns the earliest deadline of an active job, if it is not later than `until`.
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

    /// Removes a job whose deadline is at or before `now`, the lowest id first. [`DeadlineQueue::next`] must have been
    /// called with a time of at least `now` before.
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
