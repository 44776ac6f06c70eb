//! Tests for the schedulers that are optimal on several cores. They state what our implementations need for the
//! theorems to hold to the nanosecond.
//!
//! *Fluid* schedulers (`dp-wrap`, `llref`, `lre-tl`): the densities C/D add up to at most m, deadlines do not exceed
//! periods, and releases are known beforehand. Shares are whole nanoseconds. Let g divide all offsets, periods and
//! deadlines, so that no interval is shorter than g. If every density δ has gδ ≥ 1 and g(1 − δ) ≥ 1 (or δ = 1), then,
//! interval by interval, every job stays within one nanosecond of its fluid schedule and the jobs together are not
//! behind it. At the deadline of a job its fluid schedule is a whole number, so the job is complete.
//!
//! *Pfair* schedulers (`pd2`, `er-pd2`): the same condition on densities, with all times in whole quanta.
//!
//! Reference: Levin et al., ECRTS 2010; Zhu, Mossé and Melhem, RTSS 2003; Anderson and Srinivasan, JCSS 68(1), 2004.

use temponet_task::Time;

use super::fractions::{gcd, sum_is_at_most};
use super::worst_case::{Sporadic, WorstCase};

/// Whether the conditions of both families hold.
fn densities_fit(worst_case: &WorstCase) -> bool {
    let single = worst_case.tasks.iter().all(|task| task.jobs == 1 && task.wcet <= task.deadline);
    let known = worst_case.is_strictly_periodic()
        && worst_case.is_constrained()
        && !worst_case.has_costs
        && !worst_case.is_limited()
        && worst_case.is_identical()
        && !worst_case.may_overrun;
    single && known && sum_is_at_most(worst_case.tasks.iter().map(Sporadic::density), worst_case.cores as u64)
}

/// Whether the fluid schedulers meet every deadline.
pub fn fluid(worst_case: &WorstCase) -> bool {
    let dates = worst_case.tasks.iter().flat_map(|task| [task.offset.0, task.period.0, task.deadline.0]);
    let step = dates.fold(0, |step, date| gcd(step, u128::from(date)));
    let is_even = |task: &Sporadic| {
        let (wcet, deadline) = (u128::from(task.wcet.0), u128::from(task.deadline.0));
        step * wcet >= deadline && (wcet == deadline || step * (deadline - wcet) >= deadline)
    };
    densities_fit(worst_case) && worst_case.tasks.iter().all(is_even)
}

/// Whether the Pfair schedulers meet every deadline with this quantum.
pub fn pfair(worst_case: &WorstCase, quantum: Time) -> bool {
    densities_fit(worst_case) && is_in_quanta(worst_case, quantum)
}

/// Whether all times are multiples of the quantum.
pub fn is_in_quanta(worst_case: &WorstCase, quantum: Time) -> bool {
    let times = worst_case.tasks.iter().flat_map(|task| [task.wcet, task.offset, task.period, task.deadline]);
    times.into_iter().all(|time| time.0 % quantum.0 == 0)
}
