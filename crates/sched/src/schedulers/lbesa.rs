//! Locke's best effort (LBESA): an EDF plan of all ready jobs. As long as a job in it would be late, the job with the
//! lowest value density up to that one is shed.
//!
//! Reference: Locke, Best-Effort Decision Making for Real-Time Scheduling, CMU-CS-86-134, 1986 (with known execution
//! times).
//! Ties: of equal densities the later deadline is shed. Free cores take the shed jobs by density.

use std::cmp::{Ordering, Reverse};

use temponet_task::{Assignment, NotApplicable, Scheduler, System, SystemView};

use crate::shared::candidates::Candidates;
use crate::shared::moore_hodgson::ListSchedule;

#[derive(Default)]
pub(crate) struct Lbesa {
    candidates: Candidates,
    schedule: ListSchedule<Reverse<Density>>,
}

/// A value density, totally ordered.
#[derive(Clone, Copy, PartialEq)]
struct Density(f64);

impl Eq for Density {}

impl Ord for Density {
    fn cmp(&self, other: &Density) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Density {
    fn partial_cmp(&self, other: &Density) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Scheduler for Lbesa {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let candidates = &mut self.candidates;
        candidates.gather(view);
        self.schedule.choose(&mut candidates.jobs, view.now, view.cores(), |job| Reverse(Density(job.density)));
        candidates.assign(view, assignment, |job| -job.density);
    }
}
