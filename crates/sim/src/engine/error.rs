//! Errors that prevent or stop a run, with what a user can do about them.

use temponet_task::{MOST_LOOKED_AT, NotApplicable, OnMiss, TaskSet, Time};

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
    /// Decisions among thousands of jobs have taken so long that the run would not end in reasonable time.
    #[error(
        "up to {ready} jobs are ready at once, and deciding among them takes too long to go on at {time} (load {load} per core{rule}): {advice}"
    )]
    TooLongBacklog {
        /// Time at which the run was given up.
        time: Time,
        /// Number of jobs that were ready then.
        ready: usize,
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

/// Decisions among more jobs than this are counted, each by the number of its jobs.
const CROWD: usize = 10_000;
/// Sum of these numbers up to which a run goes on. A scheduler that looks at every job takes seconds for it.
const MOST_LOOKS: u64 = 500_000_000;

/// The work of decisions among thousands of jobs, for a scheduler that looks at each of them.
#[derive(Default)]
pub(super) struct Backlog {
    looks: u64,
}

impl Backlog {
    /// Takes note of a decision among `ready` jobs, of at most `most`. Fails if they are too many, or if decisions like
    /// this one have taken too long.
    #[inline]
    pub fn note(&mut self, ready: usize, most: usize, set: &TaskSet, time: Time) -> Result<(), SimError> {
        if ready <= CROWD.min(most) { Ok(()) } else { self.note_crowd(ready, most, set, time) }
    }

    #[cold]
    fn note_crowd(&mut self, ready: usize, most: usize, set: &TaskSet, time: Time) -> Result<(), SimError> {
        if ready > most {
            let (load, rule, advice) = cause(set, most);
            return Err(SimError::TooManyReady { time, most, load, rule, advice });
        }
        if most <= MOST_LOOKED_AT {
            self.looks += ready as u64;
        }
        if self.looks <= MOST_LOOKS {
            return Ok(());
        }
        let (load, rule, advice) = cause(set, most);
        Err(SimError::TooLongBacklog { time, ready, load, rule, advice })
    }
}

/// Returns the load, the part of the miss rule in a backlog, and advice to a user, for a scheduler that bears `most`
/// ready jobs.
fn cause(set: &TaskSet, most: usize) -> (String, &'static str, &'static str) {
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
    (load, rule, advice)
}

#[cfg(test)]
mod tests {
    use temponet_task::Task;

    use super::*;

    #[test]
    fn a_backlog_that_takes_too_long_is_given_up_unless_jobs_are_kept_in_order() {
        let set = TaskSet::new("s", vec![Task::periodic("a", Time(1), Time(2))], 1).with_on_miss(OnMiss::Continue);
        let decisions = |ready: usize, most: usize| {
            let mut backlog = Backlog::default();
            (0..100_000).map(|_| backlog.note(ready, most, &set, Time(7))).find(Result::is_err)
        };
        let Some(Err(error)) = decisions(20_000, MOST_LOOKED_AT) else { panic!("it goes on") };
        let expected = "up to 20000 jobs are ready at once, and deciding among them takes too long to go on at 7ns \
                        (load 2.00 per core, and late jobs stay): a shorter horizon, the rule abort, or a scheduler \
                        that keeps jobs in order, such as edf, helps";
        assert_eq!(error.to_string(), expected);
        assert!(decisions(CROWD, MOST_LOOKED_AT).is_none(), "ordinary crowds may last");
        assert!(decisions(20_000, MOST_READY).is_none());
        assert!(matches!(decisions(20_000, 15_000), Some(Err(SimError::TooManyReady { most: 15_000, .. }))));
    }
}
