//! The threads of a run as a platform: workers whose priorities say who runs.
//!
//! A chosen job has a higher priority than the other started jobs of its core. Priorities rather than stopping: a
//! stopped thread may hold a lock that others need, and a waiting one still runs when the chosen one blocks. A job that
//! is told to return gets [`GRACE`] above the others to do so: one that asks whether it has expired takes microseconds,
//! however full the core is. After that, and if it was taken out of competition for another reason, it has no real-time
//! priority until it returns.
//!
//! System calls are what a switch costs, so the one before is left as it is: a job that is chosen rises one level above
//! the highest rival on its core, unless it is there already, and nobody is lowered. A worker sleeps with the level
//! that it had. So one that usually takes the core from others soon does so with one system call, its wake-up, and a
//! job that goes on after the one that took its core needs none. When the levels are used up, the rivals of one core
//! are lowered together.
//!
//! With a [`Carrier`] the workers have no priorities: the carrier is told who is chosen. Everybody else waits in the
//! kernel's queue, those that were told to return too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::thread::futex;
use rustix::time::Timespec;
use temponet_task::{TaskId, Time};

use super::guard::{Heart, LONGEST_SLEEP};
use super::synthetic::Slices;
use super::sys::{self, Policy};
use super::worker::Cell;
use super::{monotonic_ns, own_processor_ns, pin};
use crate::carrier::Carrier;
use crate::doorbell::{Doorbell, Marks, TaskRequests};
use crate::error::RuntimeError;
use crate::platform::{Note, Platform, Slot};
use crate::releases::Due;

/// Priority of the dispatcher.
pub const DISPATCHER: u32 = 90;
/// Processor time beyond its wcet that makes an overrun.
pub const OVERRUN_MARGIN: Time = Time::from_us(100);
/// Time between the start of the dispatcher and date zero, in nanoseconds.
const LEAD: u64 = 5_000_000;
/// Lowest and highest priority of started jobs.
pub const LOWEST: u32 = 10;
pub const HIGHEST: u32 = 60;
/// Highest priority that a worker sleeps with: each start above a rival takes one level more.
const HIGHEST_ASLEEP: u32 = 40;
/// Priority of jobs that were told to return, for the time [`GRACE`].
const LEAVING: u32 = HIGHEST + 1;
/// Time that a job that was told to return has to do so above all other jobs, in nanoseconds.
const GRACE: u64 = 50_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Free,
    /// Has a job that has not begun.
    Admitted,
    /// Runs a job.
    Started,
    /// Runs a job that was told to return and has the time until this date to do so.
    Leaving(u64),
    /// Runs a job that was taken out of competition.
    Retired,
}

/// A worker as the dispatcher knows it.
pub struct Worker {
    pub cell: Arc<Cell>,
    /// Index of its task.
    pub task: usize,
    pub thread: i32,
    pub handle: Option<std::thread::JoinHandle<Slices>>,
    stage: Stage,
    policy: Policy,
    /// Index of the core that it is pinned to.
    core: usize,
}

impl Worker {
    /// A worker that sleeps, pinned to core 0 with the lowest priority.
    pub fn new(cell: Arc<Cell>, task: usize, thread: i32, handle: Option<std::thread::JoinHandle<Slices>>) -> Worker {
        Worker { cell, task, thread, handle, stage: Stage::Free, policy: Policy::Fifo(LOWEST), core: 0 }
    }

    /// Whether its job has returned and was not noted.
    fn has_returned(&self) -> bool {
        !matches!(self.stage, Stage::Free | Stage::Admitted) && self.cell.is_done()
    }

    /// Its priority; zero without a real-time one.
    fn level(&self) -> u32 {
        if let Policy::Fifo(level) = self.policy { level } else { 0 }
    }

    /// Changes the policy, except of a worker that a carrier puts on its processor.
    fn set(&mut self, policy: Policy) {
        if self.policy != Policy::Extension {
            self.force(policy);
        }
    }

    fn force(&mut self, policy: Policy) {
        if self.policy != policy && sys::set_policy(self.thread, policy).is_ok() {
            self.policy = policy;
        }
    }

    fn move_to(&mut self, core: usize, cpus: &[usize]) {
        if self.policy == Policy::Extension {
            return;
        }
        if self.core != core && pin(Some(self.thread), &[cpus[core]]).is_ok() {
            self.core = core;
        }
    }
}

