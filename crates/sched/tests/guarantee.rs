//! Contract of the guarantee for a part of the set: whatever chooses, however much the other tasks ask for, and
//! whatever switches, migrations and decisions cost, no job of a guaranteed task is late.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_sched::build;
use temponet_sched::catalog::all;
use temponet_sched::shield::{Guarantee, Role, Shield, ShieldCounters, WhyNot};
use temponet_sim::{Metrics, Unobserved, simulate};
use temponet_task::{
    Arrival, Assignment, Core, CoreId, CoreSet, Costs, Event, ExecutionModel, Gap, Job, JobId, ListedJob, Mode,
    NotApplicable, OnMiss, Preemption, Scheduler, Speed, System, SystemView, Task, TaskId, TaskSet, Time,
};

use crate::bad::{BAD, Bad, BadScheduler, bare, drawn, horizon, inner, shielded, vary};

/// A random set on 1 to 8 cores with a load of up to 3 per core, in which some tasks are critical or ask for a
/// guarantee.
pub fn overloaded(rng: &mut Pcg64) -> TaskSet {
    let cores = [1, 1, 2, 3, 4, 8][rng.random_range(0..6)];
    let load = cores as f64 * rng.random_range(0.8..3.0);
    let mut set = drawn(rng, load, cores);
    if rng.random_bool(0.7) {
        vary(rng, &mut set);
    }
    let (share, levels, asks) = (rng.random_range(0.1..0.6), rng.random_range(1..4), rng.random_bool(0.3));
    for task in set.system.tasks_mut().iter_mut() {
        let is_chosen = rng.random_bool(share);
        task.guarantee = asks && is_chosen;
        task.criticality = if is_chosen || asks { rng.random_range(0..=levels) } else { 0 };
    }
    if rng.random_bool(0.3) {
        set.system.set_on_miss(OnMiss::Continue);
    }
    if rng.random_bool(0.2) {
        let job = |release: u64| ListedJob::new(Time::from_ms(release), Time::from_ms(release + 2), Time::from_ms(1));
        let arrival = Arrival::Listed((0..50).map(job).collect());
        set.system.tasks_mut().push(Task::periodic("log", Time::from_ms(1), Time::from_ms(1)).with_arrival(arrival));
    }
    set
}

pub fn guarantee(set: &TaskSet) -> Option<Guarantee> {
    Role::on(&set.system).guarantee().cloned()
}

/// A horizon of some two hundred jobs.
pub fn span(set: &TaskSet) -> Time {
    let rate: f64 = set.tasks().iter().filter_map(Task::period).map(|period| 1.0 / period.0 as f64).sum();
    Time((200.0 / rate) as u64)
}

pub fn missed(metrics: &Metrics, guarantee: &Guarantee) -> u64 {
    let of_task = |(index, task): (usize, &temponet_sim::TaskMetrics)| {
        guarantee.core_of(TaskId::new(index)).map_or(0, |_| task.jobs.released - task.jobs.met)
    };
    metrics.tasks.iter().enumerate().map(of_task).sum()
}

/// Runs bad and classical schedulers on random sets. Returns the guaranteed jobs, those missed by bare schedulers, and
/// the counters.
fn defy(seed: u64, rounds: u64, change: fn(&mut Pcg64, &mut TaskSet)) -> (u64, u64, ShieldCounters) {
    let mut rng = Pcg64::seed_from_u64(seed);
    let (mut jobs, mut bare_missed, mut total) = (0, 0, ShieldCounters::default());
    for round in 0..rounds {
        let mut set = overloaded(&mut rng);
        change(&mut rng, &mut set);
        let is_limited = set.system.limited_task().is_some();
        let is_wanted = |guarantee: &Guarantee| is_limited || !guarantee.is_for_all();
        let Some(guarantee) = guarantee(&set).filter(is_wanted) else { continue };
        for choice in [round as usize % BAD.len(), rng.random_range(0..BAD.len() + all().len())] {
            let (name, mut scheduler) = inner(choice, round);
            if scheduler.start(&set.system).is_err() {
                continue;
            }
            let (metrics, counters) = shielded(scheduler, &set, round, span(&set));
            assert_eq!(
                (missed(&metrics, &guarantee), counters.lapses),
                (0, 0),
                "{name}, {round}: {set:?}\n{guarantee:?}"
            );
            let covered =
                metrics.tasks.iter().enumerate().filter(|(index, _)| guarantee.core_of(TaskId::new(*index)).is_some());
            jobs += covered.map(|(_, task)| task.jobs.released).sum::<u64>();
            bare_missed += missed(&bare(inner(choice, round).1, &set, round, span(&set)), &guarantee);
            total.decisions += counters.decisions;
            total.deviations += counters.deviations;
            total.overrides += counters.overrides;
            total.unasked += counters.unasked;
            total.kept += counters.kept;
            total.unknown += counters.unknown;
        }
    }
    println!("{jobs} guaranteed jobs, {bare_missed} missed when bare: {total:?}");
    (jobs, bare_missed, total)
}

