//! Contract on what is left out: a guarantee costs no task of a higher criticality that has none, unless it is asked for
//! by name, and the reason that each task is given is the one that keeps it out.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_sched::build;
use temponet_sched::shield::Role;
use temponet_task::{Core, CoreId, CoreSet, Mode, Preemption, ResourceId, Section, Speed, Task, TaskId, TaskSet, Time};

use crate::bad::{BAD, bare, inner, shielded};
use crate::guarantee::{guarantee, overloaded};

fn ms(n: u64) -> Time {
    Time::from_ms(n)
}

fn task(name: &str, period: u64, wcet: u64, criticality: u8) -> Task {
    Task::periodic(name, ms(period), ms(wcet)).with_criticality(criticality)
}

/// A task that cannot be guaranteed, because its releases can overtake each other.
fn erratic(name: &str, period: u64, wcet: u64, criticality: u8) -> Task {
    task(name, period, wcet, criticality).with_jitter(ms(period + 1))
}

fn on_core(task: Task, core: u32) -> Task {
    task.with_cores(CoreSet::of([CoreId(core)]))
}

/// Why each task of these is not guaranteed, in the words of the shield.
fn why(set: &TaskSet) -> Vec<Option<String>> {
    assert_eq!(set.system.validate(), Ok(()));
    Role::on(&set.system).why_not(&set.system)
}

fn is_guaranteed(set: &TaskSet) -> Vec<bool> {
    why(set).iter().map(Option::is_none).collect()
}

fn higher(name: &str) -> Option<String> {
    Some(format!("a task of a higher criticality, {name:?}, is not guaranteed"))
}

/// The reason of parts that another part keeps out.
fn other_part() -> Option<String> {
    Some("another part of its task is not guaranteed".into())
}

const OVERTAKES: &str = "its releases can overtake each other";

/// A task that only a mode gives a chance has something to lose.
#[test]
fn what_fits_in_a_mode_with_less_work_is_not_hopeless() {
    let mut set = TaskSet::new("calm", vec![task("hi", 20, 24, 3), task("lo", 10, 6, 1)], 1);
    assert_eq!(is_guaranteed(&set), [false, true], "no job of hi can be in time");
    set.set_modes(vec![Mode::new("calm", ms(100)).with_work(0.5)]);
    assert_eq!(why(&set)[1], higher("hi"));
    let met = |set: &TaskSet| shielded(build("edf").unwrap(), set, 1, ms(2_000)).0.tasks[0].jobs.met;
    let without = bare(build("edf").unwrap(), &set, 1, ms(2_000)).tasks[0].jobs.met;
    assert!(without > 50 && met(&set) >= without, "{} {without}", met(&set));
}

#[test]
fn a_low_guarantee_does_not_starve_a_higher_level_without_one() {
    let hi = erratic("hi", 40, 21, 3).with_preemption(Preemption::None);
    let mut set = TaskSet::new("inversion", vec![hi, task("lo", 10, 6, 1)], 1);
    assert_eq!(why(&set), [Some(OVERTAKES.into()), higher("hi")]);
    let role = Role::on(&set.system);
    assert_eq!(role.sentence("it"), "guarantees nothing: releases of task \"hi\" can overtake each other");
    let met = |set: &TaskSet| shielded(build("muf").unwrap(), set, 1, ms(40_000)).0.tasks[0].jobs.met;
    let without = bare(build("muf").unwrap(), &set, 1, ms(40_000)).tasks[0].jobs.met;
    assert!(without > 300 && met(&set) >= without, "{} {without}", met(&set));
    // Whoever asks for it by name gets it, at whatever cost.
    set.system.tasks_mut()[1].guarantee = true;
    assert_eq!(why(&set), [Some(OVERTAKES.into()), None]);
    assert_eq!(met(&set), 0);
    // Equals cost each other what they cost.
    set.system.tasks_mut().iter_mut().for_each(|task| (task.criticality, task.guarantee) = (2, false));
    assert_eq!(is_guaranteed(&set), [false, true]);
}

