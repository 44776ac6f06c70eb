//! Contract: what theory proves about a scheduler holds in simulation, on thousands of random sets.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_sched::build;
use temponet_sim::generate::{Lengths, Method, Rule, Spec, generate};
use temponet_sim::{Metrics, Unobserved, simulate};
use temponet_task::{Arrival, ListedJob, Task, TaskSet, Time};

fn run(scheduler: &str, set: &TaskSet, horizon: Time) -> Metrics {
    simulate(set, 0, horizon, &mut *build(scheduler).unwrap(), &mut Unobserved).unwrap()
}

/// A random set with log-uniform periods.
fn drawn(tasks: usize, cores: usize, utilization: f64, periods: (Time, Time), granularity: Time, seed: u64) -> TaskSet {
    let lengths = Lengths::Periods(Rule::LogUniform(periods.0, periods.1));
    let method = Method::UUniFastDiscard;
    generate(&Spec { method, lengths, granularity, ..Spec::new(tasks, cores, utilization) }, seed).unwrap()
}

/// A random set of whole milliseconds whose total utilization is at most `cores`.
fn feasible_set(cores: usize, seed: u64) -> TaskSet {
    let mut rng = Pcg64::seed_from_u64(seed);
    loop {
        let tasks = rng.random_range(cores + 1..=cores + 6);
        let utilization = cores as f64 * rng.random_range(0.7..1.0);
        let periods = (Time::from_ms(3), Time::from_ms(40));
        let set = drawn(tasks, cores, utilization, periods, Time::from_ms(1), rng.random::<u64>());
        // Rounding up to whole milliseconds may have overloaded the set.
        if set.utilization() <= cores as f64 + 1e-12 {
            return set;
        }
    }
}

fn horizon(set: &TaskSet) -> Time {
    set.hyperperiod().unwrap_or(Time::NEVER).min(Time::from_secs(2))
}

#[test]
fn edf_and_llf_miss_nothing_up_to_full_load_on_one_core() {
    for seed in 0..2_000 {
        let set = feasible_set(1, seed);
        for scheduler in ["edf", "llf", "edzl", "edf-skip", "mh-edf", "look-ahead"] {
            assert_eq!(run(scheduler, &set, horizon(&set)).missed(), 0, "{scheduler} on {set:?}");
        }
    }
}

#[test]
fn pd2_misses_nothing_up_to_full_load_on_any_number_of_cores() {
    let mut edf_misses = 0;
    for seed in 0..1_500 {
        let set = feasible_set(2 + seed as usize % 4, seed);
        assert_eq!(run("pd2", &set, horizon(&set)).missed(), 0, "{set:?}");
        edf_misses += u64::from(run("edf", &set, horizon(&set)).missed() > 0);
    }
    assert!(edf_misses > 100, "these sets must be hard enough that global EDF misses some: {edf_misses}");
}

#[test]
fn rm_misses_nothing_under_the_hyperbolic_bound_and_something_above() {
    let (mut within, mut missed_above) = (0, 0);
    for seed in 0..4_000 {
        let set = feasible_set(1, seed);
        let product: f64 = set.tasks().iter().map(|task| task.utilization() + 1.0).product();
        let missed = run("rm", &set, horizon(&set)).missed();
        if product <= 2.0 {
            within += 1;
            assert_eq!(missed, 0, "{set:?}");
        } else {
            missed_above += u64::from(missed > 0);
        }
    }
    assert!(within > 100 && missed_above > 100, "{within} {missed_above}");
}

#[test]
fn partitioned_edf_misses_nothing_when_the_packing_fits() {
    let mut fitting = 0;
    for seed in 0..1_000 {
        let set = feasible_set(3, seed);
        for scheduler in ["p-edf", "p-edf:fit=best", "p-edf:fit=worst"] {
            let metrics = run(scheduler, &set, horizon(&set));
            assert_eq!(metrics.migrations, 0);
            fitting += u64::from(metrics.missed() == 0);
        }
    }
    assert!(fitting > 1_000, "{fitting}");
}

#[test]
fn edzl_meets_whatever_global_edf_meets() {
    let mut better = 0;
    for seed in 0..1_500 {
        let set = feasible_set(3, seed);
        let (edf, edzl) = (run("edf", &set, horizon(&set)), run("edzl", &set, horizon(&set)));
        assert!(edf.missed() > 0 || edzl.missed() == 0, "{set:?}");
        better += u64::from(edf.missed() > 0 && edzl.missed() == 0);
    }
    assert!(better > 50, "{better}");
}

