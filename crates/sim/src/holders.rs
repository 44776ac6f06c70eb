//! JobKey held the cores while a job waited: what answers "why was it late?".
//!
//! Slices are kept back to the release of the oldest active job, and no more than [`MOST_SLICES`] of them, so that memory does not grow
//! with the horizon; a job that waited longer than that is answered from the slices that are left.

use std::collections::{BTreeMap, VecDeque};

use temponet_task::{Job, Time};

/// Slices kept at most.
const MOST_SLICES: usize = 1 << 16;
/// Tasks named for one job.
const MOST_NAMED: usize = 3;

/// Which job, told apart for good.
type JobKey = (u32, u64);

/// The recent past of all cores.
#[derive(Default)]
pub(crate) struct Holders {
    slices: VecDeque<(Time, Time, JobKey)>,
    /// What each core runs now, and since when.
    running: Vec<Option<(Time, JobKey)>>,
    /// Releases of the active jobs, counted.
    releases: BTreeMap<Time, u32>,
    /// The window asked for last and everyone's time in it: the jobs of a burst all ask the same.
    last: Option<(Time, Time, Time, BTreeMap<JobKey, u64>)>,
}

impl Holders {
    pub fn released(&mut self, job: &Job) {
        *self.releases.entry(job.release).or_default() += 1;
    }

    pub fn dispatched(&mut self, core: usize, job: &Job, now: Time) {
        if core >= self.running.len() {
            self.running.resize(core + 1, None);
        }
        self.running[core] = Some((now, (job.task, job.number)));
    }

    /// A slice is over; the core may go on with the same job.
    pub fn ran(&mut self, core: usize, job: &Job, start: Time, end: Time) {
        if let Some(running) = self.running.get_mut(core) {
            *running = job.running.then_some((end, (job.task, job.number)));
        }
        if start < end {
            if self.slices.len() == MOST_SLICES {
                self.slices.pop_front();
            }
            self.slices.push_back((start, end, (job.task, job.number)));
        }
    }

    /// Forgets what only this job could ask for.
    pub fn left(&mut self, job: &Job) {
        if let Some(count) = self.releases.get_mut(&job.release) {
            *count -= 1;
            if *count == 0 {
                self.releases.remove(&job.release);
            }
        }
        let oldest = self.releases.keys().next().copied().unwrap_or(Time::NEVER);
        while self.slices.front().is_some_and(|(_, end, _)| *end <= oldest) {
            self.slices.pop_front();
        }
    }

    /// The tasks whose jobs, but for this one, held the cores between its release and its deadline, longest first, with core time.
    pub fn instead_of(&mut self, job: &Job, now: Time) -> Vec<(u32, Time)> {
        let (from, to) = (job.release, job.deadline.min(now));
        if self.last.as_ref().is_none_or(|last| (last.0, last.1, last.2) != (from, to, now)) {
            let mut times: BTreeMap<JobKey, u64> = BTreeMap::new();
            let running = self.running.iter().flatten().map(|(since, who)| (*since, now, *who));
            for (start, end, who) in self.slices.iter().copied().chain(running) {
                let length = end.min(to).saturating_sub(start.max(from));
                if length > Time::ZERO {
                    *times.entry(who).or_default() += length.0;
                }
            }
            self.last = Some((from, to, now, times));
        }
        let mut by_task: BTreeMap<u32, u64> = BTreeMap::new();
        for (who, time) in self.last.iter().flat_map(|last| &last.3).filter(|(who, _)| **who != (job.task, job.number))
        {
            *by_task.entry(who.0).or_default() += time;
        }
        let mut longest: Vec<(u32, Time)> = by_task.into_iter().map(|(task, time)| (task, Time(time))).collect();
        longest.sort_by_key(|(task, time)| (std::cmp::Reverse(*time), *task));
        longest.truncate(MOST_NAMED);
        longest
    }
}
