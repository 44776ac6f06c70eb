//! What a scheduler sees at a decision point. Nothing here knows a simulator: a real-time program fills the same
//! structures from its own queues.

use crate::{Arrival, OnMiss, Speed, Task, Time};

/// Names an active job until it leaves the system; afterwards the number may be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u32);

impl JobId {
    /// Its place in [`SystemView::jobs`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One release of a task, as far as a scheduler may know it: bounds and progress, never the true execution time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    /// Index of its task.
    pub task: u32,
    /// As [`Task::criticality`].
    pub criticality: u8,
    /// Whether it has a core right now; that core is `last_core`.
    pub running: bool,
    /// The core it last ran on.
    pub last_core: Option<u32>,
    /// Counts the jobs of its task from 0.
    pub number: u64,
    /// When it became ready.
    pub release: Time,
    /// Its absolute deadline.
    pub deadline: Time,
    /// Worst-case execution time.
    pub wcet: Time,
    /// Best-case execution time.
    pub bcet: Time,
    /// Work done so far.
    pub executed: Time,
    /// Switching and migration work still to be paid before its own work goes on.
    pub overhead: Time,
    /// What meeting its deadline is worth.
    pub value: f64,
}

impl Job {
    /// The first job of a task, of that index, just released.
    pub fn first(index: u32, task: &Task) -> Job {
        Job {
            task: index,
            criticality: task.criticality,
            running: false,
            last_core: None,
            number: 0,
            release: task.offset,
            deadline: task.offset + task.deadline,
            wcet: task.wcet,
            bcet: task.bcet,
            executed: Time::ZERO,
            overhead: Time::ZERO,
            value: task.value,
        }
    }

    /// Work left if it takes its whole wcet; at least a nanosecond, since it is not complete.
    pub fn remaining(&self) -> Time {
        Time(self.wcet.0.saturating_sub(self.executed.0).max(1) + self.overhead.0)
    }

    /// Work left if it takes its bcet; at least a nanosecond.
    pub fn least_remaining(&self) -> Time {
        Time(self.bcet.0.saturating_sub(self.executed.0).max(1) + self.overhead.0)
    }

    /// Time to the deadline less the remaining work at the wcet (laxity). Negative is *late by wcet*.
    pub fn slack(&self, now: Time) -> i64 {
        self.deadline.signed_sub(now + self.remaining())
    }

    /// Taking its whole wcet it would miss its deadline, even if it ran from now on.
    pub fn is_late_by_wcet(&self, now: Time) -> bool {
        self.slack(now) < 0
    }

    /// Taking only its bcet it would miss its deadline, even if it ran from now on.
    pub fn is_impossible(&self, now: Time) -> bool {
        now + self.least_remaining() > self.deadline
    }

    /// The order among equal keys: earlier release, then lower task index, then lower job number. It is total.
    pub fn tie(&self) -> Tie {
        (self.release, self.task, self.number)
    }
}

/// What decides between equal keys; see [`Job::tie`].
pub type Tie = (Time, u32, u64);

/// What does not change during a run.
#[derive(Clone, Debug)]
pub struct System {
    /// The tasks, in file order.
    pub tasks: Vec<Task>,
    /// Number of identical cores.
    pub cores: usize,
    /// What happens at a missed deadline.
    pub on_miss: OnMiss,
    /// Speeds to choose from, ascending; the last is full speed.
    pub speeds: Vec<Speed>,
    /// Budget and period of each server.
    pub servers: Vec<crate::Server>,
    /// What dispatching costs beyond the wcets.
    pub costs: crate::Costs,
}

impl System {
    /// The mean load of each task, as far as an online scheduler may know it: of single jobs by what is told of them ([`crate::ListedJob::bcet`] and wcet),
    /// over the time between the first release and the last deadline of all lists.
    pub fn mean_utilizations(&self) -> Vec<f64> {
        let listed = self.tasks.iter().filter_map(|task| match &task.arrival {
            Arrival::Listed(jobs) => Some(jobs.iter()),
            _ => None,
        });
        let (first, last) = listed
            .flatten()
            .fold((Time::NEVER, Time::ZERO), |(first, last), job| (first.min(job.release), last.max(job.deadline)));
        let window = last.saturating_sub(first).0.max(1) as f64;
        let load = |task: &Task| match &task.arrival {
            Arrival::Listed(jobs) => {
                jobs.iter().map(|job| (job.bcet.0 + job.wcet.0) as f64 / 2.0).sum::<f64>() / window
            }
            _ => task.mean_utilization(),
        };
        self.tasks.iter().map(load).collect()
    }
}

/// What happened since the last decision. The job of an event can be looked up even if it has just left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It became ready.
    Released(JobId),
    /// It is done and has left.
    Completed(JobId),
    /// Its deadline passed, it was removed (`abort`) and has left.
    Aborted(JobId),
    /// Its deadline passed and it stays (`continue`).
    DeadlinePassed(JobId),
}

impl Event {
    /// The job that the event is about.
    pub fn job(self) -> JobId {
        match self {
            Event::Released(id) | Event::Completed(id) | Event::Aborted(id) | Event::DeadlinePassed(id) => id,
        }
    }
}

/// The state at a decision point.
#[derive(Clone, Copy, Debug)]
pub struct SystemView<'a> {
    /// The date.
    pub now: Time,
    /// Tasks and machine.
    pub system: &'a System,
    /// Ids of the active jobs, in no particular order.
    pub active: &'a [JobId],
    /// Indexed by [`JobId`]; only active jobs and those named by `events` are meaningful.
    pub jobs: &'a [Job],
    /// The job on each core. A job that has just left is no longer on one.
    pub running: &'a [Option<JobId>],
    /// What happened since the last decision, in order.
    pub events: &'a [Event],
}

impl<'a> SystemView<'a> {
    /// The job behind an id.
    pub fn job(&self, id: JobId) -> &'a Job {
        &self.jobs[id.index()]
    }

    /// The task of a job.
    pub fn task_of(&self, job: &Job) -> &'a Task {
        &self.system.tasks[job.task as usize]
    }

    /// The active jobs, in no particular order.
    pub fn ready(&self) -> impl Iterator<Item = (JobId, &'a Job)> + use<'a> {
        let jobs = self.jobs;
        self.active.iter().map(move |id| (*id, &jobs[id.index()]))
    }

    /// Number of cores.
    pub fn cores(&self) -> usize {
        self.system.cores
    }
}
