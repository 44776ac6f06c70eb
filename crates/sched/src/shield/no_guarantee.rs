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
    /// The set may fit, but there is no proof for the shield or for any scheduler that could stand in. Others may be
    /// proved.
    #[error(
        "neither slack stealing nor a scheduler that could stand in is proved to meet every deadline, and no task is critical"
    )]
    NotProved,
    /// None of the tasks that should be guaranteed is proved to fit, not even by itself.
    #[error("no task that should be guaranteed is proved to fit, not even by itself")]
    NoneFits,
    /// The tasks that should be guaranteed come after others. Of the first of them, name and reason.
    #[error("task {0:?} should be guaranteed, but {1}")]
    OfTask(String, WhyNot),
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
    /// Critical tasks should be guaranteed, and it is none.
    #[error("it is not critical")]
    NotCritical,
    /// Other tasks ask for a guarantee by name, and it does not.
    #[error("it does not ask for a guarantee")]
    NotAsked,
    /// The task with this name, of a higher criticality, is left out, and this one could cost it time.
    #[error("a task of a higher criticality, {0:?}, is not guaranteed")]
    HigherLeftOut(String),
    /// On one core, it is not proved to fit beside the guaranteed tasks, which are more critical or lighter.
    #[error("it is not proved to fit beside them")]
    DoesNotFit,
    /// On several cores, no division of the tasks among them was found in which it fits beside the guaranteed tasks.
    #[error("no placement on the cores was found in which it fits beside them")]
    NotPlaced,
    /// It is not proved to fit on a core, not even by itself.
    #[error("it is not proved to fit, not even by itself")]
    DoesNotFitAlone,
    /// It would fit on a faster core by itself, but not on the one with this name.
    #[error("on {0}, the slowest core that it may use, it does not fit, not even by itself")]
    TooSlowACore(String),
    /// It would fit on a core by itself, but not with the share of the deadline that it has beside those before and
    /// after it.
    #[error("with its share of the deadline it does not fit, not even by itself")]
    ShareTooShort,
    /// It would fit on a core by itself, but not with the waits for these resources.
    #[error("with the longest waits for {0} it does not fit, not even by itself")]
    WaitsTooLong(String),
    /// The task with this name, which comes before it in the order of criticality and utilization, has no place.
    #[error("{0:?}, which comes before it in the order, is not guaranteed")]
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
    /// It follows the task with this name, which is not critical, where critical tasks should be guaranteed.
    #[error("it comes after {0:?}, which is not critical")]
    FollowsUncritical(String),
    /// It follows the task with this name, which does not ask for a guarantee, where others do.
    #[error("it comes after {0:?}, which does not ask for a guarantee")]
    FollowsUnasked(String),
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
