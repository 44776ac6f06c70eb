//! The event-driven engine.
//!
//! Time jumps from event to event. One step of a run goes to the next decision point ([`Engine::advance`] in
//! `advance.rs`), asks the scheduler, and carries out its decision ([`Engine::apply`] in `decision.rs`). Within one
//! instant, the order is always the same:
//!
//! - running jobs without remaining work complete (`complete_jobs`);
//! - jobs that reach a preemption point no longer hold their core (`reach_points` in `limited_preemption.rs`);
//! - jobs that reach the end of a critical section unlock, and those that reach a taken one give up their core
//!   (`sections.rs`);
//! - unfinished jobs that reach their deadline are aborted or stay, by the set's rule (`pass_deadlines`);
//! - new jobs are released (`release`), except at the horizon, where the run ends: those that arrive, and those whose
//!   predecessors have completed (`waiting.rs`);
//! - if any of this happened, or the scheduler asked for a decision at this time, it decides once (`apply`);
//! - running jobs lock what they are about to use; one that comes too late gives up its core, and the scheduler decides
//!   again.
//!
//! A completion exactly at the deadline therefore meets the deadline, and a job that is released when another one
//! completes competes for that core. The engine reads no clock and draws no random numbers: all randomness comes from
//! the [`Workload`].
//!
//! States of a job, with the functions that change them:
//!
//! ```text
//!  ┌─────────┐   1   ┌─────────┐   2   ┌─────────┐   4   ┌───────────┐
//!  │ Pending ├──────►│  Ready  ├──────►│ Running ├──────►│ Completed │
//!  └────┬────┘       │    5    │◄──────┤    5    │       └───────────┘
//!       │            └────┬────┘   3   └────┬────┘
//!       │                 └────────┬────────┘
//!       │          ┌───────────────┼───────────────┐
//!       │          │ 6             │ 7             │ 8
//!       │          ▼               ▼               ▼
//!       │     ┌─────────┐    ┌───────────┐   ┌────────────┐
//!       │     │ Aborted │    │ Abandoned │   │ Unfinished │
//!       │     └─────────┘    └───────────┘   └────────────┘
//!       │                                          ▲
//!       └──────────────────────────────────────────┘
//!                              9
//! ```
//!
//! A *pending* job is still in the [`Workload`], or waits for its predecessors. One that loses a predecessor is counted
//! at once, as [`End::Unreleased`]. A *ready* job is active, without a core. A *running* job is in active and on a
//! core. The other states are those of a job that has left, named by [`End`].
//!
//! 1. `advance` takes the job from the workload at its release time and calls `release`.
//! 2. `apply` calls `reassign_cores`, which calls `dispatch` for every job that gets a core.
//! 3. `reassign_cores` calls `vacate` for every job that loses its core: a preemption, or a migration if `dispatch`
//!    puts the job on another core in the same decision.
//! 4. `complete_jobs` calls `vacate` and `leave` when the job has no remaining work. It may be late under
//!    [`OnMiss::Continue`](temponet_task::OnMiss::Continue).
//! 5. `deadline_passed` under `OnMiss::Continue` leaves the job where it is and reports [`Event::DeadlinePassed`].
//! 6. `deadline_passed` under `OnMiss::Abort` calls `remove`. Its caller is `pass_deadlines`, or `release` for a job
//!    that jitter releases at or after its own deadline. A job that holds its core leaves at its next preemption point.
//! 7. `apply` calls `remove` for every job in [`Assignment::abandoned`]. A job that holds its core leaves as in 6.
//! 8. `finish` counts the jobs that are still active at the horizon.
//! 9. `count_unreleased`, called by `finish`, counts the jobs that are due by the horizon but that jitter would not
//!    release before it.

mod advance;
mod continued;
mod decision;
mod error;
mod limited_preemption;
mod sections;
mod waiting;

use std::sync::Arc;

