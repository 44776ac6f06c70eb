//! Moore and Hodgson's rule with any order of dropping: jobs are added in deadline order; when one would be late in the
//! list schedule of all accepted jobs, the worst accepted job is dropped.
//!
//! Leaving a job out of a list schedule delays no other job. So only the job added last can ever be late, and after a
//! drop the schedule is recomputed from the dropped job and not from the beginning. On one core the schedule is a sum,
//! and planning takes O(n log n) steps. On a few cores, adding a job takes no branch: the number of cores is rounded up
//! to a constant, and the cores that do not exist are never free.

use std::collections::BinaryHeap;
use std::ops::RangeInclusive;

use temponet_task::Time;

use crate::shared::planned_jobs::{PlannedJob, add, add_fixed};

/// The list schedule of the jobs accepted so far, with its state after each of them. The buffers are reused between
/// decisions.
#[derive(Default)]
pub(crate) struct ListSchedule {
    /// Places of the accepted jobs.
    accepted: Vec<usize>,
    /// Dates at which the cores become free: before any job, after the first accepted job, after the second, and so on.
    free_at: Vec<Time>,
    /// Keys of the accepted jobs, with their places below them; the greatest is dropped. A single number is the fastest
    /// to compare.
    worst: BinaryHeap<u128>,
}

impl ListSchedule {
    /// Reserves memory for this many jobs and cores.
    pub fn reserve(&mut self, jobs: usize, cores: usize) {
        self.accepted.reserve(jobs);
        self.worst.reserve(jobs);
        self.free_at.reserve((jobs + 1) * cores.next_power_of_two());
    }

    /// Accepts jobs, which must be in deadline order. Jobs with the greatest keys are dropped first; among equal keys
    /// the last job.
    pub fn choose(&mut self, jobs: &mut [PlannedJob], now: Time, cores: usize, key: impl Fn(&PlannedJob) -> u64) {
        self.worst.clear();
        match cores {
            1 => self.choose_on_one_core(jobs, now, key),
            2 => self.choose_on_several::<2>(jobs, now, cores, key),
            3..=4 => self.choose_on_several::<4>(jobs, now, cores, key),
            5..=8 => self.choose_on_several::<8>(jobs, now, cores, key),
            9..=16 => self.choose_on_several::<16>(jobs, now, cores, key),
            _ => self.choose_on_several::<0>(jobs, now, cores, key),
        }
    }

    /// Plans on several cores: at most `C`, or any number if `C` is 0.
    fn choose_on_several<const C: usize>(
        &mut self,
        jobs: &mut [PlannedJob],
        now: Time,
        cores: usize,
        key: impl Fn(&PlannedJob) -> u64,
    ) {
        let stride = if C == 0 { cores } else { C };
        self.accepted.clear();
        self.free_at.clear();
        self.free_at.resize(cores, now);
        self.free_at.resize(stride, Time::NEVER);
        // Jobs before this place are in `worst`. Jobs are added to it only when something has to be dropped.
        let mut unlisted = 0;
        for last in 0..jobs.len() {
            self.accepted.push(last);
            while self.completion::<C>(jobs, stride) > jobs[last].deadline {
                self.list(jobs, unlisted..=last, &key);
                unlisted = last + 1;
                let dropped = self.worst.pop().map_or(last, place_of);
                let at = self.accepted.partition_point(|place| *place < dropped);
                self.accepted.remove(at);
                self.free_at.truncate((at + 1) * stride);
                if dropped == last {
                    break;
                }
            }
        }
        self.accepted.iter().for_each(|place| jobs[*place].accepted = true);
    }

    fn choose_on_one_core(&mut self, jobs: &mut [PlannedJob], now: Time, key: impl Fn(&PlannedJob) -> u64) {
        let (mut done, mut unlisted) = (now, 0);
        for last in 0..jobs.len() {
            jobs[last].accepted = true;
            done += jobs[last].remaining;
            while done > jobs[last].deadline {
                self.list(jobs, unlisted..=last, &key);
                unlisted = last + 1;
                let Some(dropped) = self.worst.pop().map(place_of) else { break };
                jobs[dropped].accepted = false;
                done = done - jobs[dropped].remaining;
            }
        }
    }

