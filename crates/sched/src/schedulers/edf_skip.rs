//! EDF that runs jobs last which would be late by their wcets, or by what their estimates say is likely to be enough:
//! EDF among the jobs that can still be on time, then EDF among the rest. With known execution times a hopeless job
//! never harms a job that can still meet its deadline.
//!
//! A job with an estimate is judged by its ninth decile, and by its wcet once it has reached that, if it is critical,
//! or if its task is to be guaranteed. With the option `q`, every job is judged by that quantile of its length.
//!
//! Reference: the usual practical remedy for EDF's domino effect; compare RED (Buttazzo and Stankovic 1993).
//! Ties: earlier release, then lower task index.
//!
//! No wake-ups are needed: a waiting job that becomes late only moves further back, and a running job keeps its slack
//! until it has reached what was planned for it.

use temponet_task::{Assignment, Job, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::lengths::Lengths;
use crate::shared::planned_jobs::PlannedTime;
use crate::shared::selection::Selection;

pub(crate) struct EdfSkip {
    planned: PlannedTime,
    selection: Selection<(bool, Time)>,
}

impl EdfSkip {
    pub fn new() -> EdfSkip {
        EdfSkip::planned_with(PlannedTime::Rule(|view, job| view.planned_time_to_finish(job)))
    }

    /// Judges by the wcet, whatever estimates say.
    pub fn by_wcet() -> EdfSkip {
        EdfSkip::planned_with(PlannedTime::Rule(|_, job| job.time_to_finish()))
    }

    /// Judges by a quantile of the length of each job; see [`Lengths`].
    pub fn by_quantile(share: f64) -> EdfSkip {
        EdfSkip::planned_with(PlannedTime::Quantile(Lengths::at(share)))
    }

    fn planned_with(planned: PlannedTime) -> EdfSkip {
        EdfSkip { planned, selection: Selection::new() }
    }
}

impl Scheduler for EdfSkip {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.planned.start(system);
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.planned.follow(view);
        let planned = &self.planned;
        let key = |job: &Job| (view.now + planned.of(view, job) > job.deadline, job.deadline);
        assignment.place(view, self.selection.select(view, view.system.most_offered(), key));
    }

    fn watch(&mut self, view: &SystemView<'_>, _: &mut Assignment) {
        self.planned.follow(view);
    }
}
