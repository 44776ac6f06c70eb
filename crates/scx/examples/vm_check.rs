//! Tries the extension on the running kernel: a scheduler of the catalog drives an overload through it, chosen threads
//! run, deadlines decide while user space is late, the watchdog ends a stalled scheduler.
//!
//!     cargo run -p temponet-scx --features scx --example vm_check
//!
//! It needs two cores, the right to load BPF programs, and a kernel with sched_ext; `crates/scx/vm-test` boots one.
//! Prints a line per check, and exits with 1 if one failed.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, gettid, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use temponet_runtime::{Job, Runtime, Time};
use temponet_scx::{Extension, join, state};

/// Core of the threads; the orders come from core 0.
const CORE: usize = 1;
/// Time for which orders are valid.
const VALID: Duration = Duration::from_millis(50);
const ROUNDS: usize = 30;

fn pin(core: usize) -> Result<(), Box<dyn Error>> {
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

/// A thread that computes until told to end. It counts its rounds: the kernel's own account of a running thread is only
/// renewed by ticks, which threads with an endless slice do not get.
struct Spinner {
    number: i32,
    rounds: Arc<AtomicU64>,
}

impl Spinner {
    fn start(end: &Arc<AtomicBool>) -> Result<Spinner, Box<dyn Error>> {
        let (end, rounds, (tell, told)) = (end.clone(), Arc::new(AtomicU64::new(0)), mpsc::channel());
        let counted = rounds.clone();
        thread::spawn(move || {
            let is_pinned = pin(CORE).is_ok();
            let number = gettid().as_raw_nonzero().get();
            if tell.send(if is_pinned { number } else { 0 }).is_ok() {
                while !end.load(Ordering::Relaxed) {
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        match told.recv()? {
            0 => Err("a thread cannot be pinned".into()),
            number => Ok(Spinner { number, rounds }),
        }
    }
}

/// Shares of all rounds that the threads have within this time.
fn shares(threads: &[Spinner], time: Duration) -> Vec<f64> {
    let rounds = || threads.iter().map(|thread| thread.rounds.load(Ordering::Relaxed)).collect::<Vec<u64>>();
    let before = rounds();
    thread::sleep(time);
    let made: Vec<u64> = rounds().iter().zip(before).map(|(after, before)| after - before).collect();
    let all = made.iter().sum::<u64>().max(1) as f64;
    made.into_iter().map(|made| made as f64 / all).collect()
}

/// A job that computes for this time, unless it is told to return.
fn compute(time: Duration) -> impl FnMut(&Job<'_>) + Send + 'static {
    let worked = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    move |job| {
        let begin = worked();
        while worked() - begin < time && !job.expired() {}
    }
}

/// Runs an overload under rate-monotonic priorities: the control loop is to meet its deadlines, and the other task
/// pays.
fn check_runtime() -> Result<bool, Box<dyn Error>> {
    let ms = Time::from_ms;
    let report = Runtime::new()
        .cores([CORE])
        .housekeeping(0)
        .scheduler(temponet_sched::build("rm")?)
        .carrier(Extension::load(VALID)?)
        .task("control", ms(40), ms(12), compute(Duration::from_millis(10)))
        .task("vision", ms(100), ms(95), compute(Duration::from_millis(90)))
        .run_for(Time::from_secs(4))?;
    let share = |task: usize| report.metrics.tasks[task].jobs.compliance();
    println!(
        "rm through the runtime, load 1.15: control meets {:.1}% of its deadlines, vision {:.1}%, {} preemptions",
        100.0 * share(0),
        100.0 * share(1),
        report.counts.preemptions
    );
    report.notes.iter().for_each(|note| println!("note: {note}"));
    let is_carried = !report.notes.iter().any(|note| note.contains("carrier"));
    // An emulated machine loses time that no scheduler gives back.
    Ok(is_carried && share(0) >= 0.7 && share(1) < 0.3 && report.counts.preemptions > 0)
}

fn check(end: &Arc<AtomicBool>) -> Result<bool, Box<dyn Error>> {
    let is_driven = check_runtime()?;
    pin(0)?;
    let threads = [Spinner::start(end)?, Spinner::start(end)?, Spinner::start(end)?];
    let mut extension = Extension::load(VALID)?;
    for (place, thread) in threads.iter().enumerate() {
        extension.set_deadline(thread.number, 1_000_000 * (1 + place as u64))?;
        join(thread.number)?;
    }
    thread::sleep(Duration::from_millis(20));
    let (mut carried_out, mut orders) = (0, Vec::new());
    for round in 0..ROUNDS {
        let which = [2, 0, 1][round % 3];
        let begin = Instant::now();
        extension.choose(CORE as u32, Some(threads[which].number))?;
        orders.push(begin.elapsed());
        carried_out += usize::from(shares(&threads, Duration::from_millis(20))[which] > 0.9);
    }
    orders.sort();
    let is_chosen = carried_out == ROUNDS;
    println!(
        "chosen threads ran: {carried_out} of {ROUNDS} orders; an order takes {:?} in the median",
        orders[ROUNDS / 2]
    );

    extension.choose(CORE as u32, Some(threads[2].number))?;
    thread::sleep(2 * VALID);
    let late = shares(&threads, Duration::from_millis(200));
    let is_by_deadline = late[0] > 0.9;
    println!("user space late: the thread with the earliest deadline has {:.1}% of the time", 100.0 * late[0]);

    extension.choose(CORE as u32, Some(threads[2].number))?;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(10) && state()? == "enabled" {
        extension.renew()?;
        thread::sleep(VALID / 5);
    }
    let (after, is_ejected) = (begin.elapsed(), state()? != "enabled");
    println!(
        "two threads starved: the kernel {} after {after:.1?}",
        if is_ejected { "threw the scheduler out" } else { "did nothing" }
    );
    let fair = shares(&threads, Duration::from_millis(300));
    let is_fair = fair.iter().all(|share| *share > 0.2);
    println!(
        "afterwards the threads have {:.0?}% of the time",
        fair.iter().map(|share| 100.0 * share).collect::<Vec<_>>()
    );
    Ok(is_driven && is_chosen && is_by_deadline && is_ejected && is_fair)
}

fn main() -> ExitCode {
    let end = Arc::new(AtomicBool::new(false));
    let result = check(&end);
    end.store(true, Ordering::Relaxed);
    match result {
        Ok(true) => {
            println!("all checks passed");
            ExitCode::SUCCESS
        }
        Ok(false) => {
            println!("a check failed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
