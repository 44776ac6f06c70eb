//! Fixed priorities from the file: the larger number runs first, tasks without a priority run last.
//!
//! Reference: any fixed-priority real-time operating system (POSIX SCHED_FIFO).
//! Ties: earlier release, then lower task index.

use std::cmp::Reverse;

use temponet_task::{Attribute, Scheduler};

use crate::shared::ranked::FixedKey;

pub(crate) fn fp() -> impl Scheduler {
    FixedKey::new(|view, job| Reverse(view.task_of(job).extra.get(Attribute::Priority)))
}
