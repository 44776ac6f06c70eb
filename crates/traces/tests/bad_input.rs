//! Contract: what cannot be read is one error with file, place and value; what is lost is counted and touches no figure.

use temponet_traces::{Options, Place};

use crate::truth::truth;
use crate::write_ctf::{Style, ctf};
use crate::write_text::{Layout, text};
use crate::{Folder, found, read, task};

fn error(folder: &Folder, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = folder.write(name, bytes);
    let error = read(&[path], &Options::default()).expect_err(name).to_string();
    assert!(!error.contains('\n'), "{error}");
    error.replace(&format!("{}/", folder.0.display()), "")
}

#[test]
fn files_that_are_no_traces_say_what_to_do() {
    let folder = Folder::new("foreign");
    assert_eq!(error(&folder, "empty", ""), "empty: is empty");
    assert!(error(&folder, "p.data", b"PERFILE2\0\0").contains("perf script -i FILE"));
    assert!(error(&folder, "t.dat", b"\x17\x08\x44tracing6\0").contains("trace-cmd report"));
    assert!(error(&folder, "t.gz", b"\x1f\x8b\x08\0").contains("zcat"));
    assert!(error(&folder, "channel0_0", b"\xc1\x1f\xfc\xc1\0").contains("name the folder"));
    assert!(error(&folder, "a.json", "{\"task\": []}").contains("without \"traceEvents\""));
    assert!(error(&folder, "novel.txt", "It was a dark and stormy night.\n").contains("is no trace"));
    let bad = "a 1 [000] 1.5: sched:sched_switch: gibberish\n".repeat(3);
    assert!(error(&folder, "bad.txt", bad).starts_with("bad.txt:1: \"a 1 [000] 1.5: sched:sched_switch: gibberish\""));
    assert!(error(&folder, "bad.json", "{\"traceEvents\":[\n{\"ph\":\"X\",\"ts\":-5}]}").starts_with("bad.json:2: "));
    assert!(error(&folder, "cut.json", "{\"traceEvents\":[\n{\"ph\":\"X\",\"ts\":5,").contains("ends within an event"));
    let back =
        "a 1 [000] 9.5: sched:sched_waking: a:1 [120] CPU:000\na 1 [000] 1.5: sched:sched_waking: a:1 [120] CPU:000\n";
    assert!(error(&folder, "back.txt", back).contains("go back by 8s"));
    assert!(read(&[folder.0.join("nothing")], &Options::default()).is_err());
    assert!(
        read(std::slice::from_ref(&folder.0), &Options::default()).unwrap_err().message.contains("without metadata")
    );
}

#[test]
fn a_packet_that_is_cut_off_has_its_file_and_offset() {
    let (truth, folder) = (truth(), Folder::new("cut"));
    let files = ctf(&truth, Style { is_big: false, is_packetized: true });
    for (name, bytes) in &files {
        let cut = if name == "channel0_1" { bytes.len() - 70 } else { bytes.len() };
        folder.write(name, &bytes[..cut]);
    }
    let error = read(std::slice::from_ref(&folder.0), &Options::default()).unwrap_err();
    assert!(error.file.ends_with("channel0_1") && error.message.contains("is cut off after"), "{error}");
    let Place::Offset(offset) = error.place else { panic!("{error}") };
    let (_, bytes) = files.iter().find(|(name, _)| name == "channel0_1").unwrap();
    assert_eq!(bytes[offset as usize..][..4], 0xc1fc_1fc1u32.to_le_bytes(), "{error}");
    folder.write(
        "metadata",
        "/* CTF 1.8 */\ntrace { byte_order = le; };\nstream { event.header := struct { foo x; }; };\n",
    );
    let error = read(std::slice::from_ref(&folder.0), &Options::default()).unwrap_err();
    assert!(error.place == Place::Line(3) && error.message.contains("there is no type \"foo\""), "{error}");
}

