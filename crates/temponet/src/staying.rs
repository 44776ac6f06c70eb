//! The switching bonus: a Q-value bonus for a running job, on systems where a preemption costs time.
//!
//! Jobs are first chosen by their Q-values alone. Then a running job that was not chosen may take its core back from an
//! incoming job. Two conditions must hold:
//! - the incoming job is not more critical than the running one;
//! - its Q-value is higher by at most the bonus, `coefficient` · cost / (cost + remaining). The cost is the time that
//!   the exchange wastes, and remaining is the work left of the running job.
//!
//! The bonus is zero where switching is free. It grows with the cost and as the running job nears completion, and never
//! exceeds the coefficient. It never keeps a job on a core while a more critical job waits that the network prefers.

use temponet_task::{Costs, Job, System, SystemView, Time};

use crate::mapping::ScoredJob;

/// Switching bonus on a system: Q-value bonus for a running job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Staying {
    /// Upper limit of the bonus, in units of Q.
    coefficient: f32,
    /// Cost of a context switch, in nanoseconds.
    context_switch: f64,
    /// Cost of a migration, in nanoseconds.
    migration: f64,
    cores: usize,
}

/// A running job that kept its core because of the switching bonus.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kept {
    /// Job that kept its core.
    pub job: temponet_task::JobId,
    /// Job that would have got the core without the bonus.
    pub instead_of: temponet_task::JobId,
    /// Bonus of the running job, in units of Q.
    pub worth: f32,
    /// Q-value of the other job minus the Q-value of the running job; at most `worth`.
    pub lacked: f32,
}

impl Staying {
    /// Returns the bonus on a system. `coefficient` is its upper limit, in units of Q; see [`crate::Model::stay`].
    pub fn on(system: &System, coefficient: f32) -> Staying {
        let Costs { context_switch, migration, .. } = *system.costs();
        let [context_switch, migration] = [context_switch, migration].map(|cost| cost.0 as f64);
        Staying { coefficient, context_switch, migration, cores: system.cores() }
    }

    /// Whether nothing has to be compared: there is no bonus, or dispatching costs nothing.
    pub fn is_zero(&self) -> bool {
        self.coefficient <= 0.0 || self.context_switch + self.migration <= 0.0
    }

    /// Expected time, in nanoseconds, that is wasted if `incoming` preempts `running`.
    ///
    /// The running job needs another context switch later. It also needs a migration unless it resumes on its own core;
    /// all cores are assumed to be equally likely. The incoming job needs its context switch in any case, but may have
    /// to migrate now.
    pub fn cost(&self, running: &Job, incoming: &Job) -> f64 {
        let elsewhere = (self.cores - 1) as f64 / self.cores as f64;
        let moves = incoming.last_core.is_some() && incoming.last_core != running.last_core;
        self.context_switch + self.migration * (elsewhere + f64::from(u8::from(moves)))
    }

    /// Bonus of `running`, in units of Q, when it competes with `incoming` for its core.
    pub fn worth(&self, running: &Job, incoming: &Job) -> f32 {
        let cost = self.cost(running, incoming);
        if cost <= 0.0 {
            return 0.0;
        }
        // The remaining work of a job that has overrun its wcet is unknown. It must not pass for nearly complete, so
        // its whole wcet is taken.
        let has_overrun = running.executed >= running.wcet;
        let remaining = if has_overrun { running.wcet.max(Time(1)) } else { running.time_to_finish() };
        self.coefficient * (cost / (cost + remaining.0 as f64)) as f32
    }

    /// Lets running jobs that are not among the `chosen` take their cores back, and calls `report` for each.
    ///
    /// `jobs` are all ready jobs with their Q-values, `idle` is the Q-value of idling, and `lost` is working memory.
    pub(crate) fn keep(
        &self,
        chosen: &mut [ScoredJob],
        lost: &mut Vec<ScoredJob>,
        jobs: impl Iterator<Item = ScoredJob> + Clone,
        idle: f32,
        view: &SystemView<'_>,
        mut report: impl FnMut(Kept),
    ) {
        lost.clear();
        if self.is_zero() || view.running.iter().flatten().all(|id| chosen.iter().any(|other| other.id == *id)) {
            return;
        }
        let is_lost = |job: &ScoredJob| view.job(job.id).running && chosen.iter().all(|other| other.id != job.id);
        lost.extend(jobs.clone().filter(|job| job.q >= idle && is_lost(job)).take(view.cores()));
        let criticality = |job: &ScoredJob| view.job(job.id).criticality;
        // The most critical job first: a later job takes no core from a more critical one, so earlier exchanges stay
        // valid.
        lost.sort_unstable_by(|a, b| criticality(b).cmp(&criticality(a)).then(a.order(b)));
        for running in lost.iter() {
            let is_better =
                |other: &ScoredJob| other.order(running).is_lt() && criticality(other) > criticality(running);
            let waits = |other: &ScoredJob| chosen.iter().all(|chosen| chosen.id != other.id);
            if jobs.clone().any(|other| is_better(&other) && waits(&other)) {
                continue;
            }
            let may_wait = |incoming: &ScoredJob| {
                let outranks =
                    |other: &&ScoredJob| criticality(other) < criticality(incoming) && incoming.order(other).is_lt();
                !view.job(incoming.id).running
                    && criticality(incoming) <= criticality(running)
                    && chosen.iter().find(outranks).is_none()
            };
            let worth = |incoming: &ScoredJob| self.worth(view.job(running.id), view.job(incoming.id));
            let gives_way = |incoming: &ScoredJob| may_wait(incoming) && running.q + worth(incoming) >= incoming.q;
            // Of the incoming jobs that may wait, the one that ranks last gives way.
            let places = (0..chosen.len()).filter(|place| gives_way(&chosen[*place]));
            let Some(place) = places.reduce(|a, b| if chosen[a].order(&chosen[b]).is_lt() { b } else { a }) else {
                continue;
            };
            let incoming = chosen[place];
            report(Kept {
                job: running.id,
                instead_of: incoming.id,
                worth: worth(&incoming),
                lacked: incoming.q - running.q,
            });
            chosen[place] = *running;
        }
    }
}
