//! The jobs of a run in the order of their releases.
//!
//! They depend on the task set and the seed alone. Every scheduler, and the clairvoyant optimum, therefore faces the
//! same jobs with the same execution times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_distr::Exp1;
use rand_pcg::Pcg32;
use temponet_task::{Arrival, Estimate, Gap, Task, TaskId, TaskSet, Time};

use crate::execution::Sampler;

mod estimates;
mod followers;

use estimates::Estimates;
pub(crate) use estimates::drawn;
use followers::Followers;

/// A job at its release, including its true execution time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReleasedJob {
    /// Release time. For a job that follows others, this is its arrival; the schedule decides on its release.
    pub time: Time,
    /// Index of the job's task.
    pub task: TaskId,
    /// Number of the job within its task, from 0.
    pub number: u64,
    /// Absolute deadline.
    pub deadline: Time,
    /// True execution time, which schedulers do not see.
    pub execution: Time,
    /// Worst-case execution time that schedulers see.
    pub wcet: Time,
    /// Best-case execution time that schedulers see.
    pub bcet: Time,
    /// Criticality level; see [`Task::criticality`].
    pub criticality: u8,
    /// Value of meeting the deadline; see [`Task::value`].
    pub value: f64,
    /// Estimate of the execution time that schedulers see, if there is one.
    pub estimate: Option<Estimate>,
}

/// Generator of the releases of a task set, by time and then by task index.
#[derive(Clone)]
pub struct Workload {
    set: Arc<TaskSet>,
    streams: Vec<JobStream>,
    /// Next arrival of each task that has one.
    arrivals: BinaryHeap<Reverse<(Time, TaskId)>>,
    /// Jobs that have arrived but whose release is delayed by jitter.
    delayed: BinaryHeap<Reverse<Delayed>>,
    /// Number of modes that have begun.
    modes_begun: usize,
    /// Whether the set has neither modes, jitter nor precedence, so that every arrival is a release.
    is_plain: bool,
    /// Time of the next release.
    next_time: Time,
    /// Tasks that arrive with others; `None` if every task arrives by itself.
    followers: Option<Box<Followers>>,
    /// Arrivals at this time or later are not drawn ahead to find the next delayed release.
    horizon: Time,
}

/// A job that has arrived and whose release jitter delays. Ordered by release time, task index and job number.
#[derive(Clone, Copy, PartialEq)]
struct Delayed(ReleasedJob);

impl Delayed {
    fn order(&self) -> (Time, TaskId, u64) {
        (self.0.time, self.0.task, self.0.number)
    }
}

impl Eq for Delayed {}

