//! Contract of `temponet exec`: mistakes are one line and exit code 2, missing rights are said and nothing is run, and
//! a run on threads reports every scheduler with what the simulator says beside it. Where threads cannot be run, those
//! parts say "skipped". No latency is judged: the machine may be busy.

#![cfg(target_os = "linux")]

mod folder;

use std::process::Output;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use folder::Folder;
use serde_json::Value;

/// The program whose calls are tested.
const PROGRAM: &str = env!("CARGO_BIN_EXE_temponet");

/// One test with real-time threads at a time: those of two would take the processors from each other.
static ALONE: Mutex<()> = Mutex::new(());

fn temponet(args: &[&str]) -> Output {
    // Tests run side by side, and each call has a folder of its own.
    static CALLS: AtomicU32 = AtomicU32::new(0);
    Folder::new(&format!("exec-{}", CALLS.fetch_add(1, Ordering::Relaxed))).run(args)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether this machine lets us run threads; says so if not.
fn is_possible() -> bool {
    let check = text(&temponet(&["exec", "--check"]).stdout);
    let is_possible =
        check.contains("works: real-time priorities") && check.contains("works: a processor for housekeeping");
    if !is_possible {
        eprintln!("skipped: {check}");
    }
    is_possible
}

#[test]
fn the_sheet_says_what_the_machine_is() {
    let check = temponet(&["exec", "--check"]);
    assert!(check.status.success());
    let check = text(&check.stdout);
    for line in
        ["kernel", "ticks a second", "preemption", "throttling", "clock source", "real-time priorities", "kernel trace"]
    {
        assert!(check.contains(line), "{line} in {check}");
    }
}

#[test]
fn mistakes_are_errors_of_one_line() {
    let error = |args: &[&str]| {
        let output = temponet(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output.stdout));
        text(&output.stderr)
    };
    assert!(error(&["exec", "no-such-set"]).contains("no-such-set"));
    assert!(error(&["exec"]).contains("FILE|NAME"));
    assert!(error(&["exec", "robot", "--cores", "1", "--cpus", "1,2"]).contains("--cpus names 2 processors"));
    assert!(error(&["exec", "robot", "--cores", "1", "--cpus", "1", "--housekeeping", "1"]).contains("housekeeping"));
    assert!(error(&["exec", "robot", "--cores", "64"]).contains("65 processors"));
    assert!(error(&["exec", "robot", "--load", "0"]).contains("greater than zero"));
    if is_possible() {
        assert!(error(&["exec", "robot", "--cores", "1", "--schedulers", "edff"]).contains("did you mean \"edf\""));
    }
}

#[test]
fn jobs_run_on_threads_and_are_reported() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_possible() {
        return;
    }
    let folder = Folder::new("exec-jobs");
    let list = "edf,temponet,linux-fifo,linux-eevdf,linux-deadline";
    let output = folder.run(&[
        "exec",
        "standard-125",
        "--cores",
        "1",
        "--load",
        "0.6",
        "--duration",
        "600ms",
        "--runs",
        "2",
        "--schedulers",
        list,
        "--json",
        "--jobs",
        "jobs.csv",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = result["results"].as_array().unwrap();
    let skipped = result["skipped"].as_array().unwrap();
    assert_eq!(rows.len() + skipped.len(), 5, "{result:#}");
    let released = rows[0]["released"].as_u64().unwrap();
    assert!(released > 20, "{released}");
    for row in rows {
        let name = row["scheduler"].as_str().unwrap();
        assert_eq!(row["released"].as_u64(), Some(released), "{name} meets the same jobs");
        assert!(row["met"].as_u64().unwrap() <= released);
        assert!(row["compliance_ci95"].is_number() && row["goal"].is_array(), "{name}: the fields of compare");
        let is_linux = name.starts_with("linux-");
        assert_eq!(row["dispatcher_share"].is_null(), is_linux, "{name}");
        assert_eq!(row["simulated_compliance"].is_null(), name == "linux-eevdf", "{name}");
        assert!(is_linux || row["start_latency_ns"]["p50"].as_i64().unwrap() > 0, "{name}");
        assert_eq!(row["answer_latency_ns"].is_null(), name != "temponet", "{name}");
    }
    for reason in skipped {
        assert_eq!(reason["scheduler"], "linux-deadline", "{reason}");
        assert!(reason["reason"].as_str().unwrap().contains("refused by the kernel"), "{reason}");
    }
    let jobs = folder.read("jobs.csv");
    assert!(jobs.starts_with("task,job,release_ns,deadline_ns,start_ns,completion_ns,response_ns,lateness_ns,"));
    assert_eq!(jobs.lines().count() as u64, 1 + rows.len() as u64 * released);
}

#[test]
fn sets_with_after_and_sections_run() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_possible() {
        return;
    }
    let folder = Folder::new("exec-together");
    let set = "\
        [[task]]\nname = \"read\"\nperiod = \"20ms\"\nwcet = \"2ms\"\nsection = [{ resource = \"bus\", at = \"500us\", length = \"1ms\" }]\n\
        [[task]]\nname = \"act\"\nafter = [\"read\"]\nwcet = \"1ms\"\ndeadline = \"20ms\"\n\
        [[task]]\nname = \"log\"\nperiod = \"50ms\"\nwcet = \"10ms\"\nsection = [{ resource = \"bus\", at = \"1ms\", length = \"8ms\" }]\n";
    std::fs::write(folder.0.join("set.toml"), set).unwrap();
    let call = ["exec", "set.toml", "--duration", "600ms", "--runs", "1", "--schedulers", "rm,linux-fifo", "--json"];
    let output = folder.run(&call);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(text(&output.stdout).contains("critical sections: waiting jobs"), "{result:#}");
    for row in result["results"].as_array().unwrap() {
        assert_eq!(row["released"], 30 + 30 + 12, "{row:#}");
        assert!(row["met"].as_u64().unwrap() > 24 && row["simulated_compliance"] == 1.0, "{row:#}");
    }
    assert_eq!(result["results"].as_array().unwrap().len(), 2, "{result:#}");
    std::fs::write(folder.0.join("set.toml"), format!("protocol = \"ceiling\"\n{set}")).unwrap();
    let output = folder.run(&call);
    let error = text(&output.stderr);
    assert!(output.status.code() == Some(2) && error.contains("asks for the protocol ceiling"), "{error}");
}

#[test]
fn a_killed_command_leaves_the_throttling_as_it_was() {
    const THROTTLE: &str = "/proc/sys/kernel/sched_rt_runtime_us";
    let throttle = || std::fs::read_to_string(THROTTLE).map(|text| text.trim().to_string()).unwrap_or_default();
    let before = throttle();
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_possible() || before == "-1" || std::fs::write(THROTTLE, &before).is_err() {
        eprintln!("skipped: {THROTTLE} cannot be changed, or is off already");
        return;
    }
    let becomes = |wanted: &str| {
        (0..100).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            throttle() == wanted
        })
    };
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_temponet"));
    command.args(["exec", "standard-125", "--unthrottled", "--duration", "30s", "--schedulers", "edf"]);
    let mut command = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let is_changed = becomes("-1");
    command.kill().unwrap();
    command.wait().unwrap();
    assert!(is_changed, "the command never changed {THROTTLE}");
    assert!(becomes(&before), "{THROTTLE} is {} and was {before}", throttle());
}