#[test]
fn guaranteed_jobs_are_never_late_in_overload() {
    let (jobs, bare_missed, total) = defy(1, 1_200, |_, _| ());
    assert!(jobs > 50_000 && bare_missed * 5 > jobs, "{jobs} {bare_missed}");
    assert!(total.deviations * 5 > total.decisions, "{total:?}");
    assert!(total.kept > 100 && total.unasked > 100 && total.unknown * 200 < total.decisions, "{total:?}");
}

/// Adds modes that release less often, with longer deadlines, and take no more.
fn slow_down(rng: &mut Pcg64, set: &mut TaskSet) {
    let span = span(set).0;
    let count = rng.random_range(1..4);
    let mut mode = |number: u64| {
        Mode::new(format!("m{number}"), Time(number * span / 4 + rng.random_range(0..span / 8)))
            .with_work(rng.random_range(0.5..=1.0))
            .with_rate(rng.random_range(0.2..=1.0))
    };
    set.set_modes((0..count).map(&mut mode).collect());
}

/// Adds modes that slow single tasks down, or stop them.
fn slow_some_down(rng: &mut Pcg64, set: &mut TaskSet) {
    slow_down(rng, set);
    let mut modes = set.modes().to_vec();
    for mode in &mut modes {
        let factor = |task| rng.random_bool(0.5).then(|| (task, rng.random_range(1.0..3.0)));
        mode.slower = set.task_ids().filter_map(factor).collect();
        mode.stop = set.task_ids().filter(|_| rng.random_bool(0.2)).collect();
    }
    set.set_modes(modes);
}

#[test]
fn guaranteed_jobs_are_never_late_in_modes_that_slow_or_stop_single_tasks() {
    let (jobs, bare_missed, _) = defy(15, 1_000, slow_some_down);
    assert!(jobs > 20_000 && bare_missed > 500, "{jobs} {bare_missed}");
}

#[test]
fn guaranteed_jobs_are_never_late_in_modes_that_slow_their_tasks_down() {
    let (jobs, bare_missed, _) = defy(5, 1_000, slow_down);
    assert!(jobs > 30_000 && bare_missed > 1_000, "{jobs} {bare_missed}");
    // Late releases made legal jobs look too early once deadlines were longer.
    let ms = Time::from_ms;
    let jittery = Task::periodic("g", ms(10), ms(6)).with_deadline(ms(30)).with_jitter(ms(9)).with_guarantee(true);
    let mut set = TaskSet::new("jitter", vec![jittery, Task::periodic("h", ms(3), ms(3))], 1);
    set.set_modes(vec![Mode::new("slow", ms(1)).with_rate(0.9)]);
    let (metrics, counters) = shielded(build("srpt").unwrap(), &set, 1, ms(20_000));
    assert_eq!((metrics.tasks[0].jobs.met, counters.lapses), (metrics.tasks[0].jobs.released, 0));
}

#[test]
fn no_stand_in_where_one_overrun_would_cost_the_others() {
    let ms = Time::from_ms;
    let mut heavy = Task::periodic("a", ms(30), ms(19)).with_criticality(1);
    let below = Box::new(ExecutionModel::Wcet);
    (heavy.wcet_high, heavy.execution) = (Some(ms(31)), ExecutionModel::Overrun { probability: 0.5, below });
    let other = |name: &str| Task::periodic(name, ms(30), ms(20));
    let mut set = TaskSet::new("s", vec![heavy, other("b"), other("c")], 2);
    let only_first = guarantee(&set).unwrap();
    assert_eq!(only_first.core_of(TaskId(0)), Some(CoreId(0)));
    assert!(!only_first.is_for_all() && !only_first.covers_overruns());
    set.system.tasks_mut()[0].criticality = 0;
    let Role::Disarmed(why) = Role::on(&set.system) else { panic!("not {:?}", Role::on(&set.system)) };
    assert_eq!(why.to_string(), "jobs of task \"a\" may overrun, the set is overloaded then, and no task is critical");
    set.system.tasks_mut()[0].wcet_high = Some(ms(19));
    assert!(matches!(Role::on(&set.system), Role::StandIn(_)), "an overrun by nothing is none");
}

