//! Search for fixed priorities on one core: an order under which every task passes the response-time test, if there is
//! one.
//!
//! Reference: Audsley, On priority assignment in fixed priority scheduling, Information Processing Letters 79(1), 2001.
//! The lowest priority goes to any task that is in time there, the next one to any of the others, and so on. That finds
//! an order whenever one exists, because the response time of a task depends on which tasks are above it and which are
//! below it, not on their order. Deadline monotonic is no such order where deadlines exceed periods, releases have
//! jitter or offsets, or a job cannot be preempted at any time.

use temponet_task::Time;

use super::cycle;
use super::response_time::{Key, longest_response};
use super::step_budget::StepBudget;
use super::worst_case::WorstCase;

/// Steps that following a whole schedule takes off a budget.
const STEPS_OF_A_CYCLE: usize = 50_000;

/// Keys of the tasks above the one in question, of itself, and of those below it.
const ABOVE: Key = (0, 0);
const OWN: Key = (1, 0);
const BELOW: Key = (2, 0);

/// Looks for an order of the tasks at the places `kept` in which all of them are always in time on one core, with every
/// other task below them. Returns the places from the highest priority to the lowest; none if there is no such order, or
/// it was not found within the budget. Of several tasks that may be lowest, the one with the longest deadline is.
pub fn audsley(worst_case: &WorstCase, kept: &[usize], budget: &mut StepBudget) -> Option<Vec<usize>> {
    let deadline = |place: usize| worst_case.tasks[place].deadline;
    let mut left = kept.to_vec();
    left.sort_by_key(|place| (deadline(*place), *place));
    let mut keys = vec![BELOW; worst_case.tasks.len()];
    left.iter().for_each(|place| keys[*place] = ABOVE);
    let mut from_lowest = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let mut lowest = None;
        for at in (0..left.len()).rev() {
            let place = left[at];
            keys[place] = OWN;
            if bound(worst_case, &keys, place, budget)?.is_some() {
                lowest = Some(at);
                break;
            }
            keys[place] = ABOVE;
        }
        let place = left.remove(lowest?);
        keys[place] = BELOW;
        from_lowest.push(place);
    }
    from_lowest.reverse();
    Some(from_lowest)
}

/// Bound on the response time, from arrival to completion, of the task at `place` on one core, where tasks for which
/// `may_precede` holds may run before it in any order, and all others run after it. None if the task is not proved to be
/// in time.
pub fn response_among(
    worst_case: &WorstCase,
    place: usize,
    may_precede: impl Fn(usize) -> bool,
    budget: &mut StepBudget,
) -> Option<Time> {
    let key = |other: usize| match other {
        own if own == place => OWN,
        above if may_precede(above) => ABOVE,
        _ => BELOW,
    };
    let keys: Vec<Key> = (0..worst_case.tasks.len()).map(key).collect();
    bound(worst_case, &keys, place, budget)?
}

/// Bound on the response time of the task at `place` with these keys if it is within the deadline; none if the budget is
/// spent.
fn bound(worst_case: &WorstCase, keys: &[Key], place: usize, budget: &mut StepBudget) -> Option<Option<Time>> {
    let deadline = worst_case.tasks[place].deadline.0;
    let in_time = |bound: &u64| *bound <= deadline;
    let found = longest_response(&worst_case.tasks, keys, place, deadline, budget)?.filter(in_time);
    if found.is_some() || worst_case.is_synchronous() {
        return Some(found.map(Time));
    }
    // Offsets may keep apart what the bound puts together.
    budget.spend(STEPS_OF_A_CYCLE)?;
    let followed = cycle::responses(worst_case, |at, _| keys[at]);
    Some(followed.map(|longest| longest[place]).filter(in_time).map(Time))
}