use temponet_task::{
    Assignment, CoreId, Costs, Event, Job, JobId, JobTable, Scheduler, Speed, System, SystemView, TaskSet, Time,
};

use crate::chains::ChainMeter;
use crate::deadline_queue::DeadlineQueue;
use crate::metrics::{Count, End, Metrics};
use crate::trace::{Observer, Unobserved};
use crate::whole_jobs::WholeJobs;
use crate::workload::{ReleasedJob, Workload};
use error::Backlog;
pub use error::SimError;
use sections::Sections;
pub use waiting::Waiting;

/// Largest number of jobs that may be ready at once. They take a few hundred megabytes.
pub const MOST_READY: usize = 1 << 20;

/// Runs `scheduler` on the jobs that `set` releases with `seed`, up to `horizon`.
///
/// The engine is compiled here, once for observers and once without, so that callers do not compile it again.
pub fn simulate(
    set: &TaskSet,
    seed: u64,
    horizon: Time,
    scheduler: &mut dyn Scheduler,
    mut observer: &mut dyn Observer,
) -> Result<Metrics, SimError> {
    if !set.chains().is_empty() {
        let mut observers = (ChainMeter::new(set, horizon), observer);
        let mut metrics = match WholeJobs::of(set) {
            Some(mut jobs) => run(set, seed, horizon, scheduler, &mut jobs.told(&mut observers as &mut dyn Observer)),
            None => run(set, seed, horizon, scheduler, &mut observers),
        }?;
        metrics.chains = observers.0.finish();
        return Ok(metrics);
    }
    if observer.ignores_everything() {
        return run(set, seed, horizon, scheduler, &mut Unobserved);
    }
    match WholeJobs::of(set) {
        Some(mut jobs) => run(set, seed, horizon, scheduler, &mut jobs.told(observer)),
        None => run(set, seed, horizon, scheduler, &mut observer),
    }
}

/// Number of decisions after which [`jobs_unless_missed`] counts again.
const DECISIONS_PER_COUNT: u64 = 64;

/// Runs `scheduler` as [`simulate`] does and counts the jobs, or ends early: `None` once more than `most_missed`
/// deadlines are missed. In an overload whose late jobs go on, their number and the time of a decision keep growing.
pub fn jobs_unless_missed(
    set: &TaskSet,
    seed: u64,
    horizon: Time,
    scheduler: &mut dyn Scheduler,
    most_missed: u64,
) -> Result<Option<Count>, SimError> {
    let mut engine = Engine::new(set, seed, horizon);
    let ends = |engine: &Engine| {
        engine.metrics.decisions.is_multiple_of(DECISIONS_PER_COUNT) && engine.missed_so_far() > most_missed
    };
    let is_whole = drive(&mut engine, set, scheduler, &mut Unobserved, ends)?;
    Ok(is_whole.then(|| engine.finish_observed(&mut Unobserved).jobs))
}

fn run<O: Observer>(
    set: &TaskSet,
    seed: u64,
    horizon: Time,
    scheduler: &mut dyn Scheduler,
    observer: &mut O,
) -> Result<Metrics, SimError> {
    let mut engine = Engine::new(set, seed, horizon);
    drive(&mut engine, set, scheduler, observer, |_| false)?;
    Ok(engine.finish_observed(observer))
}

/// Lets `scheduler` decide up to the horizon, or until `ends` says so before a decision. Returns whether the horizon
/// was reached.
fn drive<O: Observer>(
    engine: &mut Engine,
    set: &TaskSet,
    scheduler: &mut dyn Scheduler,
    observer: &mut O,
    ends: impl Fn(&Engine) -> bool,
) -> Result<bool, SimError> {
    scheduler.start(engine.system())?;
    let most = scheduler.most_ready().min(MOST_READY);
    let (mut assignment, mut backlog) = (Assignment::default(), Backlog::default());
    while engine.advance_observed(observer) {
        temponet_cancel::checkpoint();
        if ends(engine) {
            return Ok(false);
        }
        backlog.note(engine.table.active().len(), most, set, engine.now)?;
        assignment.reset(set.cores());
        scheduler.decide(&engine.view(), &mut assignment);
        engine.apply_observed(&assignment, observer)?;
    }
    Ok(true)
}

