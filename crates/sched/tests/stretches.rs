//! Contract of the guarantee where a core cannot always be taken back, and where tasks come after others: whatever
//! chooses, no job of a guaranteed task is late because of a job that holds its core, of a critical section, of a wait
//! for a resource on another core, or of a predecessor.
//!
//! `SHIELD_ROUNDS` multiplies the number of sets:
//! `SHIELD_ROUNDS=20 cargo test --release -p temponet-sched --test suite stretches -- --nocapture`.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_sched::catalog::all;
use temponet_sched::shield::{Role, Shield};
use temponet_sim::{Unobserved, simulate};
use temponet_task::{
    Arrival, Core, CoreId, CoreSet, Costs, ExecutionModel, Mode, Preemption, Protocol, ResourceId, Section, Speed,
    Task, TaskId, TaskSet, Time,
};

use crate::bad::{BAD, bare, inner, shielded};
use crate::guarantee::{guarantee, missed, overloaded, span};

/// Guaranteed jobs of the runs of a test.
#[derive(Debug, Default)]
struct Defied {
    jobs: u64,
    /// Those of tasks that use resources.
    sharing: u64,
    /// Those of tasks that come after others.
    following: u64,
    /// Those of tasks that limit preemption.
    limited: u64,
    bare_missed: u64,
    deviations: u64,
    overrides: u64,
}

/// Runs bad and classical schedulers on random sets, and none may make a guaranteed job late.
fn defy(seed: u64, rounds: u64, change: fn(&mut Pcg64, &mut TaskSet)) -> Defied {
    let factor: u64 = std::env::var("SHIELD_ROUNDS").ok().and_then(|given| given.parse().ok()).unwrap_or(1);
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut total = Defied::default();
    for round in 0..rounds * factor {
        let mut set = overloaded(&mut rng);
        change(&mut rng, &mut set);
        assert_eq!(set.system.validate(), Ok(()), "{set:?}");
        let choices = [round as usize % BAD.len(), rng.random_range(0..BAD.len() + all().len())];
        let Some(guarantee) = guarantee(&set) else { continue };
        for choice in choices {
            let (name, mut scheduler) = inner(choice, round);
            if scheduler.start(&set.system).is_err() {
                continue;
            }
            let mut shield = Shield::new(scheduler);
            let metrics = simulate(&set, round, span(&set), &mut shield, &mut Unobserved);
            let metrics = metrics.unwrap_or_else(|why| panic!("{name}, {round}: {why}: {set:?}"));
            let counters = shield.counters();
            assert_eq!(
                (missed(&metrics, &guarantee), counters.lapses),
                (0, 0),
                "{name}, {round}: {set:?}\n{guarantee:?}"
            );
            for (id, task) in set.task_ids().zip(set.tasks()).filter(|(id, _)| guarantee.core_of(*id).is_some()) {
                let jobs = metrics.tasks[id.index()].jobs.released;
                total.jobs += jobs;
                total.sharing += if task.sections.is_empty() { 0 } else { jobs };
                total.following += if task.after.is_empty() { 0 } else { jobs };
                total.limited += if task.preemption.is_limited() { jobs } else { 0 };
            }
            total.bare_missed += missed(&bare(inner(choice, round).1, &set, round, span(&set)), &guarantee);
            total.deviations += counters.deviations;
            total.overrides += counters.overrides;
        }
    }
    println!("0 late of {total:?}");
    total
}

/// Divides the wcets, because without shorter jobs most sets could not wait for anybody.
fn shorten(rng: &mut Pcg64, set: &mut TaskSet) {
    let most = rng.random_range(2..30);
    for task in set.system.tasks_mut().iter_mut() {
        task.wcet = Time((task.wcet.0 / rng.random_range(1..most)).max(1));
        (task.bcet, task.wcet_high, task.acet) = (task.bcet.min(task.wcet), None, None);
        if !matches!(task.execution, ExecutionModel::Uniform) {
            (task.bcet, task.execution) = (task.wcet, ExecutionModel::Wcet);
        }
    }
}

/// Makes jobs hold their cores.
fn hold(rng: &mut Pcg64, set: &mut TaskSet) {
    let share = rng.random_range(0.1..1.0);
    for task in set.system.tasks_mut().iter_mut().filter(|task| task.sections.is_empty()) {
        task.preemption = match rng.random_bool(share) {
            false => Preemption::Free,
            true if rng.random() => Preemption::None,
            true => Preemption::Every(Time(rng.random_range(task.wcet.0.div_ceil(20)..=task.wcet.0))),
        };
    }
}

