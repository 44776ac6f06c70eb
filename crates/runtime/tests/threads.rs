//! Contract of runs on real threads: jobs run as the scheduler decides, a mistake in a task costs that task alone, and
//! nothing is left behind, however a run ends.
//!
//! Where real-time priorities are not permitted, or there is only one processor, these tests say "skipped" and pass.
//! Each runs for well under a second, and none judges latencies: the machine may be busy.

#![cfg(target_os = "linux")]

use std::fs;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use temponet_runtime::platform_sheet::PlatformSheet;
use temponet_runtime::{Job, OnMiss, Runtime, RuntimeError, Scheduler, Time};
use temponet_task::{Assignment, NotApplicable, System, SystemView, TaskId};

/// One run at a time: they share processors and the settings of the process.
static ALONE: Mutex<()> = Mutex::new(());

fn ms(n: u64) -> Time {
    Time::from_ms(n)
}

/// Whether runs on threads are possible here; says so if not.
fn is_possible() -> bool {
    let sheet = PlatformSheet::of_this_machine(&[]);
    if let Some(problem) = sheet.problem() {
        eprintln!("skipped: {problem}");
    }
    sheet.problem().is_none()
}

fn edf() -> Box<dyn Scheduler> {
    temponet_sched::build("edf").unwrap()
}

/// Computes for a time, or until the job should return.
fn compute(job: &Job<'_>, time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time && !job.expired() {}
}

/// Real-time threads of a process: their ids and priorities.
fn real_time_threads(process: u32) -> Vec<(String, i64)> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let of = |thread: std::io::Result<fs::DirEntry>| {
        let stat = fs::read_to_string(thread.ok()?.path().join("stat")).ok()?;
        let (head, rest) = stat.rsplit_once(')')?;
        // Field 40 of proc_pid_stat(5) is the real-time priority; the state, field 3, is the first one here.
        let priority = rest.split_whitespace().nth(37)?.parse().ok()?;
        Some((head.to_string(), priority)).filter(|(_, priority)| *priority > 0)
    };
    threads.filter_map(of).collect()
}

fn locked_memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    status.lines().find(|line| line.starts_with("VmLck")).unwrap_or_default().to_string()
}

fn real_time_limit() -> String {
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    limits.lines().find(|line| line.contains("realtime timeout")).unwrap_or_default().to_string()
}

#[test]
fn jobs_run_and_everything_is_put_back() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !is_possible() {
        return;
    }
    let before = (locked_memory(), real_time_limit());
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let runtime = Runtime::new().scheduler(edf());
    let report = runtime
        .task("control", ms(10), ms(2), |job| {
            CALLS.fetch_add(1, Ordering::Relaxed);
            compute(job, Duration::from_millis(1));
        })
        .task("vision", ms(50), ms(20), |job| compute(job, Duration::from_millis(10)))
        .run_for(ms(500))
        .unwrap();
    let released = report.metrics.jobs.released;
    assert_eq!(released, 60, "50 and 10 jobs are due in half a second");
    let started = report.jobs.iter().filter(|job| job.task == TaskId(0) && job.start.is_some()).count() as u64;
    assert!(CALLS.load(Ordering::Relaxed) >= started, "a job that the run's end cut off was called, too");
    assert!(started > 25, "{started} of 50 jobs started");
    for job in report.jobs.iter().filter(|job| job.met()) {
        assert!(job.start >= Some(job.release) && job.left <= job.deadline && job.executed > Time::ZERO, "{job:?}");
    }
    assert!(report.lost.is_empty(), "{:?}", report.lost);
    assert!(report.dispatcher_time > Time::ZERO && report.latencies.decide.count() > 60);
    assert_eq!(before, (locked_memory(), real_time_limit()));
    assert_eq!(real_time_threads(std::process::id()), []);
}

