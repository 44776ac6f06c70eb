//! Contract: each of these schedulers does what it is meant for where plain EDF does not, and the optimal schedulers
//! are optimal.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_sched::build;
use temponet_sim::generate::{Lengths, Method, Rule, Spec, generate};
use temponet_sim::{End, Metrics, Recorder, Unobserved, simulate};
use temponet_task::{
    Arrival, Attribute, ExecutionModel, Extra, ListedJob, OnMiss, Server, Speed, Task, TaskId, TaskSet, Time,
};

fn ms(n: u64) -> Time {
    Time::from_ms(n)
}

fn run(scheduler: &str, set: &TaskSet, horizon: Time) -> Metrics {
    simulate(set, 0, horizon, &mut *build(scheduler).unwrap(), &mut Unobserved).unwrap()
}

fn met(scheduler: &str, set: &TaskSet, task: usize) -> f64 {
    run(scheduler, set, ms(6_000)).tasks[task].jobs.compliance()
}

fn set(tasks: &[(u64, u64)], cores: usize) -> TaskSet {
    let named = tasks.iter().zip('A'..);
    let tasks = named.map(|((period, wcet), name)| Task::periodic(name, ms(*period), ms(*wcet))).collect();
    TaskSet::new("test", tasks, cores)
}

/// A random set with log-uniform periods.
fn drawn(tasks: usize, cores: usize, utilization: f64, periods: (Time, Time), granularity: Time, seed: u64) -> TaskSet {
    let lengths = Lengths::Periods(Rule::LogUniform(periods.0, periods.1));
    let method = Method::UUniFastDiscard;
    generate(&Spec { method, lengths, granularity, ..Spec::new(tasks, cores, utilization) }, seed).unwrap()
}

/// Single jobs as (release, length, deadline, value).
fn list(jobs: &[(u64, u64, u64, f64)]) -> TaskSet {
    let task = |(index, job): (usize, &(u64, u64, u64, f64))| {
        let (release, execution, deadline) = (ms(job.0), ms(job.1), ms(job.2));
        let listed = ListedJob::new(release, deadline, execution).with_value(job.3);
        Task::periodic(format!("j{index}"), deadline - release, execution)
            .with_arrival(Arrival::Listed([listed].into()))
    };
    TaskSet::new("list", jobs.iter().enumerate().map(task).collect(), 1)
}

/// A random set whose total utilization is at most `cores`: in whole milliseconds, every third set in steps of 10 µs,
/// and every fifth set fills the cores to the last nanosecond.
fn feasible_set(cores: usize, seed: u64) -> TaskSet {
    let mut rng = Pcg64::seed_from_u64(seed);
    if seed.is_multiple_of(5) {
        return full_set(cores, &mut rng);
    }
    let granularity = if seed.is_multiple_of(3) { Time::from_us(10) } else { ms(1) };
    loop {
        let tasks = rng.random_range(cores + 1..=cores + 6);
        let utilization = cores as f64 * rng.random_range(0.7..1.0);
        let set = drawn(tasks, cores, utilization, (ms(3), ms(40)), granularity, rng.random::<u64>());
        // Rounding may have overloaded the set.
        if set.utilization() <= cores as f64 - 1e-9 {
            return set;
        }
    }
}

/// Tasks with periods that divide 120 ms, and tasks with a period of 120 ms that fill the rest; about every second set
/// in odd nanoseconds.
fn full_set(cores: usize, rng: &mut Pcg64) -> TaskSet {
    let grain = if rng.random::<bool>() { Time::from_ms(1).0 } else { 1 };
    let cycle = ms(120).0;
    let mut left = cycle * cores as u64;
    let mut tasks = Vec::new();
    for index in 0..cores + 4 {
        let period = ms([4, 5, 6, 8, 10, 12, 15, 20, 24, 30, 40][rng.random_range(0..11)]);
        let wcet = Time(rng.random_range(1..=period.0 / grain) * grain);
        let work = wcet.0 * (cycle / period.0);
        if work <= left {
            left -= work;
            tasks.push(Task::periodic(format!("t{index}"), period, wcet));
        }
    }
    while left > 0 {
        let part = left.min(rng.random_range(1..=cycle / grain) * grain);
        tasks.push(Task::periodic(format!("filler{left}"), ms(120), Time(part)));
        left -= part;
    }
    TaskSet::new("full", tasks, cores)
}

fn horizon(set: &TaskSet) -> Time {
    set.hyperperiod().unwrap_or(Time::NEVER).min(Time::from_secs(2))
}

