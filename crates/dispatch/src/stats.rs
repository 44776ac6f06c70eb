//! Counts of what became of requests.

use crate::{Outcome, Reason};

/// Counts since the start. `submitted` is the sum of all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Requests that came.
    pub submitted: u64,
    /// Requests that wait now.
    pub queued: u64,
    /// Requests that are served now.
    pub running: u64,
    /// Requests finished in time.
    pub met: u64,
    /// Requests finished late.
    pub late: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests that were begun and ended by their tokens.
    pub cancelled: u64,
    shed: [u64; Reason::ALL.len()],
}

impl Stats {
    /// Returns the number of requests that were not begun for this reason.
    pub fn shed(&self, reason: Reason) -> u64 {
        self.shed[reason as usize]
    }

    /// Returns the number of requests that were not begun.
    pub fn all_shed(&self) -> u64 {
        self.shed.iter().sum()
    }

    pub(crate) fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Met => self.met += 1,
            Outcome::Late => self.late += 1,
            Outcome::Failed => self.failed += 1,
            Outcome::Cancelled => self.cancelled += 1,
            Outcome::Shed(reason) => self.shed[reason as usize] += 1,
        }
    }
}
