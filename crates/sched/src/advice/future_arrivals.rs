//! Future jobs of a task, as far as an online scheduler can foresee them from the task and the ready jobs.
//!
//! - Periodic jobs and bursts are known exactly, except for jitter, which is not considered.
//! - A sporadic task is expected to release its next job after its mean gap. If its last job is still ready, the time
//!   since that release counts: a gap that has already lasted for a while ends later. Otherwise the last release is
//!   unknown, and half a mean gap is expected to be left.
//! - The jobs of a list are unknown until they are released.

use temponet_task::{Arrival, Gap, Task, Time};

/// Maximum number of future arrivals per task.
pub(crate) const AHEAD: u64 = 3;

/// Maximum number of future jobs per task that releases bursts. A plan with this many equal jobs shows the peak, and
/// more would only cost time.
const MOST_IN_BURSTS: u64 = 64;

/// Returns the maximum number of future jobs of a task in a plan.
pub fn most_coming(task: &Task) -> usize {
    let most = match task.arrival {
        Arrival::Periodic { .. } | Arrival::Sporadic { .. } => AHEAD,
        Arrival::Burst { jobs, .. } => (AHEAD * u64::from(jobs)).min(MOST_IN_BURSTS),
        _ => 0,
    };
    most as usize
}

/// Future arrivals of a task: `jobs` jobs at `first`, and again after every `gap`, before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FutureArrivals {
    /// First one; for a sporadic task the one to expect.
    pub first: Time,
    /// Number of arrivals before `first`, as far as it is known.
    pub number: u64,
    /// Time from one to the next; for a sporadic task its mean.
    pub gap: Time,
    /// Jobs at each.
    pub jobs: u64,
    /// No arrival is at this date or after it.
    pub end: Time,
}

impl FutureArrivals {
    /// Returns the arrivals of a task after `now`. `last` is the release of its latest job that is still ready; it is
    /// asked only about sporadic tasks.
    pub fn of(task: &Task, now: Time, last: impl FnOnce() -> Option<Time>) -> Option<FutureArrivals> {
        ArrivalRule::of(task).map(|rule| rule.next(now, last))
    }
}

/// What the future arrivals of a task follow from, without the rest of the task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrivalRule {
    offset: Time,
    pattern: Pattern,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Pattern {
    Grid { gap: Time, jobs: u32, end: Time },
    Sporadic { minimum: Time, gap: Gap },
}

impl ArrivalRule {
    /// Returns the rule of a task; `None` if its arrivals cannot be foreseen.
    pub fn of(task: &Task) -> Option<ArrivalRule> {
        let pattern = match task.arrival {
            Arrival::Periodic { period } => Pattern::Grid { gap: period, jobs: 1, end: Time::NEVER },
            Arrival::Burst { jobs, every, until } => Pattern::Grid { gap: every, jobs, end: until },
            Arrival::Sporadic { minimum, gap } => Pattern::Sporadic { minimum, gap },
            _ => return None,
        };
        Some(ArrivalRule { offset: task.offset, pattern })
    }

    /// Returns the arrivals after `now`; see [`FutureArrivals::of`].
    pub fn next(&self, now: Time, last: impl FnOnce() -> Option<Time>) -> FutureArrivals {
        let offset = self.offset;
        match self.pattern {
            Pattern::Grid { gap, jobs, end } => {
                let number = now.0.checked_sub(offset.0).map_or(0, |since| since / gap.0 + 1);
                let first = Time(offset.0.saturating_add(number.saturating_mul(gap.0)));
                FutureArrivals { first, number, gap, jobs: u64::from(jobs), end }
            }
            Pattern::Sporadic { minimum, gap } => {
                let mean = gap.mean(minimum);
                let first = match now < offset {
                    true => offset,
                    false => now + time_left(minimum, gap, last().map(|last| now.saturating_sub(last))),
                };
                FutureArrivals { first, number: 0, gap: mean, jobs: 1, end: Time::NEVER }
            }
        }
    }
}

/// Returns the expected time to the next arrival of a sporadic task, given the time since its last one; at least one
/// nanosecond.
fn time_left(minimum: Time, gap: Gap, since: Option<Time>) -> Time {
    let mean = gap.mean(minimum);
    let left = match (since, gap) {
        // A later job has come and gone, or none was seen.
        (None, _) => Time::ZERO,
        (Some(since), _) if since <= minimum => mean.saturating_sub(since),
        (Some(since), Gap::Uniform { max }) => Time(max.saturating_sub(since).0 / 2),
        (Some(_), Gap::Exponential { mean }) => mean.saturating_sub(minimum),
    };
    if left == Time::ZERO { Time((mean.0 / 2).max(1)) } else { left }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn releases(task: &Task, now: u64, last: Option<u64>) -> Vec<(u64, u64)> {
        let Some(coming) = FutureArrivals::of(task, Time(now), || last.map(Time)) else { return Vec::new() };
        let times = (0..3).map(|step| coming.first.0 + step * coming.gap.0);
        times.filter(|time| *time < coming.end.0).map(|time| (time, coming.jobs)).collect()
    }

    #[test]
    fn bursts_are_known_until_they_end() {
        let arrival = Arrival::Burst { jobs: 7, every: Time(100), until: Time(450) };
        let task = Task::periodic("t", Time(1), Time(1)).with_arrival(arrival).with_offset(Time(50));
        assert_eq!(releases(&task, 0, None), [(50, 7), (150, 7), (250, 7)]);
        assert_eq!(releases(&task, 250, None), [(350, 7)], "a burst at this moment has been released");
        assert_eq!(releases(&task, 350, None), []);
        assert_eq!(most_coming(&task), 21);
    }

    #[test]
    fn a_sporadic_job_is_expected_after_the_mean_gap() {
        let sporadic = |gap: Gap| {
            Task::periodic("t", Time(1), Time(1))
                .with_arrival(Arrival::Sporadic { minimum: Time(100), gap })
                .with_offset(Time(30))
        };
        let uniform = sporadic(Gap::Uniform { max: Time(300) });
        assert_eq!(releases(&uniform, 0, None), [(30, 1), (230, 1), (430, 1)], "the first arrival is known");
        assert_eq!(releases(&uniform, 1_000, Some(1_000)), [(1_200, 1), (1_400, 1), (1_600, 1)]);
        assert_eq!(releases(&uniform, 1_090, Some(1_000))[0].0, 1_200);
        assert_eq!(releases(&uniform, 1_200, Some(1_000))[0].0, 1_250, "uniform over what is left of the gap");
        assert_eq!(releases(&uniform, 9_000, Some(1_000))[0].0, 9_100, "later jobs have come and gone");
        assert_eq!(releases(&uniform, 9_000, None)[0].0, 9_100);
        let exponential = sporadic(Gap::Exponential { mean: Time(250) });
        assert_eq!(releases(&exponential, 1_050, Some(1_000)), [(1_250, 1), (1_500, 1), (1_750, 1)]);
        assert_eq!(releases(&exponential, 5_000, Some(1_000))[0].0, 5_150, "no memory beyond the minimum");
        assert_eq!(releases(&exponential, 5_000, None)[0].0, 5_125);
    }

    #[test]
    fn listed_jobs_are_not_foreseen() {
        let task = Task::periodic("t", Time(1), Time(1)).with_arrival(Arrival::Listed(std::sync::Arc::new([])));
        assert_eq!((releases(&task, 0, None), most_coming(&task)), (vec![], 0));
    }
}