#[test]
fn the_fluid_schedulers_miss_nothing_up_to_full_load() {
    let (mut edf_misses, mut full) = (0, 0);
    for seed in 0..1_500 {
        let set = feasible_set(2 + seed as usize % 4, seed);
        full += u64::from(set.utilization() > set.cores() as f64 - 1e-9);
        for scheduler in ["dp-wrap", "llref", "lre-tl", "run"] {
            let metrics = run(scheduler, &set, horizon(&set));
            assert_eq!(metrics.missed(), 0, "{scheduler}, seed {seed}, {set:?}");
        }
        edf_misses += u64::from(run("edf", &set, horizon(&set)).missed() > 0);
    }
    assert!(edf_misses > 100 && full > 100, "EDF misses on {edf_misses}, {full} sets are full");
}

#[test]
fn run_misses_nothing_on_many_cores_and_decides_seldom() {
    for seed in 0..4_000 {
        let cores = 6 + seed as usize % 7;
        let mut rng = Pcg64::seed_from_u64(seed);
        let load = cores as f64 * (1.0 - 10.0_f64.powf(rng.random_range(-7.0..-0.5)));
        let set = match seed % 3 {
            0 => full_set(cores, &mut rng),
            _ => generate(&Spec { granularity: Time(1), ..Spec::new(cores + 6, cores, load) }, seed).unwrap(),
        };
        let metrics = run("run", &set, ms(120));
        assert_eq!(metrics.missed(), 0, "seed {seed}, {set:?}");
        assert!(metrics.decisions < 60 * (metrics.jobs.released + 50), "seed {seed}: {} decisions", metrics.decisions);
    }
}

#[test]
fn er_pd2_misses_nothing_up_to_full_load_and_answers_sooner_than_pd2() {
    let (mut early, mut strict) = (0.0, 0.0);
    for seed in (0..3_000).filter(|seed| seed % 3 != 0).take(1_000) {
        let set = feasible_set(2 + seed as usize % 4, seed);
        if set.tasks().iter().any(|task| task.wcet.0 % 1_000_000 != 0) {
            continue;
        }
        let metrics = run("er-pd2", &set, horizon(&set));
        assert_eq!(metrics.missed(), 0, "seed {seed}, {set:?}");
        early += metrics.art_completed().unwrap();
        strict += run("pd2", &set, horizon(&set)).art_completed().unwrap();
    }
    assert!(early < 0.95 * strict, "{early} {strict}");
}

#[test]
fn lre_tl_and_dp_wrap_preempt_less_than_llref_and_run_least_of_all() {
    let (mut eager, mut lazy, mut wrapped, mut reduced) = (0, 0, 0, 0);
    for seed in 0..100 {
        let set = feasible_set(3, seed);
        eager += run("llref", &set, horizon(&set)).preemptions;
        lazy += run("lre-tl", &set, horizon(&set)).preemptions;
        wrapped += run("dp-wrap", &set, horizon(&set)).preemptions;
        reduced += run("run", &set, horizon(&set)).preemptions;
    }
    assert!(lazy < eager && wrapped < eager, "llref {eager}, lre-tl {lazy}, dp-wrap {wrapped}");
    assert!(3 * reduced < wrapped.min(lazy), "run {reduced}, lre-tl {lazy}, dp-wrap {wrapped}");
}

#[test]
fn optimal_schedulers_are_best_effort_beyond_full_load() {
    let overloaded = set(&[(10, 9), (12, 10), (15, 14), (20, 18)], 3);
    for scheduler in ["dp-wrap", "llref", "lre-tl", "run", "er-pd2", "pd2", "cd-split"] {
        for on_miss in [OnMiss::Abort, OnMiss::Continue] {
            let set = overloaded.clone().with_on_miss(on_miss);
            let metrics = run(scheduler, &set, ms(3_000));
            assert!(metrics.missed() > 0 && metrics.jobs.released > 100, "{scheduler}");
        }
    }
}

#[test]
fn mllf_is_as_good_as_llf_with_fewer_preemptions() {
    let (mut least, mut modified) = (0, 0);
    for seed in 0..500 {
        let set = feasible_set(1, seed);
        let metrics = run("mllf", &set, horizon(&set));
        assert_eq!(metrics.missed(), 0, "seed {seed}, {set:?}");
        modified += metrics.preemptions;
        least += run("llf", &set, horizon(&set)).preemptions;
    }
    assert!(modified as f64 * 1.15 < least as f64, "mllf {modified}, llf {least}");
}

