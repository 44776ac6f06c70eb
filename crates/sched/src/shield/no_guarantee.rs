//! Reasons why the shield guarantees nothing.

use temponet_analysis::NotAnalyzable;

/// Reason why the shield cannot guarantee every deadline of a system.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoGuarantee {
    /// The run has not begun, so nothing has been proved yet.
    #[error("the run has not begun")]
    NotStarted,
    /// The set has no worst case that the schedulability tests understand.
    #[error(transparent)]
    NotAnalyzable(#[from] NotAnalyzable),
    /// The jitter of the task with this name is longer than its period.
    #[error("releases of task {0:?} can overtake each other")]
    OvertakingReleases(String),
    /// The task with this name releases bursts with jitter.
    #[error("the jobs of a burst of task {0:?} are released one by one")]
    ScatteredBurst(String),
    /// The utilization exceeds the number of cores.
    #[error("the set is overloaded")]
    Overloaded,
    /// The set may fit, but there is no proof for any scheduler that could stand in.
    #[error("no scheduler is proved to meet every deadline")]
    NotProved,
    /// The proof relies on the exact arrival times, and a task has arrived at another time.
    #[error("tasks do not arrive in the pattern that makes them schedulable")]
    PatternBroken,
}
