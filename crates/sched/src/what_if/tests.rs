//! Contract: a change that is advised changes the answer to what is said, and the next smaller one does not; a task has
//! the room that is said, and not a step more.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_task::{Core, CoreId, CoreSet, ResourceId, Section, Speed};

use super::*;

const MS: fn(u64) -> Time = Time::from_ms;

/// Sets of all kinds: idle and overloaded, on one core and several, with deadlines of their own, followers and locks.
fn random_set(rng: &mut Pcg64) -> TaskSet {
    let cores = rng.random_range(1..=3usize);
    let count = rng.random_range(2..=6u32);
    let load = rng.random_range(0.3..1.5) * cores as f64 / f64::from(count);
    let mut tasks: Vec<Task> = (0..count)
        .map(|index| {
            let period = [10, 20, 25, 40, 50, 100][rng.random_range(0..6)];
            let wcet = (period as f64 * load * rng.random_range(0.4..1.6) * 1e6).max(1.0);
            let mut task = Task::periodic(format!("t{index}"), MS(period), Time(wcet as u64));
            if rng.random_bool(0.3) {
                task.deadline = Time((task.deadline.0 as f64 * rng.random_range(0.5..1.0)) as u64);
            }
            task
        })
        .collect();
    if rng.random_bool(0.15) {
        tasks[1].after = vec![TaskId(0)];
    }
    let has_locks = rng.random_bool(0.15);
    if has_locks {
        for task in &mut tasks[..2] {
            task.sections =
                vec![Section { resource: ResourceId(0), at: Time::ZERO, length: Time(task.wcet.0.div_ceil(9)) }];
        }
    }
    let mut set = TaskSet::new("s", tasks, cores);
    if has_locks {
        set.system.set_resources(vec!["bus".into()]);
    }
    set.system.follow_sources().unwrap();
    set
}

fn answer_after(set: &TaskSet, change: &Change) -> Answer {
    change.apply(set).map_or(Answer::Impossible, |changed| Answer::of(&changed))
}

fn rank(answer: &Answer) -> u8 {
    match answer {
        Answer::Fits(_) => 2,
        Answer::Open => 1,
        Answer::Impossible => 0,
    }
}

#[test]
fn what_is_advised_changes_the_answer_and_one_step_less_does_not() {
    let mut rng = Pcg64::seed_from_u64(3);
    let (mut advised, mut rooms) = (0, 0);
    for _ in 0..30 {
        let set = random_set(&mut rng);
        let found = what_if(&set);
        let now = rank(&Answer::of(&set));
        assert_eq!(rank(&found.answer), now);
        for of in &found.advice {
            assert_eq!(answer_after(&set, &of.change), of.then, "{set:?} {of:?}");
            assert!(rank(&of.then) > now, "{set:?} {of:?}");
            if let Some(less) = &of.not_enough {
                assert!(rank(&answer_after(&set, less)) < rank(&of.then), "{set:?} {of:?}");
            }
            assert!((0.0..=1.0).contains(&of.size), "{of:?}");
            advised += 1;
        }
        for room in &found.rooms {
            let wcet = (room.wcet, Change::Wcet as fn(TaskId, Time) -> Change);
            let deadline = (room.deadline, Change::Deadline as fn(TaskId, Time) -> Change);
            let period = room.period.map(|edge| (edge, Change::Period as fn(TaskId, Time) -> Change));
            for (edge, change) in [Some(wcet), Some(deadline), period].into_iter().flatten() {
                assert_eq!(rank(&answer_after(&set, &change(room.task, edge.to))), 2, "{set:?} {room:?}");
                if let Some(beyond) = edge.beyond {
                    assert!(rank(&answer_after(&set, &change(room.task, beyond))) < 2, "{set:?} {room:?}");
                }
                rooms += 1;
            }
        }
    }
    assert!(advised > 50 && rooms > 50, "{advised} {rooms}");
}

fn robot(cores: usize) -> TaskSet {
    let task = |name: &str, period: u64, wcet: u64| Task::periodic(name, MS(period), MS(wcet));
    TaskSet::new("robot", vec![task("control", 10, 4), task("mapping", 100, 75), task("log", 1000, 10)], cores)
}

#[test]
fn mapping_at_5_hertz_fits() {
    let set = robot(1);
    let found = what_if(&set);
    assert_eq!(found.answer, Answer::Impossible);
    let changes: Vec<&Change> = found.advice.iter().map(|of| &of.change).collect();
    let is_proved = |of: &Advised| matches!(of.then, Answer::Fits(_));
    assert!(found.advice.iter().all(is_proved), "on one core EDF is exact: {found:?}");
    assert_eq!(*changes[0], Change::Wcet(TaskId(1), MS(59)), "the least that has to go comes first");
    assert!(changes.contains(&&Change::Period(TaskId(1), MS(200))), "{changes:?}");
    assert!(changes.contains(&&Change::Drop(TaskId(1))) && changes.contains(&&Change::Cores(2)), "{changes:?}");
    assert_eq!(found.in_vain, [TaskId(2)], "10 ms a second are not what is too much");
    assert!(found.rooms.is_empty() && found.left_out.is_empty());
}

