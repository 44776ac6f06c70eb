//! Properties of the set as a whole: costs of dispatching, the miss rule, mode switches, and job lists.

use rand::RngExt;
use rand_pcg::Pcg64;
use temponet_task::{Arrival, Costs, ExecutionModel, ListedJob, Mode, OnMiss, TaskId, TaskSet, Time};

use super::{Ranged, median, rate};
use crate::workload::Workload;

/// Draws costs of migrations, context switches, or both.
pub(super) fn costs(ranged: &Ranged, set: &mut TaskSet, rng: &mut Pcg64) {
    if !ranged.happens(rng) {
        return;
    }
    let unit = median(set.tasks().iter().map(|task| task.mean_execution()).collect());
    let mut cost = || Time((ranged.log_size(rng) * unit).min(Time::MAX_INPUT.0 as f64) as u64);
    let (migration, context_switch) = (cost(), cost());
    let which = rng.random_range(0..3);
    let migration = if which == 0 { Time::ZERO } else { migration };
    let context_switch = if which == 1 { Time::ZERO } else { context_switch };
    set.system.set_costs(Costs { migration, context_switch, ..*set.costs() });
}

/// Lets late jobs go on, where the load is within the range.
pub(super) fn keep_late(ranged: &Ranged, set: &mut TaskSet, rng: &mut Pcg64) {
    let load = set.mean_utilization() / set.cores().max(1) as f64;
    if ranged.happens(rng) && (ranged.range.0..=ranged.range.1).contains(&load) {
        set.system.set_on_miss(OnMiss::Continue);
    }
}

/// Draws two to six modes, each of which lasts 10 to 100 median periods, the last one to the end.
pub(super) fn modes(ranged: &Ranged, set: &mut TaskSet, rng: &mut Pcg64) {
    if !ranged.happens(rng) {
        return;
    }
    let period = median(set.tasks().iter().map(|task| 1.0 / rate(task)).collect());
    let mut begin = 0.0;
    for number in 0..rng.random_range(2..=6) {
        begin += period * rng.random_range(10.0..100.0);
        let rounded = |factor: f64| (factor * 1e3).round() / 1e3;
        let (work, faster) = (ranged.log_size(rng), ranged.log_size(rng));
        let (varies_work, varies_rate) = (rng.random_bool(0.7), rng.random_bool(0.4));
        let silent = if rng.random_bool(0.3) { rng.random_range(0.1..0.6) } else { 0.0 };
        let mut released: Vec<TaskId> = set.task_ids().filter(|_| rng.random::<f64>() >= silent).collect();
        if released.is_empty() {
            released.push(TaskId(0));
        }
        let at = Time((begin as u64).clamp(1, Time::MAX_INPUT.0));
        if set.modes().last().is_some_and(|last| last.at >= at) {
            return;
        }
        let mode = Mode::new(format!("mode{}", number + 1), at)
            .with_work(if varies_work { rounded(work) } else { 1.0 })
            .with_rate(if varies_rate { rounded(faster) } else { 1.0 })
            .with_only(&released, set.tasks().len());
        set.push_mode(mode);
    }
}

/// Replaces the tasks by lists of the jobs that they would release.
///
/// As in files, a list either has known execution times or says nothing about the shortest ones, and it has no (m,k)
/// constraints.
pub(super) fn lists(ranged: &Ranged, set: &mut TaskSet, rng: &mut Pcg64) {
    if !ranged.happens(rng) {
        return;
    }
    let wanted = ranged.log_size(rng) * set.cores() as f64;
    let seed = rng.random();
    let per_nanosecond: f64 = set.tasks().iter().map(rate).sum();
    let horizon = Time(((wanted / per_nanosecond) as u64).clamp(1, Time::MAX_INPUT.0));
    let is_known = set.tasks().iter().all(|task| task.execution == ExecutionModel::Wcet);
    let mut jobs: Vec<Vec<ListedJob>> = vec![Vec::new(); set.tasks().len()];
    for release in Workload::counted(set, seed, horizon) {
        // A list states wcets that hold.
        jobs[release.task].push(
            ListedJob::new(release.time, release.deadline, release.execution.min(release.wcet))
                .with_wcet(release.wcet)
                .with_bcet(if is_known { release.wcet } else { Time(1) })
                .with_criticality(release.criticality)
                .with_value(release.value)
                .with_estimate(release.estimate),
        );
    }
    if jobs.iter().all(Vec::is_empty) {
        return;
    }
    set.set_modes(Vec::new());
    let mut lists = jobs.into_iter();
    set.system.tasks_mut().retain_mut(|task| {
        let mut list = lists.next().unwrap_or_default();
        list.sort_by_key(|job| job.release);
        let longest = |time: fn(&ListedJob) -> Time| list.iter().map(time).max().unwrap_or_default();
        task.wcet = longest(|job| job.wcet);
        task.deadline = longest(|job| job.deadline - job.release);
        task.bcet = list.iter().map(|job| job.bcet).min().unwrap_or_default();
        (task.acet, task.wcet_high, task.execution, task.mk) = (None, None, ExecutionModel::Wcet, None);
        (task.offset, task.jitter) = (Time::ZERO, Time::ZERO);
        let is_there = !list.is_empty();
        task.arrival = Arrival::Listed(list.into());
        is_there
    });
}
