//! First come, first served: the job released earliest runs, and nothing preempts it but the number of cores.
//!
//! Reference: the queueing discipline; with deadlines it stands in tables as the careless baseline.
//! Ties: lower task index, then lower job number.

use temponet_task::Scheduler;

use crate::shared::ranked::FixedKey;

pub(crate) fn fcfs() -> impl Scheduler {
    // The release is the first part of the common tie-break, so no key is needed before it.
    FixedKey::new(|_, _| ())
}
