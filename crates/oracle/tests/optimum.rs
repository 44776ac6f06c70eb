//! Contract: the clairvoyant optimum is optimal. It agrees with brute force, with Lawler's dynamic program and with
//! theory, and no scheduler beats it.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_oracle::{Optimum, OracleJob, Piece, lawler, optimum, schedule};
use temponet_sched::build;
use temponet_sched::catalog::all;
use temponet_sim::generate::{Lengths, Rule, Spec, generate};
use temponet_sim::{ReleasedJob, SimError, Unobserved, Workload, simulate};
use temponet_task::{CoreId, Costs, ExecutionModel, OnMiss, TaskSet, Time};

const STEPS: u64 = 40_000_000;

fn job(release: u64, execution: u64, deadline: u64) -> OracleJob {
    OracleJob { release: Time(release), deadline: Time(deadline), execution: Time(execution), weight: 1.0 }
}

/// Random jobs of a few nanoseconds. About every third list is bursty: many jobs are released together.
fn random_jobs(n: usize, span: u64, rng: &mut Pcg64) -> Vec<OracleJob> {
    let burst = rng.random_range(0..3) == 0;
    let draw = |rng: &mut Pcg64| {
        let release = if burst { rng.random_range(0..3) * span / 3 } else { rng.random_range(0..span) };
        let execution = rng.random_range(1..8);
        job(release, execution, release + execution + rng.random_range(0..10))
    };
    (0..n).map(|_| draw(rng)).collect()
}

/// Whether these jobs can be in time together, by the simplest maximum flow: unit steps of work, one at a time.
fn fits(jobs: &[OracleJob], cores: usize) -> bool {
    let end = jobs.iter().map(|job| job.deadline.0).max().unwrap_or(0) as usize;
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); end];
    fn place(job: usize, jobs: &[OracleJob], cores: usize, users: &mut [Vec<usize>], seen: &mut [bool]) -> bool {
        for tick in jobs[job].release.0 as usize..jobs[job].deadline.0 as usize {
            if seen[tick] || users[tick].contains(&job) {
                continue;
            }
            seen[tick] = true;
            if users[tick].len() < cores {
                users[tick].push(job);
                return true;
            }
            for index in 0..users[tick].len() {
                let other = users[tick][index];
                if place(other, jobs, cores, users, seen) {
                    users[tick][index] = job;
                    return true;
                }
            }
        }
        false
    }
    for (index, job) in jobs.iter().enumerate() {
        for _ in 0..job.execution.0 {
            if !place(index, jobs, cores, &mut users, &mut vec![false; end]) {
                return false;
            }
        }
    }
    true
}

fn brute_force(jobs: &[OracleJob], cores: usize) -> f64 {
    let subset = |mask: u32| -> Vec<OracleJob> {
        (0..jobs.len()).filter(|index| mask >> index & 1 == 1).map(|index| jobs[index]).collect()
    };
    let mut subsets: Vec<(f64, u32)> =
        (0..1 << jobs.len()).map(|mask| (subset(mask).iter().map(|job| job.weight).sum(), mask)).collect();
    subsets.sort_by(|a, b| b.0.total_cmp(&a.0));
    subsets.into_iter().find(|(_, mask)| fits(&subset(*mask), cores)).map_or(0.0, |(weight, _)| weight)
}

/// Checks a schedule: chosen jobs run completely and inside their windows, no job on two cores at once, no core with
/// two jobs at once.
fn assert_legal(jobs: &[OracleJob], chosen: &[bool], cores: usize, pieces: &[Piece]) {
    for (index, job) in jobs.iter().enumerate() {
        let mut own: Vec<&Piece> = pieces.iter().filter(|piece| piece.job == index).collect();
        own.sort_by_key(|piece| piece.start);
        let done: u64 = own.iter().map(|piece| (piece.end - piece.start).0).sum();
        assert_eq!(done, if chosen[index] { job.execution.0 } else { 0 });
        assert!(own.iter().all(|piece| piece.start >= job.release && piece.end <= job.deadline));
        assert!(own.windows(2).all(|pair| pair[0].end <= pair[1].start), "a job on two cores at once");
    }
    for core in 0..cores {
        let mut own: Vec<&Piece> = pieces.iter().filter(|piece| piece.core == CoreId::new(core)).collect();
        own.sort_by_key(|piece| piece.start);
        assert!(own.windows(2).all(|pair| pair[0].end <= pair[1].start), "two jobs on one core at once");
    }
    assert!(pieces.iter().all(|piece| piece.core < CoreId::new(cores)));
}

