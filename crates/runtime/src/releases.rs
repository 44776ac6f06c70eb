//! Sources of releases: lists of drawn jobs, and the timers of recurring tasks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use temponet_task::{Arrival, Release, Task, TaskId, Time};

use crate::doorbell::TaskRequests;

/// A job that is due to be released.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    /// Its task.
    pub task: TaskId,
    /// Number within its task.
    pub number: u64,
    /// Dates, execution times and importance, as schedulers see them.
    pub release: Release,
    /// Time that a synthetic job computes for; closures ignore it.
    pub execution: Time,
}

/// Where jobs come from, in the order of their releases.
pub(crate) trait Releases: Send {
    /// Date of the next release; [`Time::NEVER`] if none is known.
    fn next(&self) -> Time;

    /// Takes the next release.
    fn pop(&mut self) -> Option<Due>;

    /// A release that was asked for at `date`.
    fn asked(&mut self, task: TaskId, date: Time) -> Option<Due>;
}

/// Jobs that are known beforehand.
pub(crate) struct Listed {
    jobs: Vec<Due>,
    taken: usize,
}

impl Listed {
    /// The jobs that a workload draws, before `horizon`. Jobs that jitter releases at their deadline or later cannot be
    /// released; they are returned apart.
    pub fn new(jobs: impl IntoIterator<Item = temponet_sim::ReleasedJob>) -> (Listed, Vec<Due>) {
        let due = |job: temponet_sim::ReleasedJob| {
            let temponet_sim::ReleasedJob { time, task, number, deadline, execution, wcet, bcet, .. } = job;
            let mut release = Release::of(&Task::periodic("", Time(1), Time(1)), time);
            (release.deadline, release.wcet, release.bcet) = (deadline, wcet, bcet);
            (release.criticality, release.value, release.estimate) = (job.criticality, job.value, job.estimate);
            Due { task, number, release, execution }
        };
        let (jobs, hopeless) = jobs.into_iter().map(due).partition(|due| due.release.release < due.release.deadline);
        (Listed { jobs, taken: 0 }, hopeless)
    }

    /// The jobs.
    #[cfg(target_os = "linux")]
    pub fn jobs(&self) -> &[Due] {
        &self.jobs
    }

    /// Takes the jobs out.
    pub fn into_jobs(self) -> Vec<Due> {
        self.jobs
    }
}

impl Releases for Listed {
    fn next(&self) -> Time {
        self.jobs.get(self.taken).map_or(Time::NEVER, |due| due.release.release)
    }

    fn pop(&mut self) -> Option<Due> {
        let due = self.jobs.get(self.taken).copied();
        self.taken += usize::from(due.is_some());
        due
    }

    fn asked(&mut self, _: TaskId, _: Time) -> Option<Due> {
        None
    }
}

/// Timers of recurring tasks, and what other threads ask for.
pub(crate) struct Timers {
    tasks: Vec<Task>,
    requests: Vec<Arc<TaskRequests>>,
    /// Next release of each periodic task, the earliest first.
    next: BinaryHeap<Reverse<(Time, TaskId)>>,
    /// Number of jobs of each task so far.
    numbers: Vec<u64>,
}

impl Timers {
    pub fn new(tasks: Vec<Task>, requests: Vec<Arc<TaskRequests>>) -> Timers {
        let is_periodic = |(_, task): &(TaskId, &Task)| matches!(task.arrival, Arrival::Periodic { .. });
        let periodic = TaskId::all(tasks.len()).zip(&tasks).filter(is_periodic);
        let next = periodic.map(|(id, task)| Reverse((task.offset, id))).collect();
        Timers { next, numbers: vec![0; tasks.len()], requests, tasks }
    }

    fn due(&mut self, task: TaskId, date: Time) -> Due {
        let number = self.numbers[task];
        self.numbers[task] += 1;
        Due { task, number, release: Release::of(&self.tasks[task], date), execution: self.tasks[task].wcet }
    }
}

impl Releases for Timers {
    fn next(&self) -> Time {
        self.next.peek().map_or(Time::NEVER, |Reverse((date, _))| *date)
    }

    fn pop(&mut self) -> Option<Due> {
        loop {
            let mut first = self.next.peek_mut()?;
            let Reverse((date, task)) = *first;
            *first = Reverse((date + self.tasks[task].period()?, task));
            drop(first);
            // An absent task keeps its grid.
            if self.requests[task].is_present.load(Ordering::Acquire) {
                return Some(self.due(task, date));
            }
            if self.next() > date {
                return None;
            }
        }
    }

    fn asked(&mut self, task: TaskId, date: Time) -> Option<Due> {
        let is_present = self.requests[task].is_present.load(Ordering::Acquire);
        is_present.then(|| self.due(task, date))
    }
}