#[test]
fn a_set_that_fits_has_room_and_says_what_one_core_less_would_do() {
    let set = robot(2);
    let found = what_if(&set);
    assert!(matches!(found.answer, Answer::Fits(_)) && found.advice.is_empty());
    assert_eq!(found.one_core_less, Some(Answer::Impossible));
    let mapping = found.rooms.iter().find(|room| room.task == TaskId(1)).unwrap();
    assert_eq!(mapping.wcet.to, MS(100), "it can have a core of its own: {mapping:?}");
}

#[test]
fn where_no_task_alone_is_enough_several_are_slowed_and_none_could_be_faster() {
    let task = |name: &str, wcet: u64, level: u8| Task::periodic(name, MS(100), MS(wcet)).with_criticality(level);
    let set = TaskSet::new("s", vec![task("a", 60, 0), task("b", 60, 0), task("c", 60, 0), task("d", 50, 1)], 1);
    let found = what_if(&set);
    let together = found.advice.iter().find(|of| matches!(of.change, Change::Periods(_))).unwrap();
    let Change::Periods(periods) = &together.change else { panic!("{together:?}") };
    assert!(matches!(together.then, Answer::Fits(_)));
    assert!(periods.iter().all(|(task, _)| *task != TaskId(3)), "the critical one keeps its rate: {periods:?}");
    let natural = natural_periods(MS(100), MS(400));
    for place in 0..periods.len() {
        let mut faster = periods.clone();
        let at = natural.iter().position(|period| *period == faster[place].1).unwrap();
        faster[place].1 = if at == 0 { MS(100) } else { natural[at - 1] };
        assert_eq!(answer_after(&set, &Change::Periods(faster)), Answer::Impossible, "{periods:?} {place}");
    }
}

#[test]
fn a_task_in_the_way_of_its_core_is_moved() {
    let core = |name: &str| Core::new(name, temponet_task::Speed::FULL);
    let bound = |name: &str, wcet| Task::periodic(name, MS(10), MS(wcet)).with_cores(CoreSet::of([CoreId(0)]));
    let set = TaskSet::new("s", vec![bound("a", 6), bound("b", 6)], 2).with_machine(vec![core("x"), core("y")]);
    let found = what_if(&set);
    assert_eq!(found.answer, Answer::Impossible);
    assert!(
        matches!(&found.advice[0].change, Change::Move(_, cores) if *cores == CoreSet::of([CoreId(1)])),
        "{found:?}"
    );
}

#[test]
fn a_part_that_the_shield_can_keep_is_named() {
    let found = what_if(&robot(1));
    assert_eq!(
        found.guarantee,
        [TaskId(0), TaskId(2)],
        "control and log fit together, mapping does not fit beside them"
    );
    let mut marked = robot(1);
    for task in [0, 2] {
        marked.system.tasks_mut()[task].guarantee = true;
    }
    assert_eq!(what_if(&marked).guarantee, [], "it is guaranteed already");
}

#[test]
fn a_part_to_guarantee_is_not_at_the_cost_of_a_higher_level() {
    let task = |name: &str, wcet, level| Task::periodic(name, MS(10), MS(wcet)).with_criticality(level);
    let erratic = task("high", 5, 3).with_jitter(MS(11));
    let mut set = TaskSet::new("s", vec![erratic, task("low", 6, 1), task("log", 1, 0)], 1);
    assert_eq!(what_if(&set).guarantee, [], "the low ones would take the core from the high one");
    // Without levels it is a part like any other.
    set.system.tasks_mut().iter_mut().for_each(|task| task.criticality = 0);
    assert_eq!(what_if(&set).guarantee, [TaskId(1), TaskId(2)]);
    // Nor is it a greater number of less critical ones in place of a more critical one.
    let many = vec![task("high", 6, 3), task("a", 3, 1), task("b", 3, 1), task("c", 3, 1)];
    assert_eq!(what_if(&TaskSet::new("s", many, 1)).guarantee, []);
}