/// Gives cores different speeds, and binds tasks to some of them.
fn differ(rng: &mut Pcg64, set: &mut TaskSet) {
    if rng.random_bool(0.7) {
        let mut core = |_| Core::new("c", Speed(rng.random_range(400..3_000)));
        set.system.set_machine((0..set.cores()).map(&mut core).collect());
    }
    let share = if set.machine().cores().is_empty() { 0.9 } else { 0.4 };
    let cores = set.cores();
    for task in set.system.tasks_mut().iter_mut() {
        if rng.random_bool(share) {
            task.cores = CoreSet::of(CoreId::all(cores).filter(|_| rng.random_bool(0.5)));
        }
    }
}

#[test]
fn guaranteed_jobs_are_never_late_on_cores_that_differ() {
    let (jobs, bare_missed, total) = defy(5, 1_200, differ);
    assert!(jobs > 30_000 && bare_missed * 5 > jobs, "{jobs} {bare_missed}");
    assert!(total.deviations * 10 > total.decisions, "{total:?}");
    let mut set = overloaded(&mut Pcg64::seed_from_u64(1));
    set.system.set_machine((0..set.cores()).map(|_| Core::new("c", Speed(1500))).collect());
    set.system.set_costs(Costs { context_switch: Time(1), ..*set.costs() });
    let nothing = Role::on(&set.system);
    assert!(format!("{nothing:?}").contains("SpeedsWithCosts"), "{nothing:?}");
}

#[test]
fn guaranteed_jobs_are_never_late_whatever_dispatching_costs() {
    let (jobs, bare_missed, total) = defy(2, 1_200, |rng, set| {
        let mut cost = |share: f64| match rng.random_bool(share) {
            true => Time(rng.random_range(0..30_000)),
            false => Time(u64::from(rng.random_bool(0.2))),
        };
        let (context_switch, migration) = (cost(0.7), cost(0.7));
        let decision = if rng.random_bool(0.3) { Time(rng.random_range(1..20_000)) } else { Time::ZERO };
        set.system.set_costs(Costs { context_switch, migration, decision });
    });
    assert!(jobs > 50_000 && bare_missed * 5 > jobs, "{jobs} {bare_missed}");
    assert!(total.deviations * 5 > total.decisions, "{total:?}");
}

/// Makes jobs hold the core. Sets are on one core, and guaranteed tasks are among those that hold it.
fn limit(rng: &mut Pcg64, set: &mut TaskSet) {
    set.system.set_cores(1);
    let share = rng.random_range(0.1..1.0);
    for task in set.system.tasks_mut().iter_mut() {
        // Without shorter jobs, most sets could not wait for anybody.
        let parts = rng.random_range(1..30);
        task.wcet = Time((task.wcet.0 / parts).max(1));
        (task.bcet, task.execution, task.wcet_high, task.acet) = (task.wcet, ExecutionModel::Wcet, None, None);
        if rng.random_bool(0.5) {
            (task.bcet, task.execution) = (Time(1), ExecutionModel::Uniform);
        }
        task.preemption = match rng.random_bool(share) {
            false => Preemption::Free,
            true if rng.random() => Preemption::None,
            true => Preemption::Every(Time(rng.random_range(task.wcet.0.div_ceil(20)..=task.wcet.0))),
        };
    }
    if let Some(task) = set.system.tasks_mut().first_mut() {
        task.preemption = Preemption::None;
    }
}

#[test]
fn guaranteed_jobs_are_never_late_where_jobs_hold_the_core() {
    let (jobs, bare_missed, total) = defy(3, 2_000, limit);
    assert!(jobs > 30_000 && bare_missed > 3_000, "{jobs} {bare_missed}");
    assert!(total.deviations > 3_000 && total.overrides > 3_000, "{total:?}");
}

