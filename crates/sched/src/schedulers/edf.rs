//! Earliest deadline first, global on several cores. Optimal on one core as long as all deadlines can be met. In
//! overload, jobs that cannot meet their deadlines make others late (the domino effect).
//!
//! Reference: Liu and Layland, JACM 20(1), 1973; Dertouzos, IFIP 1974.
//! Ties: earlier release, then lower task index.

use temponet_task::{Job, Scheduler, SystemView, Time};

use crate::shared::ranked::FixedKey;

pub(crate) fn edf() -> impl Scheduler {
    FixedKey::new(deadline)
}

pub(crate) fn deadline(_view: &SystemView<'_>, job: &Job) -> Time {
    job.deadline
}
