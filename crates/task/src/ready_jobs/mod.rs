//! The ready jobs of a program that embeds a scheduler: the program reports what happens, [`ReadyJobs`] keeps ids,
//! events and cores, and asks.
//!
//! ```text
//!            release (1)             decide (2)              complete (3)
//!  (outside) ───────────► waiting ◄────────────► running ───────────────► (left)
//!                            │                      │                       ▲
//!                            └──────────────────────┴───────────────────────┘
//!                         decide: deadline passed under `abort` (4), or given up (5)
//! ```
//!
//! 1. [`ReadyJobs::release`] gives the job an id and records [`Event::Released`].
//! 2. [`ReadyJobs::decide`] shows the scheduler a [`SystemView`] and puts jobs on cores, or takes them off, as it
//!    decides.
//! 3. [`ReadyJobs::complete`] takes the job off its core and records [`Event::Completed`].
//! 4. [`ReadyJobs::decide`] finds the deadlines that have passed. Under [`OnMiss::Abort`] the job leaves with
//!    [`Event::Aborted`]; under [`OnMiss::Continue`] it stays and [`Event::DeadlinePassed`] is recorded once.
//! 5. The scheduler may give a job up ([`Assignment::abandon`]); it leaves. So may the program
//!    ([`ReadyJobs::withdraw`]).
//!
//! A job whose task limits preemption ([`crate::Preemption`]) holds its core until its work has reached its next
//! preemption point. The decision at which it has, [`Decision::next`] at the latest, may take it off its core. Until
//! then, 4 and 5 wait: the job leaves at that decision, unless it completes before.
//!
//! A [`JobHandle`] names one job for good: the handle of a job that has left is an error, whatever became of its id.
//! The [`JobId`] behind it, which schedulers see, is used again after the scheduler has been told that its job left.

use alloc::{vec, vec::Vec};

mod decision;
mod error;
mod release;

use crate::{
    Assignment, CoreId, Event, InvalidSystem, Job, JobId, JobTable, OnMiss, Scheduler, Speed, System, SystemView, Task,
    TaskId, Time,
};

pub use decision::{Decision, JobHandle, StoppedJob};
pub use error::{ReadyJobsError, ReleaseProblem};
pub use release::Release;

/// Scheduler that repeats a decision taken elsewhere.
struct Adopted<'a>(&'a Assignment);

impl Scheduler for Adopted<'_> {
    fn start(&mut self, _: &System) -> Result<(), crate::NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        assignment.clone_from(self.0);
        assignment.wake_no_sooner_than(Time(view.now.0.saturating_add(1)));
    }
}

/// What is known about a job besides what schedulers see of it.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Whether the scheduler knows that the job's deadline has passed.
    deadline_told: bool,
    /// Work done that is not a whole nanosecond yet, in thousandths of a nanosecond.
    fraction: u32,
    /// Work at the next preemption point of a held job.
    point: Time,
    /// Whether a held job has to leave at its next preemption point, and whether because its deadline has passed.
    removal: Option<bool>,
}

/// Progress of a job that has just been released.
const BEGINNING: Progress = Progress { deadline_told: false, fraction: 0, point: Time::NEVER, removal: None };

/// The ready jobs of a running system, and the jobs on its cores. See the [module header](self) for the life of a job.
///
/// ```
/// use temponet_task::{Assignment, NotApplicable, ReadyJobs, Scheduler, System, SystemView, Task, TaskId, Time};
/// # struct First;
/// # impl Scheduler for First {
/// #     fn start(&mut self, _: &System) -> Result<(), NotApplicable> { Ok(()) }
/// #     fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
/// #         assignment.place(view, &view.active[..view.active.len().min(1)]);
/// #     }
/// # }
/// # let mut scheduler = First;
/// let tasks = vec![Task::periodic("control", Time::from_ms(10), Time::from_ms(4))];
/// let mut ready = ReadyJobs::new(System::new(tasks, 1))?;
/// ready.start(&mut scheduler)?;
/// let job = ready.release(TaskId(0))?;
/// assert_eq!(ready.decide(&mut scheduler)?.cores(), [Some(job)]);
/// ready.advance(Time::from_ms(3))?;
/// ready.complete(job)?;
/// assert_eq!(ready.decide(&mut scheduler)?.cores(), [None]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReadyJobs {
    system: System,
    now: Time,
    table: JobTable,
    /// By id.
    jobs: Vec<Job>,
    /// By id.
    progress: Vec<Progress>,
    running: Vec<Option<JobId>>,
    events: Vec<Event>,
    /// Jobs that the program must stop, jobs that are late, and whether the program has been told.
    stopped: Vec<StoppedJob>,
    late: Vec<JobHandle>,
    is_told: bool,
    is_started: bool,
    /// The jobs on the cores, as the program knows them.
    cores: Vec<Option<JobHandle>>,
    /// Number of jobs released so far, by task.
    released: Vec<u64>,
    /// Assignment in force.
    assignment: Assignment,
    /// Assignment that a scheduler fills.
    proposed: Assignment,
}

