//! Decisions that cost time, on one core. Whatever runs pays for the decision at every release and at every deadline,
//! so these decisions are demand of their own, ahead of every deadline. Before a run they are part of the demand test,
//! and during it part of the claims. Both bounds assume that every task, guaranteed or not, keeps to its period.
//!
//! Within a time L, a task with jitter J has at most ⌊(L + J)/T⌋ + 1 releases and ⌊L/T⌋ + 1 deadlines. The jobs of a
//! burst are released together and due together, but with jitter they are released one by one.

use temponet_analysis::{Demand, Sporadic, WorstCase};
use temponet_task::{Arrival, System, Task, Time};

use super::slack::Claims;

/// Number of decisions for the releases of one arrival.
fn releases(task: &Task) -> u64 {
    match task.arrival {
        Arrival::Burst { jobs, .. } if task.jitter > Time::ZERO => u64::from(jobs),
        _ => 1,
    }
}

/// Demand of guaranteed tasks and of all decisions. Returns none if a task has no period, or if decisions leave no
/// time.
///
/// Of the releases within L, all but ⌈(w + J)/T⌉ count as demand of a task with deadline w, the shortest window of a
/// guaranteed task. The others shorten every window. Deadlines likewise, without J.
pub(super) fn demands(system: &System, guaranteed: &WorstCase) -> Option<Vec<Demand>> {
    let decision = system.costs().decision.0;
    let window = Time(guaranteed.tasks.iter().map(Sporadic::window).min()?);
    let (mut once, mut demands) = (0u64, Vec::new());
    for task in system.tasks() {
        let period = task.period()?;
        for (decisions, delay) in [(releases(task), task.jitter), (1, Time::ZERO)] {
            let work = decision.saturating_mul(decisions);
            let early = window.0.saturating_add(delay.0).div_ceil(period.0.max(1));
            once = once.saturating_add(early.saturating_mul(work));
            demands.push(Demand { wcet: Time(work), deadline: window, period });
        }
    }
    demands.extend(guaranteed.tasks.iter().map(Demand::from));
    let shorter = |demand: Demand| Demand { deadline: demand.deadline.saturating_sub(Time(once)), ..demand };
    (window.0 > once).then(|| demands.into_iter().map(shorter).collect())
}

/// Adds the decisions from now on to the claims, for tasks of which nothing is known but their periods.
pub(super) fn claim(system: &System, now: Time, claims: &mut Claims) {
    let decision = system.costs().decision.0;
    for task in system.tasks() {
        let Some(period) = task.period() else { continue };
        let delayed = task.jitter.0.div_ceil(period.0.max(1)).saturating_mul(releases(task));
        claims.add_job(now, Time(delayed.saturating_mul(decision)));
        claims.add_task(now, period, decision.saturating_mul(releases(task) + 1));
    }
}