#[test]
fn muf_keeps_the_critical_task_where_edf_loses_it() {
    let mut overloaded = set(&[(10, 6), (25, 15)], 1);
    overloaded.system.tasks_mut()[1].criticality = 1;
    assert_eq!(met("muf", &overloaded, 1), 1.0);
    assert!(met("edf", &overloaded, 1) < 1.0);
    // Without criticalities, the tasks with the shortest periods that fit together are the critical set.
    overloaded.system.tasks_mut()[1].criticality = 0;
    assert_eq!(met("muf", &overloaded, 0), 1.0);
}

/// Two light tasks and a heavy one on two cores: under global EDF the heavy task misses (Dhall's effect).
fn dhall() -> TaskSet {
    set(&[(9, 2), (9, 2), (10, 9)], 2)
}

#[test]
fn the_multicore_remedies_cure_dhalls_effect() {
    assert!(run("edf", &dhall(), ms(900)).missed() > 0);
    for scheduler in ["edf-us", "fpedf", "g-fl", "edcl", "edzl", "cd-split"] {
        assert_eq!(run(scheduler, &dhall(), ms(900)).missed(), 0, "{scheduler}");
    }
}

#[test]
fn edf_us_and_fpedf_keep_their_bounds() {
    for seed in 0..1_500u64 {
        let cores = 2 + seed as usize % 4;
        let m = cores as f64;
        let within = |bound: f64| {
            let periods = (ms(3), ms(40));
            drawn(cores + 4, cores, 0.97 * bound, periods, Time::from_us(10), seed)
        };
        let (us, fp) = (within(m * m / (2.0 * m - 1.0)), within((m + 1.0) / 2.0));
        assert_eq!(run("edf-us", &us, horizon(&us)).missed(), 0, "{us:?}");
        assert_eq!(run("fpedf", &fp, horizon(&fp)).missed(), 0, "{fp:?}");
    }
}

#[test]
fn g_fl_has_less_lateness_than_global_edf() {
    let (mut fair, mut edf) = (0i64, 0i64);
    for seed in 0..200 {
        let set = feasible_set(3, seed).with_on_miss(OnMiss::Continue);
        fair += run("g-fl", &set, horizon(&set)).lateness.max().unwrap();
        edf += run("edf", &set, horizon(&set)).lateness.max().unwrap();
    }
    assert!(fair < edf, "greatest lateness summed: g-fl {fair}, edf {edf}");
}

#[test]
fn edcl_decides_only_at_events_and_still_meets_more_than_edf() {
    let (mut edcl, mut edf, mut decisions, mut events) = (0, 0, 0, 0);
    for seed in 0..300 {
        let set = feasible_set(3, seed);
        let (a, b) = (run("edcl", &set, horizon(&set)), run("edf", &set, horizon(&set)));
        edcl += a.missed();
        edf += b.missed();
        decisions += a.decisions;
        events += b.decisions;
    }
    assert!(edcl < edf && decisions < events + events / 20, "missed {edcl} {edf}, decisions {decisions} {events}");
}

#[test]
fn value_schedulers_drop_the_cheap_job() {
    // A cheap job with an earlier deadline, and a valuable job that fits only alone.
    let clash = list(&[(0, 5, 6, 1.0), (0, 6, 7, 10.0), (20, 5, 30, 1.0)]);
    assert_eq!(run("edf", &clash, ms(100)).value, 2.0);
    for scheduler in ["red", "lbesa", "dasa", "dios"] {
        assert_eq!(run(scheduler, &clash, ms(100)).value, 11.0, "{scheduler}");
    }
}

#[test]
fn value_schedulers_are_edf_when_everything_fits() {
    for seed in 0..300 {
        let set = feasible_set(1, seed);
        for scheduler in ["red", "lbesa", "dasa", "dios", "skip-over-rto", "skip-over-bwp", "cd-split", "cbs", "edf-vd"]
        {
            assert_eq!(run(scheduler, &set, horizon(&set)).missed(), 0, "{scheduler}, seed {seed}");
        }
    }
}

#[test]
fn red_takes_a_rejected_job_back_when_time_comes_free() {
    // j1 is rejected at 0 because of j0's wcet of 6. j0 takes only 2, and then j1 fits.
    let mut set = list(&[(0, 6, 6, 5.0), (0, 4, 8, 1.0)]);
    let short = ListedJob::new(ms(0), ms(6), ms(2)).with_wcet(ms(6)).with_bcet(Time(1)).with_value(5.0);
    set.system.tasks_mut()[0].arrival = Arrival::Listed([short].into());
    assert_eq!(run("red", &set, ms(50)).value, 6.0);
}

