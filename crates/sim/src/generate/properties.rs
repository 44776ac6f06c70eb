//! Properties of a set on top of its tasks, wherever the tasks come from.
//!
//! They apply in two steps, because some of them count shares of the work: whoever scales the work of a set does so
//! after [`Properties::apply`] and before [`Properties::finish`].

use temponet_task::{ExecutionModel, TaskSet};

use super::{ExecutionShares, Shape, Variety};

/// Properties of a set on top of its tasks. The default adds none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties {
    /// Execution times of all tasks that otherwise always take their wcet.
    pub execution: Option<ExecutionShares>,
    /// Fixed properties.
    pub shape: Shape,
    /// Random properties.
    pub variety: Option<Variety>,
}

impl Properties {
    /// Returns what is wrong with the numbers, or `None`.
    pub fn problem(&self) -> Option<String> {
        let variety = self.variety.as_ref().and_then(Variety::problem).map(|problem| format!("variety.{problem}"));
        let execution = || self.execution.as_ref().and_then(ExecutionShares::problem);
        variety.or_else(|| self.shape.problem()).or_else(execution)
    }

    /// Gives a set its execution times, then its shape, then its variety. The mean load stays as it is, up to rounding,
    /// unless there are execution times.
    pub fn apply(&self, set: &mut TaskSet, seed: u64) {
        if let Some(execution) = self.execution {
            for task in set.system.tasks_mut().iter_mut().filter(|task| task.execution == ExecutionModel::Wcet) {
                execution.apply(task);
            }
        }
        self.shape.apply(set);
        if let Some(variety) = &self.variety {
            variety.apply(set, seed);
        }
    }

    /// Joins the tasks of a set to graphs, and gives them limits on preemption and critical sections.
    pub fn finish(&self, set: &mut TaskSet, seed: u64) {
        self.shape.join(set, seed);
        self.shape.hold(set);
        self.shape.share(set);
    }
}
