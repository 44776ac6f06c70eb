//! The event-driven engine.
//!
//! Time jumps from event to event. At one instant, always in this order:
//!
//! 1. jobs that run out of work *complete*;
//! 2. unfinished jobs whose *deadline* it is are aborted, or stay late, by the miss rule;
//! 3. new jobs are *released*;
//! 4. if anything of this happened, or the scheduler asked for this date, it *decides* once.
//!
//! So a completion exactly at the deadline is met, and a job released at the instant another completes competes for
//! that core. The engine never reads a clock and draws no random numbers: the [`Workload`] brings them.
//!
//! A job's life:
//! ```text
//!            release (3)            decide (4)               complete (1)
//!   Workload ───────────► waiting ◄───────────► running ───────────────────► left
//!                            │     preempted        │  abort (2), abandon (4)   ▲
//!                            └──────────────────────┴──────────────────────────┘
//! ```

mod advance;
mod decision;
mod error;

use std::ops::Deref;

use temponet_task::{Assignment, Costs, Event, Job, JobId, Scheduler, Speed, System, SystemView, TaskSet, Time};

use crate::deadline_queue::DeadlineQueue;
use crate::metrics::{End, Metrics};
use crate::trace::Observer;
use crate::workload::{Release, Workload};
pub use error::SimError;

/// Jobs that may be ready at once: some hundred megabytes.
pub const MOST_READY: usize = 1 << 20;

/// Runs `scheduler` on the jobs of `set` that `seed` stands for, up to `horizon`.
pub fn simulate<S: Scheduler + ?Sized, O: Observer>(
    set: &TaskSet,
    seed: u64,
    horizon: Time,
    scheduler: &mut S,
    observer: &mut O,
) -> Result<Metrics, SimError> {
    let mut engine = Engine::new(set, seed, horizon);
    scheduler.start(engine.system())?;
    let most = scheduler.most_ready().min(MOST_READY);
    let mut assignment = Assignment::default();
    while engine.advance(observer) {
        if engine.active.len() > most {
            return Err(error::too_many(set, engine.now, most));
        }
        assignment.reset(set.cores);
        scheduler.decide(&engine.view(), &mut assignment);
        engine.apply(&assignment, observer)?;
    }
    Ok(engine.finish(observer))
}

/// The state of a run between two decisions: [`Engine::advance`] goes to the next decision point, [`Engine::apply`]
/// takes the decision. A copy goes on as the original would: what if?
#[derive(Clone)]
pub struct Engine<S> {
    set: S,
    system: System,
    costs: Costs,
    horizon: Time,
    now: Time,
    workload: Workload<S>,
    /// What schedulers see, indexed by job id.
    jobs: Vec<Job>,
    /// What they do not see, likewise.
    hidden: Vec<Hidden>,
    active: Vec<JobId>,
    free: Vec<JobId>,
    /// Jobs that left since the last decision; their ids are free after the next one.
    leaving: Vec<JobId>,
    deadlines: DeadlineQueue,
    running: Vec<Option<JobId>>,
    cores: Vec<Core>,
    /// The earliest of the cores' completions.
    next_completion: Time,
    wake: Time,
    /// Whether every core runs at full speed.
    all_full: bool,
    events: Vec<Event>,
    metrics: Metrics,
    /// Busy core time in ns at full and at other speeds, and the energy spent at the latter.
    busy_full: u128,
    busy_slow: u128,
    energy_slow: f64,
}

/// What only nature knows of a job, and the engine's own notes on it.
#[derive(Clone, Copy, Debug)]
struct Hidden {
    execution: Time,
    /// Tells the users of one id apart.
    generation: u32,
    /// Place in `active`; [`GONE`] when it left.
    place: u32,
    /// Thousandths of a nanosecond of work done, left over from slow cores.
    fraction: u32,
    /// The decision that last put it on a core, to notice a job on two.
    assigned: u64,
    first_start: Time,
}

const GONE: u32 = u32::MAX;

impl Hidden {
    /// Whether this is still the job of that generation, and active.
    fn is(&self, generation: u32) -> bool {
        self.generation == generation && self.place != GONE
    }
}

/// A core between two decisions.
#[derive(Clone, Copy, Debug)]
struct Core {
    speed: Speed,
    /// When its job runs out of work if nothing intervenes.
    completion: Time,
    /// Since when it runs that job at that speed.
    since: Time,
    /// The job it ran last, which resumes without a context switch.
    previous: Option<(JobId, u32)>,
}

/// What a scheduler sees of a job at its release.
fn new_job(release: &Release) -> Job {
    Job {
        task: release.task,
        criticality: release.criticality,
        running: false,
        last_core: None,
        number: release.number,
        release: release.time,
        deadline: release.deadline,
        wcet: release.wcet,
        bcet: release.bcet,
        executed: Time::ZERO,
        overhead: Time::ZERO,
        value: release.value,
    }
}

