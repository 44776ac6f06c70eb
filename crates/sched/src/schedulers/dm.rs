//! Deadline monotonic: the task with the shortest relative deadline runs first. Optimal among fixed priorities for
//! constrained deadlines without offsets on one core.
//!
//! Reference: Leung and Whitehead, Performance Evaluation 2(4), 1982.
//! Ties: earlier release, then lower task index.

use temponet_task::{Arrival, Scheduler};

use crate::shared::ranked::FixedKey;

pub(crate) fn dm() -> impl Scheduler {
    FixedKey::new(|view, job| match view.task_of(job).arrival {
        Arrival::Listed(_) => job.deadline.saturating_sub(job.release),
        _ => view.task_of(job).deadline,
    })
}