#[test]
fn of_three_levels_the_lower_ones_wait_for_the_one_that_is_left_out() {
    let levels = |of: fn(&str, u64, u64, u8) -> Task| {
        let tasks =
            vec![task("low", 20, 2, 1), of("middle", 20, 2, 2), task("high", 20, 2, 3), task("none", 20, 20, 0)];
        TaskSet::new("levels", tasks, 1)
    };
    let others_first = || Some("it is not critical".to_string());
    assert_eq!(why(&levels(task)), [None, None, None, others_first()]);
    // The highest level keeps its guarantee.
    assert_eq!(why(&levels(erratic)), [higher("middle"), Some(OVERTAKES.into()), None, others_first()]);
    // What is left out for a higher level is a level that is left out, too.
    let on_cores = vec![
        on_core(erratic("high", 20, 2, 3), 0),
        task("middle", 20, 2, 2).with_cores(CoreSet::of([CoreId(0), CoreId(1)])),
        on_core(task("low", 20, 2, 1), 1),
        on_core(task("apart", 20, 2, 1), 2),
    ];
    let mut set = TaskSet::new("cores", on_cores, 3);
    assert_eq!(why(&set), [Some(OVERTAKES.into()), higher("high"), higher("middle"), None]);
    // The middle on a core of its own costs nobody anything.
    set.system.tasks_mut()[1].cores = CoreSet::of([CoreId(1)]);
    assert_eq!(is_guaranteed(&set), [false, true, true, true]);
    // The order stops at the first that does not fit beside others; below its level that is the reason.
    let full = vec![task("a", 10, 4, 2), task("b", 10, 7, 2), task("c", 10, 1, 1)];
    let beside = Some("it is not proved to fit beside them".to_string());
    assert_eq!(why(&TaskSet::new("full", full, 1)), [None, beside, higher("b")]);
}

#[test]
fn a_task_costs_those_behind_it_and_those_that_share_a_resource() {
    // The high one waits for its predecessor, whose core the low one would take.
    let first = on_core(task("first", 20, 2, 0), 0);
    let high = on_core(task("high", 20, 2, 3), 1).with_after(vec![TaskId(0)]);
    let (low, filler) = (on_core(task("low", 20, 2, 1), 0), on_core(task("filler", 20, 20, 0), 0));
    let set = TaskSet::new("behind", vec![first, high, low, filler], 2);
    let follows = Some("it comes after \"first\", which is not critical".to_string());
    assert_eq!(why(&set)[1..3], [follows, higher("high")]);
    // A guarantee of the low one would change how the high one gets the bus.
    let section = Section { resource: ResourceId(0), at: Time::ZERO, length: ms(1) };
    let shared = |task: Task| task.with_sections(vec![section]);
    let tasks = vec![on_core(shared(erratic("high", 20, 2, 3)), 0), on_core(shared(task("low", 20, 2, 1)), 1)];
    let mut set = TaskSet::new("bus", tasks, 2);
    set.system.set_resources(vec!["bus".into()]);
    assert_eq!(why(&set)[1], higher("high"));
    set.system.tasks_mut()[1].sections.clear();
    assert_eq!(is_guaranteed(&set), [false, true]);
    // A task is as critical as those that come after it: it costs them nothing.
    let chain =
        vec![task("sensor", 20, 2, 1), erratic("motor", 20, 2, 3), task("stop", 20, 2, 3).with_after(vec![TaskId(0)])];
    assert_eq!(is_guaranteed(&TaskSet::new("chain", chain, 1)), [true, false, true]);
}

#[test]
fn a_part_that_is_left_out_keeps_lower_tasks_from_every_core_of_its_task() {
    let part = on_core(task("high (part 1)", 20, 2, 3), 0).with_is_part(true);
    let last = on_core(task("high", 20, 19, 3), 1).with_after(vec![TaskId(0)]);
    let tasks = vec![part, last, on_core(task("low", 20, 2, 1), 0), on_core(task("apart", 20, 2, 1), 2)];
    let mut set = TaskSet::new("parts", tasks, 3);
    assert_eq!(is_guaranteed(&set), [false, false, false, true]);
    assert_eq!(why(&set)[2], higher("high"));
    (set.system.tasks_mut()[1].wcet, set.system.tasks_mut()[1].bcet) = (ms(4), ms(4));
    assert_eq!(is_guaranteed(&set), [true, true, true, true]);
}

