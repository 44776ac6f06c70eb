//! The state that a scheduler sees at a decision point. Nothing here depends on the simulator: a real-time program
//! fills the same structures from its own queues.

use alloc::{format, string::String};

use crate::{CoreId, Estimate, JobTable, Locks, Speed, System, Task, TaskId, Time};

/// Identifier of a job while it is active. After the job has left the system, the number may be reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u32);

impl JobId {
    /// Returns the index of the job in [`SystemView::jobs`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A job as far as a scheduler may know it: bounds, progress and perhaps an estimate, never the true execution time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Job {
    /// The job's task.
    pub task: TaskId,
    /// Criticality level; see [`Task::criticality`].
    pub criticality: u8,
    /// Whether the job is on a core right now. That core is `last_core`.
    pub running: bool,
    /// Whether the job keeps its core at this decision, because its task limits preemption and it is between two
    /// preemption points; see [`crate::Preemption`]. Only a running job is held.
    pub held: bool,
    /// Speed of the fastest core that the job may run on.
    pub fastest: Speed,
    /// Core that the job last ran on; `None` if it has not run yet.
    pub last_core: Option<CoreId>,
    /// Number of the job within its task, from 0.
    pub number: u64,
    /// Release time.
    pub release: Time,
    /// Absolute deadline.
    pub deadline: Time,
    /// Worst-case execution time.
    pub wcet: Time,
    /// Best-case execution time.
    pub bcet: Time,
    /// Work done so far, as execution time at full speed.
    pub executed: Time,
    /// Overhead that remains before the job's own work goes on: context switches, migrations and decisions.
    pub overhead: Time,
    /// Value of meeting the deadline.
    pub value: f64,
    /// Estimate of the execution time, from bcet to wcet, if there is one.
    pub estimate: Option<Estimate>,
}

impl Job {
    /// Creates a job as it is at its release: job number 0 of a task, of known execution time,
    /// criticality 0 and value 1, on cores of full speed.
    pub fn new(task: TaskId, release: Time, deadline: Time, wcet: Time) -> Job {
        Job {
            task,
            criticality: 0,
            running: false,
            held: false,
            fastest: Speed::FULL,
            last_core: None,
            number: 0,
            release,
            deadline,
            wcet,
            bcet: wcet,
            executed: Time::ZERO,
            overhead: Time::ZERO,
            value: 1.0,
            estimate: None,
        }
    }

    /// Creates the first job of `task`, which has this id in its set, as it is at its release, on cores of full speed.
    pub fn first(id: TaskId, task: &Task) -> Job {
        let Task { bcet, criticality, value, .. } = *task;
        Job { bcet, criticality, value, ..Job::new(id, task.offset, task.offset + task.deadline, task.wcet) }
    }

    /// Returns the remaining work if the job takes its whole wcet, overhead included. It is at least one nanosecond,
    /// because the job is not complete.
    #[inline]
    pub fn remaining(&self) -> Time {
        Time(self.wcet.0.saturating_sub(self.executed.0).max(1) + self.overhead.0)
    }

    /// Returns the remaining work if the job takes only its bcet, overhead included; at least one nanosecond.
    #[inline]
    pub fn least_remaining(&self) -> Time {
        Time(self.bcet.0.saturating_sub(self.executed.0).max(1) + self.overhead.0)
    }

    /// Returns the time that the remaining work takes on the fastest core that the job may use. On cores of full speed,
    /// it is [`Job::remaining`].
    #[inline]
    pub fn time_to_finish(&self) -> Time {
        self.fastest.time_for(self.remaining())
    }

    /// Like [`Job::time_to_finish`], if the job takes only its bcet.
    #[inline]
    pub fn least_time_to_finish(&self) -> Time {
        self.fastest.time_for(self.least_remaining())
    }

    /// Returns the slack (laxity) in nanoseconds: time to the deadline minus the time for the remaining work at the
    /// wcet on the fastest core that the job may use. A job with negative slack is *late by wcet*.
    #[inline]
    pub fn slack(&self, now: Time) -> i64 {
        self.deadline.signed_sub(now + self.time_to_finish())
    }

