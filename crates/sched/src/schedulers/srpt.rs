//! Shortest remaining processing time first, by the time that the remaining wcet takes on the fastest core that a job
//! may use. Optimal for the mean response time on one core if execution times are known; it ignores deadlines.
//!
//! A job with an estimate counts with the work to expect, which is between the median and the ninth decile, nearer to
//! the median the better the estimate; with the ninth decile beyond that, and with the wcet beyond the ninth decile.
//!
//! Reference: Schrage, Operations Research 16(3), 1968.
//! Ties: earlier release, then lower task index.

use temponet_task::{Assignment, Job, JobId, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::selection::Selection;

pub(crate) struct Srpt {
    selection: Selection<(bool, Time)>,
    /// Whether impossible jobs come last.
    skips: bool,
}

impl Srpt {
    pub fn new() -> Srpt {
        Srpt { selection: Selection::new(), skips: false }
    }

    /// The variant that runs impossible jobs last.
    pub fn skipping() -> Srpt {
        Srpt { skips: true, ..Srpt::new() }
    }

    /// Returns the jobs to run.
    pub fn choose(&mut self, view: &SystemView<'_>) -> &[JobId] {
        let key = |job: &Job| (self.skips && job.is_impossible(view.now), job.expected_time_to_finish());
        self.selection.select(view, view.system.most_offered(), key)
    }
}

impl Scheduler for Srpt {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        assignment.place(view, self.choose(view));
    }
}
