//! Contract on cores that differ in speed, or that some tasks may not use: every scheduler that users can name runs
//! such sets legally, or says that it does not; and nothing, not even brute force over all schedules, exceeds the bound
//! on the optimum.

use std::collections::HashSet;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet::{ExecutionModel, Model, OnMiss, Preemption, Task, TaskSet, Time};
use temponet_lab::clairvoyant::equal_optimum;
use temponet_lab::roster::Roster;
use temponet_sim::{Observer, Unobserved, simulate};
use temponet_task::{Core, CoreId, CoreSet, Job, Speed};

const STEPS: u64 = 4_000_000;

fn machine(speeds: &[u32]) -> Vec<Core> {
    speeds.iter().map(|speed| Core::new(format!("x{speed}"), Speed(*speed))).collect()
}

fn set(speeds: &[u32], is_bound: bool, on_miss: OnMiss) -> TaskSet {
    let (ms, count) = (Time::from_ms, speeds.len());
    let task = |k: usize| {
        let (period, wcet) = (ms(9 + 4 * k as u64), ms(4 + k as u64));
        let mut task = Task::periodic(format!("t{k}"), period, wcet);
        (task.bcet, task.execution, task.criticality) = (ms(1), ExecutionModel::Uniform, (k % 2) as u8);
        if is_bound && !k.is_multiple_of(3) {
            task.cores = CoreSet::of((0..1 + k % 2).map(|core| CoreId::new((core + k) % count)));
        }
        task
    };
    let mut set = TaskSet::new("unlike", (0..4 * count).map(task).collect(), count);
    set.system.set_on_miss(on_miss);
    set.system.set_machine(machine(speeds));
    set
}