/// Lets tasks share resources, at times in nested sections.
fn share(rng: &mut Pcg64, set: &mut TaskSet) {
    set.system.set_resources((0..rng.random_range(1..4)).map(|index| format!("r{index}")).collect());
    let (resources, cores) = (set.resources().to_vec(), set.cores() as u64);
    let shortest = set.tasks().iter().map(|task| task.deadline.0).min().unwrap();
    let most = (shortest / rng.random_range(2..40) / cores).max(1);
    let (users, nests) = (rng.random_range(0.2..1.0), rng.random_bool(0.05));
    for task in set.system.tasks_mut().iter_mut() {
        for _ in 0..if rng.random_bool(users) { rng.random_range(1..4) } else { 0 } {
            let at = if rng.random_bool(0.3) { 0 } else { rng.random_range(0..task.wcet.0) };
            let length = rng.random_range(1..=(task.wcet.0 - at).min(most));
            let resource = ResourceId::new(rng.random_range(0..resources.len()));
            let section = Section { resource, at: Time(at), length: Time(length) };
            let is_apart = |other: &Section| other.end() <= section.at || section.end() <= other.at;
            if nests || task.sections.iter().all(is_apart) {
                task.sections.push(section);
            }
            if task.section_problem(&resources).is_some() {
                task.sections.pop();
            }
        }
    }
    set.system.set_protocol(match rng.random_range(0..4) {
        0 => Protocol::None,
        1 if cores == 1 => Protocol::Ceiling,
        _ => Protocol::Inheritance,
    });
}

/// Lets tasks come after others.
fn follow(rng: &mut Pcg64, set: &mut TaskSet) {
    let (share, alike) = (rng.random_range(0.1..0.7), rng.random_bool(0.7));
    let tasks = set.tasks().len();
    let mut root: Vec<usize> = (0..tasks).collect();
    let mut guard = set.system.tasks_mut();
    for index in 1..tasks {
        let recurs = |task: &Task| matches!(task.arrival, Arrival::Periodic { .. } | Arrival::Sporadic { .. });
        let before = rng.random_range(0..index);
        if !rng.random_bool(share) || !recurs(&guard[index]) || !recurs(&guard[before]) {
            continue;
        }
        let source = root[before];
        let others: Vec<usize> = (0..index).filter(|other| *other != before && root[*other] == source).collect();
        let mut after = vec![TaskId::new(before)];
        if !others.is_empty() && rng.random_bool(0.3) {
            after.push(TaskId::new(others[rng.random_range(0..others.len())]));
        }
        let first = guard[source].clone();
        let (period, task) = (first.period().unwrap(), &mut guard[index]);
        let scaled = u128::from(task.wcet.0) * u128::from(period.0) / u128::from(task.period().unwrap().0);
        task.wcet = Time((scaled as u64).max(1));
        task.bcet = if matches!(task.execution, ExecutionModel::Uniform) { Time(1) } else { task.wcet };
        task.deadline = Time((period.0 as f64 * rng.random_range(0.5..1.5)) as u64).max(Time(1));
        (task.after, task.wcet_high, task.acet) = (after, None, None);
        if alike {
            (task.criticality, task.guarantee) = (first.criticality, first.guarantee);
        }
        root[index] = source;
    }
    drop(guard);
    set.system.follow_sources().unwrap();
}

/// Costs of switches and migrations, or cores that differ.
fn differ(rng: &mut Pcg64, set: &mut TaskSet) {
    match rng.random_range(0..3) {
        0 => {
            let mut cost = || Time(rng.random_range(0..20_000));
            set.system.set_costs(Costs { context_switch: cost(), migration: cost(), ..Costs::default() });
        }
        1 => {
            let mut core = |_| Core::new("c", Speed(rng.random_range(400..3_000)));
            set.system.set_machine((0..set.cores()).map(&mut core).collect());
        }
        _ => {}
    }
    let cores = set.cores();
    for task in set.system.tasks_mut().iter_mut() {
        if rng.random_bool(0.8) {
            continue;
        }
        let some: Vec<CoreId> = CoreId::all(cores).filter(|_| rng.random_bool(0.6)).collect();
        task.cores = if some.is_empty() { CoreSet::default() } else { CoreSet::of(some) };
    }
}

