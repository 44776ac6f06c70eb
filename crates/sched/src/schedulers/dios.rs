//! Importance-aware online scheduling: critical jobs are planned before all others, then by value density; each job is accepted
//! if everything accepted so far stays on time, and the accepted ones run by deadline.
//!
//! Reference: the paper's DIOS baseline, of which it gives no description; this is our reading of "importance-aware online
//! scheduling" and stands for the family (importance as the order of admission, EDF as the order of execution).
//! Ties: equal importance goes to the earlier deadline, then to the earlier release and the lower task index.

use std::cmp::Reverse;

use temponet_task::{Assignment, JobId, NotApplicable, Scheduler, System, SystemView};

use crate::shared::candidates::{Candidate, Candidates};

#[derive(Default)]
pub(crate) struct Dios {
    candidates: Candidates,
}

/// The more important first.
fn importance(job: &Candidate) -> (Reverse<u8>, f64) {
    (Reverse(job.criticality), -job.density)
}

impl Dios {
    /// The jobs to run, of ready ones that are in deadline order already.
    pub fn choose(&mut self, view: &SystemView<'_>, order: &[JobId]) -> &[JobId] {
        self.candidates.gather_in_order(view, order);
        self.candidates.accept_in_order(importance);
        self.candidates.choose(view.cores(), importance)
    }
}

impl Scheduler for Dios {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.candidates.gather(view);
        self.candidates.accept_in_order(importance);
        self.candidates.assign(view, assignment, importance);
    }
}
