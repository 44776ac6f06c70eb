//! Estimates of single jobs: what someone says beforehand about the execution time of one job, such as a predictor that
//! has seen the job's input.
//!
//! An estimate is two quantiles of the execution time, and stands for the log-normal distribution that has them. It is
//! a statement, not a bound: a job may take more than either quantile. Guarantees and tests for what is impossible
//! therefore never use it; they use the wcet and the bcet. [`Job::expected_remaining`] and [`Job::likely_remaining`]
//! say what a scheduler may plan with. Both are the remaining wcet where there is no estimate, and where the estimate
//! says no more than the wcet does.

#[cfg(not(feature = "std"))]
use crate::float::Float as _;
use core::num::NonZeroU64;

use crate::{Job, LogNormal, SystemView, Time};

/// Number of standard deviations from the median to the ninth decile of a normal distribution.
const NINTH_DECILE: f64 = 1.281_551_565_544_600_4;

/// Estimate of a job's execution time.
///
/// ```
/// use temponet_task::{Estimate, Time};
///
/// let estimate = Estimate::new(Time::from_ms(4), Time::from_ms(6)).unwrap();
/// assert_eq!((estimate.median(), estimate.high()), (Time::from_ms(4), Time::from_ms(6)));
/// assert_eq!(Estimate::new(Time::from_ms(4), Time::from_ms(3)), None);
/// assert_eq!(estimate.within(Time(1), Time::from_ms(5)).high(), Time::from_ms(5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    // Never zero, so that a job without an estimate needs no further byte to say so.
    median: NonZeroU64,
    high: NonZeroU64,
}

impl Estimate {
    /// Creates an estimate: one job in two is expected to take longer than `median`, and one in ten longer than `high`.
    /// `None` if the median is zero or above `high`.
    pub fn new(median: Time, high: Time) -> Option<Estimate> {
        let estimate = Estimate { median: NonZeroU64::new(median.0)?, high: NonZeroU64::new(high.0)? };
        (median <= high).then_some(estimate)
    }

    /// Creates the estimate of a job that takes `execution`, by a predictor whose errors have the standard deviation
    /// `error` in the logarithm and are `deviations` of it for this job. It stays from `least` to `most`. An error of
    /// zero is the execution time itself.
    pub fn of(execution: Time, error: f64, deviations: f64, [least, most]: [Time; 2]) -> Estimate {
        let median = execution.0 as f64 * (error * deviations).exp();
        let time = |value: f64| NonZeroU64::new(value.round() as u64).unwrap_or(NonZeroU64::MIN);
        let (median, high) = (time(median), time(median * (NINTH_DECILE * error).exp()));
        Estimate { median, high: high.max(median) }.within(least, most)
    }

    /// Returns the time that one job in two is expected to exceed.
    #[inline]
    pub fn median(self) -> Time {
        Time(self.median.get())
    }

    /// Returns the ninth decile: the time that one job in ten is expected to exceed.
    #[inline]
    pub fn high(self) -> Time {
        Time(self.high.get())
    }

    /// Returns how vague the estimate of a job with this best and worst case is: the share of the possible times that
    /// lies between the quantiles. It is 0 if the time is said to be known, and 1 if the estimate excludes nothing.
    #[inline]
    pub fn vagueness(self, bcet: Time, wcet: Time) -> f64 {
        let (spread, range) = (self.high.get() - self.median.get(), wcet.saturating_sub(bcet).0);
        if spread == 0 { 0.0 } else { (spread as f64 / range.max(1) as f64).min(1.0) }
    }

    /// Returns the execution time to expect of a job with this best and worst case: the median, moved towards the wcet
    /// by the [vagueness](Estimate::vagueness). So a poor estimate moves a job little from where its wcet puts it. The
    /// result is never beyond the ninth decile.
    #[inline]
    pub fn expected(self, bcet: Time, wcet: Time) -> Time {
        let (median, high) = (self.median(), self.high());
        let moved = wcet.saturating_sub(median).0 as f64 * self.vagueness(bcet, wcet);
        Time(median.0 + (moved as u64).min((high - median).0))
    }

