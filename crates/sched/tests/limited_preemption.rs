//! Contract of the analysis where jobs hold their cores: no simulation refutes what is proved, no response exceeds its
//! bound, and where a test is exact, a set that it refuses misses a deadline in its worst case.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_analysis::{Outcome, PriorityRule, TESTS, demand_with_blocking, response_times};
use temponet_sched::{build, proofs};
use temponet_sim::{Metrics, Recorder, Unobserved, simulate};
use temponet_task::{Arrival, Attribute, Costs, ExecutionModel, Gap, Preemption, Task, TaskSet, Time};

use crate::task_sets::{Kind, drawn, model, ms, set, uncovered_sets};

fn run(scheduler: &str, set: &TaskSet, seed: u64, horizon: Time) -> Metrics {
    simulate(set, seed, horizon, &mut *build(scheduler).unwrap(), &mut Unobserved).unwrap()
}

/// A scheduler that gives up the jobs of low criticality keeps those on their cores that hold them; one that can be
/// cancelled leaves at once.
#[test]
fn jobs_that_can_be_cancelled_leave_when_they_are_given_up() {
    let mut high = Task::periodic("high", ms(3), Time(200_000)).with_criticality(1);
    let below = Box::new(ExecutionModel::Wcet);
    (high.wcet_high, high.execution) = (Some(Time(300_000)), ExecutionModel::Overrun { probability: 1.0, below });
    for preemption in [Preemption::Cancel, Preemption::None] {
        let low = Task::periodic("low", ms(8), ms(4)).with_preemption(preemption);
        let set = TaskSet::new("set", vec![high.clone(), low], 2);
        for scheduler in ["edf-vd", "amc", "shield:edf-vd", "shield:amc"] {
            let metrics = run(scheduler, &set, 1, ms(240));
            assert_eq!(metrics.tasks[0].jobs.released, 80, "{scheduler} {preemption:?}");
            assert_eq!(metrics.tasks[0].jobs.met, 80, "{scheduler} {preemption:?}");
            assert_eq!(metrics.tasks[1].jobs.released, 30, "{scheduler} {preemption:?}");
        }
    }
}

/// Length of `times` longest periods.
fn horizon(set: &TaskSet, times: u64) -> Time {
    set.tasks().iter().filter_map(Task::period).max().unwrap() * times
}

/// Makes the jobs of some tasks hold their cores. A task with a shorter wcet leaves more to prove.
fn limit(rng: &mut Pcg64, set: &mut TaskSet) {
    let parts = rng.random_range(1..4);
    for task in set.system.tasks_mut().iter_mut() {
        if task.wcet_high.is_none() {
            task.wcet = Time((task.wcet.0 / parts).max(1));
            task.bcet = task.bcet.min(task.wcet);
        }
        task.preemption = match rng.random_range(0..4) {
            0 => Preemption::Free,
            1 => Preemption::Every(Time(rng.random_range(task.wcet.0.div_ceil(4)..=task.wcet.0))),
            _ => Preemption::None,
        };
    }
    if set.system.limited_task().is_none() {
        set.system.tasks_mut()[0].preemption = Preemption::None;
    }
}

#[test]
fn what_is_proved_is_never_refuted() {
    let mut rng = Pcg64::seed_from_u64(71);
    let mut proved = BTreeMap::new();
    for round in 0..6_000u64 {
        let cores = [1, 1, 1, 2, 3][round as usize % 5];
        let mut set = drawn(&mut rng, cores, if round % 3 == 0 { Kind::Plain } else { Kind::Wild });
        limit(&mut rng, &mut set);
        if round % 17 == 0 {
            set.system.set_costs(Costs { context_switch: Time::from_us(rng.random_range(0..200)), ..*set.costs() });
        }
        for proof in proofs(&set) {
            let metrics = run(proof.scheduler, &set, round, horizon(&set, 30));
            assert_eq!(metrics.missed(), 0, "{} by {:?}: {set:?}", proof.scheduler, proof.by);
            *proved.entry(proof.scheduler).or_insert(0) += 1;
        }
    }
    for name in ["edf", "rm", "dm", "fp", "fcfs", "p-edf", "p-rm", "cbs", "g-fl"] {
        assert!(proved.get(name).is_some_and(|times| *times > 100), "{name}: {proved:?}");
    }
    // These compare remaining wcets or cut jobs; nothing is claimed of them.
    for name in ["edf-skip", "mh-edf", "edzl", "llf", "dp-wrap", "pd2", "cd-split", "run", "edf-us", "fpedf", "amc"] {
        assert_eq!(proved.get(name), None, "{name}");
    }
}

