//! Whether jobs come and take their time as the premise has it, and the earliest arrivals to come.

use temponet_task::{Arrival, Event, Job, System, SystemView, Time};

use super::premise::Premise;

/// The arrivals of every task.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    /// No job of the task that is not released yet arrives before.
    next: Vec<Time>,
    /// No job arrives from then on.
    until: Vec<Time>,
}

/// What has happened since the last decision that the premise does not allow for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Violations {
    /// A job that comes too early, too late, too long or too urgent.
    pub breaks_model: bool,
    /// Arrivals have left the beat they are proved for, for good.
    pub breaks_pattern: bool,
    /// A job took too long, or missed its deadline.
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

    /// Takes note of what happened.
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
        // A job that goes beyond its bound is on a core.
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

    /// The earliest arrival of a job of the task that is not released yet; none if there is no such job. What arrived longer ago
    /// than its jitter has been released.
    pub fn next_arrival(&self, now: Time, place: usize, premise: &Premise) -> Option<Time> {
        let arrival = self.next[place].max(now.saturating_sub(premise.tasks[place].jitter));
        Some(arrival).filter(|arrival| *arrival < self.until[place])
    }
}

/// Nothing was waiting just before: every ready job has just been released.
pub(super) fn is_idle_instant(view: &SystemView<'_>) -> bool {
    view.ready().all(|(_, job)| job.release == view.now && job.executed == Time::ZERO && job.deadline > view.now)
}