#[test]
fn dasa_prefers_density_and_lbesa_and_dios_differ_where_they_should() {
    // One long job of value 3 against two short ones of value 2 each: the short ones have the higher density.
    let set = list(&[(0, 9, 10, 3.0), (0, 3, 9, 2.0), (0, 3, 9, 2.0)]);
    assert_eq!(run("dasa", &set, ms(50)).value, 4.0);
    assert_eq!(run("lbesa", &set, ms(50)).value, 4.0);
    // Importance puts criticality before density.
    let mut critical = set.clone();
    let job = ListedJob::new(ms(0), ms(10), ms(9)).with_criticality(1).with_value(3.0);
    critical.system.tasks_mut()[0].arrival = Arrival::Listed([job].into());
    assert_eq!(run("dios", &critical, ms(50)).value, 3.0);
    assert_eq!(run("dasa", &critical, ms(50)).value, 4.0);
}

#[test]
fn skip_over_meets_all_red_jobs_and_bwp_more_than_rto() {
    // U = 1.24. With one job in two and one in three skipped, the rest fits.
    let mut set = set(&[(10, 6), (25, 16)], 1);
    set.system.tasks_mut()[0].extra.set(Attribute::Skip, Some(2));
    set.system.tasks_mut()[1].extra.set(Attribute::Skip, Some(3));
    let outcomes = |scheduler: &str, task: u32| {
        let mut recorder = Recorder::until(Time::NEVER);
        simulate(&set, 0, ms(1_200), &mut *build(scheduler).unwrap(), &mut recorder).unwrap();
        recorder.jobs.retain(|job| job.task == TaskId(task) && job.deadline <= ms(1_200));
        recorder.jobs.sort_by_key(|job| job.number);
        recorder.jobs.iter().map(|job| job.met()).collect::<Vec<_>>()
    };
    let keeps_promise = |scheduler: &str| {
        [(0, 2), (1, 3)].iter().all(|(task, skip)| {
            outcomes(scheduler, *task).windows(*skip).all(|window| window.iter().filter(|met| !**met).count() <= 1)
        })
    };
    assert!(keeps_promise("skip-over-rto") && keeps_promise("skip-over-bwp") && !keeps_promise("edf"));
    assert_eq!(outcomes("skip-over-rto", 0)[..4], [true, false, true, false]);
    let total = |scheduler: &str| run(scheduler, &set, ms(1_200)).jobs.met;
    assert!(total("skip-over-bwp") > total("skip-over-rto"));
}

#[test]
fn mk_dbp_keeps_m_of_k_where_edf_does_not() {
    let mut set = set(&[(10, 5), (10, 5), (10, 5)], 1);
    set.system.tasks_mut().iter_mut().for_each(|task| task.mk = Some((1, 2)));
    let violations = |scheduler: &str| {
        let mut recorder = Recorder::until(Time::NEVER);
        simulate(&set, 0, ms(1_000), &mut *build(scheduler).unwrap(), &mut recorder).unwrap();
        (0..3)
            .map(|task| {
                let mut jobs: Vec<_> =
                    recorder.jobs.iter().filter(|job| job.task == TaskId(task) && job.deadline <= ms(1_000)).collect();
                jobs.sort_by_key(|job| job.number);
                jobs.windows(2).filter(|pair| !pair[0].met() && !pair[1].met()).count()
            })
            .sum::<usize>()
    };
    assert_eq!(violations("mk-dbp"), 0);
    assert!(violations("edf") > 50);
}

/// A task of low criticality and a critical one that overruns at times. Under EDF the critical task misses, under the
/// mixed-criticality schedulers it does not.
fn mixed_criticality() -> TaskSet {
    let mut tasks = set(&[(10, 6), (21, 4)], 1).tasks().to_vec();
    let critical = &mut tasks[1];
    (critical.criticality, critical.wcet_high) = (1, Some(ms(11)));
    critical.execution = ExecutionModel::Overrun { probability: 0.5, below: Box::new(ExecutionModel::Wcet) };
    TaskSet::new("test", tasks, 1)
}

#[test]
fn edf_vd_and_amc_save_critical_jobs_from_overruns() {
    let mut set = mixed_criticality();
    assert!(met("edf", &set, 1) < 1.0, "{}", met("edf", &set, 1));
    assert_eq!(met("edf-vd", &set, 1), 1.0);
    // AMC needs the critical task at a high priority.
    for (task, priority) in set.system.tasks_mut().iter_mut().zip([1, 2]) {
        task.extra.set(Attribute::Priority, Some(priority));
    }
    assert_eq!(met("amc", &set, 1), 1.0);
    let mut recorder = Recorder::until(Time::NEVER);
    simulate(&set, 0, ms(3_000), &mut *build("amc").unwrap(), &mut recorder).unwrap();
    let given_up = recorder.jobs.iter().filter(|job| job.end == End::Abandoned).count();
    assert!(given_up > 10, "low jobs are given up in high mode: {given_up}");
    set.system.tasks_mut()[1].execution = ExecutionModel::Wcet;
    assert_eq!(run("edf-vd", &set, ms(3_000)).missed(), 0, "without overruns nothing is dropped");
}

