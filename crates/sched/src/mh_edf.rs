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

use crate::overload::Candidates;
use temponet_task::{Assignment, NotApplicable, Scheduler, System, SystemView};

#[derive(Default)]
pub(crate) struct MhEdf {
    candidates: Candidates,
}

impl Scheduler for MhEdf {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.candidates.reserve(system.tasks.len());
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let candidates = &mut self.candidates;
        candidates.gather(view);
        for last in 0..candidates.jobs.len() {
            candidates.jobs[last].accepted = true;
            if candidates.append(last) {
                continue;
            }
            // On one core one job is enough to drop; on several it may take more.
            while candidates.first_late(last).is_some() {
                let accepted = candidates.jobs[..=last].iter().enumerate().filter(|(_, job)| job.accepted);
                let longest = accepted.max_by_key(|(place, job)| (job.remaining, *place)).map(|(place, _)| place);
                candidates.jobs[longest.unwrap_or(last)].accepted = false;
            }
        }
        candidates.assign(view, assignment, |job| job.remaining);
    }
}