#[test]
fn jobs_that_lost_events_touch_are_dropped_and_counted() {
    let (truth, folder) = (truth(), Folder::new("lost"));
    let whole = text(&truth, Layout::Ftrace);
    let lines: Vec<&str> = whole.lines().collect();
    // A stretch of lines is missing, and the kernel says so.
    let (from, to) = (lines.len() / 2, lines.len() / 2 + 40);
    let said = [lines[..from].join("\n"), "CPU:0 [LOST 40 EVENTS]".into(), lines[to..].join("\n")].join("\n");
    let import = found(&folder.write("said.txt", said));
    assert!(
        import.dropped > 0 && import.notes.iter().any(|note| note.contains("were lost once (40 events)")),
        "{:?}",
        import.notes
    );
    // Nobody says so: the switches do not fit.
    let silent = [&lines[..from], &lines[to..]].concat().join("\n");
    let silent = found(&folder.write("silent.txt", silent));
    for (import, is_said) in [(&import, true), (&silent, false)] {
        for (index, known) in truth.set.tasks().iter().enumerate() {
            let of = task(import, &known.name);
            let jobs = truth.jobs.iter().filter(|job| job.task.index() == index && job.completion().is_some());
            let most = jobs.map(|job| job.executed.0).max().unwrap();
            // A thread that slept and ran again, all of it unseen, looks as if it had run throughout.
            assert!(!is_said || of.most.0 <= most + 20_000, "{}: {} of {most}", known.name, of.most);
            assert!((of.period.0 as f64 / known.period().unwrap().0 as f64 - 1.0).abs() < 1e-3, "{of:?}");
        }
    }
}

/// A server that forks for each request: whoever ends takes its job along, and the notes say how much that was.
#[test]
fn jobs_that_end_with_their_threads_are_counted() {
    let mut text = String::new();
    for k in 0..50 {
        let child = 1000 + k;
        for (ms, event) in [
            (0, "wakeup: comm=srv pid=7 prio=120 target_cpu=000".to_string()),
            (0, "switch: swapper/0:0 [120] R ==> srv:7 [120]".into()),
            (1, format!("wakeup_new: comm=srv pid={child} prio=120 target_cpu=000")),
            (2, format!("switch: srv:7 [120] S ==> srv:{child} [120]")),
            (8, format!("switch: srv:{child} [120] Z ==> swapper/0:0 [120]")),
        ] {
            text += &format!("x 1 [000] {}.{:06}: sched:sched_{event}\n", k / 50, 1000 * (20 * k % 1000 + ms));
        }
    }
    let folder = Folder::new("ends");
    let import = found(&folder.write("trace.txt", text));
    assert_eq!((import.tasks.len(), task(&import, "srv").jobs), (1, 50));
    let note = "50 jobs that ended with their threads are left out: \"srv\" (50, 300ms); 30.36% of a core in all";
    assert!(import.notes.iter().any(|said| said == note), "{:?}", import.notes);
}

#[test]
fn events_that_cannot_be_read_are_counted() {
    let folder = Folder::new("broken-lines");
    let line = |k: u64, what: &str| format!("x 1 [000] 0.{:06}: sched:sched_{what}\n", k);
    let mut text = String::new();
    for k in 0..20 {
        let at = 10_000 * k;
        let wake = line(at, "wakeup: comm=cam pid=7 prio=120 target_cpu=000");
        text +=
            if k == 9 { "x 1 [0x0] date: sched:sched_wakeup: comm=cam pid=7 prio=120 target_cpu=000\n" } else { &wake };
        text += &line(at + 100, "switch: swapper/0:0 [120] R ==> cam:7 [120]");
        text += &line(at + 900, "switch: cam:7 [120] S ==> swapper/0:0 [120]");
    }
    let import = found(&folder.write("perf.txt", text));
    let note = "1 event of the scheduler cannot be read, the first in line 28";
    assert!(import.notes.iter().any(|said| said == note), "{:?}", import.notes);
    let mut text = String::new();
    for k in 0..20 {
        let tid = if k == 9 { "x" } else { "7" };
        let at = 10 * k;
        let event = |ms: u64, name: &str, fields: &str| {
            format!(
                "[00:00:{:02}.{:03}000000] (+0.1) vm {name}: {{ cpu_id = 0 }}, {{ {fields} }}\n",
                ms / 1000,
                ms % 1000
            )
        };
        text += &event(at, "sched_waking", &format!("comm = \"cam\", tid = {tid}, prio = 20, target_cpu = 0"));
        let switch = |from: &str, to: &str| {
            let thread = |which: &str, (name, tid): (&str, u32)| {
                format!("{which}_comm = \"{name}\", {which}_tid = {tid}, {which}_prio = 20")
            };
            let of = |name: &str| if name == "cam" { ("cam", 7) } else { ("swapper/0", 0) };
            let (from, to) = (of(from), of(to));
            let from = thread("prev", from);
            format!("{from}, prev_state = ( \"TASK_INTERRUPTIBLE\" : container = 1 ), {}", thread("next", to))
        };
        text += &event(at + 1, "sched_switch", &switch("idle", "cam"));
        text += &event(at + 2, "sched_switch", &switch("cam", "idle"));
    }
    let import = found(&folder.write("babeltrace.txt", &text));
    assert!(import.notes.iter().any(|said| said == note), "{:?}", import.notes);
    let no_time = text.replacen("[00:00:00.010", "[00:99:00.010", 1);
    assert!(error(&folder, "babeltrace.txt", no_time).contains("babeltrace.txt:4: "));
}