#[test]
fn a_job_that_holds_the_core_starts_only_where_the_slack_covers_it() {
    let ms = Time::from_ms;
    let brake = Task::periodic("brake", ms(10), ms(2)).with_criticality(1).with_deadline(ms(5));
    let kernel = |wcet: u64| Task::periodic("kernel", ms(100), ms(wcet)).with_preemption(Preemption::None);
    let set = |wcet: u64, cores: usize| TaskSet::new("set", vec![brake.clone(), kernel(wcet)], cores);
    let met = |set: &TaskSet| {
        let (metrics, counters) = shielded(build("fcfs").unwrap(), set, 1, ms(1_000));
        assert_eq!((metrics.tasks[0].jobs.released, metrics.tasks[0].jobs.met, counters.lapses), (100, 100, 0));
        metrics.tasks[1].jobs.met
    };
    let restricted = |set: &TaskSet| guarantee(set).unwrap().restricted(&set.system);
    // 3 ms and 1 ns before the deadline of the brake less its wcet, the kernel just fits, whenever it starts.
    assert_eq!((restricted(&set(3, 1)), met(&set(3, 1))), (vec![], 10));
    // Longer ones start right after a job of the brake, and the longest that fits there takes 11 ms.
    assert_eq!((restricted(&set(11, 1)), met(&set(11, 1))), (vec![TaskId(1)], 10));
    assert_eq!(met(&set(12, 1)), 0);
    // The brake belongs to one core, and the kernel finds another one.
    assert!(guarantee(&set(40, 2)).unwrap().is_for_all());
    let mut decided = set(3, 1);
    decided.system.set_costs(Costs { decision: Time(1), ..Costs::default() });
    let Role::Disarmed(why) = Role::on(&decided.system) else { panic!("{:?}", Role::on(&decided.system)) };
    assert_eq!(why.to_string(), "task \"kernel\" limits preemption, which is not covered where decisions cost time");
}

/// A kernel that announces more work than its task says is started only if nobody who arrives before its end has to
/// wait too long.
#[test]
fn a_longer_job_than_the_proof_knows_does_not_break_the_guarantee() {
    let ms = Time::from_ms;
    let brake = Task::periodic("brake", ms(10), ms(2)).with_criticality(1).with_deadline(ms(5));
    let job = |release: u64, wcet: u64| ListedJob::new(ms(release), ms(release + 60), ms(wcet));
    let kernel = |jobs: Vec<ListedJob>| {
        let arrival = Arrival::Listed(jobs.into());
        let task = Task::periodic("kernel", ms(100), ms(3)).with_preemption(Preemption::None);
        TaskSet::new("set", vec![brake.clone(), task.with_arrival(arrival)], 1)
    };
    // What the shield is told: kernels of 3 ms. What comes: kernels of 7 ms, which fit between two jobs of the brake
    // only.
    let (told, real) = (kernel(vec![job(1, 3)]), kernel((0..10).map(|k| job(100 * k + 7, 7)).collect()));
    struct Told(Shield<Box<dyn Scheduler>>, System);
    impl temponet_task::Wrapper for Told {
        temponet_task::wraps!(0: Shield<Box<dyn Scheduler>>);

        fn start(&mut self, _: &System) -> Result<(), NotApplicable> {
            Scheduler::start(&mut self.0, &self.1)
        }
    }
    let mut scheduler = Told(Shield::new(build("fcfs").unwrap()), told.system.clone());
    let metrics = simulate(&real, 0, ms(1_000), &mut scheduler, &mut Unobserved).unwrap();
    assert!(scheduler.0.is_armed());
    assert_eq!((metrics.tasks[0].jobs.released, metrics.tasks[0].jobs.met), (100, 100));
    assert_eq!(metrics.tasks[1].jobs.met, 10, "they run when there is time");
    let bare = bare(build("fcfs").unwrap(), &real, 0, ms(1_000));
    assert!(bare.tasks[0].jobs.met < 100, "without the shield they block the brake");
}

#[test]
fn the_most_critical_tasks_that_fit_are_guaranteed() {
    let ms = Time::from_ms;
    let task =
        |name: &str, wcet: u64, criticality: u8| Task::periodic(name, ms(10), ms(wcet)).with_criticality(criticality);
    let names = |set: &TaskSet| -> Vec<(String, Result<CoreId, WhyNot>)> {
        guarantee(set).unwrap().tasks().map(|(name, core)| (name.to_string(), core)).collect()
    };
    let found = |expected: &[(&str, Result<CoreId, WhyNot>)]| -> Vec<(String, Result<CoreId, WhyNot>)> {
        expected.iter().map(|(name, core)| (name.to_string(), core.clone())).collect()
    };
    // Level 3 whole, then the lighter one of level 1; the order of the file does not matter.
    let mut tasks = vec![task("idle", 1, 0), task("heavy", 6, 1), task("light", 3, 1), task("brake", 4, 3)];
    let expected = [
        ("idle", Err(WhyNot::NotCritical)),
        ("heavy", Err(WhyNot::DoesNotFit)),
        ("light", Ok(CoreId(0))),
        ("brake", Ok(CoreId(0))),
    ];
    assert_eq!(names(&TaskSet::new("s", tasks.clone(), 1)), found(&expected));
    tasks.reverse();
    let mut reversed = expected;
    reversed.reverse();
    assert_eq!(names(&TaskSet::new("s", tasks.clone(), 1)), found(&reversed));
    // Everything fits on two cores.
    assert!(guarantee(&TaskSet::new("s", tasks.clone(), 2)).unwrap().is_for_all());
    // Tasks that ask for it come first, whatever their criticality.
    tasks[3].guarantee = true;
    let asked = guarantee(&TaskSet::new("s", tasks.clone(), 1)).unwrap();
    assert_eq!((asked.core_of(TaskId(3)), asked.core_of(TaskId(0))), (Some(CoreId(0)), None));
    // A task that cannot recur or overtakes itself is named, and those of its level are guaranteed.
    tasks[3].guarantee = false;
    (tasks[0].jitter, tasks[0].criticality) = (ms(11), 1);
    tasks[2].arrival = Arrival::Listed([].into());
    let rest = guarantee(&TaskSet::new("s", tasks, 1)).unwrap();
    let cores: Vec<Result<CoreId, WhyNot>> = rest.tasks().map(|(_, core)| core).collect();
    assert_eq!(cores[..3], [Err(WhyNot::OvertakingReleases), Ok(CoreId(0)), Err(WhyNot::DoesNotRecur)]);
}

