//! The platform sheet: what a reader has to know about the machine beside every figure, and what would work on it.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rustix::thread::futex;
use rustix::time::{ClockId, clock_getres};
use temponet_sim::Histogram;

use super::kernel::sleep_until;
use super::launch::{is_permitted, lock_memory};
use super::sys::{self, Policy};
use super::threads::{DISPATCHER, LOWEST};
use super::{monotonic_ns, pin, usable_cpus};
use crate::platform_sheet::{Ability, BareSwitch, PlatformSheet, TimerLatency};

/// Number of sleeps whose lateness is measured on each processor, and their length in nanoseconds.
const SLEEPS: usize = 400;
const SLEEP: u64 = 1_000_000;
/// Number of bare switches that are measured, and the time before and after each in nanoseconds.
const SWITCHES: usize = 400;
const PAUSE: u64 = 300_000;

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
    let bare_switch = match *cpus {
        [from, to, ..] if from != to && !timers.is_empty() => {
            bare_switch(from, to).map(|took_ns| BareSwitch { from, to, took_ns })
        }
        _ => None,
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
        bare_switch,
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

/// What the threads of [`bare_switch`] share.
#[derive(Default)]
struct Bench {
    /// Number of orders so far; the woken thread sleeps on it.
    orders: AtomicU32,
    /// Date of its first instruction after the last order.
    first: AtomicU64,
    /// Ids of the two threads; zero before they run.
    threads: [AtomicI32; 2],
    is_over: AtomicBool,
}

/// How long a switch takes that consists of one wake-up: an order from one processor to its effect on another one. None
/// if it cannot be measured.
fn bare_switch(from: usize, to: usize) -> Option<Histogram> {
    let bench = Bench::default();
    // Nothing that goes wrong here leaves a thread that never sleeps.
    let last = monotonic_ns() + 4 * SWITCHES as u64 * PAUSE;
    let introduce =
        |place: usize| bench.threads[place].store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Release);
    let busy = || {
        introduce(0);
        while !bench.is_over.load(Ordering::Relaxed) && monotonic_ns() < last {
            std::hint::spin_loop();
        }
    };
    let woken = || {
        introduce(1);
        for taken in 0.. {
            while bench.orders.load(Ordering::Acquire) == taken {
                let _ = futex::wait(&bench.orders, futex::Flags::PRIVATE, taken, None);
            }
            bench.first.store(monotonic_ns(), Ordering::Release);
            if bench.is_over.load(Ordering::Relaxed) {
                return;
            }
        }
    };
    let order = || {
        bench.orders.fetch_add(1, Ordering::Release);
        let _ = futex::wake(&bench.orders, futex::Flags::PRIVATE, 1);
    };
    let measure = || -> std::io::Result<Histogram> {
        let mut took = Histogram::default();
        for (place, thread) in bench.threads.iter().enumerate() {
            while thread.load(Ordering::Acquire) == 0 {
                std::thread::sleep(Duration::from_micros(100));
            }
            let thread = thread.load(Ordering::Acquire);
            pin(Some(thread), &[to])?;
            sys::set_policy(thread, Policy::Fifo(LOWEST + place as u32))?;
        }
        pin(None, &[from])?;
        sys::set_policy(0, Policy::Fifo(DISPATCHER))?;
        for _ in 0..SWITCHES {
            sleep_until(monotonic_ns() + PAUSE);
            let ordered = monotonic_ns();
            order();
            sleep_until(monotonic_ns() + PAUSE);
            // Without an answer by now, the machine stood still.
            if let Some(ns) = bench.first.load(Ordering::Acquire).checked_sub(ordered) {
                took.record(ns as i64);
            }
        }
        Ok(took)
    };
    std::thread::scope(|scope| {
        scope.spawn(busy);
        scope.spawn(woken);
        let took = scope.spawn(|| {
            let took = measure();
            bench.is_over.store(true, Ordering::Relaxed);
            order();
            took
        });
        took.join().ok()?.ok()
    })
}
