//! Mistakes of an embedding program or of its scheduler.

use super::JobHandle;
use crate::{JobId, Speed, Time};
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
    /// There is no task of this index.
    #[error("there is no task {0}")]
    UnknownTask(usize),
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
    /// The scheduler put a job on a core that is not ready, or on two cores, or asked for a speed or a date that it cannot have.
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

/// What is wrong with an [`Assignment`](crate::Assignment).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssignmentProblem {
    /// The assignment is for another number of cores.
    #[error("it has {0} cores")]
    Cores(usize),
    /// No ready job has this id.
    #[error("no ready job has the id {}", .0.0)]
    UnknownJob(JobId),
    /// A job is on two cores.
    #[error("the job with the id {} is on two cores", .0.0)]
    TwoCores(JobId),
    /// A job is given up and put on a core, or given up twice.
    #[error("the job with the id {} is given up and used", .0.0)]
    GivenUp(JobId),
    /// A job is taken off the core that it holds until its next preemption point.
    #[error("the job with the id {} is taken off the core that it holds", .0.0)]
    Held(JobId),
    /// A job is put on a core that its task may not use.
    #[error("the job with the id {} is put on core {core}, which its task may not use", .job.0)]
    Forbidden {
        /// The job.
        job: JobId,
        /// The core.
        core: usize,
    },
    /// A core does not have this speed.
    #[error("no core has the speed {}/1000", .0.0)]
    Speed(Speed),
    /// A decision is asked for at a date that is not in the future.
    #[error("a decision is asked for at {0}, which is not in the future")]
    Wake(Time),
}
