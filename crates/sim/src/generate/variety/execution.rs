//! Execution times: their distribution, wcets that are told too high, and overruns. Each step keeps the mean execution
//! time of a task.

use std::sync::Arc;

use rand::RngExt;
use rand_distr::StandardNormal;
use rand_pcg::Pcg64;
use temponet_task::{ExecutionModel, Task, TaskSet, Time};

use super::{Ranged, Times, Variety, is_burst, log_uniform, share_of_tasks};
use crate::execution::Sampler;

/// Number of measured times of a task.
const SAMPLES: usize = 48;

/// Half the width of a mode of measured times, as a share of its center.
const MODE_WIDTH: f64 = 0.08;

/// Share of the tasks whose jobs may overrun.
const OVERRUNNING: f64 = 1.0 / 3.0;

/// Draws the execution times of all tasks that always take their wcet, which becomes their mean.
pub(super) fn vary(variety: &Variety, set: &mut TaskSet, rng: &mut Pcg64) {
    let kinds = &variety.execution;
    if kinds.is_empty() {
        return;
    }
    let is_mixed = rng.random::<f64>() < variety.mixed;
    let mut kind = kinds[rng.random_range(0..kinds.len())];
    let mut least = log_uniform(variety.spread, rng);
    for task in
        set.system.tasks_mut().iter_mut().filter(|task| task.execution == ExecutionModel::Wcet && !is_burst(task))
    {
        if is_mixed {
            kind = kinds[rng.random_range(0..kinds.len())];
            least = log_uniform(variety.spread, rng);
        }
        let wanted = task.wcet;
        distribute(task, kind, least, rng);
        restore_mean(task, wanted.0 as f64);
    }
}

/// Gives a task a distribution between the share `least` of its wcet and its wcet.
fn distribute(task: &mut Task, kind: Times, least: f64, rng: &mut Pcg64) {
    let wcet = task.wcet.0 as f64;
    let part = |share: f64| Time((share * wcet).round().max(1.0) as u64).min(task.wcet);
    let inside = |low: f64, high: f64, rng: &mut Pcg64| least + (1.0 - least) * rng.random_range(low..high);
    match kind {
        Times::Known => {}
        Times::Uniform => (task.bcet, task.execution) = (part(least), ExecutionModel::Uniform),
        Times::Normal => {
            // The bounds are two and a half deviations or more from the mean, so cutting them off hardly moves it.
            let deviation = part((1.0 - least) * rng.random_range(0.03..0.16));
            let acet = part(inside(0.4, 0.6, rng));
            (task.bcet, task.acet, task.execution) = (part(least), Some(acet), ExecutionModel::Normal { deviation });
        }
        Times::Weibull => {
            let exceed = log_uniform((1e-4, 1e-2), rng);
            let acet = part(inside(0.15, 0.5, rng));
            (task.bcet, task.acet, task.execution) = (part(least), Some(acet), ExecutionModel::Weibull { exceed });
        }
        Times::Pareto => {
            let shape = rng.random_range(1.0..3.0);
            (task.bcet, task.execution) = (part(least), ExecutionModel::Pareto { shape });
        }
        Times::Bimodal => {
            let long = rng.random_range(0.05..0.5);
            measure(task, |rng| if rng.random::<f64>() < long { around(1.0, rng) } else { around(least, rng) }, rng);
        }
        Times::FewModes => {
            let modes: Vec<f64> = (0..rng.random_range(4..=6)).map(|_| log_uniform((least, 1.0), rng)).collect();
            measure(task, |rng| around(modes[rng.random_range(0..modes.len())], rng), rng);
        }
        Times::HeavyTailed => {
            let width = rng.random_range(0.5..1.2);
            measure(task, |rng| (width * rng.sample::<f64, _>(StandardNormal)).exp(), rng);
        }
    }
}

/// Draws a number close to `center`.
fn around(center: f64, rng: &mut Pcg64) -> f64 {
    center * (1.0 + MODE_WIDTH * rng.random_range(-1.0..1.0))
}

/// Draws measured times, relative to each other, and scales them so that the longest one is the wcet.
fn measure(task: &mut Task, draw: impl Fn(&mut Pcg64) -> f64, rng: &mut Pcg64) {
    let drawn: Vec<f64> = (0..SAMPLES).map(|_| draw(rng)).collect();
    let longest = drawn.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let time = |part: &f64| Time((part / longest * task.wcet.0 as f64).round().max(1.0) as u64).min(task.wcet);
    let samples: Arc<[Time]> = drawn.iter().map(time).collect();
    task.bcet = samples.iter().copied().min().unwrap_or(task.wcet);
    task.execution = ExecutionModel::Empirical { samples };
}

/// Scales all execution times of a task so that their mean is `wanted`, in nanoseconds.
fn restore_mean(task: &mut Task, wanted: f64) {
    let mean = task.mean_execution();
    if mean > 0.0 && mean != wanted {
        // A thousandfold resolution keeps the rounding of short times small.
        *task = task.with_work((wanted * 1e3) as u64, (mean * 1e3).round().max(1.0) as u64);
    }
}

/// Tells the scheduler longer wcets than jobs ever take, but not beyond the deadlines.
pub(super) fn tell_more(ranged: &Ranged, set: &mut TaskSet, rng: &mut Pcg64) {
    if !ranged.happens(rng) {
        return;
    }
    let (factor, share) = (ranged.log_size(rng), share_of_tasks(rng));
    for task in set.system.tasks_mut().iter_mut() {
        let is_chosen = rng.random::<f64>() < share;
        let told = ((task.wcet.0 as f64 * factor) as u64).min(task.deadline.0).max(task.wcet.0);
        if !is_chosen || told == task.wcet.0 || is_burst(task) {
            continue;
        }
        // A distribution would stretch to the new wcet, so the task gets a sample of it instead.
        let samples: Arc<[Time]> = match &task.execution {
            ExecutionModel::Wcet => [task.wcet].into(),
            ExecutionModel::Empirical { samples } => samples.clone(),
            ExecutionModel::Overrun { .. } => continue,
            _ => {
                let sampler = Sampler::new(task);
                (0..SAMPLES).map(|_| sampler.draw(rng).max(Time(1))).collect()
            }
        };
        let wanted = task.mean_execution();
        task.bcet = samples.iter().copied().min().unwrap_or(task.bcet);
        (task.acet, task.wcet, task.execution) = (None, Time(told), ExecutionModel::Empirical { samples });
        restore_mean(task, wanted);
    }
}

/// Lets jobs of some tasks overrun their wcet.
pub(super) fn overrun(ranged: &Ranged, set: &mut TaskSet, rng: &mut Pcg64) {
    if !ranged.happens(rng) {
        return;
    }
    let (factor, probability) = (ranged.log_size(rng), log_uniform((0.01, 0.2), rng));
    for task in set.system.tasks_mut().iter_mut() {
        let is_chosen = rng.random::<f64>() < OVERRUNNING;
        if !is_chosen || is_burst(task) || matches!(task.execution, ExecutionModel::Overrun { .. }) {
            continue;
        }
        let wanted = task.mean_execution();
        let below = Box::new(task.execution.clone());
        task.wcet_high = Some(Time((task.wcet.0 as f64 * factor) as u64).max(task.wcet).min(Time::MAX_INPUT));
        task.execution = ExecutionModel::Overrun { probability, below };
        restore_mean(task, wanted);
    }
}
