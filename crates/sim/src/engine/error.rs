//! Errors of a run.

use temponet_task::{NotApplicable, OnMiss, TaskSet, Time};

use super::MOST_READY;

/// Why a run cannot start or go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The scheduler cannot run on this system.
    #[error(transparent)]
    NotApplicable(#[from] NotApplicable),
    /// The scheduler decided something that cannot be.
    #[error("illegal assignment at {time}: {what}")]
    IllegalAssignment {
        /// When.
        time: Time,
        /// What, with names.
        what: String,
    },
    /// More jobs are ready than the scheduler can decide among in a time worth waiting for, or than memory should hold.
    #[error(
        "more than {most} jobs are ready at once at {time}, too many to decide among (load {load} per core{rule}): {advice}"
    )]
    TooManyReady {
        /// When.
        time: Time,
        /// How many are not too many.
        most: usize,
        /// Utilisation per core, two digits.
        load: String,
        /// What the rule for misses has to do with it.
        rule: &'static str,
        /// What helps.
        advice: &'static str,
    },
}

impl SimError {
    /// Whether the scheduler cannot run this set, which is no fault of its own: others may.
    pub fn is_about_the_set(&self) -> bool {
        !matches!(self, SimError::IllegalAssignment { .. })
    }
}

/// The run would go on for as long as the backlog grows; what led there is said instead.
#[cold]
pub(super) fn too_many(set: &TaskSet, time: Time, most: usize) -> SimError {
    let load = format!("{:.2}", set.utilization() / set.cores as f64);
    let stays = set.on_miss == OnMiss::Continue;
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