#[test]
fn a_task_that_comes_after_others_is_named_with_that_reason() {
    let ms = Time::from_ms;
    let task = |name: &str, wcet: u64| Task::periodic(name, ms(10), ms(wcet));
    let mut set = TaskSet::new("s", vec![task("a", 2), task("b", 2).with_after(vec![TaskId(0)]), task("c", 1)], 1);
    // Deadlines are divided: the first is due after 5 ms, and the second is released by then.
    assert!(guarantee(&set).unwrap().is_for_all());
    // Its predecessor is not wanted.
    set.system.tasks_mut()[1].guarantee = true;
    set.system.tasks_mut()[2].guarantee = true;
    set.system.tasks_mut()[0].wcet = ms(8);
    let reasons = |set: &TaskSet| -> Vec<Result<CoreId, WhyNot>> {
        guarantee(set).unwrap().tasks().map(|(_, core)| core).collect()
    };
    assert_eq!(reasons(&set), [Err(WhyNot::NotAsked), Err(WhyNot::FollowsUnasked("a".into())), Ok(CoreId(0))]);
    // Nothing is known of releases where a mode lengthens the deadline of the first.
    set.system.tasks_mut()[0].guarantee = true;
    set.system.tasks_mut()[0].wcet = ms(2);
    set.set_modes(vec![Mode::new("slow", ms(1)).with_rate(0.5)]);
    assert_eq!(reasons(&set), [Ok(CoreId(0)), Err(WhyNot::FollowsInModes), Ok(CoreId(0))]);
}

#[test]
fn growth_is_what_fits_and_not_more() {
    let ms = Time::from_ms;
    let mut set = TaskSet::new("s", vec![Task::periodic("a", ms(10), ms(2)), Task::periodic("b", ms(20), ms(4))], 1);
    set.system.tasks_mut().push(Task::periodic("rest", ms(10), ms(9)).with_criticality(0));
    set.system.tasks_mut().iter_mut().take(2).for_each(|task| task.criticality = 1);
    assert_eq!(guarantee(&set).unwrap().growth(&set.system, 100.0), [Some(2.5)]);
    let tiny = TaskSet::new("s", vec![Task::periodic("a", Time(10), Time(9))], 1);
    assert_eq!(guarantee(&tiny).unwrap().growth(&tiny.system, 100.0), [Some(1.111)], "times round up");
    let two = set.clone().with_cores(2);
    assert_eq!(guarantee(&two).unwrap().growth(&two.system, 2.0).len(), 2);
    let mut grown = set.clone();
    grown.system.tasks_mut().iter_mut().take(2).for_each(|task| task.wcet = Time(task.wcet.0 * 5 / 2));
    assert_eq!(
        guarantee(&grown).unwrap().core_of(TaskId(0)).zip(guarantee(&grown).unwrap().core_of(TaskId(1))),
        Some((CoreId(0), CoreId(0)))
    );
    grown.system.tasks_mut()[0].wcet += Time(1);
    assert!(guarantee(&grown).unwrap().tasks().filter(|(_, core)| core.is_ok()).count() < 2);
}

/// Tells a scheduler that the system is another one than it is.
struct Misled<S> {
    told: System,
    inner: S,
}

impl<S: Scheduler> temponet_task::Wrapper for Misled<S> {
    temponet_task::wraps!(inner: S);

    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        self.inner.start(&self.told)
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.inner.decide(&view.with_system(&self.told), assignment);
    }
}