/// State of a run between two decisions. [`Engine::advance`] goes to the next decision point, and [`Engine::apply`]
/// carries out the decision.
///
/// A clone continues exactly as the original would, which allows trying out alternative decisions.
#[derive(Clone)]
pub struct Engine {
    set: Arc<TaskSet>,
    /// The set as schedulers know it.
    known: Arc<TaskSet>,
    costs: Costs,
    horizon: Time,
    now: Time,
    workload: Workload,
    /// What schedulers see of the jobs, indexed by job id.
    jobs: Vec<Job>,
    /// What schedulers do not see of the jobs, indexed by job id.
    hidden: Vec<Hidden>,
    /// Jobs that have been released and have not left.
    table: JobTable,
    deadlines: DeadlineQueue,
    /// Job on each core.
    running: Vec<Option<JobId>>,
    cores: Vec<Core>,
    /// Earliest completion on any core.
    next_completion: Time,
    /// Time for which the scheduler asked for a decision.
    wake: Time,
    /// Whether any task limits preemption.
    is_limited: bool,
    /// Next preemption point of the job that holds each core; [`Time::NEVER`] without one.
    points: Vec<Time>,
    /// Earliest preemption point on any core.
    next_point: Time,
    /// Jobs that wait for others; `None` if no task follows another.
    waiting: Option<Box<Waiting>>,
    /// Jobs of tasks with parts, for observers; `None` if no task has parts.
    whole_jobs: Option<Box<WholeJobs>>,
    /// Critical sections; `None` if no task has any.
    sections: Option<Box<Sections>>,
    /// Whether every core runs at full speed, or at the one that the machine gives it.
    all_full: bool,
    events: Vec<Event>,
    metrics: Metrics,
    /// Busy core time at full speed, in nanoseconds.
    busy_full: u128,
    /// Busy core time at lower speeds, in nanoseconds.
    busy_slow: u128,
    /// Energy spent at lower speeds; for the unit see [`Metrics::energy`].
    energy_slow: f64,
}

/// The part of a job that schedulers do not see: its true execution time and the engine's bookkeeping.
#[derive(Clone, Copy, Debug)]
struct Hidden {
    execution: Time,
    /// Work done on slow cores that is not a whole nanosecond yet, in thousandths of a nanosecond.
    fraction: u32,
    /// Number of the last decision that moved the job to a core.
    assigned: u64,
    /// Time of the first dispatch, or [`Time::NEVER`].
    first_start: Time,
    /// How the job leaves at its next preemption point, if it is to be removed there.
    removal: Option<End>,
}

/// State of a core between two decisions.
#[derive(Clone, Copy, Debug)]
struct Core {
    speed: Speed,
    /// Time at which the core's job completes if nothing intervenes; [`Time::NEVER`] on an idle core.
    completion: Time,
    /// Time since which the core runs its job at this speed.
    since: Time,
    /// Last job of the core and its generation. It resumes without a context switch.
    previous: Option<(JobId, u32)>,
}

/// Creates the cores of a machine, which have been idle since the run began at `since`.
fn idle_cores(system: &System, since: Time) -> Vec<Core> {
    let core =
        |core: CoreId| Core { speed: system.machine().speed(core), completion: Time::NEVER, since, previous: None };
    system.core_ids().map(core).collect()
}

/// Creates the job that schedulers see at a release.
fn new_job(release: &ReleasedJob, system: &System) -> Job {
    Job::new(release.task, release.time, release.deadline, release.wcet)
        .with_criticality(release.criticality)
        .with_fastest(system.machine().fastest(release.task))
        .with_number(release.number)
        .with_bcet(release.bcet)
        .with_value(release.value)
        .with_estimate(release.estimate)
}

