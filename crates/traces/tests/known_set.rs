//! Contract: what our simulator runs is what the importers find, whatever the format: periods within 0.1%, largest processor
//! times within 2% and 50 µs, every job, on the processors that it used.

use temponet_task::{Arrival, Attribute, Task, Time};
use temponet_traces::{Import, Kind, NamePattern, Options, TaskBy};

use crate::truth::{Truth, truth};
use crate::write_ctf::{Style, ctf};
use crate::write_text::{Layout, text};
use crate::{Folder, found, read, task};

/// Compares what was found with the truth; times are known to this many nanoseconds.
fn check(truth: &Truth, import: &Import, what: &str, precision: u64) {
    assert_eq!(import.tasks.len(), 3, "{what}: {:?}", import.tasks);
    assert_eq!(import.set.cores(), 2, "{what}");
    for (index, known) in truth.set.tasks().iter().enumerate() {
        let of = task(import, &known.name);
        let in_set = import.set.tasks().iter().find(|task| task.name == known.name).unwrap();
        let period = known.period().unwrap();
        assert!((of.period.0 as f64 / period.0 as f64 - 1.0).abs() < 1e-3, "{what}: {of:?}");
        let Kind::Periodic { confidence, .. } = of.kind else { panic!("{what}: {of:?}") };
        assert!(confidence > 0.999, "{what}: {of:?}");
        // The last job may not have ended when the trace did.
        let jobs: Vec<_> =
            truth.jobs.iter().filter(|job| job.task.index() == index && job.completion().is_some()).collect();
        assert_eq!((of.jobs, of.dropped), (jobs.len() as u64, 0), "{what}: {of:?}");
        let most = jobs.iter().map(|job| job.executed.0).max().unwrap();
        assert!(of.most.0.abs_diff(most) <= precision, "{what}: {} of {most}", of.most);
        assert!(of.most.0.abs_diff(most) <= most / 50 + 50_000, "{what}: {} of {most}", of.most);
        let longest = jobs.iter().map(|job| job.left.0 - job.release.0).max().unwrap();
        assert!(of.longest_response.0.abs_diff(longest) <= precision, "{what}: {of:?}");
        assert!(in_set.jitter.0.abs_diff(known.jitter.0) <= known.jitter.0 / 20 + 100_000, "{what}: {}", in_set.jitter);
        let priority = in_set.extra.get(Attribute::Priority);
        assert_eq!(priority, Some(60 - index as i64), "{what}");
    }
    // Reading what was written gives the same set.
    let path = std::path::Path::new("set.toml");
    let again = temponet_formats::parse(&import.toml, temponet_formats::Format::Toml, path).unwrap();
    assert_eq!(again.set.tasks(), import.set.tasks(), "{what}");
}

#[test]
fn every_text_of_the_kernels_tools_gives_the_known_set() {
    let (truth, folder) = (truth(), Folder::new("text"));
    for (layout, name, precision) in [
        (Layout::Perf, "perf.txt", 0),
        (Layout::PerfShort, "short.txt", 20_000),
        (Layout::Ftrace, "trace", 20_000),
        (Layout::TraceCmd, "report.txt", 20_000),
    ] {
        let path = folder.write(name, text(&truth, layout));
        check(&truth, &found(&path), name, precision);
    }
}

#[test]
fn ctf_of_either_byte_order_and_kind_of_metadata_gives_the_known_set() {
    let (truth, folder) = (truth(), Folder::new("ctf"));
    for (at, is_big, is_packetized) in [(0, false, false), (1, false, true), (2, true, false), (3, true, true)] {
        let name = format!("session{at}");
        for (file, bytes) in ctf(&truth, Style { is_big, is_packetized }) {
            folder.write(&format!("{name}/kernel/{file}"), bytes);
        }
        let import = found(&folder.0.join(&name));
        check(&truth, &import, &name, 0);
    }
}