#[test]
fn it_agrees_with_brute_force_on_small_instances() {
    let mut rng = Pcg64::seed_from_u64(1);
    let mut missed = 0;
    for case in 0..6_000 {
        let cores = 1 + case % 3;
        let n = rng.random_range(1..=8);
        let mut jobs = random_jobs(n, 12 / cores as u64, &mut rng);
        match case % 4 {
            1 => jobs.iter_mut().for_each(|job| job.weight = f64::from(rng.random_range(1..10))),
            2 => jobs.iter_mut().for_each(|job| job.weight = rng.random_range(0.1..5.0)),
            _ => {}
        }
        let found = optimum(&jobs, cores, STEPS);
        let best = brute_force(&jobs, cores);
        assert!(found.is_exact(), "{cores} cores, {jobs:?}: {found:?}");
        assert!((found.lower - best).abs() < 1e-9, "{cores} cores, {jobs:?}: {found:?}, not {best}");
        let pieces = schedule(&jobs, &found.chosen, cores).expect("the chosen jobs fit");
        assert_legal(&jobs, &found.chosen, cores, &pieces);
        missed += usize::from(best + 1e-9 < jobs.iter().map(|job| job.weight).sum());
    }
    assert!(missed > 1_200, "the instances are overloaded: {missed}");
}

#[test]
fn it_agrees_with_lawlers_dynamic_program_on_larger_ones() {
    let mut rng = Pcg64::seed_from_u64(2);
    for _ in 0..150 {
        let n = rng.random_range(10..=24);
        let jobs = random_jobs(n, 40, &mut rng);
        let found = optimum(&jobs, 1, STEPS);
        assert!(found.is_exact() && found.lower == lawler(&jobs) as f64, "{jobs:?}: {found:?}");
    }
}

fn with_hindsight(releases: &[ReleasedJob], weight: impl Fn(&ReleasedJob) -> f64) -> Vec<OracleJob> {
    let job = |release: &ReleasedJob| {
        let ReleasedJob { time, deadline, execution, .. } = *release;
        OracleJob { release: time, deadline, execution, weight: weight(release) }
    };
    releases.iter().map(job).collect()
}

/// A random set with any load, deadlines, values, criticalities, costs and execution-time models.
fn any_set(seed: u64) -> TaskSet {
    let mut rng = Pcg64::seed_from_u64(seed);
    let cores = rng.random_range(1..=3);
    let tasks = cores + rng.random_range(1..=5);
    let utilization = cores as f64 * rng.random_range(0.7..1.6);
    let mut spec = Spec::new(tasks, cores, utilization.min(tasks as f64 * 0.9));
    spec.lengths = Lengths::Periods(Rule::LogUniform(Time::from_ms(5), Time::from_ms(40)));
    spec.bcet = [1.0, 0.3][rng.random_range(0..2)];
    spec.values = (1.0, 5.0);
    spec.critical.share = 0.4;
    spec.critical.factor = [1.0, 1.8][rng.random_range(0..2)];
    let mut set = generate(&spec, rng.random()).unwrap();
    for task in set.system.tasks_mut().iter_mut() {
        let least = Time(task.bcet.0.max(1));
        let model = match rng.random_range(0..6) {
            0 => ExecutionModel::Wcet,
            1 => ExecutionModel::Uniform,
            2 => ExecutionModel::Normal { deviation: Time(task.wcet.0 / 5) },
            3 => ExecutionModel::Weibull { exceed: 0.01 },
            4 => ExecutionModel::Pareto { shape: 1.5 },
            _ => ExecutionModel::Empirical { samples: [least, task.wcet].into() },
        };
        match &mut task.execution {
            ExecutionModel::Overrun { below, .. } => **below = model,
            execution => *execution = model,
        }
        task.jitter = Time(rng.random_range(0..=task.deadline.0 / 10));
        task.offset = Time(rng.random_range(0..10_000_000));
    }
    set.system.set_on_miss([OnMiss::Abort, OnMiss::Continue][rng.random_range(0..2)]);
    if rng.random_range(0..3) == 0 {
        set.system.set_costs(Costs {
            context_switch: Time::from_us(100),
            migration: Time::from_us(200),
            decision: Time::ZERO,
        });
    }
    set
}

