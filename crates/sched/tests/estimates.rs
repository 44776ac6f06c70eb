//! Contract of estimates: schedulers that plan with them follow what they say, those that do not are not moved by them,
//! an estimate that says the wcet changes nothing, an exact one is as good as a known execution time, and none of them
//! refutes a proof.

use std::collections::BTreeMap;

use temponet_sched::catalog::all;
use temponet_sched::{build, proofs};
use temponet_sim::generate::{Spec, generate};
use temponet_sim::{JobRecord, Recorder, Unobserved, Workload, simulate};
use temponet_task::{Arrival, Estimate, ExecutionModel, ListedJob, OnMiss, TaskSet, Time};

/// Schedulers that plan with estimates.
const PLANNING: [&str; 14] = [
    "srpt",
    "edf-skip",
    "mh-edf",
    "edf-shed",
    "sjf-shed",
    "early-reject",
    "rank",
    "request-index",
    "hrrn",
    "look-ahead",
    "dasa",
    "lbesa",
    "dios",
    "red",
];

/// Every job of a run, in order.
fn jobs(set: &TaskSet, scheduler: &str, seed: u64, horizon: Time) -> Vec<JobRecord> {
    let mut recorder = Recorder::until(Time::NEVER);
    simulate(set, seed, horizon, &mut *build(scheduler).unwrap(), &mut recorder).unwrap();
    recorder.jobs.sort_by_key(|job| (job.task, job.number));
    recorder.jobs
}

fn drawn(seed: u64, error: Option<f64>) -> TaskSet {
    let cores = [1, 2, 4][seed as usize % 3];
    let load = [0.8, 1.4, 2.2][seed as usize / 3 % 3];
    let mut spec = Spec::new(6 * cores, cores, load * cores as f64);
    (spec.values, spec.bcet, spec.estimate_error) = ((1.0, 3.0), 0.1, error);
    generate(&spec, seed).unwrap()
}

/// The same jobs as a list, each with what `describe` makes of it.
fn listed(set: &TaskSet, seed: u64, horizon: Time, describe: impl Fn(ListedJob) -> ListedJob) -> TaskSet {
    let mut lists: BTreeMap<u32, Vec<ListedJob>> = BTreeMap::new();
    for job in Workload::counted(set, seed, horizon) {
        lists.entry(job.task.0).or_default().push(describe(
            ListedJob::new(job.time, job.deadline, job.execution)
                .with_wcet(job.wcet)
                .with_bcet(Time(1))
                .with_criticality(job.criticality)
                .with_value(job.value),
        ));
    }
    let task = |(task, jobs): (u32, Vec<ListedJob>)| {
        let own = &set.tasks()[task as usize];
        let bcet = jobs.iter().map(|job| job.bcet).min().unwrap();
        let execution = ExecutionModel::Wcet;
        own.clone()
            .with_arrival(Arrival::Listed(jobs.into()))
            .with_bcet(bcet)
            .with_execution(execution)
            .with_estimate_error(None)
    };
    TaskSet::new("list", lists.into_iter().map(task).collect(), set.cores())
}

#[test]
fn schedulers_that_do_not_plan_with_estimates_are_not_moved_by_them() {
    let horizon = Time::from_ms(600);
    let mut moved = BTreeMap::new();
    for seed in 0..9 {
        let (plain, estimated) = (drawn(seed, None), drawn(seed, Some(0.4)));
        for entry in all() {
            if build(&entry.name).unwrap().start(&plain.system).is_err() {
                continue;
            }
            let is_same = jobs(&plain, &entry.name, seed, horizon) == jobs(&estimated, &entry.name, seed, horizon);
            *moved.entry(&*entry.name).or_insert(0) += u32::from(!is_same);
        }
    }
    let moved: Vec<&str> = moved.into_iter().filter(|(_, times)| *times > 0).map(|(name, _)| name).collect();
    let mut expected = PLANNING.to_vec();
    expected.sort_unstable();
    assert_eq!(moved, expected);
}

