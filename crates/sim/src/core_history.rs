//! Tasks that held the cores while a job waited, which explains why the job was late.
//!
//! Slices are kept back to the release of the oldest active job, at most [`MOST_SLICES`] of them, so memory does not
//! grow with the horizon. For a job that waited longer, the answer covers the slices that are left.

use std::collections::{BTreeMap, VecDeque};

use temponet_task::{CoreId, Job, TaskId, Time};

/// Largest number of slices kept.
const MOST_SLICES: usize = 1 << 16;
/// Largest number of tasks named for one job.
const MOST_NAMED: usize = 3;

/// Task and number of a job, which identify it for the whole run.
type JobKey = (TaskId, u64);

/// Recent history of all cores.
#[derive(Clone, Debug, Default)]
pub(crate) struct CoreHistory {
    /// Finished slices: start, end and job.
    slices: VecDeque<(Time, Time, JobKey)>,
    /// Job that each core runs now, and the time since which it does.
    running: Vec<Option<(Time, JobKey)>>,
    /// Number of active jobs by release time.
    releases: BTreeMap<Time, u32>,
    /// Cache of the last query: start, end and time of the query, and the core time of each job in that window. The
    /// jobs of a burst all ask for the same window.
    last: Option<(Time, Time, Time, BTreeMap<JobKey, u64>)>,
}

impl CoreHistory {
    /// Notes that a job became active.
    pub fn released(&mut self, job: &Job) {
        *self.releases.entry(job.release).or_default() += 1;
    }

    /// Notes that a core started a job.
    pub fn dispatched(&mut self, core: CoreId, job: &Job, now: Time) {
        if core.index() >= self.running.len() {
            self.running.resize(core.index() + 1, None);
        }
        self.running[core] = Some((now, (job.task, job.number)));
    }

    /// Adds a finished slice. The core may continue with the same job.
    pub fn ran(&mut self, core: CoreId, job: &Job, start: Time, end: Time) {
        if let Some(running) = self.running.get_mut(core.index()) {
            *running = job.running.then_some((end, (job.task, job.number)));
        }
        if start < end {
            if self.slices.len() == MOST_SLICES {
                self.slices.pop_front();
            }
            self.slices.push_back((start, end, (job.task, job.number)));
        }
    }

    /// Notes that a job left, and drops the slices that no remaining job can ask for.
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

    /// Returns the tasks whose other jobs held the cores between the release and the deadline of `job`, with their core
    /// time, longest first.
    pub fn instead_of(&mut self, job: &Job, now: Time) -> Vec<(TaskId, Time)> {
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
        let mut by_task: BTreeMap<TaskId, u64> = BTreeMap::new();
        for (who, time) in self.last.iter().flat_map(|last| &last.3).filter(|(who, _)| **who != (job.task, job.number))
        {
            *by_task.entry(who.0).or_default() += time;
        }
        let mut longest: Vec<(TaskId, Time)> = by_task.into_iter().map(|(task, time)| (task, Time(time))).collect();
        longest.sort_by_key(|(task, time)| (std::cmp::Reverse(*time), *task));
        longest.truncate(MOST_NAMED);
        longest
    }
}