#[test]
fn every_scheduler_runs_on_cores_that_differ_or_says_why_not() {
    let roster = Roster::with(Model::built_in().unwrap());
    let slow = ["planner:futures=2".to_string()];
    let (mut ran, mut refused) = (0, HashSet::new());
    let cases = [
        (&[1000, 400][..], false, OnMiss::Abort),
        (&[1000, 1000, 1000], true, OnMiss::Abort),
        (&[400, 2500, 1000], true, OnMiss::Continue),
        (&[2000], false, OnMiss::Abort),
    ];
    for (speeds, is_bound, on_miss) in cases {
        let mut set = set(speeds, is_bound, on_miss);
        for is_held in [false, true] {
            if is_held {
                set.system.tasks_mut()[1].preemption = Preemption::None;
                set.system.tasks_mut()[2].preemption = Preemption::Every(Time::from_ms(2));
            }
            for name in roster.names().into_iter().chain(slow.clone()) {
                let mut scheduler = roster.build(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
                match simulate(&set, 1, Time::from_ms(200), &mut *scheduler, &mut Unobserved) {
                    Ok(metrics) => ran += usize::from(metrics.jobs.released > 20),
                    Err(error) => {
                        assert!(error.is_about_the_set(), "{name} on {speeds:?}: {error}");
                        if !is_held {
                            refused.insert(name);
                        }
                    }
                }
            }
        }
    }
    assert!(ran > 8 * 30, "{ran}");
    let mut refused: Vec<String> = refused.into_iter().filter(|name| !name.contains("d-over")).collect();
    refused.sort();
    assert_eq!(
        refused,
        ["cd-split", "dp-wrap", "edf-chain", "egs", "er-pd2", "hlfet", "llref", "lre-tl", "pd2", "rr", "run"]
    );
}

/// Observer of the tasks that ran on the last core.
#[derive(Debug, Default)]
struct OnLast {
    core: CoreId,
    tasks: HashSet<u32>,
}

impl Observer for OnLast {
    fn ran(&mut self, core: CoreId, job: &Job, _start: Time, _end: Time, _speed: Speed) {
        if core == self.core {
            self.tasks.insert(job.task.0);
        }
    }
}

#[test]
fn a_core_that_is_only_for_some_tasks_runs_nothing_else() {
    let roster = Roster::with(Model::built_in().unwrap());
    let mut set = set(&[1000, 1000, 1000], false, OnMiss::Abort);
    set.system.tasks_mut()[1].cores = CoreSet::of([CoreId(2)]);
    set.system.tasks_mut()[4].cores = CoreSet::of([CoreId(2), CoreId(0)]);
    let mut cores = machine(&[1000, 1000, 1000]);
    cores[2].only = true;
    set.system.set_machine(cores);
    let (mut ran, mut most) = (0, 0);
    for name in roster.names() {
        let mut scheduler = roster.build(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut seen = OnLast { core: CoreId(2), ..OnLast::default() };
        if let Ok(metrics) = simulate(&set, 1, Time::from_ms(400), &mut *scheduler, &mut seen) {
            most = most.max(metrics.jobs.met);
            assert!(seen.tasks.contains(&1) && seen.tasks.iter().all(|task| [1, 4].contains(task)), "{name}: {seen:?}");
            ran += 1;
        }
    }
    assert!(ran > 20, "{ran}");
    let (found, released) = equal_optimum(&set, 1, Time::from_ms(400), STEPS).unwrap();
    assert!(most as f64 <= found.upper, "{most} of {released}: {}", found.upper);
}

/// Greatest number of jobs in time, one for each task, by following every schedule nanosecond by nanosecond.
fn brute_force(set: &TaskSet, horizon: u64) -> usize {
    let whole = |task: &Task| 1000 * task.wcet.0;
    let mut states: HashSet<Vec<u64>> = [set.tasks().iter().map(whole).collect()].into();
    for now in 0..horizon {
        let mut next = HashSet::new();
        for state in states {
            let mut used = vec![false; set.tasks().len()];
            choose(set, now, 0, &state, &mut used, &mut next);
        }
        states = next;
    }
    let done = |state: &Vec<u64>| state.iter().filter(|left| **left == 0).count();
    states.iter().map(done).max().unwrap_or(0)
}

/// Adds every state that the cores from `core` on can reach in a nanosecond. Work is done only between release and
/// deadline.
fn choose(set: &TaskSet, now: u64, core: usize, state: &[u64], used: &mut [bool], next: &mut HashSet<Vec<u64>>) {
    if core == set.cores() {
        next.insert(state.to_vec());
        return;
    }
    choose(set, now, core + 1, state, used, next);
    for (job, task) in set.tasks().iter().enumerate() {
        let is_open = (task.offset.0..task.offset.0 + task.deadline.0).contains(&now);
        if is_open && !used[job] && state[job] > 0 && task.cores.contains(CoreId::new(core)) {
            used[job] = true;
            let mut after = state.to_vec();
            after[job] = after[job].saturating_sub(u64::from(set.machine().speed(CoreId::new(core)).0));
            choose(set, now, core + 1, &after, used, next);
            used[job] = false;
        }
    }
}

#[test]
fn brute_force_never_exceeds_the_bound() {
    let mut rng = Pcg64::seed_from_u64(3);
    let (mut tight, mut missed) = (0, 0);
    for round in 0..400 {
        let count = rng.random_range(1..=2);
        let speeds: Vec<u32> = (0..count).map(|_| [370, 500, 1000, 1600, 3000][rng.random_range(0..5)]).collect();
        let jobs = rng.random_range(1..=4);
        let task = |index: usize| {
            let mut task = Task::periodic(format!("t{index}"), Time(1_000), Time(rng.random_range(1..7)));
            (task.offset, task.deadline) = (Time(rng.random_range(0..4)), Time(rng.random_range(1..6)));
            task.cores = CoreSet::of(CoreId::all(count).filter(|_| rng.random_bool(0.6)));
            task
        };
        let mut set = TaskSet::new("small", (0..jobs).map(task).collect(), count);
        set.system.set_machine(machine(&speeds));
        let best = brute_force(&set, 10);
        let (bound, released) = equal_optimum(&set, 1, Time(20), STEPS).unwrap();
        assert!(best as f64 <= bound.upper + 1e-9, "{round}: {best} > {bound:?}: {set:?}");
        assert_eq!(released as usize, set.tasks().len());
        // Where the draw is a machine of identical cores after all, the optimum is found.
        let lower = if set.has_identical_cores() { best as f64 } else { 0.0 };
        assert_eq!(bound.lower, lower, "{set:?}");
        tight += usize::from(best as f64 == bound.upper);
        missed += released as usize - best;
    }
    assert!(tight > 250 && missed > 200, "{tight} tight, {missed} missed");
}

#[test]
fn no_scheduler_exceeds_the_bound() {
    let mut beaten = 0.0f64;
    for (speeds, is_bound) in [(&[1000, 400][..], false), (&[400, 2500, 1000], true), (&[1000, 1000], true)] {
        let set = set(speeds, is_bound, OnMiss::Abort);
        let factor = 1.3 * set.capacity() / set.mean_utilization();
        let set = set.with_work((factor * 1e6) as u64, 1_000_000);
        for seed in 1..4 {
            let horizon = Time::from_ms(300);
            let (bound, released) = equal_optimum(&set, seed, horizon, STEPS).unwrap();
            assert!(bound.upper < released as f64, "{bound:?} of {released}: the set is overloaded");
            for entry in temponet_sched::catalog::all().into_iter().filter(|entry| entry.kind.is_rule()) {
                let mut scheduler = temponet_sched::build(&entry.name).unwrap();
                if let Ok(metrics) = simulate(&set, seed, horizon, &mut *scheduler, &mut Unobserved) {
                    assert!(metrics.jobs.met as f64 <= bound.upper, "{}: {bound:?}", entry.name);
                    beaten = beaten.max(metrics.jobs.met as f64 / bound.upper);
                }
            }
        }
    }
    assert!(beaten > 0.8, "{beaten}: the bound is close to what schedulers reach");
}
