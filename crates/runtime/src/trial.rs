//! Trials: the drawn jobs of a task set on real threads, under any scheduler of ours or of Linux.
//!
//! Every job computes for its drawn execution time, as the processor clock of its thread measures it. Releases and
//! execution times depend on the set and the seed alone, so every scheduler meets the same jobs, and the simulator can
//! be asked about them, too.

use temponet_sim::{Slice, Workload};
use temponet_task::{CoreId, Protocol, Scheduler, Speed, System, TaskId, TaskSet, Time};

use crate::error::RuntimeError;
use crate::releases::{Due, Listed};
use crate::report::Report;
use crate::runtime::{refused_parts, refused_points};

/// A scheduler of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinuxScheduler {
    /// SCHED_DEADLINE: earliest deadline first with a budget of the wcet.
    Deadline,
    /// SCHED_FIFO with rate-monotonic priorities.
    Fifo,
    /// SCHED_RR, all tasks at one priority.
    RoundRobin,
    /// The time sharing of every other program (EEVDF), without priorities.
    Eevdf,
}

impl LinuxScheduler {
    /// All of them.
    pub const ALL: [LinuxScheduler; 4] =
        [LinuxScheduler::Deadline, LinuxScheduler::Fifo, LinuxScheduler::RoundRobin, LinuxScheduler::Eevdf];

    /// Name that users write.
    pub fn name(self) -> &'static str {
        match self {
            LinuxScheduler::Deadline => "linux-deadline",
            LinuxScheduler::Fifo => "linux-fifo",
            LinuxScheduler::RoundRobin => "linux-rr",
            LinuxScheduler::Eevdf => "linux-eevdf",
        }
    }

    /// The scheduler with this name.
    pub fn from_name(name: &str) -> Option<LinuxScheduler> {
        LinuxScheduler::ALL.into_iter().find(|scheduler| scheduler.name() == name)
    }

    /// Name of the scheduler that decides alike in the simulator, if there is one.
    pub fn simulated(self) -> Option<&'static str> {
        match self {
            LinuxScheduler::Deadline => Some("edf"),
            LinuxScheduler::Fifo => Some("rm"),
            // 100 ms is the kernel's own time slice, sched_rr_timeslice_ms.
            LinuxScheduler::RoundRobin => Some("rr:quantum=100ms"),
            LinuxScheduler::Eevdf => None,
        }
    }
}

/// Called when the threads of a trial exist, with the kernel's id and the task of each.
pub type Started<'a> = Box<dyn Fn(&[(i32, usize)]) + 'a>;

/// What to run.
pub struct Trial<'a> {
    /// Tasks and rules. Its number of cores must be that of `cpus`.
    pub set: &'a TaskSet,
    /// Seed of the drawn jobs.
    pub seed: u64,
    /// Length of the run.
    pub horizon: Time,
    /// Processors of the jobs.
    pub cpus: Vec<usize>,
    /// Processor of the dispatcher.
    pub housekeeping: usize,
    /// Greatest number of slices that each thread records.
    pub slices: usize,
    /// Called before the run begins.
    pub started: Option<Started<'a>>,
}

/// Who decides in a trial.
pub enum Chooser {
    /// A scheduler of ours whose choice is applied at once, and a slow one beside it, if any.
    Ours(Box<dyn Scheduler>, Option<Box<dyn Scheduler>>),
    /// A scheduler of Linux.
    Linux(LinuxScheduler),
}

/// What happened in a trial.
pub struct TrialReport {
    /// Jobs, metrics and latencies.
    pub report: Report,
    /// When jobs ran, as they noticed themselves. A gap of a few microseconds may be an interrupt.
    pub slices: Vec<Slice>,
    /// The kernel's id and the task of each thread.
    pub threads: Vec<(i32, usize)>,
    /// Date on the monotonic clock at which the run began, in nanoseconds.
    pub epoch: u64,
    /// Counters of the scheduler.
    pub counters: Vec<(&'static str, u64)>,
}

/// Greatest number of threads of one task.
const MOST_THREADS: usize = 32;

impl Trial<'_> {
    /// Draws the jobs. Those that jitter would release at their deadline or later, or only after the run, are left out
    /// of the list and returned apart.
    fn draw(&self) -> (Listed, Vec<Due>) {
        let mut workload = Workload::until(self.set, self.seed, self.horizon);
        let next = || (workload.next_time() < self.horizon).then(|| workload.pop()).flatten();
        let (listed, mut hopeless) = Listed::new(std::iter::from_fn(next));
        let (after, never) = Listed::new(workload.still_delayed(self.horizon));
        hopeless.extend(after.into_jobs());
        hopeless.extend(never);
        (listed, hopeless)
    }

