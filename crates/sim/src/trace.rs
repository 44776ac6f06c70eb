//! Observers of a run: [`Unobserved`] (the fast default), a [`Recorder`] of everything, or any other [`Observer`].

use temponet_task::{CoreId, Job, ResourceId, Speed, TaskId, Time};

use crate::core_history::CoreHistory;
use crate::metrics::End;

/// Receives the events of a run. Every method does nothing by default. A method that is left out costs nothing.
pub trait Observer {
    /// A job was released.
    fn released(&mut self, _job: &Job) {}
    /// A job was dispatched to a core.
    fn dispatched(&mut self, _core: CoreId, _job: &Job, _now: Time) {}
    /// A job ran on a core from `start` to `end` at one speed without interruption.
    fn ran(&mut self, _core: CoreId, _job: &Job, _start: Time, _end: Time, _speed: Speed) {}
    /// A job has missed its deadline and stays. It is told at the deadline, or at the release of a job that came late.
    fn passed_deadline(&mut self, _job: &Job) {}
    /// A job left the system at `now`. `first_start` is the time of its first dispatch.
    fn left(&mut self, _job: &Job, _first_start: Option<Time>, _end: End, _now: Time) {}
    /// A job held a resource from `start` to `end`. Reported at the end.
    fn held(&mut self, _resource: ResourceId, _job: &Job, _start: Time, _end: Time) {}
    /// A job waited for a resource from `start` to `end`. Reported at the end.
    fn blocked(&mut self, _resource: ResourceId, _job: &Job, _start: Time, _end: Time) {}
    /// Whether no event is of interest, so that none needs to be reported.
    fn ignores_everything(&self) -> bool {
        false
    }
}

/// Observer that ignores everything.
pub struct Unobserved;

impl Observer for Unobserved {
    fn ignores_everything(&self) -> bool {
        true
    }
}

/// Forwards to the observer behind the reference.
impl<O: Observer + ?Sized> Observer for &mut O {
    fn released(&mut self, job: &Job) {
        (**self).released(job);
    }

    fn dispatched(&mut self, core: CoreId, job: &Job, now: Time) {
        (**self).dispatched(core, job, now);
    }

    fn ran(&mut self, core: CoreId, job: &Job, start: Time, end: Time, speed: Speed) {
        (**self).ran(core, job, start, end, speed);
    }

    fn passed_deadline(&mut self, job: &Job) {
        (**self).passed_deadline(job);
    }

    fn left(&mut self, job: &Job, first_start: Option<Time>, end: End, now: Time) {
        (**self).left(job, first_start, end, now);
    }

    fn held(&mut self, resource: ResourceId, job: &Job, start: Time, end: Time) {
        (**self).held(resource, job, start, end);
    }

    fn blocked(&mut self, resource: ResourceId, job: &Job, start: Time, end: Time) {
        (**self).blocked(resource, job, start, end);
    }
}

/// Forwards to the observer if there is one.
impl<O: Observer> Observer for Option<O> {
    fn released(&mut self, job: &Job) {
        if let Some(observer) = self {
            observer.released(job);
        }
    }

    fn dispatched(&mut self, core: CoreId, job: &Job, now: Time) {
        if let Some(observer) = self {
            observer.dispatched(core, job, now);
        }
    }

    fn ran(&mut self, core: CoreId, job: &Job, start: Time, end: Time, speed: Speed) {
        if let Some(observer) = self {
            observer.ran(core, job, start, end, speed);
        }
    }

    fn passed_deadline(&mut self, job: &Job) {
        if let Some(observer) = self {
            observer.passed_deadline(job);
        }
    }

    fn left(&mut self, job: &Job, first_start: Option<Time>, end: End, now: Time) {
        if let Some(observer) = self {
            observer.left(job, first_start, end, now);
        }
    }

    fn held(&mut self, resource: ResourceId, job: &Job, start: Time, end: Time) {
        if let Some(observer) = self {
            observer.held(resource, job, start, end);
        }
    }

    fn blocked(&mut self, resource: ResourceId, job: &Job, start: Time, end: Time) {
        if let Some(observer) = self {
            observer.blocked(resource, job, start, end);
        }
    }
}

/// Forwards to both observers.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn released(&mut self, job: &Job) {
        self.0.released(job);
        self.1.released(job);
    }

    fn dispatched(&mut self, core: CoreId, job: &Job, now: Time) {
        self.0.dispatched(core, job, now);
        self.1.dispatched(core, job, now);
    }

    fn ran(&mut self, core: CoreId, job: &Job, start: Time, end: Time, speed: Speed) {
        self.0.ran(core, job, start, end, speed);
        self.1.ran(core, job, start, end, speed);
    }

    fn passed_deadline(&mut self, job: &Job) {
        self.0.passed_deadline(job);
        self.1.passed_deadline(job);
    }

    fn left(&mut self, job: &Job, first_start: Option<Time>, end: End, now: Time) {
        self.0.left(job, first_start, end, now);
        self.1.left(job, first_start, end, now);
    }

    fn held(&mut self, resource: ResourceId, job: &Job, start: Time, end: Time) {
        self.0.held(resource, job, start, end);
        self.1.held(resource, job, start, end);
    }

    fn blocked(&mut self, resource: ResourceId, job: &Job, start: Time, end: Time) {
        self.0.blocked(resource, job, start, end);
        self.1.blocked(resource, job, start, end);
    }
}

/// Record of a job that has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// Index of the job's task.
    pub task: TaskId,
    /// Number of the job within its task, from 0.
    pub number: u64,
    /// Release time.
    pub release: Time,
    /// Absolute deadline.
    pub deadline: Time,
    /// Time of the first dispatch; `None` if the job never ran.
    pub start: Option<Time>,
    /// Time at which the job left the system.
    pub left: Time,
    /// Reason why the job left.
    pub end: End,
    /// Work done, as execution time at full speed.
    pub executed: Time,
}

