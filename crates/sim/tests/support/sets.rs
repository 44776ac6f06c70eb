//! Random small sets for the naive simulator, all of whose times are multiples of a tick, and what can be added to
//! them.

use proptest::prelude::*;
use temponet_task::{
    Arrival, Attribute, Core, CoreId, CoreSet, ExecutionModel, OnMiss, Preemption, Protocol, ResourceId, Section,
    Speed, Task, TaskId, TaskSet, Time,
};

/// Most tasks of a set.
pub const TASKS: usize = 6;
/// Number of resources that tasks share.
const RESOURCES: usize = 3;

/// Period, wcet, deadline and offset in ticks, whether the deadline is the period, priority, whether times are known.
type DrawnTask = (u64, u64, u64, u64, bool, i64, bool);

/// A set on one to four cores of independent periodic tasks with priorities, with known or uncertain execution times.
pub fn any_set(tick: Time) -> impl Strategy<Value = TaskSet> {
    let task = (2u64..=20, 1u64..=7, 1u64..=20, 0u64..=7, any::<bool>(), 0i64..5, any::<bool>());
    (prop::collection::vec(task, 1..=TASKS), 1usize..=4, any::<bool>()).prop_map(move |(tasks, cores, aborts)| {
        let ticks = |count: u64| Time(tick.0 * count);
        let task = |(index, drawn): (usize, DrawnTask)| {
            let (period, wcet, deadline, offset, is_implicit, priority, is_known) = drawn;
            let mut task = Task::periodic(format!("t{index}"), ticks(period), ticks(wcet));
            task.offset = ticks(offset);
            task.extra.set(Attribute::Priority, Some(priority));
            if !is_implicit {
                task.deadline = ticks(deadline);
            }
            if !is_known {
                task.bcet = ticks(1);
                task.execution = ExecutionModel::Empirical { samples: (1..=wcet).map(ticks).collect() };
            }
            task
        };
        let mut set = TaskSet::new("random", (0usize..).zip(tasks).map(task).collect(), cores);
        set.system.set_on_miss(if aborts { OnMiss::Abort } else { OnMiss::Continue });
        set
    })
}

/// Limits on preemption: one number for each task.
pub fn any_limits() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0u64..=6, TASKS)
}

pub fn with_limits(mut set: TaskSet, limits: &[u64], tick: Time) -> TaskSet {
    for (task, limit) in set.system.tasks_mut().iter_mut().zip(limits) {
        task.preemption = match limit {
            0 | 1 => Preemption::Free,
            2 => Preemption::None,
            3 => Preemption::Cancel,
            every => Preemption::Every(Time(tick.0 * (every - 3))),
        };
    }
    set
}

/// Tasks that come after each other: for each pair, whether the later one follows the earlier one.
pub fn any_edges() -> impl Strategy<Value = Vec<bool>> {
    prop::collection::vec(prop::bool::weighted(0.35), TASKS * TASKS)
}

/// Tasks with even and with odd indices form graphs, each with one period.
pub fn with_precedence(mut set: TaskSet, edges: &[bool], tick: Time) -> TaskSet {
    let periods: Vec<Time> = set.tasks().iter().filter_map(Task::period).collect();
    for index in 0..set.tasks().len() {
        set.system.tasks_mut()[index].arrival = Arrival::Periodic { period: periods[index % 2].max(Time(tick.0 * 5)) };
        let before = (index % 2..index).step_by(2);
        set.system.tasks_mut()[index].after =
            before.filter(|other| edges[TASKS * index + other]).map(TaskId::new).collect();
    }
    set.system.follow_sources().unwrap();
    set
}

/// Speeds of the cores, and for each task the cores that it may use, as bits; none of them means all.
pub fn any_machine() -> impl Strategy<Value = (Vec<u32>, Vec<usize>)> {
    let speed = prop::sample::select(vec![370u32, 500, 1000, 1000, 1600, 3000]);
    (prop::collection::vec(speed, 3), prop::collection::vec(0usize..16, TASKS))
}

/// At most three of the cores are kept, because every assignment of jobs to them is tried.
pub fn with_machine(set: TaskSet, (speeds, allowed): &(Vec<u32>, Vec<usize>)) -> TaskSet {
    let cores = set.cores().min(3);
    let core = |speed: &u32| Core::new("c", Speed(*speed));
    let mut set = set.with_cores(cores).with_machine(speeds.iter().take(cores).map(core).collect());
    for (task, allowed) in set.system.tasks_mut().iter_mut().zip(allowed) {
        task.cores = CoreSet::of((0..cores).filter(|core| allowed >> core & 1 == 1).map(CoreId::new));
    }
    set
}

/// Errors of estimates, exact ones among them, and importance, for each task.
pub fn any_estimates() -> impl Strategy<Value = Vec<(usize, u8)>> {
    prop::collection::vec((0usize..5, 0u8..12), TASKS)
}

pub fn with_estimates(mut set: TaskSet, estimates: &[(usize, u8)]) -> TaskSet {
    for (task, (error, importance)) in set.system.tasks_mut().iter_mut().zip(estimates) {
        task.estimate_error = [None, Some(0.0), Some(0.1), Some(0.4), Some(1.5)][*error];
        (task.criticality, task.guarantee) = (u8::from(*importance == 1), (2..4).contains(importance));
    }
    set
}

/// Sections of each task, as resource, begin and length in ticks, and the number of the protocol.
pub type Sharing = (Vec<Vec<(usize, u64, u64)>>, usize);

pub fn any_sharing() -> impl Strategy<Value = Sharing> {
    let sections = prop::collection::vec((0..RESOURCES, 0u64..8, 1u64..6), 0..=4);
    (prop::collection::vec(sections, TASKS), 0usize..3)
}

/// Sections that would overlap are left out. Ceilings are for one core.
pub fn with_sharing(mut set: TaskSet, (sections, protocol): &Sharing, tick: Time) -> TaskSet {
    let resources: Vec<String> = (0..RESOURCES).map(|index| format!("r{index}")).collect();
    for (task, sections) in set.system.tasks_mut().iter_mut().zip(sections) {
        for (resource, at, length) in sections {
            task.sections.push(Section {
                resource: ResourceId::new(*resource),
                at: Time(tick.0 * at),
                length: Time(tick.0 * length),
            });
            if task.section_problem(&resources).is_some() {
                task.sections.pop();
            }
        }
    }
    set.system.set_resources(resources);
    set.system.set_protocol(Protocol::ALL[if set.cores() > 1 { (*protocol).min(1) } else { *protocol }]);
    set
}