#[test]
fn no_scheduler_ever_beats_it() {
    let (mut runs, mut best_reached, mut exact) = (0, 0, 0);
    for seed in 0..250 {
        let set = any_set(seed);
        let horizon = Time::from_ms(160);
        let releases = Workload::counted(&set, seed, horizon);
        let solve =
            |weight: fn(&ReleasedJob) -> f64| optimum(&with_hindsight(&releases, weight), set.cores(), STEPS / 100);
        let most = solve(|_| 1.0);
        let value = solve(|release| release.value);
        let critical = solve(|release| if release.criticality > 0 { 1_000.0 } else { 1.0 });
        exact += usize::from(most.is_exact());
        let mut best = 0;
        for entry in all() {
            let metrics = match simulate(&set, seed, horizon, &mut *build(&entry.name).unwrap(), &mut Unobserved) {
                Ok(metrics) => metrics,
                Err(SimError::NotApplicable(_)) => continue,
                Err(error) => panic!("{}: {error}", entry.name),
            };
            assert_eq!(metrics.jobs.released, releases.len() as u64);
            let name = &entry.name;
            assert!(
                metrics.jobs.met as f64 <= most.upper,
                "{name}, seed {seed}: {} > {}",
                metrics.jobs.met,
                most.upper
            );
            assert!(metrics.value <= value.upper + 1e-6, "{name}, seed {seed}: {} > {}", metrics.value, value.upper);
            assert!(metrics.critical().met as f64 <= critical.upper / 1_000.0, "{name}, seed {seed}");
            best = best.max(metrics.jobs.met);
            runs += 1;
        }
        best_reached += usize::from(best as f64 >= most.lower);
    }
    assert!(runs > 8_000 && exact > 220, "{runs} runs, {exact} exact");
    // The bound is useful: often the best of all schedulers reaches it.
    assert!(best_reached > 60, "{best_reached}");
}

#[test]
fn what_fits_needs_no_search_and_more_cores_or_slack_never_hurt() {
    for seed in 0..60 {
        let cores = 1 + seed as usize % 4;
        let spec = Spec::new(cores + 4, cores, cores as f64 * 0.99);
        let fitting =
            with_hindsight(&Workload::counted(&generate(&spec, seed).unwrap(), 0, Time::from_ms(900)), |_| 1.0);
        // Periodic with implicit deadlines and U ≤ m: all jobs can be in time. On one core this needs no search.
        let found = optimum(&fitting, cores, if cores == 1 { 0 } else { STEPS });
        assert_eq!((found.lower, found.upper), (fitting.len() as f64, fitting.len() as f64), "seed {seed}");
    }
    let mut rng = Pcg64::seed_from_u64(3);
    for _ in 0..200 {
        let jobs = random_jobs(20, 30, &mut rng);
        let exactly = |jobs: &[OracleJob], cores: usize| -> f64 {
            let Optimum { lower, upper, .. } = optimum(jobs, cores, STEPS);
            assert_eq!(lower, upper);
            lower
        };
        let one = exactly(&jobs, 1);
        let two = exactly(&jobs, 2);
        assert!(two >= one && exactly(&jobs, 3) >= two);
        let later: Vec<OracleJob> =
            jobs.iter().map(|job| OracleJob { deadline: job.deadline + Time(2), ..*job }).collect();
        assert!(exactly(&later, 1) >= one);
    }
}