#[test]
fn response_times_with_blocking_bound_every_response() {
    let mut rng = Pcg64::seed_from_u64(72);
    let (mut checked, mut close) = (0, 0);
    let rules =
        [PriorityRule::RateMonotonic, PriorityRule::DeadlineMonotonic, PriorityRule::Given, PriorityRule::Equal];
    for round in 0..4_000u64 {
        let mut set = drawn(&mut rng, 1, Kind::Wild);
        limit(&mut rng, &mut set);
        set.system.set_on_miss(temponet_task::OnMiss::Continue);
        let rule = rules[round as usize % 4];
        let bounds = response_times(&model(&set), rule).bounds;
        if bounds.iter().any(Option::is_none) {
            continue;
        }
        let mut recorder = Recorder::until(Time::NEVER);
        simulate(&set, round, horizon(&set, 40), &mut *build(rule.scheduler()).unwrap(), &mut recorder).unwrap();
        for job in recorder.jobs.iter().filter(|job| job.end == temponet_sim::End::Completed) {
            let task = &set.tasks()[job.task];
            // The bound counts from the arrival, as the deadline does.
            let arrival = job.deadline - task.deadline;
            let bound = bounds[job.task].unwrap();
            assert!(job.left - arrival <= bound, "{rule:?} {job:?} {bound}: {set:?}");
            checked += 1;
            close += usize::from((job.left - arrival).0 * 10 >= bound.0 * 9);
        }
    }
    assert!(checked > 50_000 && close * 20 > checked, "{checked} {close}");
}

/// A sporadic set without preemption whose tasks can arrive at any time.
fn patient(rng: &mut Pcg64, implicit: bool) -> TaskSet {
    let tasks = (0..rng.random_range(2..5)).map(|index| {
        let period = rng.random_range(4..24);
        let wcet = rng.random_range(1..=(period / 3).max(1));
        let mut task = Task::periodic(format!("t{index}"), Time(period), Time(wcet));
        task.arrival =
            Arrival::Sporadic { minimum: Time(period), gap: Gap::Exponential { mean: Time(period + period / 2) } };
        if !implicit {
            task.deadline = Time(rng.random_range(wcet..2 * period));
        }
        task.preemption = Preemption::None;
        task.extra.set(Attribute::Priority, Some(index));
        task
    });
    TaskSet::new("patient", tasks.collect(), 1)
}

/// Whether a deadline is missed when one task arrives alone and all others a nanosecond later, or all together, all as
/// often as they may.
fn misses_at_worst(set: &TaskSet, scheduler: &str) -> bool {
    (0..=set.tasks().len()).any(|first| {
        let mut worst = set.clone();
        for (index, task) in worst.system.tasks_mut().iter_mut().enumerate() {
            task.arrival = Arrival::Periodic { period: task.period().unwrap() };
            task.offset = Time(u64::from(index != first));
        }
        run(scheduler, &worst, 0, Time(3_000)).missed() > 0
    })
}

