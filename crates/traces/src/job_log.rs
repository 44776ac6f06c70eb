//! What is kept of the jobs of a task: the first ones in full, of the others only what does not grow.

use std::collections::BTreeSet;

use crate::event::NO_CPU;

/// Jobs that are kept in full, for the period.
const MOST_KEPT: usize = 1 << 14;
/// Execution times that are kept of all jobs.
const MOST_SAMPLES: usize = 1 << 12;

/// A job that counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub release: u64,
    pub start: u64,
    pub end: u64,
    pub executed: u64,
    pub preemptions: u32,
    pub first_cpu: u32,
    pub last_cpu: u32,
}

/// Jobs of a task.
pub(crate) struct JobLog {
    /// Jobs that count.
    pub count: u64,
    /// Jobs that do not, because events of their time were lost.
    pub dropped: u64,
    pub first_release: u64,
    pub last_release: u64,
    kept: Vec<(u64, u64, u64)>,
    samples: Vec<u64>,
    seen: u64,
    random: u64,
    pub least: u64,
    pub most: u64,
    pub total: u64,
    pub longest_response: u64,
    pub cpus: BTreeSet<u32>,
    pub unwoken: u64,
    pub waited: u64,
}

/// Execution times of the jobs of a task.
pub(crate) struct Times {
    /// In order.
    pub samples: Vec<u64>,
    pub most: u64,
    /// Jobs that went on past the next release of their task, so that their time is that of several jobs.
    pub merged: u64,
}

impl JobLog {
    pub fn new() -> JobLog {
        JobLog {
            count: 0,
            dropped: 0,
            first_release: 0,
            last_release: 0,
            kept: Vec::new(),
            samples: Vec::new(),
            seen: 0,
            random: 0x9e37_79b9_7f4a_7c15,
            least: u64::MAX,
            most: 0,
            total: 0,
            longest_response: 0,
            cpus: BTreeSet::new(),
            unwoken: 0,
            waited: 0,
        }
    }

    /// Adds a job.
    pub fn add(&mut self, job: &Done) {
        if self.count == 0 {
            self.first_release = job.release;
        }
        self.count += 1;
        self.last_release = self.last_release.max(job.release);
        self.least = self.least.min(job.executed);
        self.most = self.most.max(job.executed);
        self.total = self.total.saturating_add(job.executed);
        let response = job.end.saturating_sub(job.release);
        self.longest_response = self.longest_response.max(response);
        for cpu in [job.first_cpu, job.last_cpu] {
            if cpu != NO_CPU && self.cpus.len() < 4096 {
                self.cpus.insert(cpu);
            }
        }
        if self.kept.len() < MOST_KEPT {
            self.kept.push((job.release, job.executed, response));
        }
        self.sample(job.executed);
    }

    /// Keeps a time with the probability that every time so far has (reservoir sampling).
    fn sample(&mut self, time: u64) {
        self.seen += 1;
        if self.samples.len() < MOST_SAMPLES {
            self.samples.push(time);
            return;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let at = self.random % self.seen;
        if let Some(place) = self.samples.get_mut(at as usize) {
            *place = time;
        }
    }

    /// Releases and ends of the first jobs, in the order of the releases.
    pub fn spans(&self) -> (Vec<u64>, Vec<u64>) {
        let mut spans: Vec<(u64, u64)> =
            self.kept.iter().map(|(release, _, response)| (*release, release.saturating_add(*response))).collect();
        spans.sort_unstable();
        spans.into_iter().unzip()
    }

    /// Whether only the first jobs were kept.
    pub fn is_partial(&self) -> bool {
        self.count > self.kept.len() as u64
    }

    /// Number of the jobs that were kept.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Execution times, where `period` is that of a periodic task. A thread that is still busy at its next release does not sleep, so
    /// that its job may go on into the next one: the time is that of both. A time that is that of several usual jobs is left out,
    /// but the largest one is at least their share. What a late job took alone counts.
    pub fn times(&self, period: Option<u64>) -> Times {
        let is_late = |response: u64| period.is_some_and(|period| response >= period);
        let (late, in_time): (Vec<_>, Vec<_>) =
            self.kept.iter().copied().partition(|(.., response)| is_late(*response));
        if late.is_empty() {
            let mut samples = self.samples.clone();
            samples.sort_unstable();
            return Times { samples, most: self.most, merged: 0 };
        }
        let mut single: Vec<u64> = in_time.iter().map(|(_, executed, _)| *executed).collect();
        single.sort_unstable();
        let usual = single.get(single.len() / 2).copied();
        // A tenth less than a whole number of usual jobs is as many.
        let jobs = |(_, executed, response): &(u64, u64, u64)| {
            let most = 1 + response / period.unwrap_or(u64::MAX).max(1);
            let by_time = |usual: u64| (executed.saturating_add(usual / 10) / usual.max(1)).max(1);
            usual.map_or(most, |usual| by_time(usual).min(most))
        };
        let (alone, merged): (Vec<_>, Vec<_>) = late.into_iter().partition(|job: &(u64, u64, u64)| jobs(job) == 1);
        let shares: Vec<u64> = merged.iter().map(|job| job.1.div_ceil(jobs(job))).collect();
        single.extend(alone.iter().map(|(_, executed, _)| *executed));
        if single.is_empty() {
            single.clone_from(&shares);
        }
        single.sort_unstable();
        let most = single.iter().chain(&shares).copied().max().unwrap_or(0);
        Times { most, samples: single, merged: shares.len() as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(release: u64, end: u64, executed: u64) -> Done {
        Done { release, start: release, end, executed, preemptions: 0, first_cpu: 0, last_cpu: 1 }
    }

    #[test]
    fn memory_does_not_grow_with_the_number_of_jobs() {
        let mut log = JobLog::new();
        for k in 0..100_000 {
            log.add(&job(10 * k, 10 * k + 5, k % 1000));
        }
        assert_eq!((log.count, log.kept.len(), log.samples.len(), log.most), (100_000, MOST_KEPT, MOST_SAMPLES, 999));
        let times = log.times(Some(10));
        let median = times.samples[times.samples.len() / 2];
        assert!((450..550).contains(&median), "{median}");
    }

    #[test]
    fn a_job_that_goes_on_into_the_next_one_is_not_one_long_job() {
        let mut log = JobLog::new();
        (0..20).for_each(|k| log.add(&job(100 * k, 100 * k + 30, 20)));
        log.add(&job(2000, 2130, 42));
        let times = log.times(Some(100));
        assert_eq!((times.merged, times.most, times.samples.len()), (1, 21, 20));
        assert_eq!(log.times(None).most, 42);
        // A late job that took little more than usual is one job, and so is each of two that were.
        log.add(&job(3000, 3130, 29));
        log.add(&job(4000, 4190, 20));
        let times = log.times(Some(100));
        assert_eq!((times.merged, times.most, times.samples.len()), (1, 29, 22));
    }
}