#[test]
fn an_estimate_of_the_wcet_changes_no_schedule() {
    let horizon = Time::from_ms(600);
    for seed in 0..18 {
        let set = drawn(seed, None);
        let plain = listed(&set, seed, horizon, |job| job);
        let whole = |job: ListedJob| job.with_estimate(Estimate::new(job.wcet, job.wcet));
        let estimated = listed(&set, seed, horizon, whole);
        for name in ["srpt", "mh-edf", "dasa", "lbesa", "dios", "red", "look-ahead:caution=1"] {
            assert_eq!(jobs(&plain, name, seed, horizon), jobs(&estimated, name, seed, horizon), "{name}");
        }
    }
}

#[test]
fn an_exact_estimate_is_as_good_as_a_known_execution_time() {
    let horizon = Time::from_ms(600);
    for seed in 0..18 {
        let set = drawn(seed, None);
        let exact = |job: ListedJob| job.with_estimate(Estimate::new(job.execution, job.execution));
        let known = |job: ListedJob| job.with_wcet(job.execution).with_bcet(job.execution);
        let (estimated, known) = (listed(&set, seed, horizon, exact), listed(&set, seed, horizon, known));
        for name in ["srpt", "mh-edf", "dasa", "lbesa", "dios", "red"] {
            assert_eq!(jobs(&estimated, name, seed, horizon), jobs(&known, name, seed, horizon), "{name}");
        }
    }
}

/// Sums a figure over runs of sets with these loads, without estimates and with errors of 1, 0.3 and 0.
fn by_error(load: f64, figure: impl Fn(&TaskSet, u64) -> u64) -> [u64; 4] {
    [None, Some(1.0), Some(0.3), Some(0.0)].map(|error| {
        let set = |seed: u64| {
            let spec = Spec { bcet: 0.1, estimate_error: error, ..Spec::new(8, 1, load) };
            generate(&spec, seed).unwrap()
        };
        (0..30).map(|seed| figure(&set(seed), seed)).sum()
    })
}

/// Schrage 1968: on one core, no schedule has a shorter mean response time than SRPT with known execution times.
#[test]
fn better_estimates_shorten_the_mean_response_time_under_srpt() {
    let total = |set: &TaskSet, seed: u64| {
        let set = set.clone().with_on_miss(OnMiss::Continue);
        // What is left over at the end is a small part of what has been done.
        let jobs = jobs(&set, "srpt", seed, Time::from_secs(4));
        jobs.iter().map(|job| (job.left - job.release).0 / 1_000).sum()
    };
    let [none, rough, good, exact] = by_error(1.6, total);
    println!("srpt: {none} us without estimates, {rough}, {good}, {exact} with errors of 1, 0.3 and 0");
    assert!(exact < good && good < rough && rough < none, "{none} {rough} {good} {exact}");
}

#[test]
fn better_estimates_meet_more_deadlines_under_mh_edf() {
    let met = |set: &TaskSet, seed: u64| {
        let mut scheduler = build("mh-edf").unwrap();
        simulate(set, seed, Time::from_secs(2), &mut *scheduler, &mut Unobserved).unwrap().jobs.met
    };
    let [none, rough, good, exact] = by_error(2.0, met);
    println!("mh-edf: {none} met without estimates, {rough}, {good}, {exact} with errors of 1, 0.3 and 0");
    assert!(none < rough && rough < good && good < exact, "{none} {rough} {good} {exact}");
}

#[test]
fn estimates_refute_no_proof() {
    let mut runs = 0;
    for seed in 0..400u64 {
        let cores = 1 + seed as usize % 3;
        let load = 0.3 + 0.7 * (seed % 20) as f64 / 20.0;
        let mut spec = Spec::new(5 * cores, cores, load * cores as f64);
        spec.bcet = 0.05;
        spec.estimate_error = [Some(0.0), Some(0.4), Some(2.0)][seed as usize / 3 % 3];
        let set = generate(&spec, seed).unwrap();
        for proof in proofs(&set).into_iter().filter(|proof| PLANNING.contains(&proof.scheduler)) {
            let mut scheduler = build(proof.scheduler).unwrap();
            let metrics = simulate(&set, seed, Time::from_ms(800), &mut *scheduler, &mut Unobserved).unwrap();
            assert_eq!(metrics.missed(), 0, "{}: {set:?}", proof.scheduler);
            runs += 1;
        }
    }
    assert!(runs > 400, "{runs}");
}
