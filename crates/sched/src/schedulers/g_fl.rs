//! Global fair lateness (G-FL): like global EDF, but jobs are ordered by a priority point before their deadline, d −
//! C(m−1)/m. This makes the bound on the greatest lateness as small as possible for such schedulers.
//!
//! Reference: Erickson, Anderson and Ward, Fair Lateness Scheduling, Real-Time Systems 50(1), 2014.
//! Ties: earlier release, then lower task index.

use temponet_task::Scheduler;

use crate::shared::ranked::FixedKey;

pub(crate) fn g_fl() -> impl Scheduler {
    FixedKey::new(|view, job| {
        let cores = view.cores() as u64;
        // Scaled by m to stay in whole numbers.
        i128::from(job.deadline.0) * i128::from(cores) - i128::from(job.wcet.0) * i128::from(cores - 1)
    })
}