/// The platform.
pub struct Threads {
    pub workers: Vec<Worker>,
    /// Workers of each task.
    by_task: Vec<Vec<Slot>>,
    requests: Vec<Arc<TaskRequests>>,
    /// Number of rings that have been looked at.
    rings: u32,
    epoch: u64,
    cores: Vec<Option<Slot>>,
    /// Workers whose jobs have started and compete.
    started: Vec<Slot>,
    /// Workers that are leaving.
    leaving: Vec<Slot>,
    /// Whether a request may have been left that has not been taken.
    has_requests: bool,
    /// Whether a completion ends the dispatcher's sleep.
    wakes_for_completions: bool,
    /// Processor time of the dispatcher's thread when the run began, in nanoseconds, and what it used since, at the
    /// end.
    began_with: u64,
    used: Time,
    machine: Machine,
    carrier: Option<Box<dyn Carrier>>,
    /// Why the carrier was given up.
    trouble: Option<String>,
}

/// Where a dispatcher runs, and what it shares with its workers and its guard.
pub struct Machine {
    /// Processors of the jobs.
    pub cpus: Vec<usize>,
    /// Processor of the dispatcher.
    pub housekeeping: usize,
    pub doorbell: Arc<Doorbell>,
    /// Workers whose jobs have returned.
    pub returned: Arc<Marks>,
    /// Date on the monotonic clock at which the run begins, for the workers.
    pub epoch: Arc<AtomicU64>,
    pub heart: Heart,
}

impl Threads {
    /// A platform of these workers.
    pub fn new(workers: Vec<Worker>, requests: Vec<Arc<TaskRequests>>, machine: Machine) -> Threads {
        let tasks = workers.iter().map(|worker| worker.task + 1).max().unwrap_or(0);
        let mut by_task = vec![Vec::new(); tasks];
        workers.iter().enumerate().for_each(|(slot, worker)| by_task[worker.task].push(slot));
        let (rings, cores, slots) = (machine.doorbell.rings(), vec![None; machine.cpus.len()], workers.len());
        Threads {
            workers,
            by_task,
            requests,
            rings,
            epoch: 0,
            cores,
            started: Vec::with_capacity(slots),
            leaving: Vec::with_capacity(slots),
            has_requests: false,
            wakes_for_completions: true,
            began_with: 0,
            used: Time::ZERO,
            machine,
            carrier: None,
            trouble: None,
        }
    }

    /// Has a carrier put the workers on their processors.
    pub fn carry_with(&mut self, carrier: Box<dyn Carrier>) -> Result<(), RuntimeError> {
        for worker in &mut self.workers {
            let cannot = |what| move |error| RuntimeError::Os { what, error };
            pin(Some(worker.thread), &self.machine.cpus).map_err(cannot("cannot pin a thread"))?;
            sys::set_policy(worker.thread, Policy::Extension).map_err(cannot("a thread cannot join SCHED_EXT"))?;
            worker.policy = Policy::Extension;
        }
        self.carrier = Some(carrier);
        Ok(())
    }

    /// Why the carrier was given up, if it was.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Gives the carrier an order, if there is one. If it fails, the workers get priorities.
    fn order(&mut self, order: impl FnOnce(&mut dyn Carrier) -> Result<(), String>) {
        let Some(carrier) = &mut self.carrier else { return };
        let Err(why) = order(&mut **carrier) else { return };
        (self.carrier, self.trouble) = (None, Some(why));
        for (slot, worker) in self.workers.iter_mut().enumerate() {
            let core = self.cores.iter().position(|on_core| *on_core == Some(slot));
            let (policy, core) = match (worker.stage, core) {
                (Stage::Started, None) => (Policy::Fifo(LOWEST), 0),
                (Stage::Leaving(_) | Stage::Retired, _) => (Policy::Other, 0),
                (_, core) => (Policy::Fifo(LOWEST + 1), core.unwrap_or(0)),
            };
            worker.force(policy);
            worker.core = usize::MAX;
            worker.move_to(core, &self.machine.cpus);
        }
    }

    /// Date on the monotonic clock at which the run began.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Processor time that the dispatcher has used in the run.
    pub fn used(&self) -> Time {
        self.used
    }