    /// Returns the estimate with both quantiles moved into the range from `least` to `most`.
    pub fn within(self, least: Time, most: Time) -> Estimate {
        let least = NonZeroU64::new(least.0).unwrap_or(NonZeroU64::MIN);
        let most = NonZeroU64::new(most.0).unwrap_or(NonZeroU64::MIN).max(least);
        Estimate { median: self.median.clamp(least, most), high: self.high.clamp(least, most) }
    }

    /// Returns the standard deviation of the logarithm of the execution time. Zero means that the time is said to be
    /// known.
    pub fn error(self) -> f64 {
        (self.high.get() as f64 / self.median.get() as f64).ln() / NINTH_DECILE
    }

    /// Returns the distribution that the estimate stands for, from `least` to `most`.
    pub fn distribution(self, least: Time, most: Time) -> LogNormal {
        LogNormal::new(self.median.get() as f64, self.error(), [least, most].map(|time| time.0 as f64))
    }
}

impl Job {
    /// Returns the remaining work to expect, overhead included: by [`Estimate::expected`], or by the ninth decile of
    /// the estimate once the job has reached that. It is [`Job::remaining`] once the job has reached both, and without
    /// an estimate.
    #[inline]
    pub fn expected_remaining(&self) -> Time {
        match self.estimate {
            None => self.remaining(),
            Some(estimate) => match estimate.expected(self.bcet, self.wcet) {
                expected if self.executed < expected => self.remaining_of(expected),
                _ => self.likely_remaining(),
            },
        }
    }

    /// Returns the remaining work that is likely to be enough, overhead included: by the ninth decile of the job's
    /// estimate. It is [`Job::remaining`] once the job has reached that, and without an estimate.
    #[inline]
    pub fn likely_remaining(&self) -> Time {
        match self.estimate {
            Some(estimate) if self.executed < estimate.high() => self.remaining_of(estimate.high()),
            _ => self.remaining(),
        }
    }

    /// Returns the time that [`Job::expected_remaining`] takes on the fastest core that the job may use.
    #[inline]
    pub fn expected_time_to_finish(&self) -> Time {
        self.fastest.time_for(self.expected_remaining())
    }

    /// Returns the slack by the work to expect, in nanoseconds; see [`Job::slack`] and [`Job::expected_remaining`].
    #[inline]
    pub fn expected_slack(&self, now: Time) -> i64 {
        self.deadline.signed_sub(now + self.expected_time_to_finish())
    }

    /// Remaining work of a job that takes `work`, which it has not reached.
    fn remaining_of(&self, work: Time) -> Time {
        Time(work.0.saturating_sub(self.executed.0).max(1) + self.overhead.0)
    }
}