    /// Adds jobs to `worst`.
    fn list(&mut self, jobs: &[PlannedJob], places: RangeInclusive<usize>, key: impl Fn(&PlannedJob) -> u64) {
        places.for_each(|place| self.worst.push(u128::from(key(&jobs[place])) << 64 | place as u128));
    }

    /// Adds the accepted jobs that are not in the schedule yet. Returns the completion of the last one. The schedule
    /// has `stride` dates per job.
    fn completion<const C: usize>(&mut self, jobs: &[PlannedJob], stride: usize) -> Time {
        let mut completion = Time::ZERO;
        let first = self.free_at.len() / stride - 1;
        if C == 0 {
            for at in first..self.accepted.len() {
                self.free_at.extend_from_within(at * stride..);
                completion = add(&mut self.free_at[(at + 1) * stride..], jobs[self.accepted[at]].remaining);
            }
            return completion;
        }
        let mut free_at = [Time::NEVER; C];
        free_at.copy_from_slice(&self.free_at[first * C..]);
        for place in &self.accepted[first..] {
            completion = add_fixed(&mut free_at, jobs[*place].remaining);
            self.free_at.extend_from_slice(&free_at);
        }
        completion
    }
}

/// Returns the place that an entry of `worst` is about.
fn place_of(entry: u128) -> usize {
    entry as u64 as usize
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;
    use temponet_task::{JobId, TaskId};

    use super::*;

    /// The rule as stated: the whole list schedule is computed again after each drop.
    fn plain(jobs: &mut [PlannedJob], now: Time, cores: usize, key: impl Fn(&PlannedJob) -> u64) {
        let is_late = |jobs: &[PlannedJob]| {
            let mut free_at = vec![now; cores];
            jobs.iter().filter(|job| job.accepted).any(|job| {
                let first = (0..cores).min_by_key(|core| free_at[*core]).unwrap();
                free_at[first] += job.remaining;
                free_at[first] > job.deadline
            })
        };
        for last in 0..jobs.len() {
            jobs[last].accepted = true;
            while is_late(&jobs[..=last]) {
                let accepted = (0..=last).filter(|place| jobs[*place].accepted);
                let worst = accepted.max_by_key(|place| (key(&jobs[*place]), *place)).unwrap();
                jobs[worst].accepted = false;
            }
        }
    }

    #[test]
    fn taking_the_plan_up_from_the_dropped_job_chooses_what_planning_again_chooses() {
        let mut rng = Pcg64::seed_from_u64(1);
        let (mut schedule, mut dropped) = (ListSchedule::default(), 0);
        for case in 0..3_000 {
            let cores = rng.random_range(1..=19);
            let now = Time(rng.random_range(0..100));
            // Few distinct lengths make many ties.
            let longest = if case % 2 == 0 { 6 } else { 1_000 };
            let window = longest * rng.random_range(1..=12);
            let mut jobs: Vec<PlannedJob> = (0..rng.random_range(0..70))
                .map(|index| {
                    let remaining = Time(rng.random_range(1..=longest));
                    let deadline = now + remaining + Time(rng.random_range(0..window));
                    let (id, tie) = (JobId(index), (Time::ZERO, TaskId(index), 0));
                    PlannedJob {
                        id,
                        deadline,
                        tie,
                        remaining,
                        value: f64::from(rng.random_range(1..=9)),
                        density: 1.0,
                        criticality: 0,
                        accepted: false,
                    }
                })
                .collect();
            jobs.sort_by_key(|job| (job.deadline, job.tie));
            let mut expected = jobs.clone();
            // Drops the longest job first, as Moore and Hodgson do, or the least valuable one, as Locke does.
            let by_value = case % 3 == 0;
            let key = |job: &PlannedJob| if by_value { 100 - job.value as u64 } else { job.remaining.0 };
            plain(&mut expected, now, cores, key);
            schedule.choose(&mut jobs, now, cores, key);
            let accepted = |jobs: &[PlannedJob]| jobs.iter().map(|job| job.accepted).collect::<Vec<bool>>();
            assert_eq!(accepted(&jobs), accepted(&expected), "case {case}");
            dropped += jobs.iter().filter(|job| !job.accepted).count();
        }
        assert!(dropped > 10_000, "{dropped}: overload is what this is about");
    }
}
