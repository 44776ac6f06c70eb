//! Errors that prevent or stop a run, with what a user can do about them.

use temponet_task::{NotApplicable, OnMiss, TaskSet, Time};

use super::MOST_READY;

/// Reason why a run cannot start or continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The scheduler cannot run on this system.
    #[error(transparent)]
    NotApplicable(#[from] NotApplicable),
    /// The scheduler returned an impossible assignment.
    #[error("illegal assignment at {time}: {what}")]
    IllegalAssignment {
        /// Time of the decision.
        time: Time,
        /// What is impossible about it, with names of tasks.
        what: String,
    },
    /// More jobs are ready than the scheduler can handle in reasonable time, or than memory should hold.
    #[error(
        "more than {most} jobs are ready at once at {time}, too many to decide among (load {load} per core{rule}): {advice}"
    )]
    TooManyReady {
        /// Time at which the limit was exceeded.
        time: Time,
        /// Largest number of ready jobs that is allowed.
        most: usize,
        /// Utilization per core, with two digits.
        load: String,
        /// How the miss rule contributes to the backlog; empty if it does not.
        rule: &'static str,
        /// What a user can change to avoid the error.
        advice: &'static str,
    },
}

impl SimError {
    /// Returns whether the error lies in the combination of scheduler and set rather than in a faulty scheduler. Other
    /// schedulers may be able to run the set.
    pub fn is_about_the_set(&self) -> bool {
        !matches!(self, SimError::IllegalAssignment { .. })
    }
}

/// Creates the error for a backlog that exceeds `most` jobs, with its cause and advice.
#[cold]
pub(super) fn too_many(set: &TaskSet, time: Time, most: usize) -> SimError {
    let load = format!("{:.2}", set.utilization() / set.capacity());
    let stays = set.on_miss() == OnMiss::Continue;
    let rule = if stays { ", and late jobs stay" } else { "" };
    let advice = match (stays, most < MOST_READY) {
        (true, true) => {
            "a shorter horizon, the rule abort, or a scheduler that keeps jobs in order, such as edf, helps"
        }
        (true, false) => "a shorter horizon or the rule abort helps",
        (false, true) => {
            "a scheduler that keeps jobs in order, such as edf, can; smaller bursts or shorter deadlines help"
        }
        (false, false) => "smaller bursts or shorter deadlines help",
    };
    SimError::TooManyReady { time, most, load, rule, advice }
}