impl Ord for Delayed {
    fn cmp(&self, other: &Delayed) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for Delayed {
    fn partial_cmp(&self, other: &Delayed) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// State of the arrivals of one task: its random numbers and its progress.
#[derive(Clone)]
pub(crate) struct JobStream {
    pub rng: Pcg32,
    sampler: Sampler,
    /// Estimates of the jobs; `None` if they carry none.
    estimates: Option<Estimates>,
    next_number: u64,
    /// Jobs of the current burst that have not arrived yet; 1 for other arrivals.
    left_in_burst: u32,
}

impl JobStream {
    /// Creates the stream of the task with this index, whose next job has this number.
    pub fn new(task: &Task, seed: u64, index: u64, next_number: u64) -> JobStream {
        let (rng, sampler) = (random_stream(seed, index), Sampler::new(task));
        let estimates = Estimates::of(task, seed, index);
        JobStream { rng, sampler, estimates, next_number, left_in_burst: burst_size(task) }
    }

    /// Returns the number of the next job.
    pub fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Gives the next job this number.
    pub fn continue_with(&mut self, next_number: u64) {
        self.next_number = next_number;
    }

    /// Starts the stream anew, with other random numbers. Its next job has this number.
    pub fn restart(&mut self, seed: u64, index: u64, next_number: u64) {
        (self.rng, self.next_number) = (random_stream(seed, index), next_number);
        if let Some(estimates) = &mut self.estimates {
            estimates.restart(seed, index);
        }
    }
}

impl Workload {
    /// Returns every job of a run whose deadline is within the horizon. These are the jobs that metrics count: of a
    /// task with parts, the last one.
    pub fn counted(set: &TaskSet, seed: u64, horizon: Time) -> Vec<ReleasedJob> {
        let mut counted = Workload::with_parts(set, seed, horizon);
        counted.retain(|release| !set.tasks()[release.task].is_part);
        counted
    }

    /// Returns every job of a run whose deadline is within the horizon, and every part of such jobs.
    pub fn with_parts(set: &TaskSet, seed: u64, horizon: Time) -> Vec<ReleasedJob> {
        let mut workload = Workload::until(set, seed, horizon);
        let mut all = Vec::new();
        while workload.next_time() < horizon {
            let Some(release) = workload.pop() else { break };
            if release.deadline <= horizon {
                all.push(release);
            }
        }
        all.extend(workload.still_delayed(horizon));
        all
    }
}

impl Workload {
    /// Creates the workload of `set` with `seed`, without a horizon.
    pub fn new(set: impl Into<Arc<TaskSet>>, seed: u64) -> Workload {
        Workload::until(set, seed, Time::NEVER)
    }

    /// Creates the workload of `set` with `seed` for a run until `horizon`. Releases at the horizon or later must not
    /// be taken.
    ///
    /// With jitter, finding the next release takes drawing every arrival that could precede it. The horizon bounds how
    /// far ahead arrivals are drawn if the jitter is longer than the run.
    pub fn until(set: impl Into<Arc<TaskSet>>, seed: u64, horizon: Time) -> Workload {
        Workload::of_shared(set.into(), seed, horizon)
    }

    fn of_shared(set: Arc<TaskSet>, seed: u64, horizon: Time) -> Workload {
        let mut arrivals = BinaryHeap::with_capacity(set.tasks().len());
        let mut streams = Vec::with_capacity(set.tasks().len());
        for (id, task) in set.task_ids().zip(set.tasks()) {
            streams.push(JobStream::new(task, seed, u64::from(id.0), 0));
            if !task.after.is_empty() {
                continue;
            }
            let first = match &task.arrival {
                Arrival::Listed(jobs) => jobs.first().map(|job| job.release),
                Arrival::Burst { until, .. } => Some(task.offset).filter(|start| start < until),
                _ => Some(task.offset),
            };
            if let Some(first) = first {
                arrivals.push(Reverse((first, id)));
            }
        }
        let is_plain = is_plain(&set);
        let (delayed, next_time, followers) = (BinaryHeap::new(), Time::ZERO, Followers::of(set.tasks()));
        let mut workload =
            Workload { set, streams, arrivals, delayed, modes_begun: 0, is_plain, next_time, followers, horizon };
        workload.settle();
        workload
    }

    /// Creates a workload that begins in the middle of a run. `next` is the next arrival of each task, if one is to
    /// come; `delayed` are jobs with a release of their own, in addition to those.
    pub(crate) fn resumed(
        set: Arc<TaskSet>,
        streams: Vec<JobStream>,
        next: impl Iterator<Item = Option<Time>>,
        delayed: impl Iterator<Item = ReleasedJob>,
        horizon: Time,
    ) -> Workload {
        let next = (0..).map(TaskId).zip(next).filter_map(|(task, time)| Some(Reverse((time?, task))));
        let arrivals: BinaryHeap<_> = next.collect();
        let delayed: BinaryHeap<_> = delayed.map(|release| Reverse(Delayed(release))).collect();
        let is_plain = delayed.is_empty() && is_plain(&set);
        let (next_time, mut followers) = (Time::ZERO, Followers::of(set.tasks()));
        if let Some(followers) = &mut followers {
            followers.resume(streams.iter().map(|stream| stream.next_number));
        }
        let mut workload =
            Workload { set, streams, arrivals, delayed, modes_begun: 0, is_plain, next_time, followers, horizon };
        workload.settle();
        workload
    }

    /// Moves the horizon to a later time. An earlier time has no effect.
    pub fn extend(&mut self, horizon: Time) {
        if horizon > self.horizon {
            self.horizon = horizon;
            self.settle();
        }
    }

    /// Removes and returns the jobs that are due by `horizon` but that jitter does not release before it, in the order
    /// of their releases. All releases before the horizon must have been taken.
    pub fn still_delayed(&mut self, horizon: Time) -> Vec<ReleasedJob> {
        let mut due: Vec<Delayed> = std::mem::take(&mut self.delayed).into_iter().map(|Reverse(job)| job).collect();
        due.retain(|Delayed(release)| release.deadline <= horizon);
        due.sort_unstable();
        due.into_iter().map(|Delayed(release)| release).collect()
    }

    /// Returns the time of the next release, or [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next_time(&self) -> Time {
        self.next_time
    }

    /// Removes and returns the next release.
    // For every job of the engine.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<ReleasedJob> {
        if self.is_plain {
            let Reverse((time, task)) = *self.arrivals.peek()?;
            let number = self.take_arrival(time, TaskId(task.0));
            self.next_time = self.arrivals.peek().map_or(Time::NEVER, |Reverse((next, _))| *next);
            return Some(self.job(TaskId(task.0), number, time, time));
        }
        let arrival = self.arrivals.peek().map(|Reverse((time, task))| (*time, *task));
        let delayed = self.delayed.peek().map(|Reverse(Delayed(release))| (release.time, release.task));
        let release = match (arrival, delayed) {
            (None, None) => return None,
            (Some(arrival), delayed) if delayed.is_none_or(|delayed| arrival < delayed) => {
                let (time, task) = arrival;
                let number = self.take_arrival(time, TaskId(task.0));
                let release = self.job(TaskId(task.0), number, time, time);
                self.arrive_followers(TaskId(task.0), number, time);
                release
            }
            _ => self.delayed.pop()?.0.0,
        };
        self.settle();
        Some(release)
    }

