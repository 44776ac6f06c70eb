//! Mistakes of an embedding program or of its scheduler.

use super::JobHandle;
use crate::{AssignmentProblem, TaskId, Time};
use alloc::string::String;

/// Mistake in what a program reports, or in what a scheduler decides. The jobs stay on the cores that they have.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadyJobsError {
    /// Time ran backwards, or beyond [`Time::MAX_INPUT`].
    #[error("time goes from {from} to {to}; it must not go back, nor beyond {max}", max = Time::MAX_INPUT)]
    Time {
        /// Date so far.
        from: Time,
        /// Date reported.
        to: Time,
    },
    /// There is no such task.
    #[error("there is no task {0}")]
    UnknownTask(TaskId),
    /// The job is not ready: it has completed or was stopped.
    #[error("the job with the id {} has left", .0.id.0)]
    Left(JobHandle),
    /// No scheduler has been started.
    #[error("no scheduler has been started")]
    NotStarted,
    /// A release that cannot be: in the future, due before it is released, without work, or with a negative value.
    #[error("task {task:?}: {what}")]
    Release {
        /// Name of the task.
        task: String,
        /// What is wrong.
        what: ReleaseProblem,
    },
    /// The scheduler put a job on a core that is not ready, or on two cores, or asked for a speed or a date that it
    /// cannot have.
    #[error("illegal assignment: {0}")]
    Assignment(AssignmentProblem),
}

/// What is wrong with a [`Release`](super::Release).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseProblem {
    /// The release lies in the future.
    #[error("the release lies in the future")]
    Future,
    /// The deadline is not after the release, or beyond [`Time::MAX_INPUT`] from it.
    #[error("the deadline is not after the release, or too far away")]
    Deadline,
    /// The wcet is zero, longer than [`Time::MAX_INPUT`], or less than the bcet.
    #[error("the wcet is zero, too long, or less than the bcet")]
    Work,
    /// The value is not a number from zero on.
    #[error("the value is not a number from zero on")]
    Value,
}
