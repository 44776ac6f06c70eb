//! MH-EDF: at every event, the largest set of ready jobs that can all be on time is chosen by Moore and Hodgson's rule,
//! and its earliest deadline runs. On one core with known execution times this is all but optimal; it is the classical
//! scheduler to beat in overload.
//!
//! The rule: add jobs in deadline order; when one would be late, drop the longest so far. Cores that are left take the other
//! jobs, shortest remaining first.
//!
//! Reference: Moore, Management Science 15(1), 1968, applied online to the ready jobs with their remaining wcet.
//! Ties: equal deadlines, equal lengths and equal remaining go to the earlier release, then the lower task index; of equally
//! long jobs the one last in that order is dropped.

use temponet_task::{Assignment, Job, JobId, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::candidates::Candidates;
use crate::shared::moore_hodgson::ListSchedule;

#[derive(Default)]
pub(crate) struct MhEdf {
    candidates: Candidates,
    schedule: ListSchedule<Time>,
}

impl MhEdf {
    /// Plans with the middle between the least and the most that may be left of each job.
    pub fn by_mean() -> MhEdf {
        let mean = |job: &Job| Time((job.least_remaining().0 + job.remaining().0) / 2);
        MhEdf { candidates: Candidates::planned_with(mean), schedule: ListSchedule::default() }
    }

    /// The jobs to run, of ready ones that are in deadline order already.
    pub fn choose(&mut self, view: &SystemView<'_>, order: &[JobId]) -> &[JobId] {
        self.candidates.gather_in_order(view, order);
        self.schedule.choose(&mut self.candidates.jobs, view.now, view.cores(), |job| job.remaining);
        self.candidates.choose(view.cores(), |job| job.remaining)
    }
}

impl Scheduler for MhEdf {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.candidates.reserve(system.tasks.len());
        self.schedule.reserve(system.tasks.len(), system.cores);
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.candidates.gather(view);
        self.schedule.choose(&mut self.candidates.jobs, view.now, view.cores(), |job| job.remaining);
        self.candidates.assign(view, assignment, |job| job.remaining);
    }
}
