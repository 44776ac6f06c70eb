//! Contract of the proofs: no simulation ever refutes a proof or an exact test, over thousands of random sets of every
//! kind that the model allows; and the expected schedulers are proved on hand-made sets.
//!
//! The schedulability tests themselves are tested in `crates/analysis/tests`.

use std::collections::BTreeMap;
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_analysis::{Outcome, PriorityRule, TESTS, amc_rtb, edf_vd, qpa, response_times};
use temponet_sched::{build, proofs, scalings};
use temponet_sim::{Metrics, Recorder, Unobserved, simulate};
use temponet_task::{Arrival, Attribute, Core, CoreId, CoreSet, Costs, ExecutionModel, Speed, Task, TaskSet, Time};

use crate::task_sets::{Kind, drawn, model, ms, set, uncovered_sets};

fn run(scheduler: &str, set: &TaskSet, seed: u64, horizon: Time) -> Metrics {
    simulate(set, seed, horizon, &mut *build(scheduler).unwrap(), &mut Unobserved).unwrap()
}

fn is_proved(set: &TaskSet, scheduler: &str) -> bool {
    proofs(set).iter().any(|proof| proof.scheduler == scheduler)
}

#[test]
fn lehoczkys_example_is_proved_and_misses_with_a_tighter_deadline() {
    // Lehoczky 1990: the longest response time of the second task is 118.
    assert!(is_proved(&set(&[(26, 70, 70), (62, 120, 100)], 1), "rm"));
    let tighter = set(&[(26, 70, 70), (62, 117, 100)], 1);
    assert!(run("rm", &tighter, 0, ms(700)).missed() > 0);
}

#[test]
fn a_utilization_of_exactly_one_is_proved() {
    let thirds = set(&[(1, 3, 3), (2, 6, 6), (3, 9, 9)], 1);
    assert!(is_proved(&thirds, "edf") && is_proved(&thirds, "mh-edf") && is_proved(&thirds, "llf"));
}

#[test]
fn jitter_that_takes_all_the_time_leaves_nothing_to_prove() {
    let mut late = set(&[(1, 4, 4)], 3);
    late.system.tasks_mut()[0].jitter = ms(9);
    assert!(proofs(&late).is_empty());
    late.system.tasks_mut()[0].jitter = ms(3);
    assert!(is_proved(&late, "edf"));
}

#[test]
fn dhalls_effect_is_not_proved_for_global_edf_but_for_its_remedies() {
    let dhall = set(&[(2, 9, 9), (2, 9, 9), (9, 10, 10)], 2);
    let proved: Vec<&str> = proofs(&dhall).iter().map(|proof| proof.scheduler).collect();
    assert!(!proved.contains(&"edf") && !proved.contains(&"edzl"), "{proved:?}");
    for name in ["edf-us", "fpedf", "p-edf", "p-rm", "cd-split", "dp-wrap", "llref", "lre-tl", "pd2", "er-pd2"] {
        assert!(proved.contains(&name), "{name} not in {proved:?}");
    }
}

#[test]
fn offsets_are_relied_on_where_the_cycle_is_short() {
    // Released together, one task misses; released half a period apart, none does.
    let mut apart = set(&[(2, 2, 4), (2, 2, 4)], 1);
    apart.system.tasks_mut()[1].offset = ms(2);
    assert!(is_proved(&apart, "dm") && is_proved(&apart, "edf") && is_proved(&apart, "edf-skip"));
}

#[test]
fn nothing_is_proved_beyond_what_the_tests_cover() {
    let (plain, uncovered) = uncovered_sets();
    assert!(uncovered.iter().all(|set| proofs(set).is_empty()));
    let mut skipping = plain.clone();
    skipping.system.tasks_mut()[0].extra.set(Attribute::Skip, Some(2));
    assert!(is_proved(&plain, "skip-over-rto") && !is_proved(&skipping, "skip-over-rto"));
    let mut overrunning = plain;
    overrunning.system.tasks_mut()[0].wcet_high = Some(ms(3));
    let below = Box::new(ExecutionModel::Wcet);
    overrunning.system.tasks_mut()[0].execution = ExecutionModel::Overrun { probability: 0.5, below };
    assert!(is_proved(&overrunning, "edf") && !is_proved(&overrunning, "mh-edf") && !is_proved(&overrunning, "edf-vd"));
}