    /// Returns whether the job would miss its deadline with its whole wcet, even if it ran from now on, on the fastest
    /// core that it may use.
    #[inline]
    pub fn is_late_by_wcet(&self, now: Time) -> bool {
        self.slack(now) < 0
    }

    /// Returns whether the job would miss its deadline even with only its bcet and running from now on, on the fastest
    /// core that it may use.
    #[inline]
    pub fn is_impossible(&self, now: Time) -> bool {
        now + self.least_time_to_finish() > self.deadline
    }

    /// Returns the tie-break among jobs with equal keys: earlier release, then lower task id, then lower job number.
    /// No two jobs are equal in it.
    #[inline]
    pub fn tie(&self) -> Tie {
        (self.release, self.task, self.number)
    }
}

replaced_fields! {
    Job:
    with_task task: TaskId,
    with_criticality criticality: u8,
    with_running running: bool,
    with_held held: bool,
    with_fastest fastest: Speed,
    with_last_core last_core: Option<CoreId>,
    with_number number: u64,
    with_release release: Time,
    with_deadline deadline: Time,
    with_wcet wcet: Time,
    with_bcet bcet: Time,
    with_executed executed: Time,
    with_overhead overhead: Time,
    with_value value: f64,
    with_estimate estimate: Option<Estimate>,
}

/// Tie-break among jobs with equal keys; see [`Job::tie`].
pub type Tie = (Time, TaskId, u64);

/// Something that happened since the last decision. The job of an event can be looked up even if it has just left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The job was released.
    Released(JobId),
    /// The job completed and has left.
    Completed(JobId),
    /// The job was removed and has left: at its deadline under [`crate::OnMiss::Abort`], or at the preemption point
    /// after its deadline, or after it was abandoned, if it was held before.
    Aborted(JobId),
    /// The job reached its deadline and stays: under [`crate::OnMiss::Continue`], or under [`crate::OnMiss::Abort`]
    /// while it is held.
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

/// State of the system at a decision point.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SystemView<'a> {
    /// Current time.
    pub now: Time,
    /// Tasks and machine.
    pub system: &'a System,
    /// Ids of the active jobs, in no particular order.
    pub active: &'a [JobId],
    /// Jobs, indexed by [`JobId`]. Only active jobs and those named in `events` are meaningful.
    pub jobs: &'a [Job],
    /// Job on each core; `None` is idle. A job that has just left is no longer on its core.
    pub running: &'a [Option<JobId>],
    /// Events since the last decision, in the order in which they happened.
    pub events: &'a [Event],
    /// Who holds and who wants which resource; `None` if the system has no resources.
    pub locks: Option<&'a Locks>,
    /// Table behind `active`, if there is one.
    table: Option<&'a JobTable>,
}