impl ReadyJobs {
    /// A system at time zero without ready jobs.
    pub fn new(system: System) -> Result<ReadyJobs, InvalidSystem> {
        system.validate()?;
        if let Some(task) = system.task_with_sections() {
            return Err(InvalidSystem::Sections(task.name.clone()));
        }
        let room = system.tasks().len();
        Ok(ReadyJobs {
            now: Time::ZERO,
            table: JobTable::with_capacity(room),
            jobs: Vec::with_capacity(room),
            progress: Vec::with_capacity(room),
            running: vec![None; system.cores()],
            events: Vec::with_capacity(2 * room),
            stopped: Vec::with_capacity(room),
            late: Vec::with_capacity(room),
            is_told: true,
            is_started: false,
            cores: vec![None; system.cores()],
            released: vec![0; room],
            assignment: Assignment::default(),
            proposed: Assignment::default(),
            system,
        })
    }

    /// Tasks and cores.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Current date.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Number of ready jobs, running ones included.
    pub fn len(&self) -> usize {
        self.table.active().len()
    }

    /// Whether no job is ready.
    pub fn is_empty(&self) -> bool {
        self.table.active().is_empty()
    }

    /// A ready job; none if it has left.
    pub fn job(&self, handle: JobHandle) -> Option<&Job> {
        self.check(handle).ok().map(|id| &self.jobs[id.index()])
    }