    /// Ensures that the head of one of the two queues is the next release, and stores its time.
    #[inline]
    fn settle(&mut self) {
        if !self.is_plain {
            self.move_on();
        }
        let arrival = self.arrivals.peek().map_or(Time::NEVER, |Reverse((time, _))| *time);
        let delayed = self.delayed.peek().map_or(Time::NEVER, |Reverse(Delayed(release))| release.time);
        self.next_time = arrival.min(delayed);
    }

    /// Processes arrivals until the next one is a release: moves arrivals with jitter to the delayed jobs, and skips
    /// arrivals that a mode suppresses.
    fn move_on(&mut self) {
        while let Some(Reverse((time, task))) = self.arrivals.peek().copied().filter(|next| next.0.0 < self.horizon) {
            while self.set.modes().get(self.modes_begun).is_some_and(|mode| mode.at <= time) {
                self.modes_begun += 1;
            }
            let silent = self.is_silent(TaskId(task.0));
            let jitter = self.set.tasks()[task].jitter;
            if !silent && jitter == Time::ZERO {
                return;
            }
            if self.delayed.peek().is_some_and(|Reverse(Delayed(release))| release.time < time) {
                return;
            }
            if silent {
                self.skip_silence(time, TaskId(task.0));
                continue;
            }
            let number = self.take_arrival(time, TaskId(task.0));
            let delay = Time(self.streams[task].rng.random_range(0..=jitter.0));
            let release = self.job(TaskId(task.0), number, time, time + delay);
            self.delayed.push(Reverse(Delayed(release)));
            self.arrive_followers(TaskId(task.0), number, time);
        }
    }

    /// Lets the jobs arrive whose sources have all arrived with this job.
    fn arrive_followers(&mut self, task: TaskId, number: u64, time: Time) {
        let Some(mut followers) = self.followers.take() else { return };
        for follower in followers.source_arrived(task, number) {
            self.streams[follower.index()].next_number = number + 1;
            let release = self.job(*follower, number, time, time);
            self.delayed.push(Reverse(Delayed(release)));
        }
        self.followers = Some(followers);
    }

    /// Moves the next arrival of a task that the current mode silences to the end of the mode, on the task's own period
    /// grid. This is a single step, however long the mode lasts.
    fn skip_silence(&mut self, time: Time, index: TaskId) {
        let task = &self.set.tasks()[index];
        let stream = &mut self.streams[index];
        let mode_end = self.set.modes().get(self.modes_begun).map(|mode| mode.at);
        let next = match (&task.arrival, task.period(), mode_end) {
            (Arrival::Listed(jobs), ..) => {
                stream.next_number += 1;
                jobs.get(stream.next_number as usize).map(|job| job.release)
            }
            (_, Some(period), Some(end)) => {
                let step = divided(period, self.set.modes()[self.modes_begun - 1].rate_of(index));
                Some(time + step * (end - time).0.div_ceil(step.0))
            }
            _ => None,
        };
        let ends = match task.arrival {
            Arrival::Burst { until, .. } => until,
            _ => Time::NEVER,
        };
        self.replace_head(next.filter(|next| *next < ends), index);
    }

    /// Returns whether the current mode suppresses the jobs of a task.
    fn is_silent(&self, task: TaskId) -> bool {
        self.modes_begun.checked_sub(1).is_some_and(|index| self.set.modes()[index].stops(task))
    }