#[test]
fn the_exact_tests_refuse_only_sets_that_miss_in_their_worst_case() {
    let mut rng = Pcg64::seed_from_u64(73);
    for (implicit, scheduler) in [(true, "edf"), (false, "edf"), (true, "fp"), (false, "fp")] {
        let (mut yes, mut no) = (0, 0);
        for _ in 0..1_500 {
            let set = patient(&mut rng, implicit);
            let outcome = match scheduler {
                "edf" => demand_with_blocking(&model(&set)),
                _ => response_times(&model(&set), PriorityRule::Given).outcome,
            };
            match outcome {
                Outcome::Schedulable => {
                    assert!(!misses_at_worst(&set, scheduler), "{scheduler}: {set:?}");
                    yes += 1;
                }
                Outcome::NotSchedulable => {
                    assert!(misses_at_worst(&set, scheduler), "{scheduler}: {set:?}");
                    no += 1;
                }
                other => panic!("{other:?}: {set:?}"),
            }
        }
        assert!(yes > 100 && no > 100, "{scheduler}: {yes} {no}");
    }
}

/// The condition of Jeffay, Stanat and Martel, word for word.
fn jeffay(set: &TaskSet) -> bool {
    let mut tasks: Vec<(u64, u64)> = set.tasks().iter().map(|task| (task.period().unwrap().0, task.wcet.0)).collect();
    tasks.sort_unstable();
    let load: f64 = tasks.iter().map(|(period, wcet)| *wcet as f64 / *period as f64).sum();
    let fits = |i: usize, t: u64| {
        let (_, own) = tasks[i];
        t >= own + tasks[..i].iter().map(|(period, wcet)| (t - 1) / period * wcet).sum::<u64>()
    };
    load <= 1.0 + 1e-12 && (1..tasks.len()).all(|i| (tasks[0].0 + 1..tasks[i].0).all(|t| fits(i, t)))
}

#[test]
fn the_demand_test_is_jeffays_condition_for_deadlines_equal_to_periods() {
    let mut rng = Pcg64::seed_from_u64(74);
    let (mut yes, mut no) = (0, 0);
    for _ in 0..4_000 {
        let set = patient(&mut rng, true);
        let expected = jeffay(&set);
        assert_eq!(demand_with_blocking(&model(&set)) == Outcome::Schedulable, expected, "{set:?}");
        if expected { yes += 1 } else { no += 1 }
    }
    assert!(yes > 500 && no > 300, "{yes} {no}");
}

#[test]
fn sets_that_cannot_be_analyzed_are_not_proved_without_preemption_either() {
    for mut set in uncovered_sets().1 {
        set.system.tasks_mut().iter_mut().for_each(|task| task.preemption = Preemption::None);
        assert_eq!(proofs(&set), []);
    }
}

#[test]
fn tests_that_assume_preemption_say_nothing() {
    // Proved with preemption, and with points every 2 ms; the long job alone would block the short ones.
    let mut limited = set(&[(1, 5, 5), (8, 40, 40)], 1);
    assert!(proofs(&limited).iter().any(|proof| proof.scheduler == "edf"));
    limited.system.tasks_mut()[1].preemption = Preemption::None;
    assert_eq!(proofs(&limited), []);
    for test in TESTS {
        let outcome = (test.run)(&limited, &model(&limited));
        assert_ne!(outcome, Outcome::Schedulable, "{} for {}", test.name, test.scheduler);
    }
    limited.system.tasks_mut()[1].preemption = Preemption::Every(ms(2));
    let proved: Vec<(&str, String)> = proofs(&limited).into_iter().map(|proof| (proof.scheduler, proof.by)).collect();
    assert!(proved.contains(&("edf", "demand with blocking".into())), "{proved:?}");
    assert!(proved.contains(&("rm", "response times with blocking".into())), "{proved:?}");
    limited.system.set_cores(2);
    for test in TESTS.iter().filter(|test| !test.scheduler.starts_with("partitioned")) {
        if (test.concerns)(&limited) {
            let outcome = (test.run)(&limited, &model(&limited));
            assert_eq!(outcome, Outcome::NotApplicable("a task limits preemption".into()), "{}", test.name);
        }
    }
}