#[test]
fn a_part_alone_on_its_core_does_not_wait_for_itself() {
    // The GPU runs each kernel to its end. Only the first part delays its release there.
    let camera = |gpu: u64| {
        let first = on_core(task("camera (part 1)", 33, 1, 1), 0).with_is_part(true);
        let kernel = on_core(task("camera", 33, gpu, 1), 1).with_after(vec![TaskId(0)]);
        let overload = on_core(task("overload", 33, 33, 0), 0);
        let other = on_core(task("other", 100, 2, 0), 1).with_preemption(Preemption::None);
        TaskSet::new("gpu", vec![first, kernel.with_preemption(Preemption::None), overload, other], 2)
    };
    for gpu in [10, 16, 25, 31] {
        let set = camera(gpu);
        assert_eq!(is_guaranteed(&set)[..2], [true, true], "{gpu}");
        for (choice, bad) in BAD.into_iter().enumerate() {
            let jobs = &shielded(inner(choice, 1).1, &set, 1, ms(3_300)).0.tasks[1].jobs;
            assert_eq!((jobs.released, jobs.met), (100, 100), "{gpu} {bad:?}");
        }
    }
    // The parts together take longer than the period.
    let too_long = Some("with what comes before it, it takes longer than its deadline".to_string());
    assert_eq!(why(&camera(33))[..2], [other_part(), too_long]);
}

#[test]
fn a_follower_is_not_said_to_come_after_a_task_without_a_guarantee_that_has_one() {
    let tasks = vec![task("a", 10, 4, 1), task("b", 10, 1, 1).with_after(vec![TaskId(0)]), task("c", 10, 5, 1)];
    let mut set = TaskSet::new("cost", tasks, 1);
    set.system.tasks_mut()[2].deadline = ms(9);
    let at_a_cost =
        "it comes after other tasks, and dividing its deadline among them would cost others their guarantee";
    assert_eq!(why(&set), [None, Some(at_a_cost.into()), None]);
    // Here its predecessor is the one that is left out.
    set.system.tasks_mut()[0].jitter = ms(11);
    let follows = "it comes after a task that is not guaranteed";
    assert_eq!(why(&set), [Some(OVERTAKES.into()), Some(follows.into()), None]);
}

#[test]
fn a_lock_is_named_where_it_is_the_reason() {
    let section = |length: u64| vec![Section { resource: ResourceId(0), at: Time::ZERO, length: ms(length) }];
    let user = on_core(task("user", 10, 2, 1), 0).with_sections(section(1));
    let hog = on_core(task("hog", 100, 9, 0), 1).with_sections(section(9));
    let mut set = TaskSet::new("lock", vec![user, hog, on_core(task("overload", 10, 12, 0), 1)], 2);
    set.system.set_resources(vec!["bus".into()]);
    let waits = "with the longest waits for bus it does not fit, not even by itself";
    assert_eq!(why(&set)[0], Some(waits.into()));
    // Without the wait it would not fit either.
    (set.system.tasks_mut()[0].wcet, set.system.tasks_mut()[0].bcet) = (ms(11), ms(11));
    assert_eq!(why(&set)[0], Some("it is not proved to fit, not even by itself".into()));
    set.system.tasks_mut()[1].sections = section(1);
    (set.system.tasks_mut()[0].wcet, set.system.tasks_mut()[0].bcet) = (ms(2), ms(2));
    assert_eq!(why(&set)[0], None);
}

#[test]
fn the_part_at_fault_has_the_reason() {
    let parts = |name: &str, wcets: [u64; 2], at: u32| {
        let first = on_core(task(&format!("{name} (part 1)"), 30, wcets[0], 1), 0).with_is_part(true);
        [first, on_core(task(name, 30, wcets[1], 1), 1).with_after(vec![TaskId(at)])]
    };
    let overload = on_core(task("overload", 30, 30, 0), 0);
    // The lidar does not fit beside the camera on the GPU, its second part.
    let [camera, lidar] = [parts("camera", [1, 12], 0), parts("lidar", [1, 20], 2)];
    let beside = || Some("no placement on the cores was found in which it fits beside them".to_string());
    let set = TaskSet::new("gpu", [camera, lidar].concat().into_iter().chain([overload.clone()]).collect(), 2);
    assert_eq!(why(&set)[..4], [None, None, other_part(), beside()]);
    // The lidar does not fit beside the camera on the processor, its first part.
    let [camera, lidar] = [parts("camera", [8, 1], 0), parts("lidar", [20, 3], 2)];
    let set = TaskSet::new("processor", [camera, lidar].concat().into_iter().chain([overload]).collect(), 2);
    assert_eq!(why(&set)[..4], [None, None, beside(), other_part()]);
    // The last one would fit, alone on its core, but the order stops before it.
    let tasks = vec![on_core(task("a", 10, 4, 1), 0), on_core(task("b", 10, 7, 1), 0), on_core(task("c", 10, 8, 1), 1)];
    let behind = "\"b\", which comes before it in the order, is not guaranteed";
    assert_eq!(why(&TaskSet::new("order", tasks, 2)), [None, beside(), Some(behind.into())]);
}

