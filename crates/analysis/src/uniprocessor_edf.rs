//! EDF on one core: the set is schedulable if the processor demand never exceeds the time available. Exact for tasks
//! that may arrive together.
//!
//! Reference: Baruah, Rosier and Howell 1990 (processor demand); the quick convergence (QPA) of Zhang and Burns, IEEE
//! TC 58(9), 2009. A release up to J late leaves D − J of the relative deadline, so the demand of a task with jitter is
//! that of the deadline D − J.

use std::cmp::Ordering;

use temponet_task::Time;

use super::blocking::demand_with_blocking;
use super::fractions::{compare_sum, sum_is_at_most};
use super::step_budget::StepBudget;
use super::worst_case::{Sporadic, WorstCase};
use super::{Outcome, cycle};

/// Upper bound on the demand of a sporadic task: `wcet` within `deadline` of each arrival, with arrivals at least
/// `period` apart.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// Worst-case execution time of one arrival.
    pub wcet: Time,
    /// Relative deadline.
    pub deadline: Time,
    /// Minimum time between two arrivals.
    pub period: Time,
}

impl From<&Sporadic> for Demand {
    fn from(task: &Sporadic) -> Demand {
        Demand { wcet: Time(task.work()), deadline: Time(task.window()), period: task.period }
    }
}

/// Whether EDF on one core is proved to meet every deadline of these tasks.
pub fn is_schedulable(tasks: &[Demand]) -> bool {
    quick_test(tasks, &mut StepBudget::standard()) == Some(true)
}

/// QPA, exact where the set allows it: for tasks that arrive together, and for strictly periodic sets with a short
/// cycle. Where tasks limit preemption, the demand test with blocking.
pub fn qpa(worst_case: &WorstCase) -> Outcome {
    if worst_case.is_limited() {
        return demand_with_blocking(worst_case);
    }
    let demands: Vec<Demand> = worst_case.tasks.iter().map(Demand::from).collect();
    outcome(worst_case, quick_test(&demands, &mut StepBudget::standard()))
}

/// Processor-demand test: checks the demand at every deadline, one by one.
pub fn processor_demand(worst_case: &WorstCase) -> Outcome {
    if let Some(outcome) = worst_case.if_limited() {
        return outcome;
    }
    let demands: Vec<Demand> = worst_case.tasks.iter().map(Demand::from).collect();
    outcome(worst_case, plain_test(&demands, &mut StepBudget::standard()))
}

/// Turns the result of a demand test into a verdict.
fn outcome(worst_case: &WorstCase, fits: Option<bool>) -> Outcome {
    match fits {
        Some(true) => Outcome::Schedulable,
        Some(false) if worst_case.is_synchronous() || worst_case.is_overloaded() == Some(true) => {
            Outcome::NotSchedulable
        }
        _ => match cycle::responses(worst_case, |_, deadline| deadline) {
            Some(responses) => Outcome::exactly(cycle::all_met(worst_case, &responses)),
            None if fits.is_none() => Outcome::Undecided,
            None => Outcome::NotProved,
        },
    }
}

/// QPA: whether the tasks fit. Returns none if the budget is spent.
pub fn quick_test(tasks: &[Demand], budget: &mut StepBudget) -> Option<bool> {
    let limit = match interval(tasks, budget)? {
        Interval::Decided(fits) => return Some(fits),
        Interval::Until(limit) => limit,
    };
    let least = tasks.iter().map(|task| task.deadline.0).min().unwrap_or_default();
    let mut date = latest_deadline_before(tasks, limit);
    while let Some(t) = date {
        budget.spend(2 * tasks.len())?;
        let demanded = demand(tasks, t);
        if demanded > t {
            return Some(false);
        }
        if demanded <= least {
            return Some(true);
        }
        date = if demanded < t { Some(demanded) } else { latest_deadline_before(tasks, t) };
    }
    Some(true)
}

/// The demand criterion as defined, checked from the first deadline on. Returns none if the budget is spent.
pub(crate) fn plain_test(tasks: &[Demand], budget: &mut StepBudget) -> Option<bool> {
    let limit = match interval(tasks, budget)? {
        Interval::Decided(fits) => return Some(fits),
        Interval::Until(limit) => limit,
    };
    let mut t = 0u64;
    loop {
        budget.spend(2 * tasks.len())?;
        let next = |task: &Demand| match t.checked_sub(task.deadline.0) {
            None => task.deadline.0,
            Some(passed) => (passed / task.period.0 + 1).saturating_mul(task.period.0).saturating_add(task.deadline.0),
        };
        t = tasks.iter().map(next).min().unwrap_or(limit);
        if t >= limit {
            return Some(true);
        }
        if demand(tasks, t) > t {
            return Some(false);
        }
    }
}

