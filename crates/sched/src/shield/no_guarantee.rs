//! Reasons why the shield guarantees nothing, or why it does not guarantee a task.

use temponet_analysis::NotAnalyzable;

/// Reason why the shield cannot guarantee any deadline of a system.
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
    /// The utilization exceeds the number of cores, and no task is critical or asks for a guarantee.
    #[error("the set is overloaded, and no task is critical")]
    Overloaded,
    /// Jobs of the task with this name may overrun their wcet, the set is overloaded then, and no task is critical or
    /// asks for a guarantee.
    #[error("jobs of task {0:?} may overrun, the set is overloaded then, and no task is critical")]
    Overruns(String),
    /// The set may fit, but there is no proof for any scheduler that could stand in.
    #[error("no scheduler is proved to meet every deadline, and no task is critical")]
    NotProved,
    /// Not even the lightest of the most critical tasks fits on a core by itself.
    #[error("not even the most critical tasks fit")]
    CriticalDoNotFit,
    /// The task with this name limits preemption, and decisions cost time.
    #[error("task {0:?} limits preemption, which is not covered where decisions cost time")]
    LimitedWithCosts(String),
    /// Tasks share resources, and decisions cost time.
    #[error("tasks share resources, which is not covered where decisions cost time")]
    SharingWithCosts,
    /// Under the ceiling protocol, the waits for the resource with this name have no bound.
    #[error(
        "under the ceiling protocol every section counts, and those of {0:?} are within others or in tasks that limit preemption"
    )]
    UnboundedUnderCeiling(String),
    /// Cores have speeds of their own, and switches or decisions cost time.
    #[error("cores have speeds of their own, which is not covered where switches or decisions cost time")]
    SpeedsWithCosts,
    /// The waits of the task with this name for a resource have no bound: sections are nested, or in tasks that limit
    /// preemption.
    #[error("the waits of task {0:?} for a resource have no bound")]
    Unbounded(String),
    /// The proof relies on the exact arrival times, and a task has arrived at another time.
    #[error("tasks do not arrive in the pattern that makes them schedulable")]
    PatternBroken,
}

/// Reason why a task is not guaranteed where others are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WhyNot {
    /// It is less critical than the guaranteed tasks, or other tasks ask for the guarantee.
    #[error("others come first")]
    OthersComeFirst,
    /// The task with this name, of a higher criticality, is left out, and this one could cost it time.
    #[error("a task of a higher criticality, {0:?}, is not guaranteed")]
    HigherLeftOut(String),
    /// It does not fit beside the guaranteed tasks, which are more critical or lighter.
    #[error("it does not fit beside them")]
    DoesNotFit,
    /// It does not fit on a core, not even by itself.
    #[error("it does not fit, not even by itself")]
    DoesNotFitAlone,
    /// It would fit on a core by itself, but not with the share of the deadline that it has beside those before and
    /// after it.
    #[error("with its share of the deadline it does not fit, not even by itself")]
    ShareTooShort,
    /// It would fit on a core by itself, but not with the waits for these resources.
    #[error("with the longest waits for {0} it does not fit, not even by itself")]
    WaitsTooLong(String),
    /// The task with this name, which comes before it in the order of criticality and utilization, does not fit.
    #[error("{0:?}, which comes before it in the order, does not fit")]
    BehindOne(String),
    /// Another part of the same task is left out, with the reason.
    #[error("another part of its task is not guaranteed")]
    OtherPart,
    /// It is a list of single jobs, which do not recur.
    #[error("its jobs do not recur")]
    DoesNotRecur,
    /// Its jitter is longer than its period.
    #[error("its releases can overtake each other")]
    OvertakingReleases,
    /// The jobs of its bursts are released one by one.
    #[error("the jobs of its bursts are released one by one")]
    ScatteredBurst,
    /// It follows a task that is not guaranteed.
    #[error("it comes after a task that is not guaranteed")]
    Follows,
    /// It follows others, and if its deadline were divided among them, fewer tasks would be guaranteed.
    #[error("it comes after other tasks, and dividing its deadline among them would cost others their guarantee")]
    FollowsAtACost,
    /// It follows others, and modes lengthen deadlines, so that it can be released later.
    #[error("it comes after other tasks, and a mode lengthens their deadlines")]
    FollowsInModes,
    /// It follows others, which may take as long as its own deadline.
    #[error("the tasks before it may take as long as its deadline")]
    FollowsTooLate,
    /// It follows others, and they and it take longer than its deadline.
    #[error("with what comes before it, it takes longer than its deadline")]
    PathTooLong,
    /// It shares a resource that a task locks within a section of another one, or around one.
    #[error("it shares a resource whose sections are nested with others")]
    SharesNested,
    /// It shares a resource with a task that limits preemption.
    #[error("it shares a resource with a task that limits preemption")]
    SharesWithLimited,
}
