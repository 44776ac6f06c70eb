//! MH-EDF: at every event, Moore and Hodgson's rule chooses the largest set of ready jobs that can all be on time, and
//! the earliest deadline in it runs. On one core with known execution times this is nearly optimal, which makes it the
//! classical scheduler to beat in overload.
//!
//! The rule: add jobs in deadline order; when one would be late, drop the longest so far. Free cores take the other
//! jobs, shortest remaining work first.
//!
//! A job with an estimate is planned by its ninth decile, and by its wcet once it has reached that, if it is critical,
//! or if its task is to be guaranteed. With the option `q`, every job is planned by that quantile of its length.
//!
//! Reference: Moore, Management Science 15(1), 1968, applied online to the ready jobs with their remaining wcets.
//! Ties: equal deadlines, equal lengths and equal remaining work go to the earlier release, then the lower task index;
//! of equally long jobs the last in that order is dropped.

use temponet_task::{Assignment, Job, JobId, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::lengths::Lengths;
use crate::shared::moore_hodgson::ListSchedule;
use crate::shared::planned_jobs::{PlannedJobs, PlannedTime};

#[derive(Default)]
pub(crate) struct MhEdf {
    plan: PlannedJobs,
    schedule: ListSchedule,
}

impl MhEdf {
    /// Plans with the mean of the least and the greatest remaining work of each job, or with the work to expect by its
    /// estimate.
    pub fn by_mean() -> MhEdf {
        let mean = |_: &SystemView<'_>, job: &Job| match job.estimate {
            None => Time((job.least_time_to_finish().0 + job.time_to_finish().0) / 2),
            Some(_) => job.expected_time_to_finish(),
        };
        MhEdf { plan: PlannedJobs::planned_with(PlannedTime::Rule(mean)), schedule: ListSchedule::default() }
    }

    /// Plans with a quantile of the length of each job; see [`Lengths`].
    pub fn by_quantile(share: f64) -> MhEdf {
        let plan = PlannedJobs::planned_with(PlannedTime::Quantile(Lengths::at(share)));
        MhEdf { plan, schedule: ListSchedule::default() }
    }

    /// Returns the jobs to run, from ready jobs that are already in deadline order.
    pub fn choose(&mut self, view: &SystemView<'_>, order: &[JobId]) -> &[JobId] {
        self.plan.gather_in_order(view, order);
        self.plan.accept_by_moore_hodgson(&mut self.schedule, |job| job.remaining.0);
        self.plan.choose(view, |job| job.remaining)
    }

    /// The jobs of the last [`MhEdf::choose`].
    pub fn chosen(&self) -> &[JobId] {
        self.plan.chosen()
    }
}

impl Scheduler for MhEdf {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.plan.start(system);
        self.schedule.reserve(system.tasks().len(), system.cores());
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.plan.gather(view);
        self.plan.accept_by_moore_hodgson(&mut self.schedule, |job| job.remaining.0);
        self.plan.assign(view, assignment, |job| job.remaining);
    }

    fn watch(&mut self, view: &SystemView<'_>, _: &mut Assignment) {
        self.plan.follow(view);
    }
}