#[test]
fn code_that_never_returns_loses_its_task_and_nothing_else() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !is_possible() {
        return;
    }
    static HANGS: AtomicU64 = AtomicU64::new(1);
    for rule in [OnMiss::Abort, OnMiss::Continue] {
        HANGS.store(1, Ordering::Relaxed);
        let report = Runtime::new()
            .scheduler(edf())
            .on_miss(rule)
            .task("stuck", ms(20), ms(2), |_| {
                while HANGS.load(Ordering::Relaxed) == 1 {
                    std::hint::spin_loop();
                }
            })
            .task("well", ms(20), ms(2), |job| compute(job, Duration::from_millis(1)))
            .run_for(ms(600))
            .unwrap();
        assert_eq!(report.lost, ["stuck"], "{rule:?}");
        assert_eq!(real_time_threads(std::process::id()), [], "the stuck thread has no priority");
        let well = report.metrics.tasks[1].jobs;
        assert!(well.met * 2 > well.released, "{rule:?}: {} of {}", well.met, well.released);
        assert_eq!(report.metrics.tasks[0].jobs.met, 0);
        assert!(report.counts.skipped >= 20, "{}: its releases are skipped and counted", report.counts.skipped);
        HANGS.store(0, Ordering::Relaxed);
    }
}

#[test]
fn a_panic_costs_the_job_and_sporadic_tasks_are_released_by_hand() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !is_possible() {
        return;
    }
    let runtime = Runtime::new()
        .scheduler(edf())
        .task("panics", ms(50), ms(2), |job| {
            // Without the panic hook, which takes long to print a backtrace.
            if job.number == 1 {
                std::panic::resume_unwind(Box::new("on purpose"));
            }
        })
        .sporadic("alarm", ms(5), ms(1), |_| {});
    let alarm = runtime.handle("alarm").unwrap();
    let caller = std::thread::spawn(move || {
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(30));
            alarm.release();
        }
    });
    let report = runtime.run_for(ms(300)).unwrap();
    caller.join().unwrap();
    assert_eq!(report.counts.panics, 1);
    let jobs = |task: usize| report.jobs.iter().filter(move |job| job.task == TaskId::new(task));
    assert_eq!(jobs(0).count(), 6);
    assert!(jobs(0).filter(|job| job.met()).count() >= 3, "later jobs run");
    assert!((3..=5).contains(&jobs(1).count()), "{}", jobs(1).count());
}

#[test]
fn hundreds_of_tasks_and_several_cores_run() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !is_possible() {
        return;
    }
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    let cores = (processors - 1).min(4);
    if cores == 1 {
        eprintln!("skipped in part: two processors, so there is one core for jobs");
    }
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let mut runtime = Runtime::new().cores(1..=cores).scheduler(edf());
    for task in 0..300 {
        let body = |_: &Job<'_>| _ = CALLS.fetch_add(1, Ordering::Relaxed);
        runtime = runtime.task(format!("t{task}"), ms(150), Time::from_us(100), body).offset(Time::from_us(499 * task));
    }
    // Two jobs that take longer share a core, or have one each.
    for name in ["a", "b"] {
        runtime = runtime.task(name, ms(20), ms(6), |job| compute(job, Duration::from_millis(4)));
    }
    let report = runtime.run_for(ms(450)).unwrap();
    let of = |few: bool| report.jobs.iter().filter(move |job| (job.task.index() >= 300) == few);
    assert_eq!((of(false).count(), of(true).count()), (900, 46));
    assert!(of(false).filter(|job| job.met()).count() > 450, "{:?}", report.metrics.jobs);
    assert!(CALLS.load(Ordering::Relaxed) > 450);
    let used: std::collections::BTreeSet<_> = of(true).filter_map(|job| job.core).collect();
    assert_eq!(used.len(), cores.min(2), "{used:?}");
}

#[test]
fn processors_that_do_not_exist_are_refused() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !is_possible() {
        return;
    }
    let error =
        Runtime::new().cores([1000]).scheduler(edf()).task("a", ms(5), ms(1), |_| {}).run_for(ms(10)).unwrap_err();
    assert!(matches!(&error, RuntimeError::NotPermitted(why) if why.contains("processor 1000")), "{error}");
}