    /// Runs the trial on threads.
    pub fn run(self, chooser: Chooser) -> Result<TrialReport, RuntimeError> {
        if self.set.cores() != self.cpus.len() {
            let (cores, cpus) = (self.set.cores(), self.cpus.len());
            return Err(RuntimeError::Setup(format!("the set has {cores} cores, and {cpus} processors are given")));
        }
        if self.set.speeds() != [Speed::FULL] {
            return Err(RuntimeError::Setup("threads run at full speed only; the set states other speeds".into()));
        }
        if !self.set.machine().is_full_speed() {
            let why =
                "threads run at the speed of their processors; the set states speeds of cores, which cannot be kept to";
            return Err(RuntimeError::Setup(why.into()));
        }
        if let (Some(task), Chooser::Linux(_)) = (self.set.bound_task(), &chooser) {
            let why =
                format!("the schedulers of Linux are not told the cores of a task, to which {:?} is bound", task.name);
            return Err(RuntimeError::Setup(why));
        }
        let is_too_late = |task: &&temponet_task::Task| task.jitter >= task.deadline;
        let keeps = self.set.on_miss() == temponet_task::OnMiss::Continue;
        if let Some(task) = self.set.tasks().iter().find(is_too_late).filter(|_| keeps) {
            return Err(RuntimeError::Setup(format!(
                "jitter can release a job of {:?} after its own deadline, and late jobs continue: such jobs cannot be run on threads",
                task.name
            )));
        }
        let refusal = |task: &temponet_task::Task| refused_parts(task).or_else(|| refused_points(task));
        if let Some(why) = self.set.tasks().iter().find_map(refusal).or_else(|| refused_sections(&self.set.system)) {
            return Err(RuntimeError::Setup(why));
        }
        for task in self.set.tasks() {
            let (name, preemption) = (&task.name, task.preemption);
            if preemption.is_limited() && matches!(chooser, Chooser::Linux(_)) {
                let why = format!("the schedulers of Linux preempt at any time, which task {name:?} does not allow");
                return Err(RuntimeError::Setup(why));
            }
        }
        self.run_threads(chooser)
    }

    /// Number of threads of each task: as many as it has jobs at once, and one more for a job that is just returning.
    #[cfg(target_os = "linux")]
    fn widths(&self, jobs: &[Due]) -> Vec<usize> {
        let mut windows: Vec<Vec<(Time, Time)>> = vec![Vec::new(); self.set.tasks().len()];
        jobs.iter().for_each(|due| windows[due.task].push((due.release.release, due.release.deadline)));
        let is_late_kept = self.set.on_miss() == temponet_task::OnMiss::Continue;
        let width = |(windows, task): (&Vec<(Time, Time)>, &temponet_task::Task)| {
            let at_once = |(place, (_, deadline)): (usize, &(Time, Time))| {
                windows[place..].iter().take_while(|(release, _)| release < deadline).count()
            };
            let most = windows.iter().enumerate().map(at_once).max().unwrap_or(1);
            // A job that holds its core may outlast its deadline, too.
            (most + if is_late_kept || task.preemption.is_limited() { 7 } else { 1 }).min(MOST_THREADS)
        };
        windows.iter().zip(self.set.tasks()).map(width).collect()
    }

    #[cfg(not(target_os = "linux"))]
    fn run_threads(self, _: Chooser) -> Result<TrialReport, RuntimeError> {
        let _ = (self.draw(), MOST_THREADS, self.housekeeping, self.slices, self.started.is_some());
        Err(RuntimeError::NotPermitted("running threads needs Linux".into()))
    }