/// Greatest work with release and deadline inside an interval of length `t`.
pub(crate) fn demand(tasks: &[Demand], t: u64) -> u64 {
    let jobs = |task: &Demand| t.checked_sub(task.deadline.0).map_or(0, |room| room / task.period.0 + 1);
    tasks.iter().map(|task| jobs(task).saturating_mul(task.wcet.0)).fold(0, u64::saturating_add)
}

/// The deadlines that a demand test has to check.
pub(crate) enum Interval {
    /// None: the result is known.
    Decided(bool),
    /// All deadlines before this date.
    Until(u64),
}

pub(crate) fn interval(tasks: &[Demand], budget: &mut StepBudget) -> Option<Interval> {
    budget.spend(tasks.len())?;
    let loads = tasks.iter().map(|task| (task.wcet.0, task.period.0));
    let overloaded = compare_sum(loads.clone(), 1)? == Ordering::Greater;
    if overloaded || tasks.iter().any(|task| task.wcet > task.deadline) {
        return Some(Interval::Decided(false));
    }
    let densities = tasks.iter().map(|task| (task.wcet.0, task.deadline.min(task.period).0.max(1)));
    if sum_is_at_most(densities, 1) {
        return Some(Interval::Decided(true));
    }
    // Beyond Σ (T − D)⁺·U / (1 − U) the demand is less than the time available.
    let scaled = |task: &Demand| (u128::from(task.wcet.0) << 64).div_ceil(u128::from(task.period.0));
    let load = tasks.iter().map(scaled).fold(0, u128::saturating_add);
    let slack = |task: &Demand| {
        let room = u128::from(task.period.saturating_sub(task.deadline).0);
        (room * u128::from(task.wcet.0)).div_ceil(u128::from(task.period.0))
    };
    let slack = tasks.iter().map(slack).fold(0, u128::saturating_add);
    let by_load = (1u128 << 64).checked_sub(load).filter(|spare| *spare > 0).and_then(|spare| {
        let date = slack.checked_mul(1 << 64)?.div_ceil(spare).checked_add(1)?;
        u64::try_from(date).ok()
    });
    // The same holds beyond the longest interval in which the core is never idle.
    let mut busy = tasks.iter().map(|task| task.wcet.0).fold(0, u64::saturating_add);
    loop {
        if by_load.is_some_and(|bound| busy >= bound) {
            return by_load.map(Interval::Until);
        }
        if budget.spend(tasks.len()).is_none() || busy == u64::MAX {
            return by_load.map(Interval::Until);
        }
        let jobs = |task: &Demand| busy.div_ceil(task.period.0).saturating_mul(task.wcet.0);
        let next = tasks.iter().map(jobs).fold(0, u64::saturating_add);
        if next == busy {
            return Some(Interval::Until(busy.saturating_add(1)));
        }
        busy = next;
    }
}

pub(crate) fn latest_deadline_before(tasks: &[Demand], t: u64) -> Option<u64> {
    let before = tasks.iter().filter(|task| task.deadline.0 < t);
    before.map(|task| (t - 1 - task.deadline.0) / task.period.0 * task.period.0 + task.deadline.0).max()
}

#[cfg(test)]
pub(crate) mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    /// One to four tasks with short periods.
    pub(crate) fn random_demands(rng: &mut Pcg64) -> Vec<Demand> {
        (0..rng.random_range(1..5))
            .map(|_| {
                let period = [2, 3, 5, 6, 7, 10, 14, 15, 30][rng.random_range(0..9)];
                let wcet = rng.random_range(1..=(period / 2).max(1));
                let deadline = rng.random_range(wcet..=period + 5);
                Demand { wcet: Time(wcet), deadline: Time(deadline), period: Time(period) }
            })
            .collect()
    }

    /// The definition: every deadline up to the hyperperiod plus the longest deadline.
    fn by_definition(tasks: &[Demand]) -> bool {
        let loads = tasks.iter().map(|task| (task.wcet.0, task.period.0));
        sum_is_at_most(loads, 1) && (1..=30_030).all(|t| demand(tasks, t) <= t)
    }

    #[test]
    fn quick_and_plain_test_agree_with_the_definition() {
        let mut rng = Pcg64::seed_from_u64(1);
        let (mut yes, mut no) = (0, 0);
        for _ in 0..3_000 {
            let tasks = random_demands(&mut rng);
            let expected = by_definition(&tasks);
            assert_eq!(quick_test(&tasks, &mut StepBudget::standard()), Some(expected), "{tasks:?}");
            assert_eq!(plain_test(&tasks, &mut StepBudget::standard()), Some(expected), "{tasks:?}");
            if expected { yes += 1 } else { no += 1 }
        }
        assert!(yes > 300 && no > 300, "{yes} {no}");
    }
}