impl<S: Deref<Target = TaskSet> + Clone> Engine<S> {
    /// A run that has not begun; the set is borrowed or shared.
    pub fn new(set: S, seed: u64, horizon: Time) -> Engine<S> {
        let core = Core { speed: Speed::FULL, completion: Time::NEVER, since: Time::ZERO, previous: None };
        Engine {
            system: set.system(),
            costs: set.costs,
            horizon,
            now: Time::ZERO,
            workload: Workload::until(set.clone(), seed, horizon),
            jobs: Vec::new(),
            hidden: Vec::new(),
            active: Vec::new(),
            free: Vec::new(),
            leaving: Vec::new(),
            deadlines: DeadlineQueue::new(),
            running: vec![None; set.cores],
            cores: vec![core; set.cores],
            next_completion: Time::NEVER,
            wake: Time::NEVER,
            all_full: true,
            events: Vec::new(),
            metrics: Metrics::new(&set.tasks),
            set,
            busy_full: 0,
            busy_slow: 0,
            energy_slow: 0.0,
        }
    }

    /// What a scheduler is told before the run.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// What a scheduler sees now.
    pub fn view(&self) -> SystemView<'_> {
        SystemView {
            now: self.now,
            system: &self.system,
            active: &self.active,
            jobs: &self.jobs,
            running: &self.running,
            events: &self.events,
        }
    }

    /// The date.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The true execution time of an active job, for oracles and tests.
    pub fn true_execution(&self, id: JobId) -> Time {
        self.hidden[id.index()].execution
    }

    /// Ends the run at another date, which is not past.
    pub fn set_horizon(&mut self, horizon: Time) {
        self.horizon = horizon.max(self.now);
        self.workload.extend(self.horizon);
    }

    /// How often a job has changed its core.
    pub fn migrations(&self) -> u64 {
        self.metrics.migrations
    }

    /// Whether no job will ever be released again.
    pub fn is_workload_over(&self) -> bool {
        self.workload.next_time() == Time::NEVER
    }

    /// Removes a job from the active ones and counts it.
    fn leave(&mut self, id: JobId, end: End, observer: &mut impl Observer) {
        let place = std::mem::replace(&mut self.hidden[id.index()].place, GONE);
        self.active.swap_remove(place as usize);
        if let Some(moved) = self.active.get(place as usize) {
            self.hidden[moved.index()].place = place;
        }
        self.leaving.push(id);
        self.count(id, end, observer);
    }

    fn count(&mut self, id: JobId, end: End, observer: &mut impl Observer) {
        let job = &self.jobs[id.index()];
        if job.deadline <= self.horizon {
            self.metrics.record(job, end, self.now);
        }
        let first_start = self.hidden[id.index()].first_start;
        observer.left(job, Some(first_start).filter(|start| *start != Time::NEVER), end, self.now);
    }

    fn take_off_core(&mut self, id: JobId, observer: &mut impl Observer) {
        let job = &self.jobs[id.index()];
        if let (true, Some(core)) = (job.running, job.last_core) {
            self.vacate(core as usize, observer);
            self.find_next_completion();
        }
    }

    /// Ends the slice on a core and leaves it idle.
    fn vacate(&mut self, core: usize, observer: &mut impl Observer) {
        if let Some(id) = self.running[core].take() {
            self.jobs[id.index()].running = false;
            self.end_slice(core, id, self.cores[core].speed, observer);
            let state = &mut self.cores[core];
            state.previous = Some((id, self.hidden[id.index()].generation));
            state.completion = Time::NEVER;
        }
    }

    /// Accounts for the time since the core began to run its job at its speed.
    fn end_slice(&mut self, core: usize, id: JobId, speed: Speed, observer: &mut impl Observer) {
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

    /// Jobs whose deadline is within the horizon but whose release jitter carried beyond it count, as missed.
    fn count_unreleased(&mut self, observer: &mut impl Observer) {
        for release in self.workload.still_delayed(self.horizon) {
            let job = new_job(&release);
            self.metrics.record(&job, End::Unfinished, self.now);
            observer.left(&job, None, End::Unfinished, self.now);
        }
    }

    /// Ends the run at the horizon and hands out its figures.
    pub fn finish(mut self, observer: &mut impl Observer) -> Metrics {
        for core in 0..self.cores.len() {
            self.vacate(core, observer);
        }
        for id in std::mem::take(&mut self.active) {
            self.count(id, End::Unfinished, observer);
        }
        self.count_unreleased(observer);
        let capacity = u128::from(self.now.0) * self.cores.len() as u128;
        self.metrics.idle_ns = capacity - self.busy_full - self.busy_slow;
        self.metrics.energy = self.busy_full as f64 * 1e-9 + self.energy_slow;
        self.metrics.finish_run();
        self.metrics
    }
}
