//! EDF-US[m/(2m−1)]: tasks that use more than m/(2m−1) of a core always go first, EDF orders the rest. It avoids Dhall's
//! effect and meets every deadline at U ≤ m²/(2m−1) (implicit deadlines).
//!
//! Reference: Srinivasan and Baruah, Information Processing Letters 84(2), 2002.
//! Ties: among the heavy tasks and among equal deadlines the earlier release, then the lower task index.

use crate::ranked::FixedKey;
use temponet_task::{Scheduler, Time};

pub(crate) fn edf_us() -> impl Scheduler {
    FixedKey::new(|view, job| {
        let cores = view.cores() as f64;
        let heavy = view.task_of(job).utilization() > cores / (2.0 * cores - 1.0);
        if heavy { Time::ZERO } else { job.deadline }
    })
}
