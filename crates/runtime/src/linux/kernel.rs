//! Drawn jobs under the schedulers of Linux itself: SCHED_DEADLINE, SCHED_FIFO with rate-monotonic priorities,
//! SCHED_RR, and the time sharing of every other program (EEVDF).
//!
//! Nobody dispatches: each task is a thread that sleeps until its next release and computes. Under the rule that aborts
//! late jobs, a job returns when it notices that its deadline has passed, as it does under the dispatcher. Jobs of one
//! task run one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rustix::thread::{clock_nanosleep_absolute, futex};
use rustix::time::{ClockId, Timespec};
use temponet_sim::{End, Histogram};
use temponet_task::{CoreId, OnMiss, Task, TaskId, Time};

use super::guard::{Guard, Heart, LONGEST_SLEEP};
use super::launch::{Outcome, check_cpus, is_permitted, lock_memory};
use super::resources::PiMutex;
use super::synthetic::{Slices, Synthetic};
use super::sys::{self, Policy};
use super::threads::{DISPATCHER, OVERRUN_MARGIN};
use super::{monotonic_ns, own_processor_ns, pin};
use crate::error::RuntimeError;
use crate::job::{Job, JobClock};
use crate::releases::Due;
use crate::report::{Counts, JobOutcome, Latencies, Report, metrics};
use crate::trial::{LinuxScheduler, Trial};

/// Priority of the task with the shortest period under SCHED_FIFO; others follow downwards.
const HIGHEST: u32 = 80;
/// Priority of all tasks under SCHED_RR.
const ROUND_ROBIN: u32 = 20;
/// Time between the start of the threads and date zero, in nanoseconds.
const LEAD: u64 = 10_000_000;
/// Start within this time of the release counts as prompt, in nanoseconds: nothing else kept the job waiting.
const PROMPT: u64 = 200_000;

/// What the threads of a run share.
struct Shared {
    /// Date on the monotonic clock of date zero; zero before it is known.
    epoch: AtomicU64,
    stop: AtomicBool,
    on_miss: OnMiss,
    ends: Ends,
}

/// What has become of each job, for those that follow it: by task and number.
struct Ends(Vec<Vec<Ended>>);

/// What has become of a job. Threads sleep on `state`.
#[derive(Default)]
struct Ended {
    state: AtomicU32,
    /// Date at which it completed.
    date: AtomicU64,
}

/// States of a job: not known yet, completed, left without completing.
const OPEN: u32 = 0;
const COMPLETED: u32 = 1;
const LOST: u32 = 2;

impl Ends {
    /// The state at the beginning; empty if no task follows another. Jobs that are not listed are never released.
    fn of(tasks: &[Task], jobs: &[Due]) -> Ends {
        let mut ends: Vec<Vec<Ended>> = tasks.iter().map(|_| Vec::new()).collect();
        if tasks.iter().any(|task| !task.after.is_empty()) {
            for due in jobs {
                let lost = || Ended { state: AtomicU32::new(LOST), date: AtomicU64::new(0) };
                let (of_task, number) = (&mut ends[due.task.index()], due.number as usize);
                of_task.resize_with(of_task.len().max(number + 1), lost);
                of_task[number] = Ended::default();
            }
        }
        Ends(ends)
    }

    /// Says what has become of a job.
    fn tell(&self, due: &Due, state: u32, date: Time) {
        let Some(ended) = self.0[due.task.index()].get(due.number as usize) else { return };
        ended.date.store(date.0, Ordering::Relaxed);
        ended.state.store(state, Ordering::Release);
        let _ = futex::wake(&ended.state, futex::Flags::PRIVATE, i32::MAX as u32);
    }

    /// Waits for a job that another one follows. Returns the date of its completion; none if it does not complete or the
    /// run is over.
    fn await_job(&self, task: TaskId, number: u64, stop: &AtomicBool) -> Option<Time> {
        let ended = self.0[task.index()].get(number as usize)?;
        loop {
            match ended.state.load(Ordering::Acquire) {
                COMPLETED => return Some(Time(ended.date.load(Ordering::Relaxed))),
                OPEN if !stop.load(Ordering::Acquire) => {}
                _ => return None,
            }
            let timeout = Timespec { tv_sec: 0, tv_nsec: LONGEST_SLEEP as i64 };
            let _ = futex::wait(&ended.state, futex::Flags::PRIVATE, OPEN, Some(&timeout));
        }
    }
}

/// What one thread did.
struct Did {
    jobs: Vec<JobOutcome>,
    slices: Slices,
    starts: Vec<u64>,
}