impl Engine {
    /// Creates a run that has not begun. A shared pointer to a set is kept; a set behind a reference is copied.
    pub fn new(set: impl Into<Arc<TaskSet>>, seed: u64, horizon: Time) -> Engine {
        Engine::of_shared(set.into(), seed, horizon)
    }

    fn of_shared(set: Arc<TaskSet>, seed: u64, horizon: Time) -> Engine {
        Engine {
            costs: *set.costs(),
            horizon,
            now: Time::ZERO,
            workload: Workload::until(set.clone(), seed, horizon),
            jobs: Vec::new(),
            hidden: Vec::new(),
            table: JobTable::default(),
            deadlines: DeadlineQueue::new(),
            running: vec![None; set.cores()],
            cores: idle_cores(&set, Time::ZERO),
            next_completion: Time::NEVER,
            wake: Time::NEVER,
            is_limited: set.is_limited(),
            points: vec![Time::NEVER; set.cores()],
            next_point: Time::NEVER,
            waiting: Waiting::of(set.tasks()),
            whole_jobs: WholeJobs::of(&set),
            sections: Sections::of(&set),
            all_full: true,
            known: set.clone(),
            events: Vec::new(),
            metrics: Metrics::new(set.tasks()),
            set,
            busy_full: 0,
            busy_slow: 0,
            energy_slow: 0.0,
        }
    }

    /// Counts jobs but does not keep the distributions of their response times and lateness; see
    /// [`Metrics::skip_histograms`].
    pub fn without_histograms(mut self) -> Engine {
        self.metrics.skip_histograms();
        self
    }

    /// Returns the description of the system that a scheduler receives before the run.
    #[inline]
    pub fn system(&self) -> &System {
        &self.known.system
    }