#[test]
fn the_same_trace_gives_the_same_bytes() {
    let (truth, folder) = (truth(), Folder::new("same"));
    let path = folder.write("trace.txt", text(&truth, Layout::Perf));
    let [first, second] = [0, 1].map(|_| {
        let mut jobs = Vec::new();
        let import =
            temponet_traces::import(std::slice::from_ref(&path), &Options::default(), Some(&mut jobs), &mut |_| {})
                .unwrap();
        (import.toml, import.notes, jobs)
    });
    assert_eq!(first, second);
    let rows = String::from_utf8(first.2).unwrap();
    let completed = truth.jobs.iter().filter(|job| job.completion().is_some()).count();
    assert_eq!(rows.lines().count(), completed + 1);
    assert!(rows.starts_with("task,job,release_ns,start_ns,completion_ns,"), "{rows}");
}

#[test]
fn options_choose_tasks_times_and_cores() {
    let (truth, folder) = (truth(), Folder::new("options"));
    let path = folder.write("trace.txt", text(&truth, Layout::Perf));
    let import = |options: &Options| read(std::slice::from_ref(&path), options);
    let some = Options { threads: Some(NamePattern::new("^(control|plan)").unwrap()), ..Options::default() };
    let names: Vec<String> = import(&some).unwrap().tasks.into_iter().map(|task| task.name).collect();
    assert_eq!(names, ["control", "planner"]);
    let (from, to) = (Some(Time::from_secs(2)), Some(Time::from_secs(4)));
    let part = import(&Options { from, to, ..Options::default() }).unwrap();
    assert!(task(&part, "control").jobs.abs_diff(400) <= 2, "{part:?}");
    // Shares are of the time asked for.
    let whole = import(&Options::default()).unwrap();
    let [of_part, of_all] = [&part, &whole].map(|import| task(import, "control").share(import.length));
    assert!(part.length == 2_000_000_000 && (of_part / of_all - 1.0).abs() < 0.1, "{of_part} and {of_all}");
    let four = import(&Options { cores: Some(4), ..Options::default() }).unwrap();
    assert_eq!(four.set.cores(), 4);
    assert!(four.set.tasks().iter().all(|task| task.cores.is_all()));
    let none = Options { threads: Some(NamePattern::new("nobody").unwrap()), ..Options::default() };
    assert!(import(&none).unwrap_err().message.contains("--threads matches none of 3 tasks"));
    let markers = Options { task_by: Some(TaskBy::Marker), ..Options::default() };
    assert!(import(&markers).unwrap_err().message.contains("use --task-by thread"));
    assert!(NamePattern::new("(").unwrap_err().contains("no regular expression"));
}

#[test]
fn sporadic_threads_keep_their_load_and_pinned_ones_their_core() {
    let mut random = crate::Random(9);
    let (mut text, mut time, mut gaps) = (String::new(), 1_000_000u64, Vec::new());
    for k in 0..300 {
        let gap = 3_000 + random.next() % 20_000;
        (time, gaps) = (time + gap, [gaps, vec![gap]].concat());
        let date = |time: u64| format!("{}.{:06}", time / 1_000_000, time % 1_000_000);
        let (start, end) = (time + 10, time + 10 + 1000 + k);
        for (at, line) in [
            (time, "sched:sched_wakeup: comm=alarm pid=7 prio=120 target_cpu=003".to_string()),
            (start, "sched:sched_switch: swapper/3:0 [120] R ==> alarm:7 [120]".into()),
            (end, "sched:sched_switch: alarm:7 [120] S ==> swapper/3:0 [120]".into()),
        ] {
            text += &format!("x 1 [003] {}: {line}\n", date(at));
        }
    }
    let folder = Folder::new("sporadic");
    let import = found(&folder.write("t.txt", text));
    let alarm: &Task = &import.set.tasks()[temponet_task::TaskId::new(0)];
    let Arrival::Sporadic { minimum, .. } = alarm.arrival else { panic!("{alarm:?}") };
    assert_eq!(minimum, Time(1000 * gaps[1..].iter().min().unwrap()));
    let load = (0..300).map(|k| 1000.0 + k as f64).sum::<f64>() / gaps[1..].iter().sum::<u64>() as f64;
    assert!((alarm.mean_utilization() / load - 1.0).abs() < 0.02, "{} {load}", alarm.mean_utilization());
    assert_eq!((alarm.wcet, import.set.cores()), (Time(1_299_000), 1));
    assert!(import.toml.contains("name = \"cpu3\"") && import.toml.contains("nice 0"), "{}", import.toml);
}