    /// Takes a job off the core that it was chosen for, if there is one, so that no job is chosen for that core.
    fn clear_core_of(&mut self, slot: Slot) {
        if let Some(core) = self.cores.iter().position(|on_core| *on_core == Some(slot)) {
            self.cores[core] = None;
            let cpu = self.machine.cpus[core];
            self.order(|carrier| carrier.choose(cpu, None));
        }
    }

    /// Takes the priority [`LEAVING`] from jobs whose grace is over. Returns the next date at which a grace ends, on
    /// the monotonic clock; `u64::MAX` if there is none.
    fn end_grace(&mut self, now: u64) -> u64 {
        let mut next = u64::MAX;
        let Threads { workers, leaving, .. } = self;
        leaving.retain(|slot| {
            let worker = &mut workers[*slot];
            match worker.stage {
                Stage::Leaving(until) if until > now => {
                    next = next.min(until);
                    true
                }
                Stage::Leaving(_) => {
                    worker.stage = Stage::Retired;
                    worker.set(Policy::Other);
                    false
                }
                _ => false,
            }
        });
        next
    }

    /// Makes a worker's job the one that runs on a core, and starts it if it has not started.
    fn put(&mut self, slot: Slot, core: usize) {
        let rivals = |worker: &Worker, other: Slot| other != slot && worker.core == core;
        let highest = self.started.iter().filter(|other| rivals(&self.workers[**other], **other));
        let mut level = highest.map(|other| self.workers[*other].level()).max().unwrap_or(0) + 1;
        if level > HIGHEST {
            for other in self.started.iter().copied().filter(|other| *other != slot) {
                let worker = &mut self.workers[other];
                if worker.core == core {
                    worker.set(Policy::Fifo(LOWEST));
                }
            }
            level = LOWEST + 1;
        }
        let worker = &mut self.workers[slot];
        worker.move_to(core, &self.machine.cpus);
        if worker.level() < level {
            worker.set(Policy::Fifo(level.max(LOWEST)));
        }
        if worker.stage == Stage::Admitted {
            worker.stage = Stage::Started;
            self.started.push(slot);
            worker.cell.wake();
        }
    }

    /// Ends the workers. Returns the slices of those that ended within `patience`, by slot, and the tasks of those that
    /// did not.
    pub fn end(mut self, patience: Duration) -> (Vec<(usize, Slices)>, Vec<usize>) {
        self.workers.iter().for_each(|worker| worker.cell.quit());
        let deadline = std::time::Instant::now() + patience;
        let (mut slices, mut lost) = (Vec::new(), Vec::new());
        for mut worker in std::mem::take(&mut self.workers) {
            let Some(handle) = worker.handle.take() else { continue };
            while !handle.is_finished() && std::time::Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
            match handle.is_finished() {
                true => slices.extend(handle.join().ok().map(|found| (worker.task, found))),
                false => lost.push(worker.task),
            }
        }
        (slices, lost)
    }
}

/// A dispatcher that panics leaves neither priorities nor sleeping workers behind.
impl Drop for Threads {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            worker.force(Policy::Other);
            worker.cell.quit();
        }
        self.machine.heart.rest();
    }
}

impl Platform for Threads {
    fn begin(&mut self) {
        let _ = pin(None, &[self.machine.housekeeping]);
        self.machine.heart.beat();
        let _ = sys::set_policy(0, Policy::Fifo(DISPATCHER));
        self.began_with = own_processor_ns();
        self.epoch = monotonic_ns() + LEAD;
        self.machine.epoch.store(self.epoch, Ordering::Release);
    }

    fn overrun_margin(&self) -> Time {
        OVERRUN_MARGIN
    }

    fn finish(&mut self) {
        self.used = Time(own_processor_ns().saturating_sub(self.began_with));
        self.workers.iter_mut().for_each(|worker| worker.force(Policy::Other));
        self.machine.heart.rest();
        let _ = sys::set_policy(0, Policy::Other);
    }

    fn wake_for_completions(&mut self, wake: bool) {
        self.wakes_for_completions = wake;
    }