impl<'a> SystemView<'a> {
    /// Creates a view without events and locks. The arguments are the fields of the same names.
    pub fn new(
        now: Time,
        system: &'a System,
        active: &'a [JobId],
        jobs: &'a [Job],
        running: &'a [Option<JobId>],
    ) -> SystemView<'a> {
        SystemView { now, system, active, jobs, running, events: &[], locks: None, table: None }
    }

    /// Like [`SystemView::new`], with the active jobs of a table, which knows without searching whether a job is
    /// active.
    #[inline]
    pub fn of_table(
        now: Time,
        system: &'a System,
        table: &'a JobTable,
        jobs: &'a [Job],
        running: &'a [Option<JobId>],
    ) -> SystemView<'a> {
        SystemView { now, system, active: table.active(), jobs, running, events: &[], locks: None, table: Some(table) }
    }

    /// Returns the view with these events since the last decision.
    #[must_use]
    pub fn with_events(self, events: &'a [Event]) -> SystemView<'a> {
        SystemView { events, ..self }
    }

    /// Returns the view with what is known of resources; `None` if the system has none.
    #[must_use]
    pub fn with_locks(self, locks: Option<&'a Locks>) -> SystemView<'a> {
        SystemView { locks, ..self }
    }

    /// Returns the view of the same jobs in another system.
    #[must_use]
    pub fn with_system(self, system: &'a System) -> SystemView<'a> {
        SystemView { system, ..self }
    }

    /// Returns the view with these active jobs only.
    #[must_use]
    pub fn with_active(self, active: &'a [JobId]) -> SystemView<'a> {
        SystemView { active, table: None, ..self }
    }

    /// Returns the job with this id.
    ///
    /// # Panics
    ///
    /// If no job has ever had this id.
    pub fn job(&self, id: JobId) -> &'a Job {
        &self.jobs[id.index()]
    }

    /// Returns whether an active job has this id.
    #[inline]
    pub fn is_active(&self, id: JobId) -> bool {
        self.table.map_or_else(|| self.active.contains(&id), |table| table.is_active(id))
    }

    /// Returns the name of a job for messages: "job 3 of task "control"".
    ///
    /// # Panics
    ///
    /// If no job has ever had this id.
    pub fn job_name(&self, id: JobId) -> String {
        let job = self.job(id);
        match self.system.tasks().get(job.task.index()) {
            Some(task) => format!("job {} of task {:?}", job.number, task.name),
            None => format!("job {} of task {}", job.number, job.task),
        }
    }

    /// Returns the task of a job.
    pub fn task_of(&self, job: &Job) -> &'a Task {
        &self.system.tasks()[job.task]
    }

    /// Returns the date at which a job will have run for `work` more if it is on a core of full speed from now on, with
    /// the overhead that remains and what this decision adds.
    ///
    /// A scheduler that wakes up when a budget is used up has to count the decision, too: woken before, it would decide
    /// again, and each time add to the overhead.
    pub fn date_after(&self, job: &Job, work: Time) -> Time {
        self.now + self.charged(job, work)
    }

    /// Like [`SystemView::date_after`], on this core, which may have a speed of its own.
    pub fn date_after_on(&self, job: &Job, work: Time, core: CoreId) -> Time {
        self.now + self.system.machine().speed(core).time_for(self.charged(job, work))
    }

    /// Returns `work` with the overhead that remains and what this decision adds.
    fn charged(&self, job: &Job, work: Time) -> Time {
        let is_charged = !job.running || job.last_core == Some(CoreId(0));
        let decision = if is_charged { self.system.costs().decision } else { Time::ZERO };
        work + job.overhead + decision
    }

    /// Iterates over the active jobs, running ones included, in no particular order.
    pub fn ready(&self) -> impl Iterator<Item = (JobId, &'a Job)> + use<'a> {
        let jobs = self.jobs;
        self.active.iter().map(move |id| (*id, &jobs[id.index()]))
    }

    /// Returns whether a job cannot run now, because another one holds a resource.
    pub fn is_blocked(&self, id: JobId) -> bool {
        self.locks.is_some_and(|locks| locks.is_blocked(id))
    }

    /// Returns the number of cores.
    pub fn cores(&self) -> usize {
        self.system.cores()
    }

    /// Returns whether every ready job can have a core, and none is better off on another one. Jobs that share
    /// resources cannot all run.
    pub fn leaves_no_choice(&self) -> bool {
        let most = if self.locks.is_none() { self.system.cores() } else { 1 };
        self.active.len() <= most && self.system.machine().is_plain()
    }

    /// Returns whether a job may run on a core. A job of a task that the system does not have may run anywhere.
    pub fn may_run(&self, job: &Job, core: CoreId) -> bool {
        self.system.tasks().get(job.task.index()).is_none_or(|task| task.cores.contains(core))
    }

    /// Returns the time that the remaining work of a job takes on a core, at its wcet.
    pub fn time_to_finish_on(&self, job: &Job, core: CoreId) -> Time {
        self.system.machine().speed(core).time_for(job.remaining())
    }

    /// Returns the job that holds a core, if there is one. The decision has to leave it there;
    /// [`crate::Assignment::place`] does so by itself.
    pub fn held_on(&self, core: CoreId) -> Option<JobId> {
        self.running[core].filter(|id| self.jobs[id.index()].held)
    }

    /// Returns whether a job holds the core.
    pub fn is_held(&self, core: CoreId) -> bool {
        self.held_on(core).is_some()
    }
}
