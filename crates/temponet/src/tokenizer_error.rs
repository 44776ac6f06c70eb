//! Reasons why a tokenizer is invalid, or why it cannot read a system.
//!
//! [`Tokenizer::problem`](crate::stages::Tokenizer::problem) checks settings that come from a recipe or a model file.
//! [`Tokenizer::not_applicable`](crate::stages::Tokenizer::not_applicable) checks a valid tokenizer against a system.
//! Both return this type.

use crate::stages::Binning;

/// Why a tokenizer is invalid or cannot read a system.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The number of slack bins is out of range.
    #[error("{bins} slack bins, not from 1 to 4096")]
    SlackBins {
        /// Number of slack bins asked for.
        bins: usize,
    },
    /// The long-slack reserve is infinite or not a number.
    #[error("a long-slack reserve of {reserve}")]
    LongSlackReserve {
        /// Reserve asked for.
        reserve: f32,
    },
    /// The parameters of the binning do not define ascending bin edges.
    #[error("{binning:?} does not make {bins} bins")]
    Binning {
        /// Binning asked for.
        binning: Binning,
        /// Number of slack bins asked for.
        bins: usize,
    },
    /// The hidden layer for continuous slack has a width of zero.
    #[error("a hidden layer without units")]
    EmptyHiddenLayer,
    /// The mean or the standard deviation for z-scores is out of range.
    #[error("z-scores with the mean {mean:?} and the deviation {deviation:?}")]
    ZScores {
        /// Mean of slack and of remaining wcet.
        mean: [f64; 2],
        /// Standard deviation of slack and of remaining wcet.
        deviation: [f64; 2],
    },
    /// Slack is continuous, and there are numbers beside the token.
    #[error("continuous slack and numbers beside the token; a row has one or the other")]
    TwoKindsOfNumbers,
    /// Rows that are never chosen look like others, or have no place.
    #[error("coming or skipped jobs need the feature \"kind\" and dense attention")]
    NoKind,
    /// Rows are limited, and nothing says which jobs have them.
    #[error("a limit of rows needs numbers beside the token, and that impossible jobs are skipped")]
    LimitWithoutNumbers,
    /// A feed-forward network has fewer slots than the system has tasks.
    #[error("the model has {slots} slots for tasks, and the set has {tasks} tasks")]
    TooManyTasks {
        /// Number of slots of the network.
        slots: usize,
        /// Number of tasks of the system.
        tasks: usize,
    },
    /// A feed-forward network has one slot per task, but late jobs keep running beside the next job of their task.
    #[error("the model has a slot for one job of each task, and late jobs keep running")]
    LateJobsContinue,
    /// A feed-forward network has one slot per task, but a task may have several ready jobs.
    #[error("the model has a slot for one job of each task, and {task:?} may have several at once")]
    SeveralJobs {
        /// Name of the task.
        task: String,
    },
}

#[cfg(test)]
mod tests {
    use temponet_task::{OnMiss, Task, TaskSet, Time};

    use crate::stages::{Binning, Continuous, Tokenizer};

    fn problem(tokenizer: Tokenizer) -> String {
        tokenizer.problem().unwrap().to_string()
    }

    #[test]
    fn an_invalid_tokenizer_says_what_is_wrong() {
        let paper = Tokenizer::paper();
        assert_eq!(paper.problem(), None);
        assert_eq!(problem(Tokenizer { bins: 0, ..paper.clone() }), "0 slack bins, not from 1 to 4096");
        let reserve = Tokenizer { long_slack_reserve: f32::INFINITY, ..paper.clone() };
        assert_eq!(problem(reserve), "a long-slack reserve of inf");
        let flat = Tokenizer { binning: Binning::Uniform { width: 0.0 }, ..paper };
        assert_eq!(problem(flat), "Uniform { width: 0.0 } does not make 128 bins");
        let empty = Tokenizer::continuous(Continuous::Mlp { hidden: 0 });
        assert_eq!(problem(empty), "a hidden layer without units");
        let narrow = Tokenizer::continuous(Continuous::ZScore { mean: [0.0, 2.0], deviation: [1.0, 0.0] });
        assert_eq!(problem(narrow), "z-scores with the mean [0.0, 2.0] and the deviation [1.0, 0.0]");
    }

    #[test]
    fn a_system_that_does_not_fit_the_slots_is_refused() {
        let task = |name: &str| Task::periodic(name, Time(10), Time(1));
        let mut set = TaskSet::new("two", vec![task("a"), task("b")], 1);
        let why = |slots: usize, set: &TaskSet| {
            let tokenizer = Tokenizer { slots: Some(slots), ..Tokenizer::paper() };
            tokenizer.not_applicable(&set.system).map(|problem| problem.to_string())
        };
        assert_eq!(why(2, &set), None);
        let tasks = "the model has 1 slots for tasks, and the set has 2 tasks";
        assert_eq!(why(1, &set).as_deref(), Some(tasks));
        let late = set.clone().with_on_miss(OnMiss::Continue);
        assert_eq!(Tokenizer::paper().not_applicable(&late.system), None, "without slots any system will do");
        let continues = "the model has a slot for one job of each task, and late jobs keep running";
        assert_eq!(why(2, &late).as_deref(), Some(continues));
        set.system.tasks_mut()[1].deadline = Time(11);
        let several = "the model has a slot for one job of each task, and \"b\" may have several at once";
        assert_eq!(why(2, &set).as_deref(), Some(several));
    }
}