    /// Returns the state that a scheduler sees now.
    #[inline]
    pub fn view(&self) -> SystemView<'_> {
        SystemView::of_table(self.now, &self.known.system, &self.table, &self.jobs, &self.running)
            .with_events(&self.events)
            .with_locks(self.sections.as_ref().map(|sections| &sections.locks))
    }

    /// Returns the current time.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the true execution time of an active job, for oracles and tests.
    #[inline]
    pub fn true_execution(&self, id: JobId) -> Time {
        self.hidden[id.index()].execution
    }

    /// Moves the end of the run to `horizon`, or to the current time if `horizon` is in the past.
    pub fn set_horizon(&mut self, horizon: Time) {
        self.horizon = horizon.max(self.now);
        self.workload.extend(self.horizon);
    }

    /// Returns the number of jobs that count and have left so far, and of those that met their deadline.
    pub fn jobs_so_far(&self) -> Count {
        self.metrics.jobs
    }

    /// Returns the number of deadlines that have been missed so far, those of jobs that have not left included.
    fn missed_so_far(&self) -> u64 {
        let is_late = |id: &&JobId| {
            let job = &self.jobs[id.index()];
            job.deadline < self.now && !self.set.tasks()[job.task].is_part
        };
        let late = self.table.active().iter().filter(is_late).count() as u64;
        self.metrics.jobs.released - self.metrics.jobs.met + late
    }

    /// Returns the number of migrations so far.
    pub fn migrations(&self) -> u64 {
        self.metrics.migrations
    }

    /// Returns whether no more jobs will be released.
    pub fn is_workload_over(&self) -> bool {
        self.workload.next_time() == Time::NEVER
    }

    /// Removes a job from the active jobs and counts it.
    fn leave(&mut self, id: JobId, end: End, observer: &mut impl Observer) {
        self.table.leave(id);
        self.count(id, end, observer);
        if self.sections.is_some() {
            self.leave_sections(id, observer);
        }
        if self.waiting.is_some() {
            self.tell_followers(id, end, observer);
        }
    }

    /// Adds a job that leaves to the metrics if its deadline is within the horizon, and tells the observer.
    fn count(&mut self, id: JobId, end: End, observer: &mut impl Observer) {
        let job = &self.jobs[id.index()];
        match &mut self.waiting {
            Some(waiting) => waiting.record(&mut self.metrics, job, end, self.now, self.horizon),
            None if job.deadline <= self.horizon => self.metrics.record(job, end, self.now),
            None => {}
        }
        let first_start = self.hidden[id.index()].first_start;
        observer.left(job, Some(first_start).filter(|start| *start != Time::NEVER), end, self.now);
    }

    /// Vacates the core of a job if the job is running.
    fn take_off_core(&mut self, id: JobId, observer: &mut impl Observer) {
        let job = &self.jobs[id.index()];
        if let (true, Some(core)) = (job.running, job.last_core) {
            self.vacate(core, observer);
            self.find_next_completion();
        }
    }

    /// Ends the slice on a core and leaves it idle.
    fn vacate(&mut self, core: CoreId, observer: &mut impl Observer) {
        if let Some(id) = self.running[core].take() {
            let job = &mut self.jobs[id.index()];
            (job.running, job.held) = (false, false);
            self.end_slice(core, id, self.cores[core].speed, observer);
            let state = &mut self.cores[core];
            state.previous = Some((id, self.table.generation(id)));
            state.completion = Time::NEVER;
        }
    }

    /// Accounts for the time since the core began to run this job at this speed, and starts a new slice.
    fn end_slice(&mut self, core: CoreId, id: JobId, speed: Speed, observer: &mut impl Observer) {
        let since = std::mem::replace(&mut self.cores[core].since, self.now);
        let length = self.now - since;
        if speed == Speed::FULL {
            self.busy_full += u128::from(length.0);
        } else {
            let share = f64::from(speed.0) / 1000.0;
            self.energy_slow += length.as_secs_f64() * share * share * share;
            self.busy_slow += u128::from(length.0);
        }
        observer.ran(core, &self.jobs[id.index()], since, self.now, speed);
    }

    fn find_next_completion(&mut self) {
        self.next_completion = self.cores.iter().map(|core| core.completion).min().unwrap_or(Time::NEVER);
    }

    /// Counts the jobs that are due by the horizon but that jitter would not release before it, as misses.
    fn count_unreleased(&mut self, observer: &mut impl Observer) {
        for release in self.workload.still_delayed(self.horizon) {
            let job = new_job(&release, &self.known.system);
            match &mut self.waiting {
                Some(waiting) => waiting.record(&mut self.metrics, &job, End::Unfinished, self.now, self.horizon),
                None => self.metrics.record(&job, End::Unfinished, self.now),
            }
            observer.left(&job, None, End::Unfinished, self.now);
        }
    }

    /// Ends the run at the horizon and returns its metrics.
    pub fn finish(mut self, mut observer: &mut dyn Observer) -> Metrics {
        match self.whole_jobs.take() {
            Some(mut jobs) => self.finish_observed(&mut jobs.told(observer)),
            None => self.finish_observed(&mut observer),
        }
    }

    fn finish_observed(mut self, observer: &mut impl Observer) -> Metrics {
        for core in CoreId::all(self.cores.len()) {
            self.vacate(core, observer);
        }
        if self.sections.is_some() {
            self.finish_sections(observer);
        }
        for place in 0..self.table.active().len() {
            self.count(self.table.active()[place], End::Unfinished, observer);
        }
        self.count_unreleased(observer);
        self.count_waiting(observer);
        let capacity = u128::from(self.now.0) * self.cores.len() as u128;
        self.metrics.idle_ns = capacity - self.busy_full - self.busy_slow;
        self.metrics.energy = self.busy_full as f64 * 1e-9 + self.energy_slow;
        self.metrics.finish_run();
        self.metrics
    }
}
