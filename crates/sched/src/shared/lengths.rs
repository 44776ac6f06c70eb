//! How long jobs take, as far as a scheduler can know: what the estimate of a job says; for a job of a list without
//! one, what completed jobs of its task took; else the bounds of its task.
//!
//! Jobs that did not complete are counted up to where they came ([`ProductLimit`]): leaving them out would forget the longest ones.

use temponet_task::{Arrival, Event, Job, LogNormal, ProductLimit, System, SystemView, Time};

/// Lengths of jobs at one quantile.
#[derive(Clone, Debug)]
pub(crate) struct Lengths {
    /// Share of jobs that take no longer, 0 to 1.
    share: f64,
    /// The same as a number of standard deviations of a normal distribution.
    deviations: f64,
    /// What was seen of the jobs of each task.
    seen: Vec<Seen>,
}

impl Lengths {
    /// Lengths that this share of the jobs does not exceed.
    pub fn at(share: f64) -> Lengths {
        Lengths { share, deviations: LogNormal::deviations_at(share), seen: Vec::new() }
    }

    /// Forgets what was seen, and takes the tasks of a system.
    pub fn start(&mut self, system: &System) {
        let is_listed = |arrival: &Arrival| matches!(arrival, Arrival::Listed(_));
        let seen = system.tasks().iter().map(|task| Seen::new(is_listed(&task.arrival)));
        self.seen = seen.collect();
    }

    /// Learns from the jobs that have left.
    pub fn follow(&mut self, view: &SystemView<'_>) {
        for event in view.events {
            let (id, is_complete) = match *event {
                Event::Completed(id) => (id, true),
                Event::Aborted(id) => (id, false),
                _ => continue,
            };
            let job = view.job(id);
            if let Some(seen) = self.seen.get_mut(job.task.index()).filter(|seen| seen.is_listed) {
                seen.take(job.executed, is_complete, self.share);
            }
        }
    }

    /// Number of standard deviations of a normal distribution that stands for the quantile.
    pub fn deviations(&self) -> f64 {
        self.deviations
    }

    /// Returns the length of a job, on a core of full speed; `None` if it is one of a list of which nothing is known yet.
    pub fn length(&self, job: &Job) -> Option<Time> {
        Some(match (job.estimate, self.seen.get(job.task.index())) {
            (Some(estimate), _) => Time(estimate.distribution(job.bcet, job.wcet).at(self.deviations) as u64),
            (None, Some(seen)) if seen.is_listed => match seen.length {
                Length::Unknown => return None,
                Length::Known(length) => length.clamp(job.bcet, job.wcet),
                Length::Beyond => job.wcet,
            },
            _ => Time(job.bcet.0 + (self.share * job.wcet.saturating_sub(job.bcet).0 as f64) as u64),
        })
    }

    /// Returns the time that a job still takes, on the fastest core that it may use. Beyond the quantile it is the
    /// remaining wcet.
    pub fn time_to_finish(&self, job: &Job) -> Time {
        let length = self.length(job).unwrap_or(job.bcet);
        let remaining = match job.executed < length {
            true => Time(length.0 - job.executed.0 + job.overhead.0),
            false => job.remaining(),
        };
        job.fastest.time_for(remaining)
    }
}

/// Number of classes of lengths to a doubling.
const PER_DOUBLING: f64 = 8.0;

/// What was seen of the jobs of one task.
#[derive(Clone, Debug)]
struct Seen {
    /// Whether the jobs come from a list, so that nothing else is known of them.
    is_listed: bool,
    /// Jobs that completed and jobs that were cut off, by the class of what they executed.
    classes: Vec<(u32, u32)>,
    /// Number of jobs in all classes.
    jobs: u32,
    length: Length,
}

/// Length at the quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Length {
    /// No job has completed.
    Unknown,
    Known(Time),
    /// Longer than all that completed, because many were cut off.
    Beyond,
}

impl Seen {
    fn new(is_listed: bool) -> Seen {
        Seen { is_listed, classes: Vec::new(), jobs: 0, length: Length::Unknown }
    }

    fn take(&mut self, executed: Time, is_complete: bool, share: f64) {
        let class = (PER_DOUBLING * (executed.0.max(1) as f64).log2()) as usize;
        if self.classes.len() <= class {
            self.classes.resize(class + 1, (0, 0));
        }
        let (completed, cut_off) = &mut self.classes[class];
        *(if is_complete { completed } else { cut_off }) += 1;
        self.jobs += 1;
        self.length = self.length_at(share);
    }

    fn length_at(&self, share: f64) -> Length {
        if self.classes.iter().all(|(completed, _)| *completed == 0) {
            return Length::Unknown;
        }
        let mut limit = ProductLimit::of(f64::from(self.jobs));
        for (class, (completed, cut_off)) in self.classes.iter().enumerate().filter(|(_, jobs)| **jobs != (0, 0)) {
            if limit.pass(f64::from(*completed), f64::from(*cut_off)) <= 1.0 - share {
                return Length::Known(Time(((class + 1) as f64 / PER_DOUBLING).exp2() as u64));
            }
        }
        Length::Beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(jobs: &[(u64, bool)], share: f64) -> Length {
        let mut seen = Seen::new(true);
        jobs.iter().for_each(|(executed, is_complete)| seen.take(Time(*executed), *is_complete, share));
        seen.length
    }

    #[test]
    fn the_quantile_is_that_of_completed_jobs_within_a_class() {
        let jobs: Vec<(u64, bool)> = (1..=1_000).map(|length| (1_000 * length, true)).collect();
        for share in [0.1, 0.5, 0.9] {
            let Length::Known(length) = seen(&jobs, share) else { panic!("{share}") };
            let ratio = length.0 as f64 / (1e6 * share);
            assert!((1.0..1.0 / 0.9).contains(&ratio), "{share}: {ratio}");
        }
    }

    #[test]
    fn jobs_that_were_cut_off_make_the_others_longer() {
        let mut jobs: Vec<(u64, bool)> = (0..100).map(|_| (1_000, true)).collect();
        jobs.extend((0..100).map(|_| (16_000, true)));
        let Length::Known(whole) = seen(&jobs, 0.6) else { panic!() };
        assert!(whole > Time(15_000));
        // Half of the long ones do not complete, at a time when all short ones have: they are still at least as long.
        jobs.truncate(100);
        jobs.extend((0..100).map(|place| (if place % 2 == 0 { 16_000 } else { 8_000 }, place % 2 == 0)));
        assert_eq!(seen(&jobs, 0.6), Length::Known(whole));
        // Nobody knows where the ninth decile is if all long ones are cut off.
        jobs.truncate(100);
        jobs.extend((0..100).map(|_| (8_000, false)));
        assert_eq!(seen(&jobs, 0.9), Length::Beyond);
        assert_eq!(seen(&[(5, false)], 0.5), Length::Unknown);
    }
}
