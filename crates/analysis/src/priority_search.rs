//! Search for fixed priorities on one core: an order under which every task passes the response-time test, if there is
//! one.
//!
//! Reference: Audsley, On priority assignment in fixed priority scheduling, Information Processing Letters 79(1), 2001.
//! The lowest priority goes to any task that is in time there, the next one to any of the others, and so on. That finds
//! an order whenever one exists, because the response time of a task depends on which tasks are above it and which are
//! below it, not on their order. Deadline monotonic is no such order where deadlines exceed periods, releases have
//! jitter or offsets, or a job cannot be preempted at any time.

use super::cycle;
use super::response_time::{Key, longest_response};
use super::step_budget::StepBudget;
use super::worst_case::WorstCase;

/// Steps that following a whole schedule takes off a budget.
const STEPS_OF_A_CYCLE: usize = 50_000;

/// Looks for an order of the tasks at the places `kept` in which all of them are always in time on one core, with every
/// other task below them. Returns the places from the highest priority to the lowest; none if there is no such order, or
/// it was not found within the budget. Of several tasks that may be lowest, the one with the longest deadline is.
pub fn audsley(worst_case: &WorstCase, kept: &[usize], budget: &mut StepBudget) -> Option<Vec<usize>> {
    let [above, own, below]: [Key; 3] = [(0, 0), (1, 0), (2, 0)];
    let deadline = |place: usize| worst_case.tasks[place].deadline;
    let mut left = kept.to_vec();
    left.sort_by_key(|place| (deadline(*place), *place));
    let mut keys = vec![below; worst_case.tasks.len()];
    left.iter().for_each(|place| keys[*place] = above);
    let mut from_lowest = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let mut lowest = None;
        for at in (0..left.len()).rev() {
            let place = left[at];
            keys[place] = own;
            if is_in_time(worst_case, &keys, place, budget)? {
                lowest = Some(at);
                break;
            }
            keys[place] = above;
        }
        let place = left.remove(lowest?);
        keys[place] = below;
        from_lowest.push(place);
    }
    from_lowest.reverse();
    Some(from_lowest)
}

/// Whether the task at `place` is always in time with these keys; none if the budget is spent.
fn is_in_time(worst_case: &WorstCase, keys: &[Key], place: usize, budget: &mut StepBudget) -> Option<bool> {
    let deadline = worst_case.tasks[place].deadline.0;
    let bound = longest_response(&worst_case.tasks, keys, place, deadline, budget)?;
    if bound.is_some_and(|bound| bound <= deadline) {
        return Some(true);
    }
    if worst_case.is_synchronous() {
        return Some(false);
    }
    // Offsets may keep apart what the bound puts together.
    budget.spend(STEPS_OF_A_CYCLE)?;
    Some(cycle::responses(worst_case, |at, _| keys[at]).is_some_and(|longest| longest[place] <= deadline))
}
