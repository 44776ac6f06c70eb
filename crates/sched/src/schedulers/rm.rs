//! Rate monotonic: the task with the shortest period runs first. Optimal among fixed priorities for implicit deadlines
//! on one core; misses nothing under the hyperbolic bound Π(Uᵢ + 1) ≤ 2.
//!
//! Reference: Liu and Layland, JACM 20(1), 1973; Bini, Buttazzo and Buttazzo, IEEE TC 52(7), 2003.
//! Ties: earlier release, then lower task index. A list of single jobs has no periods, so their relative deadlines are
//! used instead.

use temponet_task::{Job, Scheduler, SystemView, Time};

use crate::shared::ranked::FixedKey;

pub(crate) fn rm() -> impl Scheduler {
    FixedKey::new(period)
}

pub(crate) fn period(view: &SystemView<'_>, job: &Job) -> Time {
    view.task_of(job).period().unwrap_or(job.deadline.saturating_sub(job.release))
}
