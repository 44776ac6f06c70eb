//! Response times under fixed priorities on one core.
//!
//! Reference: Lehoczky, RTSS 1990 (arbitrary deadlines: every job of the level-i busy period); Audsley et al. and
//! Tindell, Burns and Wellings 1993 (release jitter); George, Rivierre and Spuri 1996 (equal priorities, which our
//! schedulers serve in order of release).
//!
//! The bounds are exact for tasks that may arrive together and have different priorities. With offsets or equal
//! priorities, a strictly periodic set with a short cycle is followed through its whole schedule, which is exact as
//! well. Otherwise offsets are ignored, which is safe.
//!
//! Where tasks limit preemption, a task of lower priority that holds the core can delay a busy period, and a job that
//! has reached its last preemption point runs to its end (Davis, Burns, Bril and Lukkien, Real-Time Systems 35, 2007;
//! Bril, Lukkien and Verhaegh, ECRTS 2007: every job of the busy period is looked at). The bounds are exact if no job
//! is ever preempted, priorities differ and tasks can arrive at any time from a period after their last arrival on.

use std::cmp::Ordering;

use temponet_task::Time;

use super::fractions::compare_sum;
use super::step_budget::StepBudget;
use super::worst_case::{Sporadic, WorstCase};
use super::{Outcome, cycle};

/// A rule that gives every task a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityRule {
    /// Shortest period first: `rm`.
    RateMonotonic,
    /// Shortest relative deadline first: `dm`.
    DeadlineMonotonic,
    /// Priorities from the file: `fp`.
    Given,
    /// Priorities from the file if every task has one, else shortest relative deadline first: `amc` as long as no job
    /// overruns.
    GivenOrDeadline,
    /// Equal priorities: `fcfs`.
    Equal,
}

/// Priority of a task; the task with the lesser key runs first.
pub(crate) type Key = (i128, u64);

impl PriorityRule {
    /// Name of the scheduler that follows the rule.
    pub fn scheduler(self) -> &'static str {
        match self {
            PriorityRule::RateMonotonic => "rm",
            PriorityRule::DeadlineMonotonic => "dm",
            PriorityRule::Given => "fp",
            PriorityRule::GivenOrDeadline => "amc",
            PriorityRule::Equal => "fcfs",
        }
    }

    /// Returns the key of each task.
    pub(crate) fn keys(self, tasks: &[Sporadic]) -> Vec<Key> {
        let given = |task: &Sporadic| task.priority.map_or(i128::MAX, |priority| -i128::from(priority));
        let all_given = tasks.iter().all(|task| task.priority.is_some());
        let key = |task: &Sporadic| match self {
            PriorityRule::RateMonotonic => (0, task.period.0),
            PriorityRule::DeadlineMonotonic => (0, task.deadline.0),
            PriorityRule::Given => (given(task), 0),
            PriorityRule::GivenOrDeadline if all_given => (given(task), task.deadline.0),
            PriorityRule::GivenOrDeadline => (0, task.deadline.0),
            PriorityRule::Equal => (0, 0),
        };
        tasks.iter().map(key).collect()
    }
}

/// Result of a response-time analysis.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseTimes {
    /// Upper bound on the response time of each task, from arrival to completion. None where it is unbounded or was not
    /// found.
    pub bounds: Vec<Option<Time>>,
    /// Whether the bounds come from the whole schedule of the set. They are exact then.
    pub from_schedule: bool,
    /// The verdict.
    pub outcome: Outcome,
}

/// What a response-time analysis is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The bound of every task.
    Bounds,
    /// Only whether every deadline is met. The analysis ends at the first that may be missed; a bound that is beyond
    /// its deadline may be too short, and those behind it are not found.
    Verdict,
}

/// Computes bounds on the response times under `rule` on one core.
pub fn response_times(worst_case: &WorstCase, rule: PriorityRule) -> ResponseTimes {
    response_times_within(worst_case, rule, Wanted::Bounds, &mut StepBudget::standard())
}

