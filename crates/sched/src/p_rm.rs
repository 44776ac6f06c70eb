//! Partitioned rate monotonic: tasks are packed onto cores by the hyperbolic bound and never migrate; each core runs RM.
//! Every core within the bound misses nothing (implicit deadlines).
//!
//! Reference: Dhall and Liu, Operations Research 26(1), 1978; Bini, Buttazzo and Buttazzo, IEEE TC 52(7), 2003.
//! Ties: earlier release, then lower task index; equally full cores go by index.

use crate::partition::{Clustered, Fit, hyperbolic_bound};
use crate::rm::period;
use temponet_task::Scheduler;

pub(crate) fn partitioned_rm(fit: Fit) -> impl Scheduler {
    Clustered::new(period, hyperbolic_bound, fit, 1)
}
