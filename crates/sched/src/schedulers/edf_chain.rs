//! EDF by due dates (EDF*): a job is due early enough that the longest path of wcets behind it still meets the
//! deadlines of its successors and of the chains through it. On one core this is optimal for tasks that come after each
//! other. Without precedence it would be EDF, and refuses.
//!
//! Reference: Chetto, Silly and Bouchentouf, Real-Time Systems 2, 1990.
//! Ties: earlier release, then lower task index.

use temponet_task::{DueDates, Scheduler, System, Time};

use crate::shared::ranked::TaskKey;

pub(crate) fn edf_chain() -> impl Scheduler {
    TaskKey::new(leads, |job, lead| job.deadline.saturating_sub(lead))
}

/// Returns how long before its deadline each task's jobs are due.
pub(crate) fn leads(system: &System) -> Vec<Time> {
    let dates = DueDates::of(system);
    system.task_ids().map(|task| dates.lead(task)).collect()
}
