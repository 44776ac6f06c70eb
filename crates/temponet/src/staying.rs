//! What it is worth that a running job keeps its core, where taking it away costs time.
//!
//! The best jobs are chosen by their Q-values alone. Then a running job that lost its core may take it back from a job that came in: if the
//! one that came in is not more critical, and is better by no more than `coefficient` · cost / (cost + remaining), where the cost is
//! the time that the exchange wastes and the remaining work is the running job's. So staying is worth nothing where nothing is wasted, more the more is wasted and
//! the sooner the running job would be done anyway, and never more than the coefficient. It never keeps a job on a core while a more critical one that the
//! network prefers to it waits.

use temponet_task::{Costs, Job, System, SystemView, Time};

use crate::mapping::Candidate;

/// What staying is worth on a system.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Staying {
    coefficient: f32,
    context_switch: f64,
    migration: f64,
    cores: usize,
}

/// A running job that took its core back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kept {
    /// The job that stays.
    pub job: temponet_task::JobId,
    /// The one that would have come in.
    pub instead_of: temponet_task::JobId,
    /// What staying was worth, in units of Q.
    pub worth: f32,
    /// What its Q-value lacked.
    pub lacked: f32,
}

impl Staying {
    /// On a system, with a model's coefficient; see [`crate::Model::stay`].
    pub fn on(system: &System, coefficient: f32) -> Staying {
        let Costs { context_switch, migration, .. } = system.costs;
        let [context_switch, migration] = [context_switch, migration].map(|cost| cost.0 as f64);
        Staying { coefficient, context_switch, migration, cores: system.cores }
    }

    /// Whether it is worth nothing whatever happens.
    pub fn is_zero(&self) -> bool {
        self.coefficient <= 0.0 || self.context_switch + self.migration <= 0.0
    }

    /// The time, in ns, that is wasted if a job comes in for a running one: that one has to be switched to again later, perhaps on another core; the one
    /// that comes in has to be switched to sooner or later, but it may have to migrate.
    pub fn cost(&self, running: &Job, incoming: &Job) -> f64 {
        let elsewhere = (self.cores - 1) as f64 / self.cores as f64;
        let moves = incoming.last_core.is_some() && incoming.last_core != running.last_core;
        self.context_switch + self.migration * (elsewhere + f64::from(u8::from(moves)))
    }

    /// What it is worth, in units of Q, that a running job stays instead of another one coming in.
    pub fn worth(&self, running: &Job, incoming: &Job) -> f32 {
        let cost = self.cost(running, incoming);
        if cost <= 0.0 {
            return 0.0;
        }
        // How much is left of a job that has overrun its wcet nobody knows: not that it is nearly done.
        let has_overrun = running.executed >= running.wcet;
        let remaining = if has_overrun { running.wcet.max(Time(1)) } else { running.remaining() };
        self.coefficient * (cost / (cost + remaining.0 as f64)) as f32
    }

    /// Lets running jobs that are not among the chosen take their cores back, and tells of each. `jobs` are all ready jobs with their Q-values, `lost` is
    /// working memory.
    pub(crate) fn keep(
        &self,
        chosen: &mut [Candidate],
        lost: &mut Vec<Candidate>,
        jobs: impl Iterator<Item = Candidate> + Clone,
        idle: f32,
        view: &SystemView<'_>,
        mut report: impl FnMut(Kept),
    ) {
        lost.clear();
        if self.is_zero() || view.running.iter().flatten().all(|id| chosen.iter().any(|other| other.id == *id)) {
            return;
        }
        let is_lost = |job: &Candidate| view.job(job.id).running && chosen.iter().all(|other| other.id != job.id);
        lost.extend(jobs.clone().filter(|job| job.q >= idle && is_lost(job)).take(view.cores()));
        let criticality = |job: &Candidate| view.job(job.id).criticality;
        // The most critical first: whoever comes later takes nothing from a more critical job, so what is kept stays right.
        lost.sort_unstable_by(|a, b| criticality(b).cmp(&criticality(a)).then(a.order(b)));
        for running in lost.iter() {
            let is_better =
                |other: &Candidate| other.order(running).is_lt() && criticality(other) > criticality(running);
            let waits = |other: &Candidate| chosen.iter().all(|chosen| chosen.id != other.id);
            if jobs.clone().any(|other| is_better(&other) && waits(&other)) {
                continue;
            }
            let may_wait = |incoming: &Candidate| {
                let outranks =
                    |other: &&Candidate| criticality(other) < criticality(incoming) && incoming.order(other).is_lt();
                !view.job(incoming.id).running
                    && criticality(incoming) <= criticality(running)
                    && chosen.iter().find(outranks).is_none()
            };
            let worth = |incoming: &Candidate| self.worth(view.job(running.id), view.job(incoming.id));
            let gives_way = |incoming: &Candidate| may_wait(incoming) && running.q + worth(incoming) >= incoming.q;
            // The worst of those that came in is the first to go.
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
