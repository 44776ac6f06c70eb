//! Highest level first: the job runs whose task has the longest path of wcets from its start to the end of its graph.
//! Deadlines do not count, so a short task of an urgent graph waits for a long graph without urgency.
//!
//! Reference: Adam, Chandy and Dickson, CACM 17(12), 1974 (HLFET, highest level first with estimated times).
//! Ties: earlier release, then lower task index.

use std::cmp::Reverse;

use temponet_task::{Scheduler, levels};

use crate::shared::ranked::TaskKey;

pub(crate) fn hlfet() -> impl Scheduler {
    TaskKey::new(|system| levels(system.tasks()), |_, level| Reverse(level))
}
