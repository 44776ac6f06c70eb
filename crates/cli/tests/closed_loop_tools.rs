//! Contract of the same way with programs and tracers of others: callbacks with the tracepoints of ros2_tracing, recorded by
//! LTTng beside perf and tracefs, and a workload of rt-app. What the traces tell is what ran, and what is advised brings
//! more of it in time. They measure the machine as well, so that they run only if they are asked for (`--ignored`); where a
//! tool or a right is missing then, they say "skipped".

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::PoisonError;
use std::time::Duration;

use serde_json::Value;

use crate::closed_loop::{ALONE, missing, stolen};
use crate::folder::Folder;

/// What became of a task's jobs: releases, jobs in time, longest processor time in nanoseconds.
type Ran = BTreeMap<String, (f64, f64, f64)>;

/// Runs a tool in a folder. An error is what it says, or that it is not there.
fn tool(folder: &Folder, call: &[&str]) -> Result<Output, String> {
    let done = Command::new(call[0]).args(&call[1..]).current_dir(&folder.0).stdin(Stdio::null()).output();
    let done = done.map_err(|error| format!("{}: {error}", call[0]))?;
    let words = String::from_utf8_lossy(&done.stderr).trim().to_string();
    if done.status.success() { Ok(done) } else { Err(format!("{}: {words}", call.join(" "))) }
}

/// A session daemon of LTTng: the one that runs, or one of our own that ends with this.
struct Daemon(Option<Child>);

impl Daemon {
    fn start(folder: &Folder) -> Result<Daemon, String> {
        if tool(folder, &["lttng", "--no-sessiond", "list"]).is_ok() {
            return Ok(Daemon(None));
        }
        // Kernel tracing needs modules of LTTng; perf and tracefs record the switches here.
        let daemon =
            Command::new("lttng-sessiond").arg("--no-kernel").stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let daemon = Daemon(Some(daemon.map_err(|error| format!("lttng-sessiond: {error}"))?));
        for _ in 0..50 {
            std::thread::sleep(Duration::from_millis(100));
            if tool(folder, &["lttng", "--no-sessiond", "list"]).is_ok() {
                return Ok(daemon);
            }
        }
        Err("lttng-sessiond does not answer".into())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(daemon) = &mut self.0 {
            // It ends its own children when it is asked to end.
            let _ = Command::new("kill").arg(daemon.id().to_string()).status();
            let _ = daemon.wait();
        }
    }
}

/// A session of LTTng that is destroyed with this.
struct Session<'a>(&'a Folder, String);

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let _ = tool(self.0, &["lttng", "--no-sessiond", "destroy", &self.1]);
    }
}

/// Builds the example with the tracepoints of ros2_tracing.
fn built_callbacks(folder: &Folder) -> Result<(), String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces/examples/callbacks");
    let (include, file) = (format!("-I{}", source.display()), source.join("callbacks.c").display().to_string());
    let call = ["cc", "-O1", &include, &file, "-o", "callbacks", "-llttng-ust", "-ldl", "-lpthread"];
    tool(folder, &call).map(|_| ())
}

/// What the example printed.
fn counted(printed: &[u8]) -> Ran {
    let text = String::from_utf8_lossy(printed).into_owned();
    let row = |line: &str| {
        let words: Vec<&str> = line.split('\t').collect();
        let number = |at: usize| words[at].parse::<f64>().unwrap();
        (words[1].to_string(), (number(2), number(3), number(4)))
    };
    text.lines().filter(|line| line.starts_with("ran\t")).map(row).collect()
}

fn share(ran: &Ran) -> f64 {
    ran.values().map(|row| row.1).sum::<f64>() / ran.values().map(|row| row.0).sum::<f64>()
}

fn found<'a>(report: &'a Value, name: &str) -> &'a Value {
    let tasks = report["tasks"].as_array().unwrap();
    tasks.iter().find(|task| task["name"] == name).unwrap_or_else(|| panic!("{name} was not found: {report}"))
}

/// Whether a period is the given one within 0.1%. One of a task that skips releases may be a multiple of it.
fn has_period(task: &Value, period: f64, is_late: bool) -> bool {
    let periods = task["period_ns"].as_f64().unwrap() / period;
    let whole = if is_late { periods.round().max(1.0) } else { 1.0 };
    (is_late && task["kind"] == "sporadic") || (periods / whole - 1.0).abs() < 1e-3
}

fn is_close(task: &Value, key: &str, expected: f64) -> bool {
    (task[key].as_f64().unwrap() - expected).abs() < 0.02 * expected + 5e4
}

/// Whether the host took so much of the processors' time since `before` that a deadline says nothing.
fn was_disturbed(before: (u64, u64)) -> bool {
    let (taken, all) = stolen();
    20 * (taken - before.0) > all - before.1
}

const CAMERA: &str = "/camera: timer 20ms";
const DETECTOR: &str = "/perception/detector: /image";

#[test]
#[ignore = "measures on real threads: nothing else may run meanwhile"]
fn callbacks_that_lttng_recorded_are_found_and_served_better() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new("closed-loop-lttng");
    let result = missing(&folder).map_or(Ok(()), Err).and_then(|()| callbacks(&folder));
    if let Err(why) = result {
        eprintln!("skipped: {why}");
    }
}

