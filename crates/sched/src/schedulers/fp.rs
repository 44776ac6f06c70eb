//! Fixed priorities from the file, the larger number first; tasks without a priority come after all others.
//!
//! Reference: any fixed-priority real-time operating system (POSIX SCHED_FIFO).
//! Ties: earlier release, then lower task index.

use std::cmp::Reverse;

use crate::shared::ranked::FixedKey;
use temponet_task::Scheduler;

pub(crate) fn fp() -> impl Scheduler {
    FixedKey::new(|view, job| Reverse(view.task_of(job).priority))
}
