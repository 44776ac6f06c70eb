//! Run-time check that jobs arrive and take their time as the premise assumes, and the earliest arrivals to come.

use temponet_task::{Arrival, Event, Job, System, SystemView, Time};

use super::premise::Premise;

/// The arrivals of every task.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    /// For each task, a date before which none of its unreleased jobs arrives.
    next: Vec<Time>,
    /// For each task, a date from which on no job arrives.
    until: Vec<Time>,
}

/// Violations of the premise since the last decision.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Violations {
    /// A job was released too early or too late, or its wcet or deadline is not that of its task.
    pub breaks_model: bool,
    /// Arrivals have left the pattern that the proof relies on. This cannot be undone.
    pub breaks_pattern: bool,
    /// A job took too long or missed its deadline.
    pub is_overload: bool,
}

impl Monitor {
    pub fn start(&mut self, system: &System) {
        self.next.clear();
        self.next.extend(system.tasks.iter().map(|task| task.offset));
        self.until.clear();
        self.until.extend(system.tasks.iter().map(|task| match task.arrival {
            Arrival::Burst { until, .. } => until,
            _ => Time::NEVER,
        }));
    }

    /// Records the events since the last decision. Returns the violations among them.
    pub fn observe(&mut self, view: &SystemView<'_>, premise: &Premise) -> Violations {
        let mut violations = Violations::default();
        let bound = |job: &Job| premise.tasks[job.task as usize].wcet;
        for event in view.events {
            match *event {
                Event::Released(id) => self.released(view.job(id), premise, &mut violations),
                Event::Completed(id) => violations.is_overload |= view.job(id).executed > bound(view.job(id)),
                Event::Aborted(_) | Event::DeadlinePassed(_) => violations.is_overload = true,
            }
        }
        // A job that exceeds its bound is on a core.
        let overruns = |job: &Job| job.executed >= bound(job);
        violations.is_overload |= view.running.iter().flatten().any(|id| overruns(view.job(*id)));
        violations
    }

    fn released(&mut self, job: &Job, premise: &Premise, violations: &mut Violations) {
        let task = &premise.tasks[job.task as usize];
        let next = &mut self.next[job.task as usize];
        let arrival = job.deadline.saturating_sub(task.deadline);
        let is_in_time = arrival + task.deadline == job.deadline && arrival <= job.release;
        let is_expected = arrival == *next || (task.jobs > 1 && arrival + task.period == *next);
        violations.breaks_pattern |= premise.is_exact && !is_expected;
        let keeps_apart = arrival >= *next || is_expected;
        let keeps_promise = is_in_time && job.release <= arrival + task.jitter && job.wcet <= task.wcet;
        violations.breaks_model |= !keeps_apart || !keeps_promise;
        *next = (*next).max(arrival + task.period);
    }

    /// Earliest arrival of an unreleased job of the task; none if there will be no such job. Jobs that arrived longer
    /// ago than the jitter have been released.
    pub fn next_arrival(&self, now: Time, place: usize, premise: &Premise) -> Option<Time> {
        let arrival = self.next[place].max(now.saturating_sub(premise.tasks[place].jitter));
        Some(arrival).filter(|arrival| *arrival < self.until[place])
    }
}

/// Whether no job was waiting just before, that is, whether every ready job has just been released.
pub(super) fn is_idle_instant(view: &SystemView<'_>) -> bool {
    view.ready().all(|(_, job)| job.release == view.now && job.executed == Time::ZERO && job.deadline > view.now)
}