/// The test. An error is what is missing on this machine.
fn callbacks(folder: &Folder) -> Result<(), String> {
    built_callbacks(folder)?;
    let probe =
        ["perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-e", "sched:sched_switch", "-a", "-o", "probe", "true"];
    tool(folder, &probe)?;
    let daemon = Daemon::start(folder)?;
    let name = format!("temponet-{}", std::process::id());
    let lttng = |call: &[&str]| tool(folder, &[&["lttng", "--no-sessiond"], call].concat());
    let output = format!("--output={}", folder.0.join("session").display());
    lttng(&["create", &name, &output])?;
    let session = Session(folder, name.clone());
    lttng(&["enable-event", "-s", &name, "-u", "ros2:*"])?;
    lttng(&["add-context", "-s", &name, "-u", "-t", "vpid", "-t", "vtid"])?;
    lttng(&["start", &name])?;

    // The same run, recorded three times: callbacks by LTTng, switches by perf and by tracefs.
    let cpu = (std::thread::available_parallelism().map_or(1, |count| count.get()) - 1).to_string();
    let record = ["record", "-o", "tracefs.txt", "--"];
    let perf = ["perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-e", "sched:sched_switch,sched:sched_waking", "-a"];
    let program = ["-o", "perf.data", "taskset", "-c", &cpu, "./callbacks", "200", "50"];
    let stolen_before = stolen();
    let done = folder.run(&[&record[..], &perf[..], &program[..]].concat());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let before = counted(&done.stdout);
    assert_eq!(before.len(), 4, "{before:?}");
    lttng(&["stop", &name])?;
    drop((session, daemon));
    folder.write(
        "perf.txt",
        &String::from_utf8_lossy(&tool(folder, &["perf", "script", "-i", "perf.data", "--ns"])?.stdout),
    );

    for switches in ["perf.txt", "tracefs.txt"] {
        let report = folder.json(&["import", switches, "session", "-o", "set.toml", "--force", "--json"]);
        assert_eq!(report["tasks"].as_array().unwrap().len(), 4, "{switches}: {report}");
        for (name, (released, met, longest)) in &before {
            let task = found(&report, name);
            let period = if name.contains("200ms") { 2e8 } else { 2e7 };
            assert!(has_period(task, period, 2.0 * met < *released), "{switches}: {task}");
            assert!(is_close(task, "max_ns", *longest), "{switches}: {longest} {task}");
            assert!(task["jobs"].as_f64().unwrap() > 0.7 * released, "{switches}: {task}");
        }
        assert_eq!(found(&report, DETECTOR)["after"], serde_json::json!([CAMERA]), "{switches}");
    }

    folder.stdout(&["advise", "set.toml", "--for", "chrt", "-o", "apply.sh"]);
    let call = ["-c", &cpu, "./callbacks", "200", "50", "2500"];
    let mut again = Command::new("taskset");
    let again = again.args(call).current_dir(&folder.0).stdout(Stdio::piped()).spawn().unwrap();
    let applied = (0..40).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        tool(folder, &["sh", "apply.sh"]).is_ok()
    });
    let after = counted(&again.wait_with_output().unwrap().stdout);
    assert!(applied, "{}", folder.read("apply.sh"));
    eprintln!("callbacks in time: {:.4} before, {:.4} after; {before:?} {after:?}", share(&before), share(&after));
    if was_disturbed(stolen_before) {
        return Err("the host took more than 5% of the processors' time".into());
    }
    assert!(share(&after) >= share(&before) && share(&after) > 0.95, "{before:?} {after:?}");
    Ok(())
}

/// The log of a thread of rt-app: from the first to the last instruction of each job, in microseconds, and whether it was in
/// time.
fn log(folder: &Folder, base: &str, place: usize, task: &str) -> Vec<(f64, bool)> {
    let row = |line: &str| {
        let numbers: Vec<f64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        // idx perf run period start end rel_st slack …
        (numbers[2], numbers[7] >= 0.0)
    };
    let text = folder.read(&format!("{base}-{task}-{place}.log"));
    text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).map(row).collect()
}

/// Tasks of the workload: name, period and time in microseconds, priority under SCHED_FIFO. The priorities are wrong:
/// three others keep `control` waiting for 15 ms.
const WORKLOAD: [(&str, u64, u64, u8); 4] = [
    ("control", 10_000, 1_500, 10),
    ("camera", 50_000, 5_000, 20),
    ("planner", 50_000, 5_000, 20),
    ("mapper", 50_000, 5_000, 20),
];