#[test]
fn a_job_that_breaks_its_word_loses_only_its_own_guarantee() {
    let mut rng = Pcg64::seed_from_u64(3);
    let (mut lapses, mut runs, mut jobs) = (0, 0, 0);
    for round in 0..400u64 {
        let mut set = overloaded(&mut rng);
        let mut cost = || Time(rng.random_range(0..20_000));
        if round % 2 == 0 {
            set.system.set_costs(Costs { context_switch: cost(), migration: cost(), ..Costs::default() });
        }
        let Some(guarantee) = guarantee(&set).filter(|guarantee| !guarantee.is_for_all()) else { continue };
        let Some(culprit) = (0..set.tasks().len()).find(|task| guarantee.core_of(TaskId::new(*task)).is_some()) else {
            continue;
        };
        let told = set.system.clone();
        // It takes longer than it says, comes more often, or both.
        let mut tasks = set.system.tasks_mut();
        let task = &mut tasks[culprit];
        if round % 3 != 1 {
            task.wcet = task.wcet * 3;
            (task.bcet, task.execution) = (task.wcet, ExecutionModel::Wcet);
        }
        if round % 3 != 0 {
            let faster = Time((task.period().unwrap().0 / 3).max(1));
            (task.arrival, task.jitter) = (Arrival::Periodic { period: faster }, Time::ZERO);
        }
        drop(tasks);
        let (name, inner) = inner(round as usize % BAD.len(), round);
        let mut scheduler = Misled { told, inner: Shield::new(inner) };
        let metrics = simulate(&set, round, span(&set), &mut scheduler, &mut Unobserved).unwrap();
        lapses += scheduler.inner.counters().lapses;
        runs += 1;
        for (index, task) in metrics.tasks.iter().enumerate() {
            if index != culprit && guarantee.core_of(TaskId::new(index)).is_some() {
                assert_eq!(task.jobs.met, task.jobs.released, "{name} {round}: {} of {set:?}", set.tasks()[index].name);
                jobs += task.jobs.released;
            }
        }
    }
    println!("{runs} runs, {jobs} jobs of the other guaranteed tasks, {lapses} lapses");
    assert!(runs > 200 && lapses > 1_000 && jobs > 5_000, "{runs} {lapses} {jobs}");
}

#[test]
fn on_one_core_decisions_that_cost_time_are_demand() {
    // A burst with jitter releases its jobs one by one, and each release is a decision.
    let time = Time::from_us;
    let burst = |jitter: u64| {
        let critical = Task::periodic("critical", time(1_000), time(600)).with_criticality(1);
        let arrival = Arrival::Burst { jobs: 20, every: time(1_000), until: Time::NEVER };
        let burst = Task::periodic("burst", time(1_000), time(100)).with_arrival(arrival).with_jitter(time(jitter));
        let costs = Costs { decision: time(20), ..Costs::default() };
        TaskSet::new("s", vec![critical, burst], 1).with_costs(costs)
    };
    assert!(guarantee(&burst(900)).is_none());
    let set = burst(0);
    assert!(guarantee(&set).is_some_and(|guarantee| guarantee.core_of(TaskId(0)) == Some(CoreId(0))));
    for choice in 0..BAD.len() {
        let (metrics, _) = shielded(inner(choice, 1).1, &set, 1, time(100_000));
        assert_eq!(metrics.tasks[0].jobs.met, 100);
    }
}

#[test]
fn what_cannot_fit_alone_takes_no_guarantee_from_others() {
    let ms = Time::from_ms;
    let task =
        |name: &str, wcet: u64, criticality: u8| Task::periodic(name, ms(10), ms(wcet)).with_criticality(criticality);
    let set = TaskSet::new("s", vec![task("brake", 2, 1), task("broken", 12, 2), task("video", 9, 0)], 1);
    let cores: Vec<_> = guarantee(&set).unwrap().tasks().map(|(_, core)| core).collect();
    assert_eq!(cores, [Ok(CoreId(0)), Err(WhyNot::DoesNotFitAlone), Err(WhyNot::NotCritical)]);
}

