//! DASA for independent jobs: at every event, jobs enter a tentative EDF plan in order of decreasing value density,
//! each only if the plan stays feasible, and the head of the plan runs. Good for value in overload; identical to EDF
//! without overload.
//!
//! Reference: Clark, Scheduling Dependent Real-Time Activities, CMU-CS-90-155, 1990.
//! Ties: equal densities go to the earlier deadline, then to the earlier release and the lower task index. Free cores
//! take the other jobs by density.

use temponet_task::{Assignment, NotApplicable, Scheduler, System, SystemView};

use crate::shared::planned_jobs::PlannedJobs;

#[derive(Default)]
pub(crate) struct Dasa {
    plan: PlannedJobs,
}

impl Scheduler for Dasa {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.plan.reserve(system.tasks().len());
        self.plan.reserve_admission(system.tasks().len(), system.cores());
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.plan.gather(view);
        self.plan.accept_by_density(false);
        self.plan.assign(view, assignment, |job| -job.density);
    }
}
