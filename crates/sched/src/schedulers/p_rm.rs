//! Partitioned rate monotonic: tasks are packed onto cores by the hyperbolic bound and never migrate, and each core
//! runs RM. A core within the bound misses nothing (implicit deadlines).
//!
//! Reference: Dhall and Liu, Operations Research 26(1), 1978; Bini, Buttazzo and Buttazzo, IEEE TC 52(7), 2003.
//! Ties: earlier release, then lower task index; among equally full cores the lower index.

use temponet_analysis::packing::{Fit, hyperbolic_bound};
use temponet_task::Scheduler;

use super::rm::period;
use crate::shared::clusters::Clustered;

pub(crate) fn partitioned_rm(fit: Fit) -> impl Scheduler {
    Clustered::new(period, hyperbolic_bound, fit, 1)
}