#[test]
fn a_place_is_searched_for_before_none_is_said_to_be_found() {
    // On the little core "b" takes 20 of 30 ms; on the big one, where "a" must be, it would be too much.
    let cores = [Core::new("big", Speed::FULL), Core::new("little", Speed::of(0.4).unwrap())];
    let tasks = |b: u64| vec![on_core(task("a", 20, 12, 1), 0), task("b", 30, b, 1), task("c", 20, 20, 0)];
    let set = |b: u64| TaskSet::new("unequal", tasks(b), 2).with_machine(cores.to_vec());
    assert_eq!(is_guaranteed(&set(8)), [true, true, false]);
    let slow = "on core 1 (little), the slowest core that it may use, it does not fit, not even by itself";
    assert_eq!(why(&set(13))[..2], [None, Some(slow.into())]);
    let role = Role::on(&set(8).system);
    for (choice, bad) in BAD.into_iter().enumerate() {
        let metrics = shielded(inner(choice, 1).1, &set(8), 1, ms(3_000)).0;
        assert!(metrics.tasks[..2].iter().all(|task| task.jobs.met == task.jobs.released), "{bad:?} {role:?}");
    }
}

#[test]
fn what_nobody_asked_to_guarantee_is_said_to_be_so() {
    let source = task("source", 40, 4, 0);
    let follower = task("follower", 40, 6, 1).with_after(vec![TaskId(0)]);
    let mut set = TaskSet::new("chain", vec![source, follower, task("rest", 20, 19, 0)], 1);
    let not_critical = || Some("it is not critical".to_string());
    let follows = "it comes after \"source\", which is not critical";
    assert_eq!(why(&set), [not_critical(), Some(follows.into()), not_critical()]);
    let sentence = format!("guarantees nothing: task \"follower\" should be guaranteed, but {follows}");
    assert_eq!(Role::on(&set.system).sentence("it"), sentence);
    set.system.tasks_mut()[1].guarantee = true;
    let follows = "it comes after \"source\", which does not ask for a guarantee";
    assert_eq!(why(&set)[1], Some(follows.into()));
    set.system.tasks_mut()[0].guarantee = true;
    assert_eq!(why(&set), [None, None, Some("it does not ask for a guarantee".into())]);
}

#[test]
fn a_task_that_never_meets_a_deadline_has_nothing_to_lose() {
    let tasks = vec![task("broken", 10, 12, 2), task("brake", 10, 2, 1)];
    let mut set = TaskSet::new("broken", tasks, 1);
    assert_eq!(is_guaranteed(&set), [false, true]);
    // Its jobs may take less.
    set.system.tasks_mut()[0].bcet = ms(10);
    assert_eq!(is_guaranteed(&set), [false, false]);
    // What counts is the speed of the core.
    set.system.tasks_mut()[0].bcet = ms(12);
    let at = |speed: f64| set.clone().with_machine(vec![Core::new("core", Speed::of(speed).unwrap())]);
    assert_eq!((is_guaranteed(&at(1.1)), is_guaranteed(&at(1.3))), (vec![false, true], vec![true, false]));
}

#[test]
fn no_guarantee_of_random_sets_is_at_the_cost_of_a_higher_level() {
    let (mut checked, mut left_out) = (0, 0);
    for round in 0..1_000 {
        let mut rng = Pcg64::seed_from_u64(round);
        let mut set = overloaded(&mut rng);
        let (count, is_erratic) = (set.tasks().len(), rng.random_bool(0.5));
        if let Some(task) = set.system.tasks_mut().get_mut(rng.random_range(0..count)).filter(|_| is_erratic) {
            task.jitter = task.period().map_or(Time::ZERO, |period| period + Time(1));
        }
        let Some(found) = guarantee(&set).filter(|found| !found.is_for_all()) else { continue };
        if set.tasks().iter().any(|task| task.guarantee) {
            continue;
        }
        let level = |task: TaskId| set.tasks()[task.index()].criticality;
        let kept = || set.task_ids().filter(|task| found.core_of(*task).is_some());
        let lowest = kept().map(level).min().unwrap_or_default();
        let can_meet =
            |task: TaskId| set.tasks()[task].period().is_none() || set.tasks()[task].bcet <= set.tasks()[task].deadline;
        let out =
            || set.task_ids().filter(|task| found.core_of(*task).is_none() && level(*task) > 0 && can_meet(*task));
        assert!(out().all(|task| level(task) <= lowest), "{round}");
        (checked, left_out) = (checked + 1, left_out + out().count());
    }
    assert!(checked > 300 && left_out > 300, "{checked} {left_out}");
}