/// Policy of each task.
fn policies(scheduler: LinuxScheduler, tasks: &[Task]) -> Vec<Policy> {
    let period = |task: &Task| task.period().unwrap_or(task.deadline);
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|task| (period(&tasks[*task]), *task));
    let rank = |task: usize| order.iter().position(|other| *other == task).unwrap_or(0) as u32;
    let policy = |(index, task): (usize, &Task)| match scheduler {
        LinuxScheduler::Fifo => Policy::Fifo(HIGHEST.saturating_sub(rank(index)).max(2)),
        LinuxScheduler::RoundRobin => Policy::RoundRobin(ROUND_ROBIN),
        LinuxScheduler::Eevdf => Policy::Other,
        LinuxScheduler::Deadline => {
            let (period, deadline) = (period(task).0, task.deadline.0.min(period(task).0));
            // A budget of the bare wcet is used up by waking up and falling asleep, and the job that needs it all waits
            // for the next period.
            let runtime = (task.wcet + OVERRUN_MARGIN).0.clamp(1024, deadline);
            Policy::Deadline { runtime, deadline, period }
        }
    };
    tasks.iter().enumerate().map(policy).collect()
}

/// Runs the jobs of a trial under a scheduler of Linux.
pub fn run(
    trial: &Trial<'_>,
    scheduler: LinuxScheduler,
    jobs: Vec<Due>,
    resources: &Arc<[PiMutex]>,
) -> Result<Outcome, RuntimeError> {
    is_permitted()?;
    check_cpus(&trial.cpus, trial.housekeeping)?;
    let tasks = trial.set.tasks();
    let guard = Guard::start(trial.housekeeping)?;
    let mut notes = Vec::new();
    let _locked = lock_memory().map_err(|why| notes.push(why)).ok();
    let shared = Arc::new(Shared {
        epoch: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        on_miss: trial.set.on_miss(),
        ends: Ends::of(tasks, &jobs),
    });
    let mut lists: Vec<Vec<Due>> = vec![Vec::new(); tasks.len()];
    jobs.into_iter().for_each(|due| lists[due.task].push(due));
    let mut threads = Vec::new();
    for (task, list) in lists.into_iter().enumerate() {
        let id = Arc::new(AtomicI32::new(0));
        let (own, shared, cpus, after) = (id.clone(), shared.clone(), trial.cpus.clone(), tasks[task].after.clone());
        let synthetic = Synthetic::of(&tasks[task], resources, trial.slices);
        let handle =
            std::thread::Builder::new().name(tasks[task].name.chars().filter(|c| *c != '\0').take(15).collect());
        let handle = handle.spawn(move || {
            let _ = pin(None, &cpus);
            own.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Release);
            live(&list, &after, &shared, synthetic)
        });
        threads.push((id, handle.map_err(|error| RuntimeError::Os { what: "cannot start a thread", error })?));
    }
    let mut ids = Vec::new();
    for (task, ((id, _), policy)) in threads.iter().zip(policies(scheduler, tasks)).enumerate() {
        while id.load(Ordering::Acquire) == 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
        let id = id.load(Ordering::Acquire);
        guard.knows(id);
        ids.push((id, task));
        if let Err(error) = sys::set_policy(id, policy) {
            shared.stop.store(true, Ordering::Release);
            shared.epoch.store(1, Ordering::Release);
            return Err(refusal(scheduler, trial, error));
        }
    }
    if let Some(started) = &trial.started {
        started(&ids);
    }
    let heart = guard.heart();
    let (horizon, cpu) = (trial.horizon, trial.housekeeping);
    let watched = shared.clone();
    let all: Vec<i32> = ids.iter().map(|(id, _)| *id).collect();
    let watch =
        std::thread::Builder::new().name("watch".into()).spawn(move || watch(&watched, heart, horizon, cpu, &all));
    let watch = watch.map_err(|error| RuntimeError::Os { what: "cannot start a thread", error })?;
    watch.join().map_err(|_| RuntimeError::Panicked)?;
    drop(guard);
    let epoch = shared.epoch.load(Ordering::Acquire);
    let (mut jobs, mut slices, mut counts, mut latencies) =
        (Vec::new(), Vec::new(), Counts::default(), Latencies::default());
    let mut start = Histogram::default();
    for (task, (_, handle)) in threads.into_iter().enumerate() {
        let did = handle.join().map_err(|_| RuntimeError::Panicked)?;
        did.starts.iter().for_each(|late| start.record(*late as i64));
        counts.migrations += did.slices.migrations;
        jobs.extend(did.jobs);
        slices.push((task, did.slices));
    }
    latencies.start = start;
    counts.preemptions = jobs.iter().map(|job: &JobOutcome| u64::from(job.preemptions)).sum();
    counts.overruns = jobs.iter().filter(|job| job.overran).count() as u64;
    jobs.sort_by_key(|job| (job.left, job.task, job.number));
    let metrics = metrics(tasks, &jobs, horizon, &counts, trial.cpus.len());
    let dispatcher_time = Time::ZERO;
    let report = Report { horizon, jobs, metrics, latencies, counts, dispatcher_time, lost: Vec::new(), notes };
    Ok(Outcome { report, slices, epoch, threads: ids, counters: Vec::new() })
}