/// A scheduler that hangs in its hundredth decision, as a mistake would.
struct Hangs(u64);

impl Scheduler for Hangs {
    fn start(&mut self, _: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.0 += 1;
        if self.0 > 100 {
            loop {
                std::hint::spin_loop();
            }
        }
        assignment.place(view, &view.active[..view.active.len().min(view.cores())]);
    }
}

/// A scheduler that panics in its twentieth decision.
struct Panics(u64);

impl Scheduler for Panics {
    fn start(&mut self, _: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.0 += 1;
        if self.0 > 20 {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        assignment.place(view, &view.active[..view.active.len().min(view.cores())]);
    }
}

#[test]
fn a_scheduler_that_panics_ends_the_run_and_leaves_nothing_behind() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !is_possible() {
        return;
    }
    let runtime = Runtime::new().scheduler(Panics(0));
    let runtime = runtime.task("busy", ms(10), ms(9), |job| compute(job, Duration::from_millis(5)));
    assert!(matches!(runtime.run_for(ms(2_000)), Err(RuntimeError::Panicked)));
    assert_eq!(real_time_threads(std::process::id()), []);
    eventually("its worker ends", Duration::from_secs(5), || {
        let threads = fs::read_dir("/proc/self/task").unwrap().filter_map(|thread| thread.ok());
        !threads
            .filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok())
            .any(|name| name.trim() == "busy")
    });
}

/// Not a test of its own: the process that the tests below start and end.
#[test]
#[ignore = "started by other tests"]
fn the_process_that_is_ended() {
    let scheduler: Box<dyn Scheduler> = match std::env::var("TEMPONET_TEST_RUN").as_deref() {
        Ok("hangs") => Box::new(Hangs(0)),
        Ok("runs") => edf(),
        _ => return,
    };
    let runtime = Runtime::new().scheduler(scheduler);
    let report = runtime.task("busy", ms(10), ms(9), |job| compute(job, Duration::from_millis(5))).run_for(ms(5_000));
    panic!("it should have been killed: {:?}", report.map(|report| report.counts));
}

/// Starts such a process.
fn start(kind: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "the_process_that_is_ended", "--test-threads", "1"]);
    command.env("TEMPONET_TEST_RUN", kind).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Waits until the condition holds.
fn eventually(what: &str, patience: Duration, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < patience, "{what}: not within {patience:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The guard of a process: its child.
fn guard_of(process: u32) -> Option<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let children = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    children.flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>()).next()
}

fn is_alive(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X'])))
}

fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[test]
fn a_dispatcher_that_hangs_is_killed_by_the_guard() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !is_possible() {
        return;
    }
    let mut child = start("hangs");
    let mut ended = None;
    eventually("the guard kills it", Duration::from_secs(20), || {
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    assert_eq!(ended.and_then(signal), Some(9));
}

#[test]
fn a_killed_or_interrupted_run_leaves_nothing_behind() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !is_possible() {
        return;
    }
    for (name, number) in [("KILL", 9), ("INT", 2), ("TERM", 15)] {
        let mut child = start("runs");
        let process = child.id();
        let mut guard = None;
        eventually("it runs", Duration::from_secs(20), || {
            guard = guard_of(process);
            guard.is_some() && real_time_threads(process).iter().any(|(_, priority)| *priority == 90)
        });
        let guard = guard.unwrap();
        assert_eq!(real_time_threads(guard)[0].1, 99, "the guard is above everything");
        let sent = Command::new("kill").args(["-s", name, &process.to_string()]).status().unwrap();
        assert!(sent.success());
        assert_eq!(signal(child.wait().unwrap()), Some(number));
        eventually("the guard ends", Duration::from_secs(5), || !is_alive(guard));
        assert_eq!(real_time_threads(process), []);
    }
}
