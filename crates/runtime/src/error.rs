//! Reasons why a run cannot begin, or ended early.

use temponet_task::{InvalidSystem, NotApplicable, ReadyJobsError};

/// Reason why tasks could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The tasks do not form a valid system.
    #[error(transparent)]
    System(#[from] InvalidSystem),
    /// The scheduler cannot run on this system.
    #[error("the scheduler does not apply: {0}")]
    Scheduler(#[from] NotApplicable),
    /// The scheduler decided illegally, or the clock ran backwards.
    #[error(transparent)]
    Ready(#[from] ReadyJobsError),
    /// No scheduler, task or core was given, or two of them contradict each other.
    #[error("{0}")]
    Setup(String),
    /// The machine or the rights of this process do not allow the run; says what is missing.
    #[error("{0}")]
    NotPermitted(String),
    /// A call of the operating system failed.
    #[error("{what}: {error}")]
    Os {
        /// What was attempted.
        what: &'static str,
        /// What the system answered.
        error: std::io::Error,
    },
    /// A thread of the runtime itself panicked.
    #[error("a thread of the runtime panicked")]
    Panicked,
}