/// Modes with less work and, at times, a lower rate.
fn change_modes(rng: &mut Pcg64, set: &mut TaskSet) {
    let (span, slower) = (span(set).0, rng.random_bool(0.3));
    let mut mode = |number: u64| {
        let at = Time(number * span / 4 + rng.random_range(0..span / 8));
        let rate = if slower { rng.random_range(0.3..=1.0) } else { 1.0 };
        Mode::new(format!("m{number}"), at).with_work(rng.random_range(0.5..=1.0)).with_rate(rate)
    };
    set.set_modes((0..3).map(&mut mode).collect());
}

#[test]
fn guaranteed_jobs_are_never_late_where_jobs_hold_cores() {
    let found = defy(11, 700, |rng, set| {
        shorten(rng, set);
        hold(rng, set);
    });
    assert!(found.jobs > 30_000 && found.limited > 5_000 && found.bare_missed > 3_000, "{found:?}");
    assert!(found.deviations > 3_000 && found.overrides > 3_000, "{found:?}");
}

#[test]
fn guaranteed_jobs_are_never_late_where_tasks_share_resources() {
    let found = defy(12, 700, |rng, set| {
        shorten(rng, set);
        share(rng, set);
    });
    assert!(found.jobs > 30_000 && found.sharing > 10_000 && found.bare_missed > 3_000, "{found:?}");
    assert!(found.deviations > 3_000 && found.overrides > 3_000, "{found:?}");
}

#[test]
fn guaranteed_jobs_are_never_late_where_tasks_come_after_others() {
    let found = defy(13, 700, |rng, set| {
        if rng.random_bool(0.7) {
            shorten(rng, set);
        }
        follow(rng, set);
    });
    assert!(found.jobs > 20_000 && found.following > 3_000 && found.bare_missed > 3_000, "{found:?}");
}

#[test]
fn guaranteed_jobs_are_never_late_where_all_of_it_comes_together() {
    let found = defy(14, 1_000, |rng, set| {
        shorten(rng, set);
        if rng.random_bool(0.6) {
            follow(rng, set);
        }
        if rng.random_bool(0.7) {
            share(rng, set);
        }
        if rng.random_bool(0.7) {
            hold(rng, set);
        }
        differ(rng, set);
        if rng.random_bool(0.3) {
            change_modes(rng, set);
        }
    });
    let kinds = [found.sharing, found.following, found.limited];
    assert!(found.jobs > 30_000 && kinds.iter().all(|jobs| *jobs > 1_000) && found.bare_missed > 3_000, "{found:?}");
}

/// Fourteen callbacks of a robot on four cores: chains, a bus that drivers lock for 0.2 ms, and a job of a neural
/// network that is not preempted.
fn robot() -> TaskSet {
    let us = Time::from_us;
    let task = |name: &str, period: u64, wcet: u64| Task::periodic(name, us(period), us(wcet));
    let on_bus = |task: Task, at: u64| {
        task.with_sections(vec![Section { resource: ResourceId(0), at: us(at), length: us(200) }])
    };
    let after = |task: Task, before: u32| task.with_after(vec![TaskId(before)]);
    let critical = |task: Task| task.with_criticality(1);
    let tasks = vec![
        critical(on_bus(task("imu", 5_000, 500), 100)),
        critical(after(task("estimate", 5_000, 600), 0)),
        critical(on_bus(after(task("motors", 5_000, 500), 1), 200)),
        critical(on_bus(task("bumper", 10_000, 400), 0)),
        critical(after(task("stop", 10_000, 300), 3)),
        critical(on_bus(task("lidar", 25_000, 2_000), 500)),
        critical(after(task("obstacles", 25_000, 4_000), 5)),
        critical(after(task("plan", 25_000, 3_000), 6)),
        on_bus(task("camera", 33_000, 6_000), 1_000),
        task("detector", 100_000, 60_000).with_preemption(Preemption::None),
        task("mapping", 200_000, 90_000),
        on_bus(task("battery", 50_000, 1_000), 300),
        task("video", 33_000, 25_000),
        on_bus(task("log", 20_000, 15_000), 9_000),
    ];
    let mut set = TaskSet::new("robot", tasks, 4);
    set.system.set_resources(vec!["bus".into()]);
    set.system.follow_sources().unwrap();
    assert_eq!(set.system.validate(), Ok(()));
    set
}

