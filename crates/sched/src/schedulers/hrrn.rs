//! Highest response ratio next: the job with the greatest ratio of waiting time and length to length. A job that has
//! begun is not preempted. Short jobs go first, and long ones are not forgotten.
//!
//! Lengths are what [`Job::expected_time_to_finish`] says at the time.
//!
//! Reference: Brinch Hansen, "Short-term scheduling in multiprogramming systems" (SOSP 1971).
//! Ties: earlier release, then lower task index.

use std::cmp::Reverse;

use temponet_task::{Assignment, Job, NotApplicable, Scheduler, System, SystemView};

use crate::shared::planned_jobs::ascending_bits;
use crate::shared::selection::Selection;

pub(crate) struct Hrrn {
    selection: Selection<(bool, Reverse<u64>)>,
}

impl Hrrn {
    pub fn new() -> Hrrn {
        Hrrn { selection: Selection::new() }
    }
}

impl Scheduler for Hrrn {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let key = |job: &Job| {
            let waited = view.now.saturating_sub(job.release).0 as f64;
            let ratio = waited / job.expected_time_to_finish().0.max(1) as f64;
            (job.last_core.is_none(), Reverse(ascending_bits(ratio)))
        };
        assignment.place(view, self.selection.select(view, view.system.most_offered(), key));
    }
}
