//! Arrivals and deadlines: sporadic gaps, bursts, jitter, first releases, relative deadlines. All of them keep the mean
//! rate of a task.

use rand::RngExt;
use rand_pcg::Pcg64;
use temponet_task::{Arrival, Gap, TaskSet, Time};

use super::{GapKind, Ranged, is_burst, rate, share_of_tasks};

/// Share of the tasks that release bursts.
const BURSTING: f64 = 0.2;

/// Longest jitter as a share of the slack, so that no job is released when it can no longer meet its deadline.
const MOST_OF_SLACK: f64 = 0.9;

fn nanoseconds(time: f64) -> Time {
    Time((time.round() as u64).clamp(1, Time::MAX_INPUT.0))
}

/// Makes periodic tasks sporadic. The period becomes the mean gap.
pub(super) fn sporadic(ranged: &Ranged, kinds: &[GapKind], set: &mut TaskSet, rng: &mut Pcg64) {
    if !ranged.happens(rng) || kinds.is_empty() {
        return;
    }
    let (ratio, share) = (ranged.log_size(rng), share_of_tasks(rng));
    let kind = kinds[rng.random_range(0..kinds.len())];
    for task in set.system.tasks_mut().iter_mut() {
        if let Arrival::Periodic { period } = task.arrival
            && rng.random::<f64>() < share
        {
            let minimum = nanoseconds(period.0 as f64 / ratio).min(period);
            let gap = match kind {
                GapKind::Exponential => Gap::Exponential { mean: period },
                GapKind::Uniform => Gap::Uniform { max: (period + (period - minimum)).min(Time::MAX_INPUT) },
            };
            task.arrival = Arrival::Sporadic { minimum, gap };
        }
    }
}

/// Lets some periodic tasks release several jobs at once, as many times less often. Their deadlines become longer, by a
/// factor between 1 and the number of jobs.
pub(super) fn bursts(ranged: &Ranged, set: &mut TaskSet, rng: &mut Pcg64) {
    if !ranged.happens(rng) {
        return;
    }
    let always = rng.random_range(0..set.tasks().len().max(1));
    for (index, task) in set.system.tasks_mut().iter_mut().enumerate() {
        let is_chosen = rng.random::<f64>() < BURSTING || index == always;
        let (jobs, longer) = (ranged.whole(rng), rng.random::<f64>());
        if let Arrival::Periodic { period } = task.arrival
            && is_chosen
            && period.0 <= Time::MAX_INPUT.0 / u64::from(jobs)
        {
            task.arrival = Arrival::Burst { jobs, every: period * u64::from(jobs), until: Time::NEVER };
            task.deadline = nanoseconds(task.deadline.0 as f64 * f64::from(jobs).powf(longer));
        }
    }
}

/// Draws relative deadlines as multiples of the mean time between arrivals.
pub(super) fn deadlines(ranged: &Ranged, set: &mut TaskSet, rng: &mut Pcg64) {
    if !ranged.happens(rng) {
        return;
    }
    for task in set.system.tasks_mut().iter_mut() {
        let factor = ranged.log_size(rng);
        let mean = match task.arrival {
            Arrival::Burst { .. } => task.deadline.0 as f64,
            _ => 1.0 / rate(task),
        };
        task.deadline = nanoseconds(factor * mean).max(task.wcet);
    }
}

/// Adds release jitter.
pub(super) fn jitter(ranged: &Ranged, set: &mut TaskSet, rng: &mut Pcg64) {
    if !ranged.happens(rng) {
        return;
    }
    let share = share_of_tasks(rng);
    for task in set.system.tasks_mut().iter_mut() {
        let (is_chosen, part) = (rng.random::<f64>() < share, ranged.log_size(rng));
        let slack = MOST_OF_SLACK * task.deadline.saturating_sub(task.wcet).0 as f64;
        if is_chosen
            && !is_burst(task)
            && let Some(period) = task.period()
        {
            task.jitter = Time((part * period.0 as f64).min(slack) as u64);
        }
    }
}

/// Spreads the first arrivals over the periods.
pub(super) fn offsets(chance: f64, set: &mut TaskSet, rng: &mut Pcg64) {
    if rng.random::<f64>() >= chance {
        return;
    }
    for task in set.system.tasks_mut().iter_mut() {
        let part = rng.random::<f64>();
        if let Some(period) = task.period() {
            task.offset = Time((part * period.0 as f64) as u64);
        }
    }
}