/// Random single jobs with their length as value, so that all value densities are equal.
fn job_list(seed: u64) -> Vec<ListedJob> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let jobs = rng.random_range(3..=8);
    (0..jobs)
        .map(|_| {
            let (release, length) = (rng.random_range(0..20), rng.random_range(1..=8));
            let deadline = release + length + rng.random_range(0..=4);
            let (execution, wcet) = (Time::from_ms(length), Time::from_ms(length));
            let (release, deadline) = (Time::from_ms(release), Time::from_ms(deadline));
            ListedJob::new(release, deadline, execution).with_wcet(wcet).with_bcet(Time(1)).with_value(length as f64)
        })
        .collect()
}

/// A set with one task per job, so that any subset is a task set.
fn as_set(jobs: &[ListedJob]) -> TaskSet {
    let task = |(index, job): (usize, &ListedJob)| {
        Task::periodic(format!("j{index}"), job.deadline - job.release, job.wcet)
            .with_arrival(Arrival::Listed([*job].into()))
    };
    TaskSet::new("list", jobs.iter().enumerate().map(task).collect(), 1)
}

/// Greatest value of a subset that EDF completes in time. EDF is optimal where every deadline can be met.
fn best_value(jobs: &[ListedJob]) -> f64 {
    let subsets = (0u32..1 << jobs.len()).map(|subset| {
        let chosen = jobs.iter().enumerate().filter(|(index, _)| subset >> index & 1 == 1);
        chosen.map(|(_, job)| *job).collect::<Vec<_>>()
    });
    let feasible = subsets.filter(|chosen| run("edf", &as_set(chosen), Time::from_ms(100)).missed() == 0);
    feasible.map(|chosen| chosen.iter().map(|job| job.value).sum()).fold(0.0, f64::max)
}

#[test]
fn d_over_completes_every_feasible_list_and_keeps_its_quarter_bound() {
    let (mut feasible, mut worst, mut lost) = (0, 1.0f64, 0);
    for seed in 0..1_500 {
        let jobs = job_list(seed);
        let all: f64 = jobs.iter().map(|job| job.value).sum();
        let (best, got) = (best_value(&jobs), run("d-over", &as_set(&jobs), Time::from_ms(100)).value);
        if best == all {
            feasible += 1;
            assert_eq!(got, all, "a feasible list lost a job: {jobs:?}");
        }
        worst = worst.min(got / best);
        lost += u64::from(got < best);
        assert!(got <= best + 1e-9 && got >= best / 4.0 - 1e-9, "{got} of {best}: {jobs:?}");
    }
    assert!(feasible > 100 && lost > 100 && worst < 0.7, "{feasible} feasible, {lost} lost value, worst {worst}");
}

#[test]
fn d_over_is_not_edf_in_overload() {
    // EDF preempts the long job for two short ones and loses it; D-over keeps the valuable long job.
    let ms = Time::from_ms;
    let job = |release: u64, length: u64, deadline: u64, value: f64| {
        let (release, deadline, execution, wcet) = (ms(release), ms(deadline), ms(length), ms(length));
        ListedJob::new(release, deadline, execution).with_wcet(wcet).with_bcet(Time(1)).with_value(value)
    };
    let set = as_set(&[job(0, 10, 10, 10.0), job(1, 2, 9, 2.0), job(2, 2, 9, 2.0)]);
    assert_eq!(run("d-over", &set, ms(50)).value, 10.0);
    assert_eq!(run("edf", &set, ms(50)).value, 4.0);
}

#[test]
fn overload_schedulers_beat_edf_where_it_collapses() {
    let (mut edf, mut skip, mut moore, mut ahead) = (0, 0, 0, 0);
    for seed in 0..300 {
        let periods = (Time::from_ms(10), Time::from_ms(100));
        let set = drawn(6, 1, 1.3, periods, Time::from_us(100), seed);
        edf += run("edf", &set, Time::from_secs(5)).jobs.met;
        skip += run("edf-skip", &set, Time::from_secs(5)).jobs.met;
        moore += run("mh-edf", &set, Time::from_secs(5)).jobs.met;
        ahead += run("look-ahead", &set, Time::from_secs(5)).jobs.met;
    }
    assert!(ahead > moore, "look-ahead {ahead}, mh-edf {moore}");
    assert!(skip as f64 > 1.03 * edf as f64 && moore >= skip, "edf {edf}, edf-skip {skip}, mh-edf {moore}");
}

#[test]
fn llf_sleeping_until_crossings_is_llf_at_every_quantum() {
    // On a set with many ties and crossings a finer quantum changes the schedule, which shows that the quantum is in
    // force.
    let ms = Time::from_ms;
    let tasks =
        vec![Task::periodic("a", ms(10), ms(5)), Task::periodic("b", ms(12), ms(6)), Task::periodic("c", ms(9), ms(3))];
    let set = TaskSet::new("s", tasks, 1);
    let preemptions = |spec: &str| run(spec, &set, ms(180)).preemptions;
    assert!(preemptions("llf:quantum=1ms") > preemptions("llf:quantum=4ms"));
}
