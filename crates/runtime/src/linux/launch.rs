//! Starting a run on threads, and putting everything back afterwards.
//!
//! In this order: check that the run is permitted; start the guard; limit what a real-time thread may take; lock
//! memory; make the workers, the decider and the dispatcher; wait. Then the reverse. What the process changes for
//! itself ends with it, so a kill leaves nothing behind.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use temponet_task::{OnMiss, Scheduler};

use super::guard::{Guard, Heart};
use super::synthetic::Slices;
use super::sys::{self, Policy};
use super::threads::{LOWEST, Machine, Threads, Worker};
use super::worker::{Cell, Work, WorkerPlan, work};
use super::{monotonic_ns, pin, usable_cpus};
use crate::carrier::Carrier;
use crate::decider;
use crate::dispatcher::DispatchPlan;
use crate::doorbell::{Doorbell, Marks, TaskRequests};
use crate::error::RuntimeError;
use crate::releases::Releases;
use crate::report::Report;
use crate::runtime::dispatched;
use crate::trial::Started;

/// Priority of the decider.
const DECIDER: u32 = 80;
/// Least processor time that a real-time thread may use without sleeping before the kernel ends the program, in
/// microseconds.
const LEAST_LIMIT: u64 = 2_000_000;
/// Time that the code of tasks has to return in after the run.
const PATIENCE: Duration = Duration::from_millis(200);

/// The threads of one task.
pub struct TaskThreads {
    pub requests: Arc<TaskRequests>,
    /// One worker each.
    pub works: Vec<Work>,
}

/// A run to be started.
pub struct ThreadPlan {
    pub dispatch: DispatchPlan,
    pub tasks: Vec<TaskThreads>,
    pub cpus: Vec<usize>,
    pub housekeeping: usize,
    pub doorbell: Arc<Doorbell>,
    pub scheduler: Box<dyn Scheduler>,
    pub decider: Option<Box<dyn Scheduler>>,
    pub releases: Box<dyn Releases>,
    pub locks_memory: bool,
    pub has_guard: bool,
    pub carrier: Option<Box<dyn Carrier>>,
}

/// A run that is over.
pub struct Outcome {
    pub report: Report,
    /// Slices that synthetic jobs recorded, by task.
    pub slices: Vec<(usize, Slices)>,
    /// Date on the monotonic clock at which the run began.
    pub epoch: u64,
    /// The kernel's ids of the workers, with their task.
    pub threads: Vec<(i32, usize)>,
    /// Counters of the schedulers.
    pub counters: Vec<(&'static str, u64)>,
}

/// Memory that is locked while this exists.
pub struct Locked;

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = munlockall();
    }
}

/// The limit of real-time processor time that was in force before.
struct Limited(u64);

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = sys::limit_real_time(self.0);
    }
}

/// Says whether real-time priorities are permitted to this process, by taking one.
pub fn is_permitted() -> Result<(), RuntimeError> {
    let probe = std::thread::spawn(|| sys::set_policy(0, Policy::Fifo(1)));
    match probe.join() {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(RuntimeError::NotPermitted(format!(
            "real-time priorities are not permitted ({error}): run as root, give the program CAP_SYS_NICE (setcap cap_sys_nice,cap_ipc_lock+ep PROGRAM), \
             or raise the limit rtprio to 99 (/etc/security/limits.conf, ulimit -r 99)"
        ))),
        Err(_) => Err(RuntimeError::Panicked),
    }
}

/// Checks that the processors exist and that this process may use them.
pub fn check_cpus(cpus: &[usize], housekeeping: usize) -> Result<(), RuntimeError> {
    let usable = usable_cpus();
    match cpus.iter().chain([&housekeeping]).find(|cpu| !usable.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => Err(RuntimeError::NotPermitted(format!(
            "processor {cpu} cannot be used: this process may use {usable:?}, and needs one for housekeeping beside those of the jobs"
        ))),
    }
}

/// Locks the memory of the process. Returns what to undo, or why it cannot be had.
pub fn lock_memory() -> Result<Locked, String> {
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).map(|()| Locked).map_err(|error| {
        format!("memory is not locked, so page faults may delay jobs ({error}); raise the limit memlock or give CAP_IPC_LOCK")
    })
}