#[test]
fn a_robot_with_a_bus_a_job_that_is_not_preempted_and_chains_is_guaranteed() {
    let set = robot();
    let promised = guarantee(&set).unwrap();
    let kept: Vec<bool> = promised.tasks().map(|(_, core)| core.is_ok()).collect();
    assert_eq!(kept, [true, true, true, true, true, true, true, true, false, false, false, false, false, false]);
    assert_eq!(promised.ruled_resources(&set.system), ["bus"]);
    for (choice, bad) in BAD.into_iter().enumerate() {
        let (metrics, counters) = shielded(inner(choice, 1).1, &set, 1, Time::from_secs(2));
        assert_eq!((missed(&metrics, &promised), counters.lapses), (0, 0), "{bad:?}");
    }
    let bare = bare(inner(1, 1).1, &set, 1, Time::from_secs(2));
    assert!(missed(&bare, &promised) > 0);
}

#[test]
fn waiting_for_a_resource_is_first_come_first_served() {
    // Two hogs on the first cores want the bus all the time. If it went by cores, the third would never get it.
    let ms = Time::from_ms;
    let on_core = |name: &str, period: u64, core: u32| {
        let section = Section { resource: ResourceId(0), at: Time::ZERO, length: ms(1) };
        let task = Task::periodic(name, ms(period), ms(1)).with_sections(vec![section]);
        task.with_cores(CoreSet::of([CoreId(core)]))
    };
    let reader = on_core("reader", 6, 2).with_guarantee(true).with_deadline(ms(3));
    let mut set = TaskSet::new("set", vec![on_core("hog", 1, 0), on_core("other", 1, 1), reader], 3);
    set.system.set_resources(vec!["bus".into()]);
    assert_eq!(set.system.validate(), Ok(()));
    assert_eq!(guarantee(&set).unwrap().core_of(TaskId(2)), Some(CoreId(2)));
    for (choice, bad) in BAD.into_iter().enumerate() {
        let (metrics, _) = shielded(inner(choice, 1).1, &set, 1, ms(600));
        assert_eq!((metrics.tasks[2].jobs.released, metrics.tasks[2].jobs.met), (100, 100), "{bad:?}");
    }
    // A nanosecond less, and two sections of others do not fit before its own.
    set.system.tasks_mut()[2].deadline = ms(3) - Time(1);
    assert!(guarantee(&set).is_none());
}

#[test]
fn what_has_no_bound_is_left_out_and_named() {
    let ms = Time::from_ms;
    let section = |resource: u32, at: u64, length: u64| Section {
        resource: ResourceId(resource),
        at: ms(at),
        length: ms(length),
    };
    let task = |name: &str, sections: Vec<Section>| Task::periodic(name, ms(100), ms(4)).with_sections(sections);
    let why = |tasks: Vec<Task>, protocol: Protocol| -> Vec<Option<String>> {
        let mut set = TaskSet::new("set", tasks, 1 + usize::from(protocol == Protocol::Inheritance));
        set.system.set_resources(vec!["bus".into(), "map".into()]);
        set.system.set_protocol(protocol);
        assert_eq!(set.system.validate(), Ok(()));
        Role::on(&set.system).why_not(&set.system)
    };
    let nested = || task("nested", vec![section(0, 0, 3), section(1, 1, 1)]);
    let kernel = || task("kernel", vec![section(1, 1, 1)]).with_preemption(Preemption::None);
    let (user, other) = (|| task("user", vec![section(1, 2, 1)]), || task("other", vec![]).with_guarantee(true));
    let nests = Some("it shares a resource whose sections are nested with others".to_string());
    let limits = Some("it shares a resource with a task that limits preemption".to_string());
    let tasks = vec![nested(), user(), other()];
    assert_eq!(why(tasks.clone(), Protocol::Inheritance), [nests.clone(), nests, None]);
    assert_eq!(why(vec![kernel(), user(), other()], Protocol::Inheritance), [limits.clone(), limits, None]);
    assert_eq!(why(vec![user(), other()], Protocol::Ceiling), [None, None]);
    let ceiling = why(tasks, Protocol::Ceiling);
    assert!(ceiling.iter().all(|why| why.as_ref().is_some_and(|why| why.contains("under the ceiling protocol"))));
}