/// A task with a short deadline that another's long job holds up: less of its own work does not help, fewer jobs do.
#[test]
fn what_a_task_cannot_gain_by_less_work_it_can_by_fewer_jobs() {
    let task = |name: &str, period: u64, wcet: u64| {
        Task::periodic(name, MS(period), MS(wcet)).with_preemption(temponet_task::Preemption::None)
    };
    let set = TaskSet::new("s", vec![task("a", 10, 2), task("c", 60, 20)], 1);
    let found = what_if(&set);
    let changes: Vec<&Change> = found.advice.iter().map(|of| &of.change).collect();
    assert!(changes.contains(&&Change::Drop(TaskId(0))), "{changes:?}");
    assert!(changes.iter().any(|change| matches!(change, Change::Period(TaskId(0), _))), "{changes:?}");
    assert_eq!(found.in_vain, []);
}

/// A job of a nanosecond still waits for its resource.
#[test]
fn sections_do_not_vanish_with_the_work_around_them() {
    let section = |length: u64| Section { resource: ResourceId(0), at: Time::ZERO, length: MS(length) };
    let task = |name: &str, period: u64, wcet: u64, length: u64| {
        Task::periodic(name, MS(period), MS(wcet)).with_sections(vec![section(length)])
    };
    let mut set = TaskSet::new("s", vec![task("a", 10, 2, 1), task("c", 60, 20, 15)], 1);
    set.system.set_resources(vec!["r".into()]);
    let shortened = Change::Wcet(TaskId(0), Time(1)).apply(&set).unwrap();
    assert_eq!(shortened.tasks()[TaskId(0)].sections[0].length, Time(1));
    // Two sections of one resource that fall together are one.
    let twice = vec![section(1), Section { at: MS(1), ..section(1) }];
    let twice = Task::periodic("a", MS(10), MS(2)).with_sections(twice).with_work(1, MS(2).0);
    assert_eq!(twice.sections, [Section { length: Time(1), ..section(1) }]);
    let found = what_if(&set);
    assert!(found.advice.iter().all(|of| !matches!(of.change, Change::Wcet(TaskId(0), _))), "{found:?}");
}

/// A core that comes beside one that is only for others is for all that name none.
#[test]
fn another_core_helps_beside_one_that_is_only_for_others() {
    let cpu = Core::new("cpu", Speed::FULL);
    let mut gpu = Core::new("gpu", Speed::FULL);
    gpu.only = true;
    let task = |name: &str, wcet: u64, core: u32| {
        let mut task = Task::periodic(name, MS(10), MS(wcet));
        task.cores = CoreSet::of([CoreId(core)]);
        task
    };
    let mut set = TaskSet::new("s", vec![task("a", 6, 0), task("b", 6, 0), task("k", 3, 1)], 2);
    set.system.set_machine(vec![cpu, gpu]);
    let found = what_if(&set);
    let changes: Vec<&Change> = found.advice.iter().map(|of| &of.change).collect();
    assert!(changes.contains(&&Change::Cores(3)), "{changes:?}");
}

#[test]
fn what_only_the_shield_guarantees_fits_and_shows_its_room() {
    let section = Section { resource: ResourceId(0), at: Time::ZERO, length: MS(1) };
    let task = |name: &str| Task::periodic(name, MS(10), MS(3)).with_sections(vec![section]);
    let mut set = TaskSet::new("s", vec![task("a"), task("b"), task("c")], 2);
    set.system.set_resources(vec!["bus".into()]);
    let found = what_if(&set);
    let by_shield = Proof { scheduler: "shield:edf", by: "slack stealing".into() };
    assert_eq!((&found.answer, &found.advice[..]), (&Answer::Fits(by_shield.clone()), &[][..]));
    assert_eq!(found.rooms.len(), 3);
    for room in &found.rooms {
        let edge = room.wcet;
        assert_eq!(answer_after(&set, &Change::Wcet(room.task, edge.to)), Answer::Fits(by_shield.clone()));
        assert_eq!(answer_after(&set, &Change::Wcet(room.task, edge.beyond.unwrap())), Answer::Open);
    }
    // A mode that asks for more is not covered.
    set.set_modes(vec![Mode::new("rush", MS(5)).with_rate(1.1)]);
    assert_eq!(what_if(&set).answer, Answer::Open);
    set.set_modes(vec![Mode::new("calm", MS(5)).with_rate(0.5)]);
    assert_eq!(what_if(&set).answer, Answer::Fits(by_shield));
}

#[test]
fn hundreds_of_tasks_end_and_say_what_was_left_out() {
    let tasks = (0..400).map(|index| Task::periodic(format!("t{index}"), MS(10 + index % 90), MS(1)));
    let found = what_if(&TaskSet::new("s", tasks.collect(), 4));
    assert_eq!(found.answer, Answer::Impossible);
    assert!(!found.left_out.is_empty() && found.in_vain.len() + found.left_out.len() >= 390);
    assert!(found.advice.iter().any(|of| matches!(of.change, Change::EveryWcet(_))), "{found:?}");
}
