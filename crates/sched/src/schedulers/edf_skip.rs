//! EDF that runs jobs which are *late by wcet* last: EDF among the jobs that can still be on time, then EDF among the
//! rest. With known execution times a hopeless job never harms a job that can still meet its deadline.
//!
//! Reference: the usual practical remedy for EDF's domino effect; compare RED (Buttazzo and Stankovic 1993).
//! Ties: earlier release, then lower task index.
//!
//! No wake-ups are needed: a waiting job that becomes late only moves further back, and a running job keeps its slack.

use temponet_task::{Assignment, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::selection::Selection;

pub(crate) struct EdfSkip {
    selection: Selection<(bool, Time)>,
}

impl EdfSkip {
    pub fn new() -> EdfSkip {
        EdfSkip { selection: Selection::new() }
    }
}

impl Scheduler for EdfSkip {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let key = |job: &temponet_task::Job| (job.is_late_by_wcet(view.now), job.deadline);
        assignment.place(view, self.selection.select(view, view.system.most_offered(), key));
    }
}