/// The median time of a job that rt-app logged, in nanoseconds. It is the time between two dates, so it is the processor
/// time of a thread that nobody preempts; where the machine stood still, it is not, so the longest one says nothing.
fn median(jobs: &[(f64, bool)]) -> f64 {
    let mut times: Vec<f64> = jobs.iter().map(|(run, _)| run * 1e3).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Records a workload and imports its tasks. A thread that a busy machine kept from sleeping has no jobs in a trace, so
/// this has three attempts at a recording with all of them.
fn recorded(folder: &Folder, workload: &str, set: &str) -> Value {
    let names = WORKLOAD.map(|(name, ..)| name).join("|");
    let import = ["import", "trace.txt", "--threads", &format!("^({names})"), "-o", set, "--json", "--force"];
    let attempt = |_| {
        folder.stdout(&["record", "-o", "trace.txt", "--force", "--", "rt-app", workload]);
        let found = folder.run(&import);
        let report: Option<Value> = serde_json::from_slice(&found.stdout).ok();
        report.filter(|report| report["tasks"].as_array().is_some_and(|tasks| tasks.len() == WORKLOAD.len()))
    };
    (0..3)
        .find_map(attempt)
        .unwrap_or_else(|| panic!("not all tasks of {workload} were found: {}", folder.read("trace.txt").len()))
}

/// Makes a workload that `advise` or a template wrote one that runs for six seconds on one processor and logs.
fn prepared(workload: &str, cpu: &str, folder: &Folder, base: &str) -> String {
    let mut workload: Value = serde_json::from_str(workload).unwrap();
    let global = serde_json::json!({
        "duration": 6, "default_policy": "SCHED_OTHER", "calibration": format!("CPU{cpu}"), "lock_pages": true,
        "logdir": folder.0.display().to_string(), "log_basename": base
    });
    workload["global"] = global;
    for (_, task) in workload["tasks"].as_object_mut().unwrap() {
        task["cpus"] = serde_json::json!([cpu.parse::<u64>().unwrap()]);
    }
    workload.to_string()
}

#[test]
#[ignore = "measures on real threads: nothing else may run meanwhile"]
fn a_workload_of_rt_app_is_found_and_served_better() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new("closed-loop-rt-app");
    let result = missing(&folder).map_or(Ok(()), Err).and_then(|()| rt_app(&folder));
    if let Err(why) = result {
        eprintln!("skipped: {why}");
    }
}

/// The test. An error is what is missing on this machine.
fn rt_app(folder: &Folder) -> Result<(), String> {
    tool(folder, &["which", "rt-app"])?;
    let cpu = (std::thread::available_parallelism().map_or(1, |count| count.get()) - 1).to_string();
    let task = |(name, period, run, priority): (&str, u64, u64, u8)| {
        let timer = serde_json::json!({ "ref": "unique", "period": period, "mode": "absolute" });
        (
            name.to_string(),
            serde_json::json!({ "policy": "SCHED_FIFO", "priority": priority, "run": run, "timer": timer }),
        )
    };
    let tasks: serde_json::Map<String, Value> = WORKLOAD.into_iter().map(task).collect();
    let workload = serde_json::json!({ "tasks": tasks }).to_string();
    folder.write("before.json", &prepared(&workload, &cpu, folder, "before"));
    let stolen_before = stolen();
    let report = recorded(folder, "before.json", "set.toml");
    let (mut before, mut after) = (Vec::new(), Vec::new());
    // Threads are numbered in the order of the file, which is that of the names here.
    let mut order = WORKLOAD;
    order.sort();
    for (place, (name, period, ..)) in order.into_iter().enumerate() {
        let jobs = log(folder, "before", place, name);
        let task = found(&report, name);
        let met = jobs.iter().filter(|(_, met)| *met).count();
        assert!(has_period(task, period as f64 * 1e3, 2 * met < jobs.len()), "{task}");
        assert!(name == "control" || is_close(task, "median_ns", median(&jobs)), "{} {task}", median(&jobs));
        before.extend(jobs);
    }

    folder.stdout(&["advise", "set.toml", "--for", "rt-app", "-o", "advised.json"]);
    folder.write("after.json", &prepared(&folder.read("advised.json"), &cpu, folder, "after"));
    let report = recorded(folder, "after.json", "again.toml");
    let advised: Value = serde_json::from_str(&folder.read("advised.json")).unwrap();
    let advised = advised["tasks"].as_object().unwrap();
    let priority = |name: &&String| advised[*name]["priority"].as_i64().unwrap_or(-1);
    let highest = advised.keys().max_by_key(priority).unwrap();
    for (place, name) in advised.keys().enumerate() {
        let jobs = log(folder, "after", place, name);
        let (_, period, ..) = WORKLOAD.into_iter().find(|(known, ..)| known == name).unwrap();
        let task = found(&report, name);
        assert!(has_period(task, period as f64 * 1e3, false), "{task}");
        assert!(name != highest || is_close(task, "median_ns", median(&jobs)), "{} {task}", median(&jobs));
        after.extend(jobs);
    }
    let share = |jobs: &[(f64, bool)]| jobs.iter().filter(|(_, met)| *met).count() as f64 / jobs.len() as f64;
    eprintln!("rt-app in time: {:.4} before, {:.4} after", share(&before), share(&after));
    if was_disturbed(stolen_before) {
        return Err("the host took more than 5% of the processors' time".into());
    }
    // rt-app logs dates, not what its threads did, and a busy machine adds to them.
    assert!(share(&after) > share(&before) || share(&before) == 1.0);
    Ok(())
}
