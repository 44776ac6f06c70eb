//! Locke's best effort (LBESA): an EDF plan of all ready jobs; as long as one in it would be late, the job of the lowest
//! value density up to that one is shed.
//!
//! Reference: Locke, Best-Effort Decision Making for Real-Time Scheduling, CMU-CS-86-134, 1986 (with known execution times).
//! Ties: of equal densities the later deadline is shed. Cores that are left take the shed jobs by density.

use crate::overload::Candidates;
use temponet_task::{Assignment, NotApplicable, Scheduler, System, SystemView};

#[derive(Default)]
pub(crate) struct Lbesa {
    candidates: Candidates,
}

impl Scheduler for Lbesa {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let candidates = &mut self.candidates;
        candidates.gather(view);
        candidates.jobs.iter_mut().for_each(|job| job.accepted = true);
        let last = candidates.jobs.len().saturating_sub(1);
        while !candidates.jobs.is_empty()
            && let Some((late, _)) = candidates.first_late(last)
        {
            let accepted = candidates.jobs[..=late].iter().enumerate().filter(|(_, job)| job.accepted);
            let cheapest = accepted.rev().min_by(|(_, a), (_, b)| a.density.total_cmp(&b.density));
            let cheapest = cheapest.map_or(late, |(place, _)| place);
            candidates.jobs[cheapest].accepted = false;
        }
        candidates.assign(view, assignment, |job| -job.density);
    }
}
