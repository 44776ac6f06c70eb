//! Runs on threads of Linux.

pub mod guard;
pub mod kernel;
pub mod launch;
pub mod platform_sheet;
pub mod recording;
pub mod resources;
pub mod synthetic;
mod sys;
pub mod threads;
pub mod tracefs;
pub mod worker;

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use temponet_task::Time;

use crate::error::RuntimeError;
use crate::report::Report;
use crate::runtime::{Runtime, refused_points};
use launch::{TaskThreads, ThreadPlan, launch};
use worker::Work;

/// Date on the monotonic clock, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Processor time of the calling thread, in nanoseconds.
pub fn own_processor_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

fn nanoseconds(time: rustix::time::Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Has the kernel kill this process when the thread that started it ends, so that a launcher never leaves a run behind.
pub fn die_with_parent() -> std::io::Result<()> {
    sys::die_with_parent()
}

/// Lets a thread run on these processors only; `None` is the calling one.
pub fn pin(thread: Option<i32>, cpus: &[usize]) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
    Ok(sched_setaffinity(thread.and_then(Pid::from_raw), &set)?)
}

/// Processors that this process may use.
pub fn usable_cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Runs the closures of a runtime.
pub fn run(mut runtime: Runtime, horizon: Time) -> Result<Report, RuntimeError> {
    let scheduler = runtime.checked()?;
    if let Some(why) = runtime.tasks.iter().find_map(|plan| refused_points(&plan.task)) {
        return Err(RuntimeError::Setup(why));
    }
    let (plan, releases) = (runtime.dispatch_plan(horizon), runtime.timers());
    let tasks = runtime
        .tasks
        .into_iter()
        .map(|plan| TaskThreads { requests: plan.requests, works: vec![Work::Closure(plan.body)] });
    let plan = ThreadPlan {
        dispatch: plan,
        tasks: tasks.collect(),
        cpus: runtime.cpus,
        housekeeping: runtime.housekeeping,
        doorbell: runtime.doorbell,
        scheduler,
        decider: runtime.decider,
        releases: Box::new(releases),
        locks_memory: runtime.locks_memory,
        has_guard: runtime.has_guard,
        carrier: runtime.carrier,
    };
    launch(plan, None).map(|outcome| outcome.report)
}
