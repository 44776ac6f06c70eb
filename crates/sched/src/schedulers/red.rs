//! Robust earliest deadline (RED): EDF with admission. When a new job overloads the EDF plan, the least valuable job
//! whose removal resolves the overload is rejected. When a job completes early, rejected jobs are accepted again, by
//! value, if they fit.
//!
//! Reference: Buttazzo and Stankovic, RED: A Robust Earliest Deadline Scheduling Algorithm, 1993. Deadline tolerances
//! are zero. A single job resolves the overload if its remaining work is at least the tardiness of the first late job.
//! If there is none, the least valuable job is rejected and the plan is checked again. Ties: of equal values the later
//! deadline is rejected. Free cores take rejected jobs by value.

use temponet_task::{Assignment, Event, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::planned_jobs::PlannedJobs;

#[derive(Default)]
pub(crate) struct Red {
    plan: PlannedJobs,
    /// Whether each job is rejected, by job id.
    is_rejected: Vec<bool>,
}

impl Red {
    /// Returns the place of the least valuable accepted job up to the first late one, among those that are long enough
    /// if there are any.
    fn victim(&mut self) -> Option<usize> {
        let last = self.plan.jobs.len().checked_sub(1)?;
        let (late, overrun) = self.plan.first_late(last)?;
        let cheapest = |at_least: Time| {
            let accepted = self.plan.jobs[..=late].iter().enumerate().filter(|(_, job)| job.accepted);
            let long_enough = accepted.filter(|(_, job)| job.remaining >= at_least);
            long_enough.rev().min_by(|(_, a), (_, b)| a.value.total_cmp(&b.value)).map(|(place, _)| place)
        };
        cheapest(overrun).or_else(|| cheapest(Time::ZERO))
    }
}

impl Scheduler for Red {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        self.is_rejected.clear();
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let mut freed = false;
        self.is_rejected.resize(view.jobs.len().max(self.is_rejected.len()), false);
        for event in view.events {
            if let Event::Completed(id) | Event::Aborted(id) = *event {
                self.is_rejected[id.index()] = false;
                freed = true;
            }
        }
        self.plan.gather(view);
        for job in &mut self.plan.jobs {
            job.accepted = !self.is_rejected[job.id.index()];
        }
        while let Some(victim) = self.victim() {
            self.plan.jobs[victim].accepted = false;
        }
        if freed {
            let jobs = &self.plan.jobs;
            let mut waiting: Vec<usize> = (0..jobs.len()).filter(|place| !jobs[*place].accepted).collect();
            waiting.sort_by(|a, b| jobs[*b].value.total_cmp(&jobs[*a].value));
            self.plan.accept_each(&waiting);
        }
        for job in &self.plan.jobs {
            self.is_rejected[job.id.index()] = !job.accepted;
        }
        self.plan.assign(view, assignment, |job| -job.value);
    }
}