/// Runs a plan. `started` is called when the workers exist.
pub fn launch(plan: ThreadPlan, started: Option<Started<'_>>) -> Result<Outcome, RuntimeError> {
    is_permitted()?;
    check_cpus(&plan.cpus, plan.housekeeping)?;
    let names: Vec<String> = plan.dispatch.system.tasks().iter().map(|task| task.name.clone()).collect();
    let guard = plan.has_guard.then(|| Guard::start(plan.housekeeping)).transpose()?;
    let longest = plan.dispatch.system.tasks().iter().map(|task| task.wcet.0 / 1000).max().unwrap_or(0);
    let _limited = Limited(
        sys::limit_real_time(LEAST_LIMIT.max(longest.saturating_mul(20)))
            .map_err(|error| RuntimeError::Os { what: "cannot limit real-time threads", error })?,
    );
    let mut notes = Vec::new();
    let _locked = plan.locks_memory.then(lock_memory).and_then(|result| result.map_err(|why| notes.push(why)).ok());
    let machine = Machine {
        cpus: plan.cpus,
        housekeeping: plan.housekeeping,
        doorbell: plan.doorbell,
        returned: Arc::new(Marks::for_places(plan.tasks.iter().map(|task| task.works.len()).sum())),
        epoch: Arc::default(),
        heart: guard.as_ref().map_or(Heart::NONE, Guard::heart),
    };
    // A job that holds its core cannot be removed, so it is not told to return at its deadline.
    let on_miss = |task: usize| match plan.dispatch.system.tasks()[task].preemption.is_limited() {
        true => OnMiss::Continue,
        false => plan.dispatch.system.on_miss(),
    };
    let rules: Vec<OnMiss> = (0..plan.dispatch.system.tasks().len()).map(on_miss).collect();
    let (mut workers, mut requests) = (Vec::new(), Vec::new());
    for (task, threads) in plan.tasks.into_iter().enumerate() {
        requests.push(threads.requests);
        for body in threads.works {
            let cell = Arc::new(Cell::default());
            let (doorbell, epoch): (_, Arc<AtomicU64>) = (machine.doorbell.clone(), machine.epoch.clone());
            let (returned, slot) = (machine.returned.clone(), workers.len());
            let plan = WorkerPlan { cell: cell.clone(), slot, doorbell, returned, on_miss: rules[task], epoch };
            workers.push(start_worker(plan, cell, task, &names[task], body, machine.cpus[0], guard.as_ref())?);
        }
    }
    let mut scheduler = plan.scheduler;
    let (mailbox, decider) = match plan.decider {
        None => (None, None),
        Some(mut slow) => {
            slow.start(&plan.dispatch.system)?;
            let (mailbox, decider) = decider::pair(slow, plan.dispatch.system.clone(), machine.doorbell.clone());
            let cpu = machine.housekeeping;
            let thread = named("decider").spawn(move || {
                let _ = pin(None, &[cpu]);
                let _ = sys::set_policy(0, Policy::Fifo(DECIDER));
                decider.serve(monotonic_ns)
            });
            (Some(mailbox), Some(thread.map_err(cannot_start)?))
        }
    };
    let ids: Vec<(i32, usize)> = workers.iter().map(|worker| (worker.thread, worker.task)).collect();
    if let Some(started) = started {
        started(&ids);
    }
    let mut platform = Threads::new(workers, requests, machine);
    if let Some(carrier) = plan.carrier {
        platform.carry_with(carrier)?;
    }
    let (dispatch, releases) = (plan.dispatch, plan.releases);
    let dispatcher = named("dispatcher").spawn(move || {
        let result = dispatched(dispatch, platform, &mut *scheduler, releases, mailbox);
        (result, scheduler)
    });
    let (result, scheduler) = dispatcher.map_err(cannot_start)?.join().map_err(|_| RuntimeError::Panicked)?;
    let slow = decider.and_then(|thread| thread.join().ok());
    drop(guard);
    let (platform, mut report) = result?;
    let (epoch, used) = (platform.epoch(), platform.used());
    notes.extend(platform.trouble().map(|why| format!("the carrier failed, so priorities took over: {why}")));
    let (slices, lost) = platform.end(PATIENCE);
    report.dispatcher_time = used;
    report.lost = lost.into_iter().map(|task| names[task].clone()).collect();
    report.notes = notes;
    let counters = slow.as_ref().unwrap_or(&scheduler).counters();
    Ok(Outcome { report, slices, epoch, threads: ids, counters })
}

fn named(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(name.chars().filter(|c| *c != '\0').take(15).collect())
}

fn cannot_start(error: std::io::Error) -> RuntimeError {
    RuntimeError::Os { what: "cannot start a thread", error }
}

/// Starts a worker, waits until it sleeps on its cell, and gives it its priority and processor.
pub fn start_worker(
    plan: WorkerPlan,
    cell: Arc<Cell>,
    task: usize,
    name: &str,
    body: Work,
    cpu: usize,
    guard: Option<&Guard>,
) -> Result<Worker, RuntimeError> {
    let handle = named(name).spawn(move || work(plan, body)).map_err(cannot_start)?;
    while cell.thread() == 0 {
        std::thread::sleep(Duration::from_micros(100));
    }
    let thread = cell.thread();
    pin(Some(thread), &[cpu]).map_err(|error| RuntimeError::Os { what: "cannot pin a thread", error })?;
    sys::set_policy(thread, Policy::Fifo(LOWEST))
        .map_err(|error| RuntimeError::Os { what: "cannot give a thread its priority", error })?;
    if let Some(guard) = guard {
        guard.knows(thread);
    }
    Ok(Worker::new(cell, task, thread, Some(handle)))
}