    fn wait(&mut self, until: Time) -> Time {
        self.machine.doorbell.set_quiet(!self.wakes_for_completions);
        if self.wakes_for_completions && self.machine.returned.is_any() {
            // It returned while the bell was quiet.
            return self.date();
        }
        loop {
            self.machine.heart.beat();
            self.order(|carrier| carrier.renew());
            let now = monotonic_ns();
            let date = Time(now.saturating_sub(self.epoch));
            let rings = self.machine.doorbell.rings();
            if rings != self.rings || (now >= self.epoch && date >= until) {
                self.rings = rings;
                return date;
            }
            let wake = self.epoch.saturating_add(until.0).min(now + LONGEST_SLEEP).min(self.end_grace(now));
            let timeout = Timespec { tv_sec: (wake / 1_000_000_000) as i64, tv_nsec: (wake % 1_000_000_000) as i64 };
            let (flags, all) = (futex::Flags::PRIVATE, std::num::NonZeroU32::MAX);
            // Any outcome is looked at above: a ring, the date, an interruption.
            let _ = futex::wait_bitset(self.machine.doorbell.counter(), flags, self.rings, Some(&timeout), all);
        }
    }

    fn date(&self) -> Time {
        Time(monotonic_ns().saturating_sub(self.epoch))
    }

    fn note(&mut self) -> Option<Note> {
        while let Some(slot) = self.machine.returned.take() {
            let worker = &mut self.workers[slot];
            if worker.has_returned() {
                self.started.retain(|other| *other != slot);
                self.leaving.retain(|other| *other != slot);
                worker.stage = Stage::Free;
                if !(LOWEST..=HIGHEST_ASLEEP).contains(&worker.level()) {
                    worker.set(Policy::Fifo(LOWEST));
                }
                let done = worker.cell.done(self.epoch);
                self.clear_core_of(slot);
                return Some(Note::Done { slot, done });
            }
        }
        self.has_requests |= self.machine.doorbell.take_requests();
        while self.has_requests {
            for (task, requests) in self.requests.iter().enumerate() {
                let asked = requests.asked.load(Ordering::Acquire);
                if asked > 0 {
                    requests.asked.fetch_sub(1, Ordering::AcqRel);
                    let at = requests.asked_at.load(Ordering::Relaxed);
                    return Some(Note::Asked { task: TaskId::new(task), date: Time(at.saturating_sub(self.epoch)) });
                }
            }
            self.has_requests = false;
        }
        None
    }

    fn admit(&mut self, due: &Due) -> Option<Slot> {
        let slot = self.by_task[due.task].iter().copied().find(|slot| self.workers[*slot].stage == Stage::Free)?;
        self.workers[slot].stage = Stage::Admitted;
        self.workers[slot].cell.prepare(due);
        let (thread, deadline) = (self.workers[slot].thread, self.epoch + due.release.deadline.0);
        self.order(|carrier| carrier.admit(thread, deadline));
        Some(slot)
    }

    fn vacate(&mut self, slot: Slot) {
        self.workers[slot].stage = Stage::Free;
    }

    fn executed(&mut self, slot: Slot) -> Option<Time> {
        let worker = &self.workers[slot];
        let Some(start) = worker.cell.start_processor() else { return Some(Time::ZERO) };
        sys::processor_time_of(worker.thread).ok().map(|now| Time(now.saturating_sub(start)))
    }

    fn switch(&mut self, cores: &[Option<Slot>]) -> Time {
        let ordered = self.date();
        for (core, wanted) in cores.iter().enumerate() {
            if self.cores[core] == *wanted {
                continue;
            }
            if let Some(slot) = wanted {
                self.put(*slot, core);
            }
        }
        for (core, wanted) in cores.iter().enumerate() {
            if std::mem::replace(&mut self.cores[core], *wanted) != *wanted {
                let (cpu, thread) = (self.machine.cpus[core], wanted.map(|slot| self.workers[slot].thread));
                self.order(|carrier| carrier.choose(cpu, thread));
            }
        }
        ordered
    }

    fn retire(&mut self, slot: Slot, expired: bool) {
        self.clear_core_of(slot);
        self.started.retain(|other| *other != slot);
        let worker = &mut self.workers[slot];
        if worker.cell.is_done() {
            return;
        }
        if expired {
            worker.cell.stop();
            worker.stage = Stage::Leaving(monotonic_ns() + GRACE);
            self.leaving.push(slot);
            worker.set(Policy::Fifo(LEAVING));
        } else {
            worker.stage = Stage::Retired;
            worker.set(Policy::Other);
        }
    }
}
