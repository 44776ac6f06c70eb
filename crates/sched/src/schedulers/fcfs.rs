//! First come, first served: the jobs released first run until they complete.
//!
//! Reference: the queueing discipline. It ignores deadlines and serves as the simplest baseline.
//! Ties: lower task index, then lower job number.

use temponet_task::Scheduler;

use crate::shared::ranked::FixedKey;

pub(crate) fn fcfs() -> impl Scheduler {
    // The release is the first part of the common tie-break, so the key can be empty.
    FixedKey::new(|_, _| ())
}