#[test]
fn jobs_that_come_late_or_ask_for_less_keep_their_guarantee() {
    let ms = Time::from_ms;
    let mode = |at: u64, stop: &[u32]| Mode::new("m", ms(at)).with_stop(stop.iter().copied().map(TaskId).collect());
    let critical = Task::periodic("critical", ms(10), ms(1)).with_guarantee(true);
    let rest = Task::periodic("rest", ms(100), ms(120)).with_deadline(ms(130));
    let mut slower = TaskSet::new("slower", vec![critical, rest], 1);
    slower.set_modes(vec![mode(500, &[]).with_rate(0.5)]);
    // A pattern that fits only because of its offsets, in which one task pauses.
    let apart = |name: &str, offset: u64| {
        Task::periodic(name, ms(4), ms(2)).with_deadline(ms(2)).with_offset(ms(offset)).with_guarantee(true)
    };
    let rest = Task::periodic("rest", ms(40), ms(20));
    let mut paused = TaskSet::new("paused", vec![apart("a", 0), apart("b", 2), rest], 1);
    paused.set_modes(vec![mode(101, &[1]), mode(203, &[])]);
    // Everything fits on two cores, but not divided; when the proof of the stand-in is void, two tasks are kept.
    let third = |name: &str, period: u64, wcet: u64| Task::periodic(name, ms(period), ms(wcet));
    let mut undivided = TaskSet::new("undivided", vec![third("a", 10, 7), third("b", 12, 8), third("x", 15, 9)], 2);
    undivided.system.tasks_mut().iter_mut().take(2).for_each(|task| task.guarantee = true);
    undivided.set_modes(vec![mode(600, &[0, 1]), mode(660, &[])]);
    for (set, guaranteed) in [(&slower, 1), (&paused, 2), (&undivided, 2)] {
        for (choice, bad) in BAD.into_iter().enumerate() {
            let (metrics, _) = shielded(inner(choice, 1).1, set, 1, ms(2_000));
            let missed: u64 = metrics.tasks[..guaranteed].iter().map(|task| task.jobs.released - task.jobs.met).sum();
            assert_eq!(missed, 0, "{} {bad:?}", set.name);
        }
    }
}

#[test]
fn an_overruled_scheduler_is_not_asked_without_end() {
    let seconds = Time::from_secs;
    let task = |name: &str, period: u64, wcet: u64| Task::periodic(name, seconds(period), seconds(wcet));
    let mut set = TaskSet::new("s", vec![task("critical", 10, 7), task("x", 4, 5), task("y", 8, 4)], 2);
    set.system.tasks_mut()[0].guarantee = true;
    let sporadic = Arrival::Sporadic { minimum: seconds(10), gap: Gap::Uniform { max: seconds(1_000) } };
    for (decision, arrival) in [(1, None), (0, None), (0, Some(sporadic))] {
        set.system.set_costs(Costs { decision: Time(decision), ..*set.costs() });
        arrival.into_iter().for_each(|arrival| set.system.tasks_mut()[0].arrival = arrival);
        for name in ["llref", "lre-tl", "edf-vd", "cd-split", "rr", "edzl"] {
            let (_, counters) = shielded(build(name).unwrap(), &set, 1, seconds(60));
            assert!(counters.decisions < 5_000, "{name} with {decision} ns: {counters:?}");
        }
    }
}

#[test]
fn where_everything_fits_on_several_cores_the_inner_scheduler_still_chooses() {
    let mut rng = Pcg64::seed_from_u64(4);
    let (mut decisions, mut deviations, mut responses) = (0, 0, (0.0, 0.0));
    for round in 0..150 {
        let cores = rng.random_range(2..=4);
        let set = drawn(&mut rng, 0.7 * cores as f64, cores);
        if !guarantee(&set).is_some_and(|guarantee| guarantee.is_for_all()) {
            continue;
        }
        let (metrics, counters) = shielded(build("srpt").unwrap(), &set, round, horizon(&set));
        assert_eq!(metrics.missed(), 0, "{set:?}");
        (decisions, deviations) = (decisions + counters.decisions, deviations + counters.deviations);
        let edf = bare(build("edf").unwrap(), &set, round, horizon(&set));
        let (armed, _) = shielded(build("edf").unwrap(), &set, round, horizon(&set));
        responses = (responses.0 + armed.art_completed().unwrap(), responses.1 + edf.art_completed().unwrap());
    }
    println!("{deviations} of {decisions} decisions deviate; mean responses behind the shield and bare: {responses:?}");
    assert!(decisions > 10_000 && deviations * 10 > decisions, "{deviations} of {decisions}");
    assert!(responses.0 < 1.1 * responses.1, "{responses:?}");
}

