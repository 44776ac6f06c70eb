//! What a trial reports from one process to another: the same as [`TrialReport`], in plain numbers.

use serde::{Deserialize, Serialize};
use temponet_sim::{End, Histogram, Slice};
use temponet_task::{CoreId, Speed, Task, TaskId, Time};

use crate::kernel_trace::Switch;
use crate::report::{Counts, JobOutcome, Latencies, Report, metrics};
use crate::trial::TrialReport;

/// Ends of a job, by number.
const ENDS: [End; 5] = [End::Completed, End::Aborted, End::Abandoned, End::Unfinished, End::Unreleased];

/// A trial in plain numbers. Times are in nanoseconds.
#[derive(Debug, Serialize, Deserialize)]
pub struct Wire {
    jobs: Vec<WireJob>,
    slices: Vec<(u32, u32, u64, u64, u64)>,
    counts: Counts,
    /// By kind: largest value and count of each bucket.
    latencies: [Vec<(i64, u64)>; Latencies::KINDS],
    dispatcher: u64,
    lost: Vec<String>,
    notes: Vec<String>,
    threads: Vec<(i32, usize)>,
    epoch: u64,
    counters: Vec<(String, u64)>,
    switches: Vec<(u64, u32, i32, i32)>,
}

/// A job in plain numbers.
#[derive(Debug, Serialize, Deserialize)]
struct WireJob {
    id: (usize, u64),
    window: (u64, u64),
    wcet: u64,
    importance: (u8, f64),
    start: Option<u64>,
    left: u64,
    end: usize,
    executed: u64,
    preemptions: u32,
    core: Option<u32>,
    overran: bool,
    skipped: bool,
}

impl From<&JobOutcome> for WireJob {
    fn from(job: &JobOutcome) -> WireJob {
        WireJob {
            id: (job.task.index(), job.number),
            window: (job.release.0, job.deadline.0),
            wcet: job.wcet.0,
            importance: (job.criticality, job.value),
            start: job.start.map(|start| start.0),
            left: job.left.0,
            end: ENDS.iter().position(|end| *end == job.end).unwrap_or(0),
            executed: job.executed.0,
            preemptions: job.preemptions,
            core: job.core.map(|core| core.0),
            overran: job.overran,
            skipped: job.skipped,
        }
    }
}

impl From<&WireJob> for JobOutcome {
    fn from(job: &WireJob) -> JobOutcome {
        JobOutcome {
            task: TaskId::new(job.id.0),
            number: job.id.1,
            release: Time(job.window.0),
            deadline: Time(job.window.1),
            wcet: Time(job.wcet),
            criticality: job.importance.0,
            value: job.importance.1,
            start: job.start.map(Time),
            left: Time(job.left),
            end: ENDS[job.end.min(ENDS.len() - 1)],
            executed: Time(job.executed),
            preemptions: job.preemptions,
            core: job.core.map(CoreId),
            overran: job.overran,
            skipped: job.skipped,
        }
    }
}

impl Wire {
    /// Puts a trial and the kernel's record of it into plain numbers.
    pub fn of(trial: &TrialReport, switches: &[Switch]) -> Wire {
        let Report { jobs, latencies, counts, dispatcher_time, lost, notes, .. } = &trial.report;
        let buckets = |histogram: &Histogram| histogram.buckets().collect();
        let slice = |slice: &Slice| (slice.core.0, slice.task.0, slice.number, slice.start.0, slice.end.0);
        Wire {
            jobs: jobs.iter().map(WireJob::from).collect(),
            slices: trial.slices.iter().map(slice).collect(),
            counts: *counts,
            latencies: latencies.kinds().map(|(_, histogram)| buckets(histogram)),
            dispatcher: dispatcher_time.0,
            lost: lost.clone(),
            notes: notes.clone(),
            threads: trial.threads.clone(),
            epoch: trial.epoch,
            counters: trial.counters.iter().map(|(name, count)| (name.to_string(), *count)).collect(),
            switches: switches.iter().map(|switch| (switch.at, switch.cpu, switch.from, switch.to)).collect(),
        }
    }

    /// The report of a trial of these tasks, without the counters of the scheduler. Latencies are accurate to 1/64.
    pub fn report(&self, tasks: &[Task], cores: usize, horizon: Time) -> Report {
        let jobs: Vec<JobOutcome> =
            self.jobs.iter().map(JobOutcome::from).filter(|job| job.task.index() < tasks.len()).collect();
        let histogram = |buckets: &[(i64, u64)]| {
            let mut histogram = Histogram::default();
            buckets.iter().for_each(|(value, count)| (0..*count).for_each(|_| histogram.record(*value)));
            histogram
        };
        Report {
            horizon,
            metrics: metrics(tasks, &jobs, horizon, &self.counts, cores),
            jobs,
            latencies: Latencies::of_kinds(self.latencies.each_ref().map(|buckets| histogram(buckets))),
            counts: self.counts,
            dispatcher_time: Time(self.dispatcher),
            lost: self.lost.clone(),
            notes: self.notes.clone(),
        }
    }

    /// Counters of the scheduler.
    pub fn counters(&self) -> &[(String, u64)] {
        &self.counters
    }

    /// When jobs ran, as they noticed themselves.
    pub fn slices(&self) -> Vec<Slice> {
        let slice = |(core, task, number, start, end): &(u32, u32, u64, u64, u64)| Slice {
            core: CoreId(*core),
            task: TaskId(*task),
            number: *number,
            start: Time(*start),
            end: Time(*end),
            speed: Speed::FULL,
        };
        self.slices.iter().map(slice).collect()
    }

    /// When the kernel ran the threads of tasks: processor, task, and dates since the beginning of the run.
    pub fn kernel_slices(&self) -> Vec<(u32, usize, Time, Time)> {
        let task_of = |thread: i32| self.threads.iter().find(|(known, _)| *known == thread).map(|(_, task)| *task);
        let date = |at: u64| Time(at.saturating_sub(self.epoch));
        // Processor, the task that runs there if it is one of ours, and since when.
        let mut running: Vec<(u32, Option<usize>, u64)> = Vec::new();
        let mut slices = Vec::new();
        let mut switches = self.switches.clone();
        switches.sort_by_key(|(at, ..)| *at);
        for (at, cpu, from, to) in switches {
            let place = running.iter().position(|(known, ..)| *known == cpu);
            if let Some((_, before, since)) = place.map(|place| running.swap_remove(place)) {
                // The kernel leaves some switches out. A thread of ours that stops running has run since the last one
                // at most.
                if let Some(task) = before.or(task_of(from)) {
                    slices.push((cpu, task, date(since), date(at)));
                }
            }
            running.push((cpu, task_of(to), at));
        }
        slices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_of_the_kernel_become_slices_of_tasks() {
        let wire = Wire {
            jobs: Vec::new(),
            slices: Vec::new(),
            counts: Counts::default(),
            latencies: Default::default(),
            dispatcher: 0,
            lost: Vec::new(),
            notes: Vec::new(),
            threads: vec![(7, 0), (8, 1)],
            epoch: 100,
            counters: Vec::new(),
            // Idle, 7, 8, someone else; the switch to 7 that follows was left out.
            switches: vec![(110, 1, 0, 7), (150, 1, 7, 8), (170, 1, 8, 99), (190, 1, 7, 0), (195, 0, 5, 6)],
        };
        let slice = |task: usize, start: u64, end: u64| (1, task, Time(start), Time(end));
        assert_eq!(wire.kernel_slices(), [slice(0, 10, 50), slice(1, 50, 70), slice(0, 70, 90)]);
    }
}
