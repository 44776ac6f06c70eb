//! Changes of a set, one at a time.

use temponet_task::{Arrival, Chain, CoreSet, Gap, Task, TaskId, TaskSet, Time};

/// One change of a set.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// Jobs of a task take at most this long; what else is said of their length shrinks or grows alike.
    Wcet(TaskId, Time),
    /// A task comes this often. A deadline that was its period stays its period.
    Period(TaskId, Time),
    /// Several tasks come this often.
    Periods(Vec<(TaskId, Time)>),
    /// Jobs of a task have this long, all their parts together.
    Deadline(TaskId, Time),
    /// A task is left out, with all its parts.
    Drop(TaskId),
    /// A task may use these cores.
    Move(TaskId, CoreSet),
    /// There are this many cores. Those that come are like the fastest one that all tasks may use.
    Cores(usize),
    /// Jobs of all tasks take this many thousandths of their time.
    EveryWcet(u64),
    /// The periods of all tasks are this many thousandths of what they were, and so are deadlines that were periods.
    EveryPeriod(u64),
}

impl Change {
    /// Whether the change concerns one task alone.
    pub fn is_of_one_task(&self) -> bool {
        !matches!(self, Change::Periods(_) | Change::Cores(_) | Change::EveryWcet(_) | Change::EveryPeriod(_))
    }

    /// Returns the set after the change; none if it cannot be made there.
    pub fn apply(&self, set: &TaskSet) -> Option<TaskSet> {
        let mut changed = set.clone();
        match self {
            Change::Wcet(task, wcet) => {
                let task = &mut changed.system.tasks_mut()[*task];
                *task = task.with_work(wcet.0, task.wcet.0);
            }
            Change::Period(task, period) => set_period(&mut changed.system.tasks_mut()[*task], *period)?,
            Change::Periods(periods) => {
                for (task, period) in periods {
                    set_period(&mut changed.system.tasks_mut()[*task], *period)?;
                }
            }
            Change::Deadline(task, deadline) => {
                let parts = set.parts(set.whole(*task));
                let mut tasks = changed.system.tasks_mut();
                parts.for_each(|part| tasks[part].deadline = *deadline);
            }
            Change::Drop(task) => changed = without(set, *task)?,
            Change::Move(task, cores) => changed.system.tasks_mut()[*task].cores = cores.clone(),
            Change::Cores(count) => set_cores(&mut changed, *count)?,
            Change::EveryWcet(thousandths) => changed = set.with_work(*thousandths, 1000),
            Change::EveryPeriod(thousandths) => {
                for task in changed.system.tasks_mut().iter_mut().filter(|task| task.after.is_empty()) {
                    let Some(period) = task.period() else { continue };
                    let scaled = u128::from(period.0) * u128::from(*thousandths) / 1000;
                    set_period(task, Time(u64::try_from(scaled).ok()?))?;
                }
            }
        }
        if matches!(self, Change::Period(..) | Change::Periods(_) | Change::EveryPeriod(_)) && set.has_precedence() {
            follow(set, &mut changed)?;
        }
        changed.system.validate().is_ok().then_some(changed)
    }
}

/// Sets the period of a task that has one.
fn set_period(task: &mut Task, period: Time) -> Option<()> {
    let before = task.period()?;
    if task.deadline == before {
        task.deadline = period;
    }
    let scaled =
        |time: Time| Time((u128::from(time.0) * u128::from(period.0) / u128::from(before.0.max(1))).max(1) as u64);
    task.arrival = match &task.arrival {
        Arrival::Periodic { .. } => Arrival::Periodic { period },
        Arrival::Sporadic { gap, .. } => {
            let gap = match *gap {
                Gap::Uniform { max } => Gap::Uniform { max: scaled(max).max(period) },
                Gap::Exponential { mean } => Gap::Exponential { mean: scaled(mean).max(period) },
            };
            Arrival::Sporadic { minimum: period, gap }
        }
        Arrival::Burst { jobs, until, .. } => Arrival::Burst { jobs: *jobs, every: period, until: *until },
        _ => return None,
    };
    Some(())
}

/// Gives followers the arrivals of their sources. Deadlines that were periods stay periods.
fn follow(before: &TaskSet, changed: &mut TaskSet) -> Option<()> {
    changed.system.follow_sources().ok()?;
    let was_period = |index: usize| before.tasks()[index].period() == Some(before.tasks()[index].deadline);
    for (index, task) in changed.system.tasks_mut().iter_mut().enumerate() {
        if let (false, true, Some(period)) = (task.after.is_empty(), was_period(index), task.period()) {
            task.deadline = period;
        }
    }
    Some(())
}

/// Changes the number of cores. The last ones go first; one that has a name comes again.
fn set_cores(set: &mut TaskSet, count: usize) -> Option<()> {
    let mut cores = set.machine().cores().to_vec();
    if !cores.is_empty() {
        // A core that is only for some tasks is no help for the others.
        let shared = cores.iter().rev().filter(|core| !core.only);
        let more = shared.max_by_key(|core| core.speed).cloned()?;
        cores.resize(count, more);
    }
    // What may use every core that is not only for others may use those that come.
    if let Some(before) = set.machine().shared() {
        let shared = CoreSet::shared(&cores).unwrap_or(CoreSet::ALL);
        let mut tasks = set.system.tasks_mut();
        tasks.iter_mut().filter(|task| task.cores == before).for_each(|task| task.cores = shared.clone());
    }
    let bound = set.tasks().iter().any(|task| task.cores.last().is_some_and(|last| last.index() >= count));
    if bound {
        return None;
    }
    set.system.set_machine(Vec::new());
    set.system.set_cores(count);
    set.system.set_machine(cores);
    Some(())
}

/// Returns the set without a task and its parts; none if others depend on it, or if modes name tasks.
fn without(set: &TaskSet, task: TaskId) -> Option<TaskSet> {
    let whole = set.whole(task);
    let is_needed = set.tasks().iter().any(|other| other.after.contains(&whole) || other.reads.contains(&whole));
    let is_in_chain = set.chains().iter().any(|chain| chain.tasks.contains(&whole));
    if is_needed || is_in_chain || !set.modes().is_empty() || set.task_count() == 1 {
        return None;
    }
    let gone = set.first_part(whole).index()..whole.index() + 1;
    let moved = |other: &mut TaskId| {
        if *other > whole {
            *other = TaskId::new(other.index() - gone.len());
        }
    };
    let mut tasks = set.tasks().to_vec();
    tasks.drain(gone.clone());
    tasks.iter_mut().for_each(|other| other.after.iter_mut().chain(&mut other.reads).for_each(moved));
    let mut chains: Vec<Chain> = set.chains().to_vec();
    chains.iter_mut().for_each(|chain| chain.tasks.iter_mut().for_each(moved));
    let mut changed = set.clone();
    changed.system.set_chains(Vec::new());
    changed.system.set_tasks(tasks);
    changed.system.set_chains(chains);
    Some(changed)
}