#[test]
fn awkward_sets_end_as_undecided_and_soon() {
    let started = Instant::now();
    let period = |index: u64| Time(999_000_000 + 2 * index * index + 1);
    let task = |index: u64| Task::periodic(format!("t{index}"), period(index), Time(period(index).0 / 4_000));
    for cores in [1, 8] {
        let mut full = TaskSet::new("full", (0..4_000).map(task).collect(), cores);
        full.system.tasks_mut()[0].jitter = ms(1);
        full.system.tasks_mut()[1].offset = ms(1);
        let proved = proofs(&full).len();
        assert!(TESTS.iter().filter(|test| (test.concerns)(&full)).count() > 5, "{proved}");
    }
    let huge = Time::MAX_INPUT;
    let mut largest =
        TaskSet::new("largest", vec![Task::periodic("a", Time(1), huge), Task::periodic("b", huge, Time(1))], 1);
    largest.system.tasks_mut()[0].arrival = Arrival::Burst { jobs: u32::MAX, every: Time(1), until: Time::NEVER };
    (
        largest.system.tasks_mut()[1].jitter,
        largest.system.tasks_mut()[1].offset,
        largest.system.tasks_mut()[1].deadline,
    ) = (huge, huge, huge);
    for cores in [1, 2, 4096] {
        let set = largest.clone().with_cores(cores);
        assert!(proofs(&set).is_empty());
    }
    // Cycles that end just before and just after the largest representable date.
    for period in [Time(1 << 59), Time((1 << 59) - 1), Time(huge.0 - 1)] {
        let tasks = [16, 15, 14, 13]
            .map(|part| Task::periodic(format!("t{part}"), Time(period.0 / 16 * part), Time(period.0 / 5)));
        let mut long = TaskSet::new("long", tasks.to_vec(), 1);
        long.system.tasks_mut()[1].offset = huge;
        for cores in [1, 2] {
            long.system.set_cores(cores);
            proofs(&long);
            scalings(&long);
        }
    }
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

/// Length of `times` longest periods.
fn horizon(set: &TaskSet, times: u64) -> Time {
    set.tasks().iter().filter_map(Task::period).max().unwrap() * times
}

#[test]
fn what_is_proved_is_never_refuted() {
    let mut rng = Pcg64::seed_from_u64(7);
    let mut proved_by_name = BTreeMap::new();
    for round in 0..4_000u64 {
        let cores = [1, 1, 2, 3, 4][round as usize % 5];
        let kind = if round % 2 == 0 { Kind::Wild } else { Kind::Plain };
        let mut set = drawn(&mut rng, cores, kind);
        if round % 17 == 0 {
            set.system.set_costs(Costs { context_switch: Time::from_us(rng.random_range(0..200)), ..*set.costs() });
            set.system.set_costs(Costs { migration: Time::from_us(rng.random_range(0..200)), ..*set.costs() });
        }
        if round % 11 == 0 {
            set.system.set_speeds(vec![Speed(330), Speed(500), Speed(777), Speed::FULL]);
        }
        for proof in proofs(&set) {
            let metrics = run(proof.scheduler, &set, round, horizon(&set, 12));
            assert_eq!(metrics.missed(), 0, "{} by {:?}: {set:?}", proof.scheduler, proof.by);
            *proved_by_name.entry(proof.scheduler).or_insert(0) += 1;
        }
    }
    // The last three are for tasks that come after each other (`chains.rs`).
    let servers = ["lifo", "hrrn", "reject-when-busy", "edf-shed", "sjf-shed", "early-reject", "rank", "request-index"];
    let silent = ["rr", "srpt", "mllf", "muf", "mk-dbp", "look-ahead", "edf-chain", "hlfet", "egs"];
    let silent = [&silent[..], &servers].concat();
    for entry in temponet_sched::catalog::all().into_iter().filter(|entry| !silent.contains(&&*entry.name)) {
        let times = proved_by_name.get(&*entry.name).copied().unwrap_or(0);
        assert!(times >= 20, "{} is proved {times} times only: {proved_by_name:?}", entry.name);
    }
}

/// Cores of different speeds, and tasks that may use only some of them.
#[test]
fn what_is_proved_on_cores_that_differ_is_never_refuted() {
    let mut rng = Pcg64::seed_from_u64(23);
    let mut proved_by_name = BTreeMap::new();
    for round in 0..3_000u64 {
        let cores = [1, 2, 2, 3, 4][round as usize % 5];
        let kind = if round % 2 == 0 { Kind::Wild } else { Kind::Plain };
        let mut set = drawn(&mut rng, cores, kind);
        let is_even = rng.random_bool(0.2);
        let first = rng.random_range(300..4_000);
        let mut core = |_| {
            let speed = if is_even { first } else { rng.random_range(300..4_000) };
            Core::new("c", Speed(speed))
        };
        set.system.set_machine((0..cores).map(&mut core).collect());
        if rng.random_bool(0.3) {
            for task in set.system.tasks_mut().iter_mut() {
                task.cores = CoreSet::of(CoreId::all(cores).filter(|_| rng.random_bool(0.5)));
            }
        }
        for proof in proofs(&set) {
            let metrics = run(proof.scheduler, &set, round, horizon(&set, 12));
            assert_eq!(metrics.missed(), 0, "{} by {:?}: {set:?}", proof.scheduler, proof.by);
            *proved_by_name.entry((proof.scheduler, set.machine().is_unequal(), proof.by == "FGB")).or_insert(0) += 1;
        }
    }
    let times = |name: &'static str, by_fgb: bool| proved_by_name.get(&(name, true, by_fgb)).copied().unwrap_or(0);
    assert!(times("edf", true) > 50, "{proved_by_name:?}");
    for name in ["p-edf", "p-rm", "c-edf"] {
        assert!(times(name, false) > 50, "{name}: {proved_by_name:?}");
    }
    assert!(proved_by_name.iter().any(|((name, is_unequal, _), times)| *name == "rm" && !is_unequal && *times > 50));
}

#[test]
fn sets_filled_to_the_last_nanosecond_are_proved_and_hold() {
    let mut rng = Pcg64::seed_from_u64(3);
    let mut full = 0;
    for round in 0..300 {
        let cores = 1 + round % 4;
        let mut left = 120 * cores as u64;
        let mut tasks = Vec::new();
        while left > 0 {
            let period = [4, 5, 6, 8, 10, 12, 15, 20, 24, 30, 40, 120][rng.random_range(0..12)];
            let wcet = rng.random_range(1..=period).min(left * period / 120).max(1);
            let work = wcet * (120 / period);
            if work <= left {
                left -= work;
                tasks.push(Task::periodic(format!("t{}", tasks.len()), ms(period), ms(wcet)));
            } else {
                tasks.push(Task::periodic(format!("t{}", tasks.len()), ms(120), ms(left.min(120))));
                left -= left.min(120);
            }
        }
        let set = TaskSet::new("full", tasks, cores);
        let proved = proofs(&set);
        for name in ["dp-wrap", "llref", "lre-tl", "pd2", "er-pd2"] {
            assert!(proved.iter().any(|proof| proof.scheduler == name), "{name}: {set:?}");
        }
        for proof in proved {
            assert_eq!(run(proof.scheduler, &set, 0, ms(240)).missed(), 0, "{}: {set:?}", proof.scheduler);
            full += 1;
        }
    }
    assert!(full > 2_000, "{full}");
}

#[test]
fn response_times_bound_every_response() {
    let mut rng = Pcg64::seed_from_u64(11);
    let (mut checked, mut tight, mut followed) = (0, 0, 0);
    for round in 0..3_000u64 {
        let kind = if round % 3 == 0 { Kind::Plain } else { Kind::Wild };
        let set = drawn(&mut rng, 1, kind);
        let rules =
            [PriorityRule::RateMonotonic, PriorityRule::DeadlineMonotonic, PriorityRule::Given, PriorityRule::Equal];
        let rule = rules[round as usize % 4];
        let analysis = response_times(&model(&set), rule);
        let mut recorder = Recorder::until(Time::NEVER);
        simulate(&set, round, horizon(&set, 12), &mut *build(rule.scheduler()).unwrap(), &mut recorder).unwrap();
        let mut longest = vec![Time::ZERO; set.tasks().len()];
        for job in &recorder.jobs {
            // Aborted jobs have no completion and are left out.
            let arrival = job.deadline - set.tasks()[job.task].deadline;
            if let Some(completion) = job.completion() {
                let seen = &mut longest[job.task];
                *seen = (*seen).max(completion - arrival);
            }
        }
        for (bound, seen) in analysis.bounds.iter().zip(&longest) {
            let Some(bound) = bound else { continue };
            assert!(seen <= bound, "{} {bound} {seen}: {set:?}", rule.scheduler());
            checked += 1;
            tight += u64::from(seen == bound);
        }
        followed += u64::from(analysis.from_schedule);
    }
    assert!(
        checked > 5_000 && tight > 2_000 && followed > 500,
        "{checked} checked, {tight} tight, {followed} followed"
    );
}

#[test]
fn exact_tests_are_exact() {
    let mut rng = Pcg64::seed_from_u64(5);
    let mut counts = [[0; 2]; 3];
    for _ in 0..2_000 {
        let mut set = drawn(&mut rng, 1, Kind::Plain);
        if rng.random_bool(0.5) {
            set.system
                .tasks_mut()
                .iter_mut()
                .for_each(|task| task.offset = Time(rng.random_range(0..12) * task.deadline.0 / 12));
        }
        let model = model(&set);
        let tests = [
            ("edf", qpa(&model)),
            ("rm", response_times(&model, PriorityRule::RateMonotonic).outcome),
            ("dm", response_times(&model, PriorityRule::DeadlineMonotonic).outcome),
        ];
        for (at, (scheduler, outcome)) in tests.into_iter().enumerate() {
            // Long enough for every cycle. Overload shows once the backlog has outgrown the longest deadline.
            let missed = run(scheduler, &set, 0, horizon(&set, 67)).missed() > 0;
            let expected = if missed { Outcome::NotSchedulable } else { Outcome::Schedulable };
            let is_slow = !missed && model.is_overloaded() == Some(true);
            assert!(outcome == expected || is_slow, "{scheduler}: {outcome}, misses: {missed}, {set:?}");
            counts[at][usize::from(missed)] += 1;
        }
    }
    assert!(counts.iter().flatten().all(|count| *count > 200), "{counts:?}");
}

#[test]
fn mixed_criticality_tests_hold_in_overruns() {
    let mut rng = Pcg64::seed_from_u64(17);
    let mut counts = [0; 2];
    for round in 0..1_500 {
        let mut set = drawn(&mut rng, 1, Kind::Plain);
        for task in set.system.tasks_mut().iter_mut() {
            if round % 2 == 0 {
                task.deadline = task.period().unwrap();
            }
            if rng.random_bool(0.5) {
                let high = Time((task.wcet.0 as f64 * rng.random_range(1.0..2.5)) as u64);
                (task.criticality, task.wcet_high) = (1, Some(high));
                let below = Box::new(ExecutionModel::Wcet);
                task.execution = ExecutionModel::Overrun { probability: 0.3, below };
            }
        }
        let model = model(&set);
        let tests = [("edf-vd", edf_vd(&set, &model)), ("amc", amc_rtb(&set, &model))];
        for (at, (scheduler, outcome)) in tests.into_iter().enumerate() {
            if outcome == Outcome::Schedulable {
                counts[at] += 1;
                for seed in 0..2 {
                    let critical = run(scheduler, &set, seed, horizon(&set, 24)).critical();
                    assert_eq!(critical.met, critical.released, "{scheduler}: {set:?}");
                }
                let mut calm = set.clone();
                calm.system.tasks_mut().iter_mut().for_each(|task| task.execution = ExecutionModel::Wcet);
                assert_eq!(run(scheduler, &calm, 0, horizon(&set, 24)).missed(), 0, "{scheduler}: {set:?}");
            }
        }
    }
    assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
}

#[test]
fn the_largest_scaling_is_the_edge() {
    // One core, U = 4/10 + 4/20 = 0.6: EDF is schedulable up to the factor 1/0.6, and so is RM, because the periods are
    // harmonic.
    let harmonic = set(&[(4, 10, 10), (4, 20, 20)], 1);
    for scaling in scalings(&harmonic) {
        assert_eq!(scaling.factor, 1.6666, "{scaling:?}");
    }
    let mut rng = Pcg64::seed_from_u64(19);
    for round in 0..300 {
        let set = drawn(&mut rng, 1 + round % 3, Kind::Wild);
        for scaling in scalings(&set) {
            let parts = (scaling.factor * 10_000.0).round() as u64;
            let at_edge = set.with_work(parts, 10_000);
            assert!(is_proved(&at_edge, scaling.scheduler), "{scaling:?}");
            assert_eq!(run(scaling.scheduler, &at_edge, 1, horizon(&set, 8)).missed(), 0, "{scaling:?} {set:?}");
            if set.cores() == 1 {
                assert!(!is_proved(&set.with_work(parts + 1, 10_000), scaling.scheduler), "{scaling:?} {set:?}");
            }
        }
    }
    let costly = harmonic.with_costs(Costs { decision: Time(1), ..Costs::default() });
    assert!(scalings(&costly).is_empty());
}
