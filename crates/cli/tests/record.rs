//! Contract of `record`: a recording imports as what ran, nothing stays in tracefs however it ends, and whoever may not
//! record is told what would do. Without tracefs or the right to it, the tests say "skipped".

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::folder::Folder;

const INSTANCES: &str = "/sys/kernel/tracing/instances";

/// Whether this machine can be recorded.
fn can_record() -> bool {
    let folder = Path::new(INSTANCES).join(format!("probe-{}-{:?}", std::process::id(), std::thread::current().id()));
    let is_possible = std::fs::create_dir(&folder).is_ok();
    let _ = std::fs::remove_dir(&folder);
    if !is_possible {
        eprintln!("skipped: no instance of tracefs can be made here");
    }
    is_possible
}

/// Instances of a program with this id.
fn left(process: u32) -> usize {
    let entries = std::fs::read_dir(INSTANCES).unwrap().map(|entry| entry.unwrap().file_name());
    entries.filter(|name| name.to_string_lossy().starts_with(&format!("temponet-{process}-"))).count()
}

/// Waits until `is_so`, for at most ten seconds.
fn comes_true(mut is_so: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

#[test]
fn a_command_is_recorded_and_found_again() {
    if !can_record() {
        return;
    }
    let folder = Folder::new("record");
    // A shell that wakes every 50 ms.
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.05; done";
    let text = folder.stdout(&["record", "-o", "trace.txt", "--", "sh", "-c", script]);
    assert!(text.starts_with("trace.txt: ") && text.contains(" events in "), "{text}");
    assert!(folder.read("trace.txt").starts_with("# tracer: nop\n# recorded by temponet"));
    let found = folder.json(&["import", "trace.txt", "--threads", "^sh$", "--json"]);
    let jobs = found["tasks"][0]["jobs"].as_u64().unwrap();
    assert!((7..=12).contains(&jobs), "{found}");
    // The first one began before the recording knew the thread.
    assert!(found["tasks"][0]["dropped"].as_u64().unwrap() <= 1, "{found}");
    // A recording cannot be made again, so that none is replaced unless that is asked for.
    let recorded = folder.read("trace.txt");
    folder.error(&["record", "-o", "trace.txt", "--for", "100ms"]);
    assert_eq!(folder.read("trace.txt"), recorded);
    folder.stdout(&["record", "-o", "trace.txt", "--for", "100ms", "--force"]);
    assert!(!folder.read("trace.txt").contains("# only some threads"));
}

#[test]
fn an_interruption_ends_a_recording_and_a_kill_leaves_nothing_in_tracefs() {
    if !can_record() {
        return;
    }
    let folder = Folder::new("record-interrupted");
    let start = |file: &str| {
        let mut command = folder.command(&["record", "--for", "60s", "-o", file]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let signal = |process: u32, name: &str| {
        assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
    };
    let mut interrupted = start("interrupted.txt");
    assert!(comes_true(|| left(interrupted.id()) == 1));
    std::thread::sleep(Duration::from_millis(300));
    signal(interrupted.id(), "-INT");
    assert!(interrupted.wait().unwrap().success());
    assert!(folder.read("interrupted.txt").contains("sched_switch: "));
    assert_eq!(left(interrupted.id()), 0);

    let mut killed = start("killed.txt");
    let process = killed.id();
    assert!(comes_true(|| left(process) == 1));
    signal(process, "-KILL");
    assert!(!killed.wait().unwrap().success());
    assert!(comes_true(|| left(process) == 0));
    assert!(!folder.0.join("killed.txt").exists());
}

#[test]
fn what_cannot_be_recorded_is_said() {
    let folder = Folder::new("record-errors");
    assert!(folder.error(&["record", "-p", "2147483647", "-o", "t.txt"]).contains("there is no such process"));
    assert!(folder.error(&["record", "-o", "t.csv"]).contains(".txt"));
    assert!(folder.error(&["record", "-p", "1", "-o", "t.txt", "--", "true"]).contains("cannot be used with"));
    if !can_record() {
        let message = folder.error(&["record", "-o", "t.txt", "--for", "10ms"]);
        assert!(message.contains("tracefs") || message.contains("CAP_DAC_OVERRIDE"), "{message}");
        return;
    }
    assert!(folder.error(&["record", "-o", "t.txt", "--", "/nonexistent"]).contains("cannot start /nonexistent"));
}