#[test]
fn edf_vd_guarantees_critical_jobs_within_its_bound() {
    let mut checked = 0;
    for seed in 0..1_500u64 {
        let mut rng = Pcg64::seed_from_u64(seed);
        let load = rng.random_range(0.5..0.9);
        let mut set = drawn(5, 1, load, (ms(5), ms(60)), Time::from_us(100), seed);
        for task in set.system.tasks_mut().iter_mut().take(2) {
            let high = Time((task.wcet.0 as f64 * rng.random_range(1.2..2.5)) as u64).min(task.deadline);
            (task.criticality, task.wcet_high) = (1, Some(high.max(task.wcet)));
            task.execution = ExecutionModel::Overrun { probability: 0.3, below: Box::new(ExecutionModel::Wcet) };
        }
        let load = |critical: bool, high: bool| -> f64 {
            let tasks = set.tasks().iter().filter(|task| (task.criticality > 0) == critical);
            tasks.map(|task| if high { task.wcet_high.unwrap_or(task.wcet) } else { task.wcet }.0 as f64 / task.deadline.0 as f64).sum()
        };
        let x = load(true, false) / (1.0 - load(false, false));
        if x * load(false, false) + load(true, true) > 1.0 || x > 1.0 {
            continue;
        }
        checked += 1;
        let metrics = simulate(&set, seed, ms(3_000), &mut *build("edf-vd").unwrap(), &mut Unobserved).unwrap();
        assert_eq!(metrics.pitmd(), Some(1.0), "seed {seed} {set:?}");
    }
    assert!(checked > 300, "{checked}");
}

#[test]
fn slow_edf_saves_energy_and_misses_nothing() {
    for seed in 0..300 {
        let mut set = feasible_set(1, seed);
        set.system.set_speeds([250, 500, 750, 1000].map(Speed).to_vec());
        for task in set.system.tasks_mut().iter_mut() {
            task.wcet = Time((task.wcet.0 / 2).max(1));
            task.bcet = Time(task.wcet.0 / 4 + 1);
            task.execution = ExecutionModel::Uniform;
        }
        let [full, fixed, conserving] = ["edf", "static-edf", "cc-edf"].map(|name| run(name, &set, horizon(&set)));
        assert_eq!((fixed.missed(), conserving.missed()), (0, 0), "seed {seed}");
        assert!(fixed.energy < full.energy && conserving.energy <= fixed.energy, "seed {seed}");
    }
}

#[test]
fn cbs_protects_hard_tasks_from_aperiodic_work() {
    let mut set = set(&[(10, 4), (20, 6), (50, 2)], 1);
    let aperiodic = Arrival::Burst { jobs: 8, every: ms(30), until: Time::NEVER };
    set.system.tasks_mut()[2] = set.tasks()[2]
        .clone()
        .with_arrival(aperiodic)
        .with_extra(Extra::default().with(Attribute::Server, 0))
        .with_deadline(ms(12));
    set.system.set_servers(vec![Server { name: "s".into(), budget: ms(3), period: ms(10) }]);
    let hard = |scheduler: &str| (met(scheduler, &set, 0), met(scheduler, &set, 1));
    assert_eq!(hard("cbs"), (1.0, 1.0));
    assert!(hard("edf").0 < 1.0 || hard("edf").1 < 1.0);
    let served = run("cbs", &set, ms(6_000)).tasks[2].completed;
    assert!(served > 0, "the server serves");
}

#[test]
fn cd_split_beats_partitioned_edf_with_few_migrating_tasks() {
    // Three tasks of utilization 2/3 on two cores: there is no partition, but there is a split.
    let thirds = set(&[(30, 20), (30, 20), (30, 20)], 2);
    assert!(run("p-edf", &thirds, ms(900)).missed() > 0);
    assert_eq!(run("cd-split", &thirds, ms(900)).missed(), 0);
    let (mut split, mut whole) = (0, 0);
    for seed in 0..600 {
        let set = feasible_set(3, seed);
        split += u64::from(run("cd-split", &set, horizon(&set)).missed() == 0);
        whole += u64::from(run("p-edf", &set, horizon(&set)).missed() == 0);
    }
    assert!(split > whole, "sets met completely: cd-split {split}, p-edf {whole}");
}