#[test]
fn malformed_views_do_no_harm() {
    let mut rng = Pcg64::seed_from_u64(5);
    let mut armed = 0;
    for round in 0..400u64 {
        let mut set = overloaded(&mut rng);
        set.system.set_costs(Costs { context_switch: Time(rng.random_range(0..2)), ..*set.costs() });
        set.system.set_costs(Costs { decision: Time(rng.random_range(0..2)), ..*set.costs() });
        let system = set.system.clone();
        let mut shield = Shield::new(BadScheduler::new(Bad::Random, round));
        shield.start(&system).unwrap();
        armed += u64::from(shield.is_armed());
        let mut now = Time::ZERO;
        for _ in 0..20 {
            let mut time = || Time([0, 1, 1_000, 1_000_000, Time::MAX_INPUT.0][rng.random_range(0..5)]);
            let mut job = |task: u32| {
                Job::first(TaskId(0), &set.tasks()[0])
                    .with_task(TaskId(task % (set.tasks().len() as u32 + 2)))
                    .with_release(time())
                    .with_deadline(time())
                    .with_wcet(time())
                    .with_executed(time())
                    .with_overhead(time())
            };
            let mut jobs: Vec<Job> = (0..6).map(&mut job).collect();
            now = Time(now.0 + time().0 / 40);
            let active: Vec<JobId> = (0..6).filter(|_| rng.random()).map(JobId).collect();
            let cores = if rng.random_bool(0.9) { set.cores() } else { rng.random_range(1..9) };
            let running: Vec<Option<JobId>> = (0..cores).map(|_| active.get(rng.random_range(0..8)).copied()).collect();
            for (core, id) in running.iter().enumerate().filter_map(|(core, id)| Some((core, (*id)?))) {
                (jobs[id.index()].running, jobs[id.index()].last_core) =
                    (rng.random(), Some(CoreId::new(core + usize::from(rng.random_bool(0.1)))));
            }
            let mut event = |_| {
                let id = JobId(rng.random_range(0..6));
                [Event::Released(id), Event::Completed(id), Event::Aborted(id), Event::DeadlinePassed(id)]
                    [rng.random_range(0..4)]
            };
            let events: Vec<Event> = (0..5).map(&mut event).collect();
            let other = set.clone().with_cores(cores).system;
            let view = SystemView::new(now, &other, &active, &jobs, &running).with_events(&events);
            let mut assignment = Assignment::default();
            assignment.reset(cores);
            shield.decide(&view, &mut assignment);
            assert_eq!(assignment.cores().len(), cores);
            assert!(assignment.cores().iter().flatten().all(|id| active.contains(id)));
            assert!(assignment.wake().is_none_or(|date| date > now));
        }
    }
    assert!(armed > 100, "{armed}");
}

#[test]
fn the_inner_scheduler_is_not_asked_where_nothing_is_left_to_choose() {
    /// Latest deadline first; counts how often it is asked and how often it only watches.
    struct Counting(BadScheduler, u64, u64);
    impl temponet_task::Wrapper for Counting {
        temponet_task::wraps!(0: BadScheduler);
        fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
            self.1 += 1;
            self.0.decide(view, assignment);
        }
        fn watch(&mut self, _view: &SystemView<'_>, _scratch: &mut Assignment) {
            self.2 += 1;
        }
    }
    let ms = Time::from_ms;
    let critical = Task::periodic("critical", ms(10), ms(9)).with_criticality(1);
    let set = TaskSet::new("s", vec![critical, Task::periodic("rest", ms(20), ms(15))], 1);
    let mut shield = Shield::new(Counting(BadScheduler::new(Bad::LatestDeadline, 0), 0, 0));
    let metrics = simulate(&set, 0, ms(1_000), &mut shield, &mut Unobserved).unwrap();
    let (counters, Counting(_, asked, watched)) = (shield.counters(), shield.inner());
    assert_eq!((asked + watched, *watched), (counters.decisions, counters.unasked));
    assert!(*watched >= 50 && *asked > 0, "{asked} {watched}");
    assert_eq!(metrics.tasks[0].jobs.met, 100);
}

/// A mode with more work than the tasks say overloads the cores. No time is kept for jobs that say so at their release.
#[test]
fn jobs_that_announce_more_than_their_task_are_left_to_the_scheduler() {
    let mut rng = Pcg64::seed_from_u64(17);
    let (mut alone, mut behind) = (0, 0);
    for _ in 0..20 {
        let mut set = drawn(&mut rng, 1.8, 2);
        for task in set.system.tasks_mut().iter_mut() {
            (task.bcet, task.execution) = (Time(task.wcet.0.div_ceil(2)), ExecutionModel::Uniform);
        }
        if !matches!(Role::on(&set.system), Role::StealsSlack(_)) {
            continue;
        }
        set.set_modes(vec![Mode::new("busy", Time::ZERO).with_work(1.7)]);
        let met = |name: &str| {
            let mut scheduler = build(name).unwrap();
            simulate(&set, 1, Time(5 * span(&set).0), &mut *scheduler, &mut Unobserved).unwrap().jobs.met
        };
        alone += met("edf-skip");
        behind += met("shield:edf-skip");
    }
    assert!(alone > 5_000, "{alone}");
    assert!(behind as f64 > 0.995 * alone as f64, "{behind} behind the shield, {alone} without it");
}
