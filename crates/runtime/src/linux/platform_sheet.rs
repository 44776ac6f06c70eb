//! The platform sheet: what a reader has to know about the machine beside every figure, and what would work on it.

use std::fs;

use rustix::time::{ClockId, clock_getres};
use temponet_sim::Histogram;

use super::kernel::sleep_until;
use super::launch::{is_permitted, lock_memory};
use super::sys::{self, Policy};
use super::threads::DISPATCHER;
use super::{monotonic_ns, pin, usable_cpus};
use crate::platform_sheet::{Ability, PlatformSheet, TimerLatency};

/// Number of sleeps whose lateness is measured on each processor, and their length in nanoseconds.
const SLEEPS: usize = 400;
const SLEEP: u64 = 1_000_000;

/// Content of a small file of the kernel, without the line end.
fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_string()).filter(|text| !text.is_empty())
}

/// Fills in the sheet. Takes about half a second for each processor named.
pub fn platform_sheet(cpus: &[usize]) -> PlatformSheet {
    let name = rustix::system::uname();
    let words = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let version = words(name.version());
    let preemption = read("/sys/kernel/debug/sched/preempt").unwrap_or_else(|| {
        let kinds = ["PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT_LAZY", "PREEMPT"];
        kinds.into_iter().find(|kind| version.contains(kind)).unwrap_or("none").into()
    });
    // The coarse clock moves once a tick.
    let tick = clock_getres(ClockId::MonotonicCoarse);
    let hz = (tick.tv_nsec > 0).then(|| 1_000_000_000 / tick.tv_nsec as u64);
    let runtime = read("/proc/sys/kernel/sched_rt_runtime_us").and_then(|text| text.parse::<i64>().ok());
    let period = read("/proc/sys/kernel/sched_rt_period_us").and_then(|text| text.parse::<i64>().ok());
    let throttling = match (runtime, period) {
        (Some(-1), _) => "off".into(),
        (Some(runtime), Some(period)) => format!("real-time threads get {runtime} of each {period} us"),
        _ => "unknown".into(),
    };
    let is_real_time = is_permitted();
    let timers = match is_real_time {
        Ok(()) => cpus.iter().map(|cpu| TimerLatency { cpu: *cpu, late_ns: timer_latency(*cpu) }).collect(),
        Err(_) => Vec::new(),
    };
    let able = |what: &'static str, answer: Result<(), String>| Ability { what, problem: answer.err() };
    let usable = usable_cpus();
    let two = if usable.len() >= 2 { Ok(()) } else { Err(format!("this process may use processors {usable:?} only")) };
    PlatformSheet {
        kernel: format!("{} {}", words(name.sysname()), words(name.release())),
        machine: words(name.machine()),
        hz,
        preemption,
        isolated: read("/sys/devices/system/cpu/isolated").unwrap_or_else(|| "none".into()),
        no_ticks: read("/sys/devices/system/cpu/nohz_full")
            .filter(|text| text != "(null)")
            .unwrap_or_else(|| "none".into()),
        throttling,
        clock: read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .unwrap_or_else(|| "unknown".into()),
        usable,
        timers,
        abilities: vec![
            able("real-time priorities", is_real_time.map_err(|error| error.to_string())),
            able("a processor for housekeeping", two),
            able("locked memory", lock_memory().map(drop)),
            able("SCHED_DEADLINE on chosen processors", pinned_deadline()),
            able("kernel trace", super::tracefs::folder().map(drop)),
        ],
    }
}

/// Whether a pinned thread may have SCHED_DEADLINE.
fn pinned_deadline() -> Result<(), String> {
    let cpu = usable_cpus().last().copied().unwrap_or(0);
    let probe = std::thread::spawn(move || {
        pin(None, &[cpu])?;
        sys::set_policy(0, Policy::Deadline { runtime: 10_000, deadline: 10_000_000, period: 10_000_000 })
    });
    let result = probe.join().map_err(|_| "the probe panicked".to_string())?;
    result.map_err(|error| format!("{error}; without admission control it is allowed"))
}

/// How late a thread with the dispatcher's priority wakes up on a processor.
fn timer_latency(cpu: usize) -> Histogram {
    let thread = std::thread::spawn(move || {
        let mut late = Histogram::default();
        if pin(None, &[cpu]).is_err() || sys::set_policy(0, Policy::Fifo(DISPATCHER)).is_err() {
            return late;
        }
        for _ in 0..SLEEPS {
            let date = monotonic_ns() + SLEEP;
            sleep_until(date);
            late.record(monotonic_ns().saturating_sub(date) as i64);
        }
        late
    });
    thread.join().unwrap_or_default()
}
