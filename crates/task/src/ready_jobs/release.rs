//! The release of a job, as a program reports it.

use super::ReleaseProblem;
use crate::{Estimate, Task, Time};

/// A release of a job. [`Release::of`] fills it from the task; change what is known better about this job.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Release {
    /// Date of the release; not in the future.
    pub release: Time,
    /// Absolute deadline.
    pub deadline: Time,
    /// Worst-case execution time.
    pub wcet: Time,
    /// Best-case execution time.
    pub bcet: Time,
    /// Criticality; 0 is low.
    pub criticality: u8,
    /// Value of meeting the deadline.
    pub value: f64,
    /// Estimate of the execution time, if the program has one. It is moved into the range from bcet to wcet.
    pub estimate: Option<Estimate>,
}

impl Release {
    /// A job of `task` that is released at `release` and has the task's deadline, execution times, criticality and
    /// value, without an estimate.
    pub fn of(task: &Task, release: Time) -> Release {
        let Task { deadline, wcet, bcet, criticality, value, .. } = *task;
        let deadline = Time(release.0.saturating_add(deadline.0));
        Release { release, deadline, wcet, bcet, criticality, value, estimate: None }
    }

    /// Returns what is wrong with a release that is reported at `now`.
    pub(super) fn problem(&self, now: Time) -> Option<ReleaseProblem> {
        let window = self.deadline.saturating_sub(self.release);
        if self.release > now {
            return Some(ReleaseProblem::Future);
        }
        if window == Time::ZERO || window > Time::MAX_INPUT {
            return Some(ReleaseProblem::Deadline);
        }
        if self.bcet == Time::ZERO || self.bcet > self.wcet || self.wcet > Time::MAX_INPUT {
            return Some(ReleaseProblem::Work);
        }
        (!(self.value.is_finite() && self.value >= 0.0)).then_some(ReleaseProblem::Value)
    }
}
