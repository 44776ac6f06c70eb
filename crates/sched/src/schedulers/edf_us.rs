//! EDF-US[m/(2m−1)]: tasks with a utilization above m/(2m−1) always go first, and EDF orders the rest. This avoids
//! Dhall's effect and meets every deadline at U ≤ m²/(2m−1) (implicit deadlines).
//!
//! Reference: Srinivasan and Baruah, Information Processing Letters 84(2), 2002.
//! Ties: among heavy tasks and among equal deadlines the earlier release, then the lower task index.

use temponet_task::{Scheduler, Task, Time};

use crate::shared::ranked::FixedKey;

pub(crate) fn edf_us() -> impl Scheduler {
    FixedKey::new(|view, job| if is_heavy(view.task_of(job), view.cores()) { Time::ZERO } else { job.deadline })
}

fn is_heavy(task: &Task, cores: usize) -> bool {
    let cores = cores as f64;
    task.utilization() > cores / (2.0 * cores - 1.0)
}

/// Returns, for each task, whether it goes before all others.
pub(crate) fn heavy(tasks: &[Task], cores: usize) -> Vec<bool> {
    tasks.iter().map(|task| is_heavy(task, cores)).collect()
}
