//! Importance-aware online scheduling: jobs are considered by criticality, then by value density. A job is accepted if
//! all jobs accepted so far stay on time, and the accepted jobs run by deadline.
//!
//! Reference: the paper's DIOS baseline, which the paper does not describe. This is our reading of "importance-aware
//! online scheduling", and it stands for the family: importance as the order of admission, EDF as the order of
//! execution.
//! Ties: equal importance goes to the earlier deadline, then to the earlier release and the lower task index.

use std::cmp::Reverse;

use temponet_task::{Assignment, JobId, NotApplicable, Scheduler, System, SystemView};

use crate::shared::planned_jobs::{PlannedJob, PlannedJobs};

#[derive(Default)]
pub(crate) struct Dios {
    plan: PlannedJobs,
}

/// Order in which free cores take the jobs that were not accepted: the least key is the most important job.
fn importance(job: &PlannedJob) -> (Reverse<u8>, f64) {
    (Reverse(job.criticality), -job.density)
}

impl Dios {
    /// Returns the jobs to run, from ready jobs that are already in deadline order.
    pub fn choose(&mut self, view: &SystemView<'_>, order: &[JobId]) -> &[JobId] {
        self.plan.gather_in_order(view, order);
        self.plan.accept_by_density(true);
        self.plan.choose(view, importance)
    }
}

impl Scheduler for Dios {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.plan.reserve(system.tasks().len());
        self.plan.reserve_admission(system.tasks().len(), system.cores());
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.plan.gather(view);
        self.plan.accept_by_density(true);
        self.plan.assign(view, assignment, importance);
    }
}