    #[cfg(target_os = "linux")]
    fn run_threads(mut self, chooser: Chooser) -> Result<TrialReport, RuntimeError> {
        use crate::dispatcher::DispatchPlan;
        use crate::linux::launch::{TaskThreads, ThreadPlan, launch};
        use crate::linux::resources::PiMutex;
        use crate::linux::synthetic::Synthetic;
        use crate::linux::worker::Work;
        use crate::runtime::OnOverrun;

        let (releases, hopeless) = self.draw();
        let never = hopeless.iter().map(|due| (due.task, due.number)).collect();
        let resources = self.set.system.resources().iter().map(|_| PiMutex::default()).collect();
        let started = self.started.take();
        let mut outcome = match chooser {
            Chooser::Linux(scheduler) => {
                self.started = started;
                crate::linux::kernel::run(&self, scheduler, releases.into_jobs(), &resources)?
            }
            Chooser::Ours(mut scheduler, mut decider) => {
                if self.set.system.has_sections() {
                    // It is run without them, but not if it would not take the set as it is.
                    decider.iter_mut().chain([&mut scheduler]).try_for_each(|one| one.start(&self.set.system))?;
                }
                let threads = |(width, task): (usize, &temponet_task::Task)| {
                    let work = |_| Work::Synthetic(Synthetic::of(task, &resources, self.slices));
                    TaskThreads { requests: Default::default(), works: (0..width).map(work).collect() }
                };
                let dispatch = DispatchPlan {
                    system: without_sections(&self.set.system),
                    shares: self.set.system.has_sections(),
                    hopeless: never,
                    on_overrun: vec![OnOverrun::Report; self.set.tasks().len()],
                    horizon: self.horizon,
                    jobs: releases.jobs().len(),
                };
                let tasks = self.widths(releases.jobs()).into_iter().zip(self.set.tasks()).map(threads).collect();
                let plan = ThreadPlan {
                    dispatch,
                    tasks,
                    cpus: self.cpus.clone(),
                    housekeeping: self.housekeeping,
                    doorbell: Default::default(),
                    scheduler,
                    decider,
                    releases: Box::new(releases),
                    locks_memory: true,
                    has_guard: true,
                    carrier: None,
                };
                launch(plan, started)?
            }
        };
        if self.set.system.has_sections() {
            let note = "critical sections: waiting jobs are the kernel's affair (priority inheritance); schedulers are not told, and their guarantees do not count it";
            outcome.report.notes.push(note.into());
        }
        for due in hopeless.iter().filter(|due| due.release.deadline <= self.horizon) {
            outcome.report.add_unreleased(due);
        }
        let (epoch, horizon) = (outcome.epoch, self.horizon);
        let date = |at: u64| Time(at.saturating_sub(epoch));
        let core = |cpu: u32| CoreId::new(self.cpus.iter().position(|known| *known as u32 == cpu).unwrap_or(0));
        let mut slices: Vec<Slice> = Vec::new();
        for (task, found) in &outcome.slices {
            slices.extend(found.slices.iter().map(|slice| Slice {
                core: core(slice.cpu),
                task: TaskId::new(*task),
                number: slice.number,
                start: date(slice.start),
                end: date(slice.end).min(horizon),
                speed: Speed::FULL,
            }));
        }
        slices.sort_by_key(|slice| (slice.start, slice.core));
        let (threads, counters) = (outcome.threads, outcome.counters);
        Ok(TrialReport { report: outcome.report, slices, threads, epoch, counters })
    }
}

/// Returns why threads cannot share the resources of a system, if they cannot.
fn refused_sections(system: &System) -> Option<String> {
    let task = system.task_with_sections().map(|task| &task.name)?;
    if system.cores() > 1 {
        return Some(format!(
            "task {task:?} has critical sections, and the priority that a thread inherits counts on its own core only: run the set on one core (--cores 1), or simulate it"
        ));
    }
    let is_inheritance = system.protocol() == Protocol::Inheritance;
    let name = system.protocol().name();
    (!is_inheritance).then(|| {
        format!("the mutexes of threads have priority inheritance, and the set asks for the protocol {name}: simulate the set, or leave protocol out")
    })
}

/// The system as schedulers of a run on threads see it: who waits for a resource is the kernel's affair.
pub(crate) fn without_sections(system: &System) -> System {
    let mut system = system.clone();
    system.tasks_mut().iter_mut().for_each(|task| task.sections.clear());
    system.set_resources(Vec::new());
    system
}

/// The scheduler whose choice is applied at once while a slow one thinks: the usual fallback of the learned scheduler,
/// behind a shield of its own.
pub fn fast_fallback(system: &temponet_task::System) -> Box<dyn Scheduler> {
    let importance = |task: &temponet_task::Task| (task.criticality, task.value.to_bits());
    let differs = system.tasks().windows(2).any(|pair| importance(&pair[0]) != importance(&pair[1]));
    Box::new(temponet_sched::shield::Shield::new(temponet_sched::fallback(differs)))
}