#[test]
fn threads_that_were_not_recorded_are_no_tasks() {
    let folder = Folder::new("partial");
    let lines = |head: &str| {
        let mut text = format!("# tracer: nop\n{head}\n");
        for k in 0..20 {
            let (wake, start, end) = (10 * k, 10 * k + 1, 10 * k + 2);
            let event =
                |process: &str, ms: u32, event: &str| format!("{process} [000] d..2. 5.{ms:03}000: sched_{event}\n");
            text += &event("y-300", wake, "waking: comm=mine pid=100 prio=120 target_cpu=000");
            text += &event(
                "x-200",
                start,
                "switch: prev_comm=x prev_pid=200 prev_prio=120 prev_state=S ==> next_comm=mine next_pid=100 next_prio=120",
            );
            text += &event(
                "mine-100",
                end,
                "switch: prev_comm=mine prev_pid=100 prev_prio=120 prev_state=S ==> next_comm=x next_pid=200 next_prio=120",
            );
        }
        text
    };
    let read_as = |head: &str| read(&[folder.write("trace.txt", lines(head))], &Options::default());
    // Taken for a whole trace, x seems to run for 9 ms of every 10 ms. It is not recorded, so nothing is known of it.
    assert_eq!(read_as("# a trace").unwrap().tasks.len(), 2);
    let found = read_as("# only some threads: 100 101").unwrap();
    let names: Vec<&str> = found.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!((names, found.tasks[0].most.0), (vec!["mine"], 1_000_000));
    // One that a recorded thread starts is recorded.
    let forked = "# only some threads: 100\nmine-100 [000] d..2. 4.900000: sched_process_fork: comm=mine pid=100 child_comm=x child_pid=200";
    assert_eq!(read_as(forked).unwrap().tasks.len(), 2);
    for head in ["# only some threads", "# only some threads: ", "# only some threads: 1 x"] {
        assert!(error(&folder, "trace.txt", lines(head)).contains("trace.txt:2: which threads?"), "{head}");
    }
}

#[test]
fn clocks_that_do_not_match_are_refused() {
    let (truth, folder) = (truth(), Folder::new("clocks"));
    let trace = text(&truth, Layout::Perf);
    let one = folder.write("one.txt", &trace);
    let two = folder.write("two.txt", trace.replace("] 50", "] 90"));
    let refused = read(&[one.clone(), two], &Options::default()).unwrap_err();
    assert!(refused.message.contains("their clocks do not match"), "{refused}");
    for (at, uuid) in
        ["ad977f06-7b85-4bb5-861c-8dda1fc29ec9", "00000000-7b85-4bb5-861c-8dda1fc29ec9"].iter().enumerate()
    {
        for (name, bytes) in ctf(&truth, Style { is_big: false, is_packetized: false }) {
            let bytes = match name.as_str() {
                "metadata" => {
                    String::from_utf8(bytes).unwrap().replace("ad977f06-7b85-4bb5-861c-8dda1fc29ec9", uuid).into_bytes()
                }
                _ => bytes,
            };
            folder.write(&format!("session/{at}/{name}"), bytes);
        }
    }
    let refused = read(&[folder.0.join("session")], &Options::default()).unwrap_err();
    assert!(refused.message.contains("their dates cannot be compared"), "{refused}");
}