/// Like [`response_times`], with a budget that several analyses share.
pub(crate) fn response_times_within(
    worst_case: &WorstCase,
    rule: PriorityRule,
    wanted: Wanted,
    budget: &mut StepBudget,
) -> ResponseTimes {
    let keys = rule.keys(&worst_case.tasks);
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    let has_ties = sorted.windows(2).any(|pair| pair[0] == pair[1]);
    if (has_ties || !worst_case.is_synchronous())
        && let Some(exact) = cycle::responses(worst_case, |place, _| keys[place])
    {
        let outcome = Outcome::exactly(cycle::all_met(worst_case, &exact));
        let bounds = exact.into_iter().map(|response| Some(Time(response))).collect();
        return ResponseTimes { bounds, from_schedule: true, outcome };
    }
    let (mut too_long, mut has_miss) = (false, false);
    let mut bound = |place: usize| {
        let deadline = worst_case.tasks[place].deadline;
        let limit = if wanted == Wanted::Verdict { deadline.0 } else { u64::MAX };
        if wanted == Wanted::Verdict && has_miss {
            return None;
        }
        let found = longest_response(&worst_case.tasks, &keys, place, limit, budget);
        too_long |= found.is_none();
        let bound = found.flatten().map(Time);
        has_miss |= bound.is_none_or(|bound| bound > deadline);
        bound
    };
    let bounds: Vec<Option<Time>> = (0..worst_case.tasks.len()).map(&mut bound).collect();
    let is_met = |(task, bound): (&Sporadic, &Option<Time>)| bound.is_some_and(|bound| bound <= task.deadline);
    let all_met = worst_case.tasks.iter().zip(&bounds).all(is_met);
    // Tasks that miss for certain. If the budget ran out, a bound that was not found says nothing.
    let misses = |(task, bound): (&Sporadic, &Option<Time>)| bound.map_or(!too_long, |bound| bound > task.deadline);
    let overloaded = worst_case.is_overloaded() == Some(true);
    let is_exact = !has_ties
        && !worst_case.is_sharing
        && match worst_case.is_limited() {
            true => worst_case.blocks_at_worst(),
            false => worst_case.is_synchronous(),
        };
    let outcome = match () {
        () if all_met => Outcome::Schedulable,
        () if overloaded || is_exact && worst_case.tasks.iter().zip(&bounds).any(misses) => Outcome::NotSchedulable,
        () if too_long => Outcome::Undecided,
        () => Outcome::NotProved,
    };
    ResponseTimes { bounds, from_schedule: false, outcome }
}

/// Longest time from arrival to completion of the task at `place`. The inner `None` means unbounded, the outer `None`
/// that the budget is spent. The first time that is longer than `limit` is returned as the longest.
pub(crate) fn longest_response(
    tasks: &[Sporadic],
    keys: &[Key],
    place: usize,
    limit: u64,
    budget: &mut StepBudget,
) -> Option<Option<u64>> {
    budget.spend(8 * tasks.len())?;
    let own = &tasks[place];
    let having = |order: Ordering| {
        let others = tasks
            .iter()
            .enumerate()
            .filter(move |(other, _)| *other != place && keys[*other].cmp(&keys[place]) == order);
        others.map(|(_, task)| task)
    };
    let higher: Vec<&Sporadic> = having(Ordering::Less).collect();
    let equal: Vec<&Sporadic> = having(Ordering::Equal).collect();
    // A job of lower priority that holds the core began a nanosecond before the busy period.
    let lower = having(Ordering::Greater).map(|task| task.region.0.saturating_sub(1));
    let blocked = lower.max().unwrap_or_default().saturating_add(own.waits.0);
    let level = || higher.iter().chain(&equal).copied().chain([own]);
    let steps = level().count();
    // At full load, a busy period never ends if jitter adds work at its beginning.
    let has_jitter = level().any(|task| task.jitter > Time::ZERO);
    match compare_sum(level().map(Sporadic::utilization), 1)? {
        Ordering::Greater => return Some(None),
        Ordering::Equal if has_jitter || blocked > 0 => return Some(None),
        _ => {}
    }
    let released_before = |task: &Sporadic, date: u64| date.saturating_add(task.jitter.0).div_ceil(task.period.0);
    let mut busy: u64 = 1;
    loop {
        budget.spend(steps)?;
        let work = level().map(|task| released_before(task, busy).saturating_mul(task.work()));
        let next = work.fold(blocked, u64::saturating_add);
        if next == busy {
            break;
        }
        if next == u64::MAX {
            return None;
        }
        busy = next;
    }
    // With jitter beyond the period, later arrivals may be released before this one and run first.
    let overtaking = own.jitter.0.div_ceil(own.period.0).saturating_sub(1);
    let mut longest = 0;
    // Releases at which the number of jobs that run first changes, counted from the start of the busy period.
    let starts = equal.iter().copied().map(|task| (task.period.0, task.jitter.0)).chain([(own.period.0, 0)]);
    for (period, jitter) in starts {
        let mut release = (jitter.div_ceil(period) * period) - jitter;
        while release < busy {
            let own_jobs = release / own.period.0 + 1 + overtaking;
            let in_turn = equal
                .iter()
                .map(|task| ((release.saturating_add(task.jitter.0)) / task.period.0 + 1).saturating_mul(task.work()));
            let own_work = own_jobs.saturating_mul(own.work()).saturating_add(blocked);
            let first = in_turn.fold(own_work, u64::saturating_add);
            // Jobs of higher priority that are released once the last region has begun come too late.
            let kept = own.last_region.0 - 1;
            let mut end = first;
            loop {
                budget.spend(steps)?;
                let work = higher.iter().map(|task| released_before(task, end - kept).saturating_mul(task.work()));
                let next = work.fold(first, u64::saturating_add);
                if next == end {
                    break;
                }
                end = next;
            }
            longest = longest.max(end.saturating_sub(release).saturating_add(own.jitter.0));
            if longest > limit {
                return Some(Some(longest));
            }
            release = release.saturating_add(period);
        }
    }
    Some(Some(longest))
}
