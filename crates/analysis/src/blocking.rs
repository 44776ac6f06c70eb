//! EDF on one core where jobs hold the core: the demand test with blocking.
//!
//! A job that holds the core delays jobs with earlier deadlines that arrive meanwhile. Only one such job can do so
//! before a deadline: the one that held the core when the first of them arrived. It began at least a nanosecond before,
//! and it is due later. So every deadline is met if, for all t, the demand within t plus the longest `region − 1 ns` of
//! the tasks with a deadline beyond t is at most t.
//!
//! Reference: Jeffay, Stanat and Martel, RTSS 1991 (no preemption, deadlines equal to periods, necessary and sufficient
//! for sporadic tasks in whole time units); George, Rivierre and Spuri, INRIA RR-2966, 1996 (no preemption, arbitrary
//! deadlines); Baruah, ECRTS 2005 (limited preemption). The descent is that of QPA, in pieces between which the
//! blocking changes.

use temponet_task::Time;

use super::Outcome;
use super::step_budget::StepBudget;
use super::uniprocessor_edf::{Demand, Interval, demand, interval, latest_deadline_before};
use super::worst_case::WorstCase;

/// Time for which a job can delay others: up to `length` for every deadline that is less than `deadline` after the
/// arrival of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocking {
    /// Relative deadline of the task that holds the core; [`Time::NEVER`] for one that has lower priority than all
    /// others.
    pub deadline: Time,
    /// Longest delay.
    pub length: Time,
}

/// Whether EDF on one core is proved to meet every deadline of these tasks where others hold the core.
pub fn is_schedulable_with(tasks: &[Demand], blocking: &[Blocking]) -> bool {
    blocked_test(tasks, blocking, &mut StepBudget::standard()) == Some(true)
}

/// Demand test with blocking, for the tasks of a set. It is exact if no job is ever preempted and the tasks can arrive
/// at any time, a period after their last arrival at the earliest.
pub fn demand_with_blocking(worst_case: &WorstCase) -> Outcome {
    let demands: Vec<Demand> = worst_case.tasks.iter().map(Demand::from).collect();
    match blocked_test(&demands, &worst_case.blocking(), &mut StepBudget::standard()) {
        Some(true) => Outcome::Schedulable,
        Some(false) if worst_case.blocks_at_worst() || worst_case.is_overloaded() == Some(true) => {
            Outcome::NotSchedulable
        }
        Some(false) => Outcome::NotProved,
        None => Outcome::Undecided,
    }
}

/// Whether the tasks fit beside the blocking. Returns none if the budget is spent.
pub(crate) fn blocked_test(tasks: &[Demand], blocking: &[Blocking], budget: &mut StepBudget) -> Option<bool> {
    let until = match interval(tasks, budget)? {
        Interval::Decided(false) => return Some(false),
        Interval::Decided(true) => 0,
        Interval::Until(limit) => limit,
    };
    let blocked = blocking.iter().map(|held| held.deadline).filter(|deadline| *deadline != Time::NEVER);
    let longest = tasks.iter().map(|task| task.deadline).chain(blocked).max().unwrap_or_default().0;
    // Blocking that concerns every deadline moves the end of the interval to be checked.
    let constant = blocking.iter().filter(|held| held.deadline == Time::NEVER).map(|held| held.length.0).max();
    let end = match constant.filter(|length| *length > 0) {
        None => until.max(longest.saturating_add(1)),
        Some(length) => end_with(tasks, length)?.max(longest.saturating_add(1)),
    };
    let mut edges: Vec<u64> = blocking.iter().map(|held| held.deadline.0).filter(|edge| *edge < end).collect();
    edges.push(0);
    edges.sort_unstable();
    edges.dedup();
    let mut above = end;
    for edge in edges.into_iter().rev() {
        budget.spend(blocking.len())?;
        let active = blocking.iter().filter(|held| held.deadline.0 > edge);
        let blocked = active.map(|held| held.length.0).max().unwrap_or_default();
        if !piece_fits(tasks, blocked, edge..above, budget)? {
            return Some(false);
        }
        above = edge;
    }
    Some(true)
}