/// Why a job missed its deadline, as in the jobs' CSV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// Index of the job's task.
    pub task: TaskId,
    /// Number of the job within its task, from 0.
    pub number: u64,
    /// The reason, from a fixed vocabulary.
    pub why: &'static str,
    /// Tasks whose other jobs held the cores between its release and its deadline, with their core time, longest first;
    /// at most three.
    pub ran_instead: Vec<(TaskId, Time)>,
}

impl JobRecord {
    /// Returns the completion time, if the job completed.
    pub fn completion(&self) -> Option<Time> {
        (self.end == End::Completed).then_some(self.left)
    }

    /// Returns whether the job met its deadline.
    pub fn met(&self) -> bool {
        self.completion().is_some_and(|completion| completion <= self.deadline)
    }
}

/// A stretch of time during which a job runs on a core at one speed without interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Index of the core.
    pub core: CoreId,
    /// Index of the job's task.
    pub task: TaskId,
    /// Number of the job within its task, from 0.
    pub number: u64,
    /// Start of the slice.
    pub start: Time,
    /// End of the slice.
    pub end: Time,
    /// Speed of the core.
    pub speed: Speed,
}

/// A stretch of time in which a job holds a resource or waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Index of the resource.
    pub resource: ResourceId,
    /// Index of the job's task.
    pub task: TaskId,
    /// Number of the job within its task, from 0.
    pub number: u64,
    /// Start of the stretch.
    pub start: Time,
    /// End of the stretch.
    pub end: Time,
}

impl Stretch {
    fn new(resource: ResourceId, job: &Job, start: Time, end: Time) -> Stretch {
        Stretch { resource, task: job.task, number: job.number, start, end }
    }
}

/// Returns the reason why a job missed its deadline, from a fixed vocabulary.
pub(crate) fn why_missed(job: &Job, first_start: Option<Time>, end: End, now: Time) -> &'static str {
    match first_start {
        _ if end == End::Abandoned => "given up by the scheduler",
        _ if end == End::Unreleased => "never released",
        None if job.release >= job.deadline || job.release > now => "released too late",
        _ if job.release + job.fastest.time_for(job.wcet) > job.deadline => "late by wcet at its release",
        None => "never started",
        Some(start) if start + job.fastest.time_for(job.wcet) > job.deadline => "started too late",
        // A job that has not completed after its wcet has work left.
        Some(_) if job.executed > job.wcet || end != End::Completed && job.executed == job.wcet => "overran its wcet",
        Some(_) => "interrupted",
    }
}

/// Observer that records all slices and jobs up to a point in time. Memory grows with that time.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// End of the recording: slices that start and jobs that are released at this time or later are not recorded.
    pub until: Time,
    /// Slices in the order in which they ended.
    pub slices: Vec<Slice>,
    /// Jobs in the order in which they left.
    pub jobs: Vec<JobRecord>,
    /// Times in which jobs held resources, in the order in which they ended.
    pub holds: Vec<Stretch>,
    /// Times in which jobs waited for resources, in the order in which they ended.
    pub waits: Vec<Stretch>,
    /// Why jobs missed their deadlines, in the order in which they left.
    pub misses: Vec<Miss>,
    /// What the cores did while recorded jobs waited.
    holders: CoreHistory,
    /// Number of recorded jobs that have not left.
    open: usize,
}

impl Recorder {
    /// Creates a recorder of everything before `until`.
    pub fn until(until: Time) -> Recorder {
        let (slices, jobs, holds, waits) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Recorder { until, slices, jobs, holds, waits, misses: Vec::new(), holders: CoreHistory::default(), open: 0 }
    }

    /// Whether what happens at this time can matter to a recorded job.
    fn matters(&self, now: Time) -> bool {
        now < self.until || self.open > 0
    }
}

impl Observer for Recorder {
    fn released(&mut self, job: &Job) {
        if job.release < self.until {
            self.open += 1;
            self.holders.released(job);
        }
    }

    fn dispatched(&mut self, core: CoreId, job: &Job, now: Time) {
        if self.matters(now) {
            self.holders.dispatched(core, job, now);
        }
    }

    fn ran(&mut self, core: CoreId, job: &Job, start: Time, end: Time, speed: Speed) {
        if self.matters(start) {
            self.holders.ran(core, job, start, end);
        }
        if start < self.until && start < end {
            self.slices.push(Slice { core, task: job.task, number: job.number, start, end, speed });
        }
    }

    fn left(&mut self, job: &Job, first_start: Option<Time>, end: End, now: Time) {
        if job.release < self.until {
            if end != End::Completed || now > job.deadline {
                // A job that was never released competed for no core.
                let ran_instead = if end == End::Unreleased { Vec::new() } else { self.holders.instead_of(job, now) };
                let why = why_missed(job, first_start, end, now);
                self.misses.push(Miss { task: job.task, number: job.number, why, ran_instead });
            }
            if end != End::Unreleased {
                self.open = self.open.saturating_sub(1);
                self.holders.left(job);
            }
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

    fn held(&mut self, resource: ResourceId, job: &Job, start: Time, end: Time) {
        if start < self.until {
            self.holds.push(Stretch::new(resource, job, start, end));
        }
    }

    fn blocked(&mut self, resource: ResourceId, job: &Job, start: Time, end: Time) {
        if start < self.until && start < end {
            self.waits.push(Stretch::new(resource, job, start, end));
        }
    }
}