impl SystemView<'_> {
    /// Returns the time to plan with for a job on the fastest core that it may use: [`Job::likely_remaining`], and
    /// [`Job::remaining`] if the job is critical or its task is to be guaranteed.
    #[inline]
    pub fn planned_time_to_finish(&self, job: &Job) -> Time {
        job.fastest.time_for(self.planned_remaining(job))
    }

    /// Returns the remaining work to plan with for a job; see [`SystemView::planned_time_to_finish`].
    #[inline]
    pub fn planned_remaining(&self, job: &Job) -> Time {
        if job.estimate.is_none() {
            return job.remaining();
        }
        let is_guaranteed = self.system.tasks().get(job.task.index()).is_some_and(|task| task.guarantee);
        if job.criticality > 0 || is_guaranteed { job.remaining() } else { job.likely_remaining() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Task, TaskId, TaskSet};

    fn job(estimate: Option<Estimate>) -> Job {
        let task = Task::periodic("t", Time(1_000), Time(100)).with_bcet(Time(10));
        Job::first(TaskId(0), &task).with_estimate(estimate)
    }

    #[test]
    fn an_estimate_takes_no_byte_to_be_absent() {
        assert_eq!(size_of::<Option<Estimate>>(), 16);
    }

    #[test]
    fn a_job_is_expected_by_its_estimate_then_ninth_decile_then_wcet() {
        // A quarter of the 80 possible nanoseconds are between the quantiles.
        let mut job = job(Estimate::new(Time(40), Time(60))).with_bcet(Time(20));
        let mut at = |executed: u64, overhead: u64| {
            (job.executed, job.overhead) = (Time(executed), Time(overhead));
            [job.expected_remaining().0, job.likely_remaining().0, job.remaining().0]
        };
        assert_eq!(at(0, 0), [55, 60, 100]);
        assert_eq!(at(39, 5), [21, 26, 66]);
        assert_eq!(at(54, 0), [1, 6, 46]);
        assert_eq!(at(55, 0), [5, 5, 45]);
        assert_eq!(at(60, 0), [40, 40, 40]);
        assert_eq!(at(120, 0), [1, 1, 1]);
    }

    #[test]
    fn an_estimate_that_says_the_wcet_changes_nothing() {
        let (none, whole) = (job(None), job(Estimate::new(Time(100), Time(100))));
        for executed in [0, 1, 50, 99, 100, 130] {
            let [none, whole] = [none, whole].map(|job| job.with_executed(Time(executed)));
            assert_eq!(none.expected_remaining(), whole.expected_remaining());
            assert_eq!(none.likely_remaining(), whole.likely_remaining());
        }
    }

    #[test]
    fn the_worse_an_estimate_the_less_it_moves_a_job_from_its_wcet() {
        let bounds @ [bcet, wcet] = [Time(100), Time(10_000)];
        let mut last = Time::ZERO;
        for error in [0.0, 0.1, 0.3, 0.7, 1.0, 1.6] {
            let estimate = Estimate::of(Time(1_000), error, 0.0, bounds);
            let expected = estimate.expected(bcet, wcet);
            assert!(
                (estimate.median()..=estimate.high()).contains(&expected) && expected > last,
                "{error}: {expected}"
            );
            last = expected;
        }
        assert_eq!(Estimate::of(Time(1_000), 0.0, 1.0, bounds).expected(bcet, wcet), Time(1_000));
        assert_eq!(Estimate::new(bcet, wcet).unwrap().expected(bcet, wcet), wcet, "it excludes nothing");
    }

    #[test]
    fn errors_spread_the_quantiles_and_bounds_hold_them() {
        let bounds = [Time(10), Time(100_000)];
        let exact = Estimate::of(Time(777), 0.0, 2.5, bounds);
        assert_eq!((exact.median(), exact.high(), exact.error()), (Time(777), Time(777), 0.0));
        let spread = Estimate::of(Time(1_000), 0.5, 1.0, bounds);
        assert_eq!(spread.median(), Time((1_000.0 * 0.5f64.exp()).round() as u64));
        assert!((spread.error() - 0.5).abs() < 1e-3);
        for deviations in [-500.0, 500.0] {
            let far = Estimate::of(Time(1_000), 3.0, deviations, bounds);
            assert!((bounds[0]..=bounds[1]).contains(&far.median()) && far.high() <= bounds[1]);
        }
    }

    #[test]
    fn critical_and_guaranteed_jobs_are_planned_by_their_wcet() {
        let mut set = TaskSet::new("s", vec![Task::periodic("t", Time(1_000), Time(100))], 1);
        let plain = job(Estimate::new(Time(40), Time(60)));
        let planned = |set: &TaskSet, job: &Job| {
            let system = set.system.clone();
            let view = SystemView::new(Time::ZERO, &system, &[], &[], &[None]);
            view.planned_time_to_finish(job)
        };
        assert_eq!(planned(&set, &plain), Time(60));
        assert_eq!(planned(&set, &plain.with_criticality(1)), Time(100));
        set.system.tasks_mut()[0].guarantee = true;
        assert_eq!(planned(&set, &plain), Time(100));
    }
}
