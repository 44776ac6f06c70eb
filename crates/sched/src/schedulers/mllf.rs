//! Modified least laxity first: like LLF, but on a tie of laxities the running job continues as long as that harms no
//! other job, so that jobs of equal laxity do not preempt each other at every instant. As optimal as LLF on one core,
//! with far fewer preemptions.
//!
//! Reference: Oh and Yang, A Modified Least-Laxity-First Scheduling Algorithm for Real-Time Tasks, RTCSA 1998. A job
//! with laxity L runs until the earliest deadline, relative to now, of a waiting job with an earlier deadline, less L.
//! Ties: equal laxities go to the earlier deadline, then the earlier release and the lower task index.

use temponet_task::{Assignment, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::selection::Selection;

pub(crate) struct Mllf {
    selection: Selection<(i64, Time)>,
}

impl Mllf {
    pub fn new() -> Mllf {
        Mllf { selection: Selection::new() }
    }
}

impl Scheduler for Mllf {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let now = view.now;
        let chosen = self.selection.select(view, view.system.most_offered(), |job| (job.slack(now), job.deadline));
        assignment.place(view, chosen);
        if view.active.len() <= view.cores() && view.system.machine().is_plain() && view.locks.is_none() {
            return;
        }
        let mut wake = Time::NEVER;
        for running in chosen.iter().filter(|id| assignment.runs(**id)).map(|id| view.job(*id)) {
            let waiting =
                view.ready().filter(|(id, job)| !job.held && !assignment.runs(*id)).map(|(_, job)| job.deadline);
            if let Some(deadline) = waiting.filter(|deadline| *deadline < running.deadline).min() {
                let length = deadline.signed_sub(now) - running.slack(now);
                // A job may wait that has less laxity, for a resource, or where cores differ for one that it may use.
                if length <= 0 && (!view.system.machine().is_plain() || view.locks.is_some()) {
                    continue;
                }
                wake = wake.min(now + Time(length.max(1) as u64));
            }
        }
        if wake != Time::NEVER {
            assignment.wake_at(wake);
        }
    }
}