    /// Takes the arrival at the head of the queue, replaces it by the task's next arrival, and returns the job number.
    #[inline]
    fn take_arrival(&mut self, time: Time, task: TaskId) -> u64 {
        let stream = &mut self.streams[task];
        let number = stream.next_number;
        stream.next_number += 1;
        let rate = self.modes_begun.checked_sub(1).map_or(1.0, |index| self.set.modes()[index].rate_of(task));
        let next = match &self.set.tasks()[task].arrival {
            Arrival::Periodic { period } => Some(time + divided(*period, rate)),
            Arrival::Sporadic { minimum, gap } => Some(time + divided(draw_gap(*minimum, *gap, &mut stream.rng), rate)),
            Arrival::Burst { jobs, every, until } => {
                stream.left_in_burst -= 1;
                if stream.left_in_burst > 0 {
                    Some(time)
                } else {
                    stream.left_in_burst = *jobs;
                    Some(time + divided(*every, rate)).filter(|next| next < until)
                }
            }
            Arrival::Listed(jobs) => jobs.get(stream.next_number as usize).map(|job| job.release),
            _ => None,
        };
        self.replace_head(next, task);
        number
    }

    /// Replaces the arrival at the head of the queue by the next arrival of the same task, if there is one.
    #[inline]
    fn replace_head(&mut self, next: Option<Time>, task: TaskId) {
        if let Some(mut head) = self.arrivals.peek_mut() {
            match next {
                Some(next) => *head = Reverse((next, task)),
                None => {
                    PeekMut::pop(head);
                }
            }
        }
    }

    /// Creates the job with this number that arrives at `arrived` and is released at `time`.
    #[inline]
    fn job(&mut self, index: TaskId, number: u64, arrived: Time, time: Time) -> ReleasedJob {
        let task = &self.set.tasks()[index];
        if let Arrival::Listed(jobs) = &task.arrival {
            let job = &jobs[number as usize];
            return ReleasedJob {
                time,
                task: index,
                number,
                deadline: job.deadline,
                execution: job.execution,
                wcet: job.wcet,
                bcet: job.bcet,
                criticality: job.criticality,
                value: job.value,
                estimate: job.estimate.map(|estimate| estimate.within(job.bcet, job.wcet)),
            };
        }
        let stream = &mut self.streams[index];
        let mut release = ReleasedJob {
            time,
            task: index,
            number,
            deadline: arrived + task.deadline,
            execution: stream.sampler.draw(&mut stream.rng),
            wcet: task.wcet,
            bcet: task.bcet,
            criticality: task.criticality,
            value: task.value,
            estimate: None,
        };
        if let Some(mode) = self.modes_begun.checked_sub(1).map(|begun| &self.set.modes()[begun]) {
            release.deadline = arrived + divided(task.deadline, mode.rate_of(index));
            for time in [&mut release.execution, &mut release.wcet, &mut release.bcet] {
                *time = divided(*time, 1.0 / mode.work);
            }
        }
        if let Some(estimates) = &mut stream.estimates {
            release.estimate = Some(estimates.draw(release.execution, [release.bcet, release.wcet]));
        }
        release
    }
}

/// Creates the random number generator of one task.
///
/// The generator's own streams are correlated for neighboring seeds. Instead of selecting a stream, the seed is mixed
/// with the task index before it is hashed.
pub(crate) fn random_stream(seed: u64, index: u64) -> Pcg32 {
    const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;
    Pcg32::seed_from_u64(seed.wrapping_mul(GOLDEN_RATIO).rotate_left(31).wrapping_add(index.wrapping_mul(GOLDEN_RATIO)))
}

/// Returns whether a set has neither modes, jitter nor precedence, so that every arrival is a release.
fn is_plain(set: &TaskSet) -> bool {
    set.modes().is_empty() && set.tasks().iter().all(|task| task.jitter == Time::ZERO && task.after.is_empty())
}

/// Number of jobs that arrive together.
fn burst_size(task: &Task) -> u32 {
    match task.arrival {
        Arrival::Burst { jobs, .. } => jobs,
        _ => 1,
    }
}

/// Draws the time between two arrivals of a sporadic task.
pub(crate) fn draw_gap(minimum: Time, gap: Gap, rng: &mut Pcg32) -> Time {
    match gap {
        Gap::Uniform { max } => Time(rng.random_range(minimum.0..=max.0)),
        Gap::Exponential { mean } => {
            let extra = mean.saturating_sub(minimum).0 as f64 * rng.sample::<f64, _>(Exp1);
            minimum + Time(extra.round() as u64)
        }
    }
}

/// Returns `time / factor` in whole nanoseconds, at least 1 and at most [`Time::MAX_INPUT`].
pub(crate) fn divided(time: Time, factor: f64) -> Time {
    if factor == 1.0 {
        return time;
    }
    Time(((time.0 as f64 / factor).round() as u64).clamp(1, Time::MAX_INPUT.0))
}

#[cfg(test)]
mod tests;