/// Puts the answer of the kernel into words.
fn refusal(scheduler: LinuxScheduler, trial: &Trial<'_>, error: std::io::Error) -> RuntimeError {
    let needs = trial.set.utilization();
    let words = match (scheduler, error.raw_os_error()) {
        (LinuxScheduler::Deadline, Some(libc::EBUSY)) => {
            format!("refused by the kernel's admission control: the set asks for {needs:.2} cores")
        }
        (LinuxScheduler::Deadline, Some(libc::EPERM)) => format!(
            "refused by the kernel: a thread with SCHED_DEADLINE must be free to use every processor of its root domain while admission control is on. \
             Admission would give 0.95 of each of {} cores; the set asks for {needs:.2}; \
             without admission control it is allowed",
            trial.cpus.len()
        ),
        _ => format!("the kernel refuses the policy: {error}"),
    };
    RuntimeError::NotPermitted(words)
}

/// Beats until the run is over, then takes all priorities back.
fn watch(shared: &Shared, heart: Heart, horizon: Time, cpu: usize, threads: &[i32]) {
    let _ = pin(None, &[cpu]);
    heart.beat();
    let _ = sys::set_policy(0, Policy::Fifo(DISPATCHER));
    let epoch = monotonic_ns() + LEAD;
    shared.epoch.store(epoch, Ordering::Release);
    let end = epoch.saturating_add(horizon.0);
    while monotonic_ns() < end {
        heart.beat();
        sleep_until((monotonic_ns() + LONGEST_SLEEP).min(end));
    }
    shared.stop.store(true, Ordering::Release);
    threads.iter().for_each(|thread| _ = sys::set_policy(*thread, Policy::Other));
    heart.rest();
}

/// Sleeps until a date on the monotonic clock.
pub fn sleep_until(date: u64) {
    let time = Timespec { tv_sec: (date / 1_000_000_000) as i64, tv_nsec: (date % 1_000_000_000) as i64 };
    while clock_nanosleep_absolute(ClockId::Monotonic, &time).is_err() {}
}

/// The life of a thread: sleeps until each release, and computes.
fn live(list: &[Due], after: &[TaskId], shared: &Shared, mut synthetic: Synthetic) -> Did {
    let (mut jobs, mut starts_late) = (Vec::with_capacity(list.len()), Vec::with_capacity(list.len()));
    while shared.epoch.load(Ordering::Acquire) == 0 {
        std::thread::sleep(Duration::from_micros(200));
    }
    let epoch = shared.epoch.load(Ordering::Acquire);
    for due in list {
        let mut due = *due;
        let Due { number, execution, .. } = due;
        if !shared.stop.load(Ordering::Acquire) {
            sleep_until(epoch + due.release.release.0);
        }
        // It is released when the last of the jobs that it follows completes.
        let completed = |date: Time, task: &TaskId| {
            shared.ends.await_job(*task, number, &shared.stop).map(|completed| date.max(completed))
        };
        let Some(date) = after.iter().try_fold(due.release.release, completed) else {
            shared.ends.tell(&due, LOST, Time::ZERO);
            let now = Time(monotonic_ns().saturating_sub(epoch));
            let end = if shared.stop.load(Ordering::Acquire) { End::Unfinished } else { End::Unreleased };
            let left = if shared.on_miss == OnMiss::Abort { now.min(due.release.deadline) } else { now };
            jobs.push(JobOutcome { left, end, ..JobOutcome::not_run(&due) });
            continue;
        };
        due.release.release = date.min(Time(due.release.deadline.0.saturating_sub(1)));
        let release = due.release;
        let (began, processor, preemptions) = (monotonic_ns(), own_processor_ns(), sys::own_preemptions());
        let clock = JobClock {
            stop: &shared.stop,
            on_miss: shared.on_miss,
            now: monotonic_ns,
            epoch,
            processor: own_processor_ns,
            began_with: processor,
        };
        let job = Job { number, release: release.release, deadline: release.deadline, clock: Some(clock) };
        let starts = !clock.is_over(release.deadline, began);
        let is_complete = starts && synthetic.run(execution, release.wcet, processor, &job);
        let executed = Time(own_processor_ns().saturating_sub(processor));
        let left = Time(monotonic_ns().saturating_sub(epoch));
        let start = Time(began.saturating_sub(epoch));
        let late = start.saturating_sub(release.release).0;
        if starts && late < PROMPT {
            starts_late.push(late);
        }
        let is_stopped = shared.stop.load(Ordering::Acquire);
        let end = match (is_complete, shared.on_miss) {
            (true, OnMiss::Continue) => End::Completed,
            (true, OnMiss::Abort) if left <= release.deadline => End::Completed,
            (false, OnMiss::Continue) => End::Unfinished,
            (false, OnMiss::Abort) if is_stopped && left < release.deadline => End::Unfinished,
            _ => End::Aborted,
        };
        let state = if end == End::Completed { COMPLETED } else { LOST };
        shared.ends.tell(&due, state, left);
        jobs.push(JobOutcome {
            start: starts.then_some(start),
            left: if end == End::Aborted { release.deadline } else { left },
            end,
            executed: if starts { executed } else { Time::ZERO },
            preemptions: sys::own_preemptions().wrapping_sub(preemptions),
            core: starts.then_some(CoreId(0)),
            overran: starts && executed >= release.wcet + OVERRUN_MARGIN,
            ..JobOutcome::not_run(&due)
        });
    }
    Did { jobs, slices: synthetic.slices, starts: starts_late }
}
