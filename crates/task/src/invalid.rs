//! Validity of a system that a program describes in code rather than in a file.

use crate::{Arrival, Speed, System, Task, Time};

/// Reason why a [`System`] cannot be scheduled.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSystem {
    /// There is no core.
    #[error("the system has no core")]
    NoCores,
    /// The speeds are not ascending, do not end with full speed, or contain zero.
    #[error("speeds must ascend from above 0 to full speed (1000)")]
    Speeds,
    /// A time of a task is zero or longer than [`Time::MAX_INPUT`].
    #[error("task {task:?}: {what} is {time}, outside 1ns to {max}", max = Time::MAX_INPUT)]
    TaskTime {
        /// Name of the task.
        task: String,
        /// Which time.
        what: &'static str,
        /// Its value.
        time: Time,
    },
    /// The best-case execution time exceeds the worst-case execution time.
    #[error("task {task:?}: the bcet of {bcet} exceeds the wcet of {wcet}")]
    BcetAboveWcet {
        /// Name of the task.
        task: String,
        /// Best-case execution time.
        bcet: Time,
        /// Worst-case execution time.
        wcet: Time,
    },
    /// The value of a task is not a number from zero on.
    #[error("task {task:?}: the value {value} is not a number from zero on")]
    Value {
        /// Name of the task.
        task: String,
        /// Its value.
        value: f64,
    },
    /// A task names a server that does not exist.
    #[error("task {task:?}: there is no server {server}")]
    UnknownServer {
        /// Name of the task.
        task: String,
        /// Index of the server.
        server: usize,
    },
}

impl System {
    /// Checks everything that schedulers rely on. Systems of task-set files are valid.
    pub fn validate(&self) -> Result<(), InvalidSystem> {
        if self.cores == 0 {
            return Err(InvalidSystem::NoCores);
        }
        let ascend = self.speeds.is_sorted_by(|a, b| a < b);
        if !ascend || self.speeds.last() != Some(&Speed::FULL) || self.speeds.first() == Some(&Speed(0)) {
            return Err(InvalidSystem::Speeds);
        }
        self.tasks.iter().try_for_each(|task| self.validate_task(task))
    }

    fn validate_task(&self, task: &Task) -> Result<(), InvalidSystem> {
        let name = || task.name.clone();
        let gap = match task.arrival {
            Arrival::Periodic { period } => Some(("period", period)),
            Arrival::Sporadic { minimum, .. } => Some(("minimal separation", minimum)),
            Arrival::Burst { every, .. } => Some(("time between bursts", every)),
            Arrival::Listed(_) => None,
        };
        let times = [("wcet", task.wcet), ("bcet", task.bcet), ("deadline", task.deadline)];
        for (what, time) in times.into_iter().chain(gap) {
            if time == Time::ZERO || time > Time::MAX_INPUT {
                return Err(InvalidSystem::TaskTime { task: name(), what, time });
            }
        }
        if task.bcet > task.wcet {
            return Err(InvalidSystem::BcetAboveWcet { task: name(), bcet: task.bcet, wcet: task.wcet });
        }
        if !(task.value.is_finite() && task.value >= 0.0) {
            return Err(InvalidSystem::Value { task: name(), value: task.value });
        }
        match task.server {
            Some(server) if server >= self.servers.len() => Err(InvalidSystem::UnknownServer { task: name(), server }),
            _ => Ok(()),
        }
    }
}
