//! Who watches a run: nobody (the fast default), a recorder of everything, or your own [`Observer`].

use temponet_task::{Job, Speed, Time};

use crate::metrics::End;

/// Told what happens during a run. All methods do nothing by default and vanish when unused.
pub trait Observer {
    /// A job was released.
    fn released(&mut self, _job: &Job) {}
    /// A job was put on a core.
    fn dispatched(&mut self, _core: usize, _job: &Job, _now: Time) {}
    /// A job ran on a core from `start` to `end` without interruption.
    fn ran(&mut self, _core: usize, _job: &Job, _start: Time, _end: Time, _speed: Speed) {}
    /// A job left the system at `now`.
    fn left(&mut self, _job: &Job, _first_start: Option<Time>, _end: End, _now: Time) {}
}

/// Watches nothing.
pub struct Unobserved;

impl Observer for Unobserved {}

/// Watches only if there is somebody.
impl<O: Observer> Observer for Option<O> {
    fn released(&mut self, job: &Job) {
        if let Some(observer) = self {
            observer.released(job);
        }
    }

    fn dispatched(&mut self, core: usize, job: &Job, now: Time) {
        if let Some(observer) = self {
            observer.dispatched(core, job, now);
        }
    }

    fn ran(&mut self, core: usize, job: &Job, start: Time, end: Time, speed: Speed) {
        if let Some(observer) = self {
            observer.ran(core, job, start, end, speed);
        }
    }

    fn left(&mut self, job: &Job, first_start: Option<Time>, end: End, now: Time) {
        if let Some(observer) = self {
            observer.left(job, first_start, end, now);
        }
    }
}

/// Both watch.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn released(&mut self, job: &Job) {
        self.0.released(job);
        self.1.released(job);
    }

    fn dispatched(&mut self, core: usize, job: &Job, now: Time) {
        self.0.dispatched(core, job, now);
        self.1.dispatched(core, job, now);
    }

    fn ran(&mut self, core: usize, job: &Job, start: Time, end: Time, speed: Speed) {
        self.0.ran(core, job, start, end, speed);
        self.1.ran(core, job, start, end, speed);
    }

    fn left(&mut self, job: &Job, first_start: Option<Time>, end: End, now: Time) {
        self.0.left(job, first_start, end, now);
        self.1.left(job, first_start, end, now);
    }
}

/// One job's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// Index of its task.
    pub task: u32,
    /// Counts the jobs of its task from 0.
    pub number: u64,
    /// When it became ready.
    pub release: Time,
    /// Its absolute deadline.
    pub deadline: Time,
    /// When it first ran.
    pub start: Option<Time>,
    /// When it left.
    pub left: Time,
    /// Why.
    pub end: End,
    /// Work done.
    pub executed: Time,
}

impl JobRecord {
    /// When it completed, if it did.
    pub fn completion(&self) -> Option<Time> {
        (self.end == End::Completed).then_some(self.left)
    }

    /// Whether it met its deadline.
    pub fn met(&self) -> bool {
        self.completion().is_some_and(|completion| completion <= self.deadline)
    }
}

/// A job on a core without interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The core.
    pub core: u32,
    /// Index of the job's task.
    pub task: u32,
    /// The job's number within its task.
    pub number: u64,
    /// From.
    pub start: Time,
    /// To.
    pub end: Time,
    /// How fast.
    pub speed: Speed,
}

/// Keeps everything that happens until a date; memory grows with it.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// Slices that begin, and jobs that are released, at or after this date are not kept.
    pub until: Time,
    /// In the order in which they ended.
    pub slices: Vec<Slice>,
    /// In the order in which they left.
    pub jobs: Vec<JobRecord>,
}

impl Recorder {
    /// Keeps everything before `until`.
    pub fn until(until: Time) -> Recorder {
        Recorder { until, slices: Vec::new(), jobs: Vec::new() }
    }
}

impl Observer for Recorder {
    fn ran(&mut self, core: usize, job: &Job, start: Time, end: Time, speed: Speed) {
        if start < self.until && start < end {
            self.slices.push(Slice { core: core as u32, task: job.task, number: job.number, start, end, speed });
        }
    }

    fn left(&mut self, job: &Job, first_start: Option<Time>, end: End, now: Time) {
        if job.release < self.until {
            self.jobs.push(JobRecord {
                task: job.task,
                number: job.number,
                release: job.release,
                deadline: job.deadline,
                start: first_start,
                left: now,
                end,
                executed: job.executed,
            });
        }
    }
}