/// Lists of jobs on which dropping the longest job so far (Moore and Hodgson, online) is not optimal: with hindsight,
/// some long jobs are worth keeping.
#[test]
fn bursts_where_the_best_online_rule_loses() {
    let mut rng = Pcg64::seed_from_u64(4);
    let (mut best, mut online) = (0.0, 0);
    for _ in 0..60 {
        let jobs: Vec<OracleJob> = (0..40)
            .map(|index| {
                let release = index / 8 * 40_000_000;
                let execution = rng.random_range(1_000_000..15_000_000);
                job(release, execution, release + execution + rng.random_range(0..60_000_000))
            })
            .collect();
        let found = optimum(&jobs, 1, STEPS);
        assert!(found.is_exact());
        best += found.lower;
        let tasks = jobs.iter().enumerate().map(|(index, job)| {
            let OracleJob { release, deadline, execution, .. } = *job;
            let listed = temponet_task::ListedJob::new(release, deadline, execution);
            let arrival = temponet_task::Arrival::Listed([listed].into());
            temponet_task::Task::periodic(format!("j{index}"), deadline - release, execution).with_arrival(arrival)
        });
        let set = TaskSet::new("bursts", tasks.collect(), 1);
        let mut scheduler = build("mh-edf").unwrap();
        online += simulate(&set, 0, Time::from_secs(1), &mut *scheduler, &mut Unobserved).unwrap().jobs.met;
    }
    assert!((online as f64) < 0.995 * best, "MH-EDF {online}, optimum {best}");
}

#[test]
fn a_bound_stays_one_when_there_is_no_time_to_find_the_optimum() {
    for seed in 0..30 {
        let cores = 1 + seed as usize % 3;
        let set = generate(&Spec::new(12, cores, 1.3 * cores as f64), seed).unwrap();
        let jobs = with_hindsight(&Workload::counted(&set, 0, Time::from_ms(300)), |_| 1.0);
        let exact = optimum(&jobs, cores, STEPS);
        for steps in [0, 1_000, 100_000] {
            let hasty = optimum(&jobs, cores, steps);
            assert!(hasty.upper >= exact.lower && hasty.lower <= exact.upper, "seed {seed}: {hasty:?}");
            assert!(schedule(&jobs, &hasty.chosen, cores).is_some());
            assert_eq!(hasty, optimum(&jobs, cores, steps), "the same every time");
        }
    }
}

#[test]
fn one_job_worth_more_than_all_others_hides_nothing() {
    let ms = 1_000_000;
    let with = |execution: u64, weight: f64| OracleJob { weight, ..job(0, execution * ms, 1_000 * ms) };
    let jobs = [with(10, 1e10), with(600, 3.0), with(500, 2.0), with(490, 2.0)];
    for cores in [1, 2] {
        let found = optimum(&jobs[..if cores == 1 { 4 } else { 3 }], cores, STEPS);
        assert!(found.is_exact() && found.lower == if cores == 1 { 1e10 + 4.0 } else { 1e10 + 5.0 }, "{found:?}");
    }
}

#[test]
fn centuries_of_core_time_are_bounded_not_wrapped_around() {
    let year = 31_536_000_000_000_000;
    let jobs: Vec<OracleJob> = (0..45).map(|k| job(0, 15 * year + k, 29 * year)).collect();
    let mut before: f64 = 0.0;
    for cores in [1, 8, 19, 20, 30, 44, 64] {
        let found = optimum(&jobs, cores, STEPS);
        assert!(found.upper >= found.lower && found.upper >= before.min(45.0), "{cores} cores: {found:?}");
        assert!(found.lower >= cores.min(45) as f64, "each core can do one: {found:?}");
        before = found.lower;
    }
}
