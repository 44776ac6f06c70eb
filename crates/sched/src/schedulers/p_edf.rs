//! Partitioned EDF: tasks are packed onto cores and never migrate, and each core runs EDF. A core with a load of at
//! most 1 misses nothing (implicit deadlines). `c-edf` does the same with clusters of cores and global EDF inside each.
//!
//! Reference: Lopez, Diaz and Garcia, Real-Time Systems 28, 2004 (packing); Calandrino, Anderson and Baumberger, ECRTS
//! 2007 (clusters). Ties: earlier release, then lower task index; among equally full cores the lower index.

use temponet_analysis::packing::{Fit, fills_cores};
use temponet_task::Scheduler;

use super::edf::deadline;
use crate::shared::clusters::Clustered;

pub(crate) fn clustered_edf(fit: Fit, cluster_size: usize) -> impl Scheduler {
    Clustered::new(deadline, fills_cores, fit, cluster_size)
}