    /// The ready jobs, running ones included, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (JobHandle, &Job)> {
        self.table.active().iter().map(|id| (self.handle(*id), &self.jobs[id.index()]))
    }

    /// Starts a scheduler. Jobs that are already ready are announced to it at the next decision, so a scheduler can be
    /// exchanged while the system runs.
    pub fn start(&mut self, scheduler: &mut (impl Scheduler + ?Sized)) -> Result<(), crate::NotApplicable> {
        scheduler.start(&self.system)?;
        self.is_started = true;
        self.events.clear();
        let mut active = self.table.active().to_vec();
        active.sort_by_key(|id| self.jobs[id.index()].tie());
        let is_late = |id: &&JobId| self.progress[id.index()].deadline_told;
        self.events.extend(active.iter().copied().map(Event::Released));
        self.events.extend(active.iter().filter(is_late).copied().map(Event::DeadlinePassed));
        Ok(())
    }

    /// Moves on to the date `now` and adds the time that has passed to the execution of the running jobs. A program
    /// that measures processor time corrects that with [`ReadyJobs::set_executed`].
    pub fn advance(&mut self, now: Time) -> Result<(), ReadyJobsError> {
        if now < self.now || now > Time::MAX_INPUT {
            return Err(ReadyJobsError::Time { from: self.now, to: now });
        }
        let passed = now - self.now;
        for core in self.system.core_ids() {
            let Some(id) = self.running[core] else { continue };
            let (speed, slot) = (self.speed(core), &mut self.progress[id.index()]);
            let thousandths = u128::from(passed.0) * u128::from(speed.0) + u128::from(slot.fraction);
            slot.fraction = (thousandths % 1000) as u32;
            let executed = &mut self.jobs[id.index()].executed;
            *executed = Time((u128::from(executed.0) + thousandths / 1000).min(u128::from(Time::MAX_INPUT.0)) as u64);
        }
        self.now = now;
        Ok(())
    }

    /// Releases a job of a task now. Returns its handle.
    ///
    /// The deadline counts from now. A program whose timers are late passes the nominal date to
    /// [`ReadyJobs::release_with`].
    pub fn release(&mut self, task: TaskId) -> Result<JobHandle, ReadyJobsError> {
        let release = Release::of(self.task(task)?, self.now);
        self.release_with(task, release)
    }

    /// Releases a job of a task that has a release date, deadline, execution time, criticality, value or estimate of
    /// its own.
    pub fn release_with(&mut self, task: TaskId, release: Release) -> Result<JobHandle, ReadyJobsError> {
        let name = &self.task(task)?.name;
        if let Some(what) = release.problem(self.now) {
            return Err(ReadyJobsError::Release { task: name.clone(), what });
        }
        let Release { release, deadline, wcet, bcet, criticality, value, estimate } = release;
        let job = Job::new(task, release, deadline, wcet)
            .with_criticality(criticality)
            .with_fastest(self.system.machine().fastest(task))
            .with_number(self.released[task])
            .with_bcet(bcet)
            .with_value(value)
            .with_estimate(estimate.map(|estimate| estimate.within(bcet, wcet)));
        self.released[task] += 1;
        let id = self.table.enter();
        if id.index() == self.jobs.len() {
            self.jobs.push(job);
            self.progress.push(BEGINNING);
        } else {
            (self.jobs[id.index()], self.progress[id.index()]) = (job, BEGINNING);
        }
        self.events.push(Event::Released(id));
        Ok(self.handle(id))
    }

    /// Corrects the execution time of a ready job so far, as a processor-time clock measures it.
    pub fn set_executed(&mut self, handle: JobHandle, executed: Time) -> Result<(), ReadyJobsError> {
        let id = self.check(handle)?;
        self.jobs[id.index()].executed = executed.min(Time::MAX_INPUT);
        Ok(())
    }

    /// Reports that a job is done. Returns whether it is on time; exactly at its deadline it is.
    pub fn complete(&mut self, handle: JobHandle) -> Result<bool, ReadyJobsError> {
        let id = self.check(handle)?;
        self.leave(id);
        self.events.push(Event::Completed(id));
        Ok(self.now <= self.jobs[id.index()].deadline)
    }

    /// Takes a job out that the program gives up, such as one that has overrun its wcet. Schedulers are told as of a
    /// job that was aborted.
    pub fn withdraw(&mut self, handle: JobHandle) -> Result<(), ReadyJobsError> {
        let id = self.check(handle)?;
        self.leave(id);
        self.events.push(Event::Aborted(id));
        Ok(())
    }

    /// Counts a job of a task that the program does not release, so that the numbers of later jobs keep step with the
    /// task's arrivals.
    pub fn skip(&mut self, task: TaskId) -> Result<(), ReadyJobsError> {
        self.task(task)?;
        self.released[task] += 1;
        Ok(())
    }

    /// Keeps the ids of jobs that leave from being used again until [`ReadyJobs::free_ids`] is called.
    ///
    /// A second scheduler that is shown only some of the decisions, with the events of all decisions since, needs this:
    /// an id must not name another job before that scheduler has been told that its job has left.
    pub fn hold_ids(&mut self) {
        self.table.add_reader();
    }

    /// Lets the ids of jobs that left before the last decision be used again.
    pub fn free_ids(&mut self) {
        self.table.reader_was_told();
    }

    /// Puts the jobs of an assignment on the cores that someone else has decided on, from the state as it is now. No
    /// event may have been reported since the last decision, or it would be lost to the scheduler. Dates to wake at
    /// that have passed are moved to the next nanosecond.
    pub fn adopt(&mut self, assignment: &Assignment) -> Result<Decision<'_>, ReadyJobsError> {
        self.decide(&mut Adopted(assignment))
    }

    /// The state as a scheduler sees it.
    pub fn view(&self) -> SystemView<'_> {
        let view = SystemView::of_table(self.now, &self.system, &self.table, &self.jobs, &self.running);
        view.with_events(&self.events)
    }

    /// Finds passed deadlines, asks the scheduler, and puts its jobs on the cores.
    ///
    /// Call it after every release and completion (those of one date together), and at [`Decision::next`]. An illegal
    /// assignment is an error; the jobs then stay on the cores they have, and another scheduler can be started and
    /// asked.
    ///
    /// # Panics
    ///
    /// The scheduler must have been started with these jobs' system ([`ReadyJobs::start`]). One that was started with
    /// another system may panic.
    pub fn decide(&mut self, scheduler: &mut (impl Scheduler + ?Sized)) -> Result<Decision<'_>, ReadyJobsError> {
        if !self.is_started {
            return Err(ReadyJobsError::NotStarted);
        }
        if core::mem::take(&mut self.is_told) {
            self.stopped.clear();
            self.late.clear();
        }
        self.reach_points();
        self.pass_deadlines();
        let mut proposed = core::mem::take(&mut self.proposed);
        proposed.reset(self.system.cores());
        scheduler.decide(&self.view(), &mut proposed);
        let checked = proposed.check(&self.view());
        self.proposed = proposed;
        checked.map_err(ReadyJobsError::Assignment)?;
        core::mem::swap(&mut self.assignment, &mut self.proposed);
        self.dispatch();
        self.events.clear();
        self.table.forget_left();
        self.is_told = true;
        let deadlines =
            self.table.active().iter().map(|id| self.jobs[id.index()].deadline).filter(|date| *date > self.now);
        let next = deadlines.chain(self.assignment.wake()).chain(self.next_point()).min();
        let next = next.map(|date| date.min(Time::MAX_INPUT));
        let ReadyJobs { assignment, cores, stopped, late, .. } = self;
        Ok(Decision { assignment, cores, stopped, late, next })
    }

    /// Ends the hold of the running jobs whose work has reached a preemption point. Those that are to leave are
    /// stopped.
    fn reach_points(&mut self) {
        for core in self.system.core_ids() {
            let Some(id) = self.running[core].filter(|id| self.jobs[id.index()].held) else { continue };
            let Progress { point, removal, .. } = self.progress[id.index()];
            if self.jobs[id.index()].executed < point {
                continue;
            }
            self.jobs[id.index()].held = false;
            if let Some(is_late) = removal {
                self.stop(id, is_late);
                self.events.push(Event::Aborted(id));
            }
        }
    }

    /// Returns the earliest date at which a job that holds its core reaches a preemption point, if no decision comes
    /// before.
    fn next_point(&self) -> Option<Time> {
        let held = self.system.core_ids().zip(&self.running).filter_map(|(core, id)| Some((core, (*id)?)));
        let held = held.filter(|(_, id)| self.jobs[id.index()].held && self.progress[id.index()].point != Time::NEVER);
        let date = |(core, id): (CoreId, JobId)| {
            let work = self.progress[id.index()].point.saturating_sub(self.jobs[id.index()].executed).0;
            Time(self.now.0.saturating_add(self.speed(core).time_for(Time(work)).0.max(1)))
        };
        held.map(date).min()
    }

    /// Takes jobs whose deadline has passed out, or tells the scheduler.
    fn pass_deadlines(&mut self) {
        let mut place = 0;
        while place < self.table.active().len() {
            let id = self.table.active()[place];
            let told = &mut self.progress[id.index()].deadline_told;
            if self.jobs[id.index()].deadline > self.now || *told {
                place += 1;
                continue;
            }
            let stays = self.system.on_miss() == OnMiss::Continue || self.jobs[id.index()].held;
            match stays {
                false => {
                    self.stop(id, true);
                    self.events.push(Event::Aborted(id));
                }
                true => {
                    *told = true;
                    if self.system.on_miss() == OnMiss::Abort {
                        self.progress[id.index()].removal = Some(true);
                    }
                    self.late.push(self.handle(id));
                    self.events.push(Event::DeadlinePassed(id));
                    place += 1;
                }
            }
        }
    }

    /// Returns the speed of a core until the next decision.
    fn speed(&self, core: CoreId) -> Speed {
        match self.system.machine().is_full_speed() {
            true => self.assignment.speed(core),
            false => self.system.machine().speed(core),
        }
    }

    /// Carries a legal assignment out.
    fn dispatch(&mut self) {
        for place in 0..self.assignment.abandoned().len() {
            let id = self.assignment.abandoned()[place];
            match self.jobs[id.index()].held {
                true => self.progress[id.index()].removal = self.progress[id.index()].removal.or(Some(false)),
                false => self.stop(id, false),
            }
        }
        for id in self.running.iter().flatten() {
            self.jobs[id.index()].running = false;
        }
        self.running.copy_from_slice(self.assignment.cores());
        for (core, id) in self.system.core_ids().zip(&self.running) {
            let Some(id) = id else { continue };
            let job = &mut self.jobs[id.index()];
            (job.running, job.last_core) = (true, Some(core));
            let preemption = self.system.tasks()[job.task].preemption;
            if preemption.is_limited() && !job.held {
                job.held = true;
                self.progress[id.index()].point = preemption.next_point(job.executed);
            }
        }
        for core in self.system.core_ids() {
            self.cores[core] = self.running[core].map(|id| self.handle(id));
        }
    }

    /// Takes a job out that has not completed.
    fn stop(&mut self, id: JobId, is_late: bool) {
        self.leave(id);
        self.stopped.push(StoppedJob { handle: self.handle(id), job: self.jobs[id.index()], is_late });
    }

    fn handle(&self, id: JobId) -> JobHandle {
        JobHandle { id, generation: self.table.generation(id) }
    }

    /// Takes a job off its core and out of the ready jobs. Its id stays taken until the next decision.
    fn leave(&mut self, id: JobId) {
        self.table.leave(id);
        let job = &mut self.jobs[id.index()];
        if let (true, Some(core)) = (job.running, job.last_core) {
            self.running[core] = None;
            (job.running, job.held) = (false, false);
        }
    }

    fn task(&self, task: TaskId) -> Result<&Task, ReadyJobsError> {
        self.system.tasks().get(task.index()).ok_or(ReadyJobsError::UnknownTask(task))
    }

    /// Returns the id of a job that is ready.
    fn check(&self, handle: JobHandle) -> Result<JobId, ReadyJobsError> {
        match self.table.is(handle.id, handle.generation) {
            true => Ok(handle.id),
            false => Err(ReadyJobsError::Left(handle)),
        }
    }
}
