//! A task set: the tasks, the machine they run on, and the modes that change their load over time.

use alloc::{string::String, sync::Arc, vec::Vec};
use core::ops::Deref;

use crate::{Mode, System, Task, Time, TimeUnit};

/// Rule for a job that is not complete at its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMiss {
    /// The job is removed at its deadline. This is the default.
    #[default]
    Abort,
    /// The job stays and keeps competing for the cores.
    Continue,
}

impl OnMiss {
    /// Name of the rule in files, flags and JSON.
    pub fn name(self) -> &'static str {
        match self {
            OnMiss::Abort => "abort",
            OnMiss::Continue => "continue",
        }
    }

    /// Returns the rule with this name.
    pub fn from_name(name: &str) -> Option<OnMiss> {
        [OnMiss::Abort, OnMiss::Continue].into_iter().find(|rule| rule.name() == name)
    }
}

/// Overheads of scheduling, as times added to the work of jobs. All are zero by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Added when a job is dispatched to a core whose previous job was another one.
    pub context_switch: Time,
    /// Added when a job resumes on a core other than the one it last ran on.
    pub migration: Time,
    /// Added at each decision to the job on core 0, which takes the decisions, and to every job that the decision
    /// dispatches.
    pub decision: Time,
}

/// A reservation that serves the jobs of some tasks with `budget` processor time in every `period`.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Name, unique among the servers of the set.
    pub name: String,
    /// Processor time per period.
    pub budget: Time,
    /// Replenishment period.
    pub period: Time,
}

/// A task set with its machine: everything that a task-set file can state.
///
/// It dereferences to its [`System`], so that `set.tasks()` reads the tasks; `set.system` changes them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TaskSet {
    /// Stem of the file name, or name of the built-in set.
    pub name: String,
    /// One sentence on what the set is and where it comes from. May be empty.
    pub description: String,
    /// Unit of bare numbers in the file. Conversions keep it.
    pub time_unit: TimeUnit,
    pub(crate) modes: Vec<Mode>,
    /// What schedulers know: tasks, machine and rules.
    pub system: System,
}

/// Copies the set. Lists of jobs are shared, so a copy is small.
impl From<&TaskSet> for Arc<TaskSet> {
    fn from(set: &TaskSet) -> Arc<TaskSet> {
        Arc::new(set.clone())
    }
}

impl Deref for TaskSet {
    type Target = System;

    #[inline]
    fn deref(&self) -> &System {
        &self.system
    }
}

impl TaskSet {
    /// Creates a set of `tasks` on `cores` cores. Everything else has the default value of a file.
    pub fn new(name: impl Into<String>, tasks: Vec<Task>, cores: usize) -> TaskSet {
        TaskSet::of_system(name, System::new(tasks, cores))
    }

    /// Creates a set of a system. What a scheduler does not know, such as modes, has the default value of a file.
    pub fn of_system(name: impl Into<String>, system: System) -> TaskSet {
        let (description, time_unit, modes) = (String::new(), TimeUnit::Ms, Vec::new());
        TaskSet { name: name.into(), description, time_unit, modes, system }
    }

    /// Returns the set with this name.
    #[must_use]
    pub fn with_name(self, name: impl Into<String>) -> TaskSet {
        TaskSet { name: name.into(), ..self }
    }

    /// Returns the set with this description.
    #[must_use]
    pub fn with_description(self, description: impl Into<String>) -> TaskSet {
        TaskSet { description: description.into(), ..self }
    }

    /// Returns the set with this unit of bare numbers.
    #[must_use]
    pub fn with_time_unit(self, time_unit: TimeUnit) -> TaskSet {
        TaskSet { time_unit, ..self }
    }

    /// Returns the set with these modes, sorted by the time at which they begin.
    #[must_use]
    pub fn with_modes(mut self, modes: Vec<Mode>) -> TaskSet {
        self.set_modes(modes);
        self
    }

    /// Modes, sorted by the time at which they begin.
    #[inline]
    pub fn modes(&self) -> &[Mode] {
        &self.modes
    }

    /// Adds a mode, which begins after all others.
    pub fn push_mode(&mut self, mode: Mode) {
        let mut modes = core::mem::take(&mut self.modes);
        modes.push(mode);
        self.set_modes(modes);
    }

    /// Sets the modes, sorted by the time at which they begin.
    pub fn set_modes(&mut self, mut modes: Vec<Mode>) {
        modes.iter_mut().for_each(Mode::sort);
        let largest = |factor: fn(&Mode) -> f64| modes.iter().map(factor).fold(1.0, f64::max);
        let least = modes.iter().map(|mode| mode.work).fold(1.0, f64::min);
        self.system.set_modes(largest(Mode::stretch), [least, largest(|mode| mode.work)]);
        self.modes = modes;
    }

    /// Returns the set with every execution time multiplied by `parts / whole`; see [`Task::with_work`].
    #[must_use]
    pub fn with_work(&self, parts: u64, whole: u64) -> TaskSet {
        self.clone().with_tasks(self.tasks().iter().map(|task| task.with_work(parts, whole)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrival, ExecutionModel, ListedJob};

    #[test]
    fn hyperperiod_is_the_least_common_multiple_or_none() {
        let set = |periods: &[u64]| {
            let tasks = periods.iter().map(|p| Task::periodic(format!("t{p}"), Time::from_ms(*p), Time::from_ms(1)));
            TaskSet::new("test", tasks.collect(), 1)
        };
        assert_eq!(set(&[40, 60, 100]).hyperperiod(), Some(Time::from_ms(600)));
        let primes = [1_000_003, 1_000_033, 1_000_037, 1_000_039];
        assert_eq!(set(&primes).hyperperiod(), None);
    }

    #[test]
    fn single_jobs_beside_recurring_tasks_add_their_mean_demand() {
        let ms = Time::from_ms;
        let (execution, wcet) = (ms(1), ms(2));
        let job = ListedJob {
            release: ms(5),
            deadline: ms(15),
            execution,
            wcet,
            bcet: Time(1),
            criticality: 0,
            value: 1.0,
            estimate: None,
        };
        let listed = Task { arrival: Arrival::Listed([job].into()), ..Task::periodic("jobs", ms(10), wcet) };
        let mut set = TaskSet::new("test", vec![listed], 1);
        assert_eq!(set.utilization(), 0.2);
        set.system.tasks_mut().push(Task::periodic("task", ms(10), ms(5)));
        assert_eq!(set.utilization(), 0.7);
    }

    #[test]
    fn scaling_multiplies_every_execution_time_and_rounds_up() {
        let mut task = Task::periodic("a", Time(100), Time(10));
        (task.bcet, task.wcet_high) = (Time(5), Some(Time(15)));
        let samples = [Time(5), Time(10)].into();
        let below = Box::new(ExecutionModel::Empirical { samples });
        task.execution = ExecutionModel::Overrun { probability: 0.1, below };
        let scaled = TaskSet::new("s", vec![task], 1).with_work(1_250, 1_000);
        let task = &scaled.tasks()[0];
        assert_eq!((task.bcet, task.wcet, task.wcet_high), (Time(7), Time(13), Some(Time(19))));
        let ExecutionModel::Overrun { below, .. } = &task.execution else { panic!("{task:?}") };
        assert_eq!(**below, ExecutionModel::Empirical { samples: [Time(7), Time(13)].into() });
    }
}
