//! Simulation of the worst-case schedule on one core, for strictly periodic sets with a short cycle.
//! Every job takes its whole wcet, and the schedule is followed from the start until it repeats. On one core a job that
//! ends earlier never delays another one, so the result is exact.
//!
//! Reference: Leung and Merrill, Information Processing Letters 11(3), 1980: the schedule repeats after the last offset
//! and two hyperperiods. This is also checked: the state one hyperperiod before the end must equal the state at the
//! end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::fractions::{gcd, sum_is_at_most};
use super::worst_case::{Sporadic, WorstCase};

/// Largest number of jobs in a schedule that is followed.
const MOST_JOBS: u64 = 50_000;

/// A waiting job: key, release, place of its task, remaining work.
type Ready<K> = Reverse<(K, u64, usize, u64)>;

/// Returns the longest response time of each task, in nanoseconds, on one core where the job with the least key runs.
/// `key` gets the place of the task and the absolute deadline of the job. Returns none if the set is not strictly
/// periodic, has costs, limits preemption, shares resources or is overloaded, or if its cycle is too long.
pub(crate) fn responses<K: Ord + Copy>(worst_case: &WorstCase, key: impl Fn(usize, u64) -> K) -> Option<Vec<u64>> {
    let tasks = &worst_case.tasks;
    if worst_case.is_limited() || worst_case.is_sharing {
        return None;
    }
    let hyperperiod = hyperperiod(tasks)?;
    let last_offset = tasks.iter().map(|task| task.offset.0).max()?;
    let end = last_offset.checked_add(hyperperiod.checked_mul(2)?)?;
    let jobs = tasks.iter().map(|task| end / task.period.0 + 1).fold(0, u64::saturating_add);
    let fits = sum_is_at_most(worst_case.utilizations(), 1);
    if !worst_case.is_strictly_periodic() || worst_case.has_costs || jobs > MOST_JOBS || !fits {
        return None;
    }
    let mut longest = vec![0; tasks.len()];
    let mut ready: BinaryHeap<Ready<K>> = BinaryHeap::new();
    let mut releases: BinaryHeap<Reverse<(u64, usize)>> =
        tasks.iter().enumerate().map(|(place, task)| Reverse((task.offset.0, place))).collect();
    let mut now = 0;
    let mut states = Vec::new();
    for stop in [end - hyperperiod, end] {
        while now < stop {
            while let Some(Reverse((date, place))) = releases.peek().copied().filter(|Reverse((date, _))| *date <= now)
            {
                releases.pop();
                releases.push(Reverse((date.saturating_add(tasks[place].period.0), place)));
                let deadline = date.saturating_add(tasks[place].deadline.0);
                ready.push(Reverse((key(place, deadline), date, place, tasks[place].work())));
            }
            let next = releases.peek().map_or(stop, |Reverse((date, _))| (*date).min(stop));
            let Some(Reverse((key, release, place, work))) = ready.pop() else {
                now = next;
                continue;
            };
            let done = work.min(next - now);
            now += done;
            if done == work {
                longest[place] = longest[place].max(now - release);
            } else {
                ready.push(Reverse((key, release, place, work - done)));
            }
        }
        let state = ready.iter().map(|Reverse((_, release, place, work))| (*place, now - release, *work));
        let mut state: Vec<(usize, u64, u64)> = state.collect();
        state.sort_unstable();
        states.push(state);
    }
    (states[0] == states[1]).then_some(longest)
}

/// Whether every response time is within the deadline of its task.
pub(crate) fn all_met(worst_case: &WorstCase, responses: &[u64]) -> bool {
    worst_case.tasks.iter().zip(responses).all(|(task, response)| *response <= task.deadline.0)
}

fn hyperperiod(tasks: &[Sporadic]) -> Option<u64> {
    tasks.iter().try_fold(1u64, |lcm, task| {
        let common = gcd(u128::from(lcm), u128::from(task.period.0)) as u64;
        (lcm / common).checked_mul(task.period.0)
    })
}
