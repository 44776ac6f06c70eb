//! Locke's best effort (LBESA): an EDF plan of all ready jobs. As long as a job in it would be late, the job with the
//! lowest value density up to that one is shed.
//!
//! Reference: Locke, Best-Effort Decision Making for Real-Time Scheduling, CMU-CS-86-134, 1986 (with known execution
//! times).
//! Ties: of equal densities the later deadline is shed. Free cores take the shed jobs by density.

use temponet_task::{Assignment, NotApplicable, Scheduler, System, SystemView};

use crate::shared::moore_hodgson::ListSchedule;
use crate::shared::planned_jobs::{PlannedJobs, ascending_bits};

#[derive(Default)]
pub(crate) struct Lbesa {
    plan: PlannedJobs,
    schedule: ListSchedule,
}

impl Scheduler for Lbesa {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let candidates = &mut self.plan;
        candidates.gather(view);
        candidates.accept_by_moore_hodgson(&mut self.schedule, |job| !ascending_bits(job.density));
        candidates.assign(view, assignment, |job| -job.density);
    }
}