/// Whether all deadlines in `dates` leave room for the demand and for `blocked` beside it.
pub(crate) fn piece_fits(
    tasks: &[Demand],
    blocked: u64,
    dates: std::ops::Range<u64>,
    budget: &mut StepBudget,
) -> Option<bool> {
    let mut date = latest_deadline_before(tasks, dates.end);
    while let Some(t) = date.filter(|date| *date >= dates.start) {
        budget.spend(2 * tasks.len())?;
        let demanded = demand(tasks, t);
        if demanded == 0 {
            return Some(true);
        }
        let busy = demanded.saturating_add(blocked);
        if busy > t {
            return Some(false);
        }
        date = if busy < t { Some(busy) } else { latest_deadline_before(tasks, t) };
    }
    Some(true)
}

/// Returns a date from which on the demand plus `blocked` is less than the time available; none if there is none.
fn end_with(tasks: &[Demand], blocked: u64) -> Option<u64> {
    // Demand by t is at most Σ U·t + Σ U·(T − D)⁺.
    let share = |task: &Demand| (u128::from(task.wcet.0) << 64).div_ceil(u128::from(task.period.0));
    let load = tasks.iter().map(share).fold(0, u128::saturating_add);
    let spare = (1u128 << 64).checked_sub(load).filter(|spare| *spare > 0)?;
    let early = |task: &Demand| {
        let room = u128::from(task.period.saturating_sub(task.deadline).0);
        (room * u128::from(task.wcet.0)).div_ceil(u128::from(task.period.0))
    };
    let once = tasks.iter().map(early).fold(u128::from(blocked), u128::saturating_add);
    u64::try_from(once.checked_mul(1 << 64)?.div_ceil(spare).checked_add(1)?).ok()
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;
    use crate::fractions::sum_is_at_most;
    use crate::uniprocessor_edf::tests::random_demands;

    /// The definition: every date up to the hyperperiod plus the longest deadline and the longest blocking.
    fn by_definition(tasks: &[Demand], blocking: &[Blocking]) -> bool {
        let loads = tasks.iter().map(|task| (task.wcet.0, task.period.0));
        let blocked = |t: u64| blocking.iter().filter(|held| held.deadline.0 > t).map(|held| held.length.0).max();
        let fits = |t: u64| match demand(tasks, t) {
            0 => true,
            demanded => demanded + blocked(t).unwrap_or(0) <= t,
        };
        sum_is_at_most(loads, 1) && (1..=3_000).all(fits)
    }

    #[test]
    fn the_descent_agrees_with_the_definition() {
        let mut rng = Pcg64::seed_from_u64(7);
        let (mut yes, mut no, mut only_blocked) = (0, 0, 0);
        for _ in 0..6_000 {
            let tasks = random_demands(&mut rng);
            let mut blocking: Vec<Blocking> = tasks
                .iter()
                .map(|task| Blocking { deadline: task.deadline, length: Time(rng.random_range(0..task.wcet.0)) })
                .collect();
            if rng.random_bool(0.3) {
                blocking.push(Blocking { deadline: Time::NEVER, length: Time(rng.random_range(0..4)) });
            }
            // With a constant blocking and a load of one, no end is found and nothing is decided.
            let Some(found) = blocked_test(&tasks, &blocking, &mut StepBudget::standard()) else { continue };
            assert_eq!(found, by_definition(&tasks, &blocking), "{tasks:?} {blocking:?}");
            only_blocked += usize::from(!found && by_definition(&tasks, &[]));
            if found { yes += 1 } else { no += 1 }
        }
        assert!(yes > 1_000 && no > 1_000 && only_blocked > 500, "{yes} {no} {only_blocked}");
    }
}
