//! Contract: `temponet import` writes a set that every command takes, says what it wrote and what it left out, and overwrites
//! nothing; `temponet compare` imports a trace by itself and says so.

use crate::folder::Folder;

/// Two threads on one processor for a second: 2 of every 10 ms, and 5 of every 20 ms.
fn trace() -> String {
    let mut lines = Vec::new();
    let date = |us: u64| format!("{}.{:06}", 100 + us / 1_000_000, us % 1_000_000);
    let mut say = |us: u64, event: &str| {
        let line = format!("  app 7 [000] {}: sched:{event}\n", date(us));
        lines.push((us, line));
    };
    for k in 0..100 {
        let start = 10_000 * k;
        say(start, "sched_waking: comm=control pid=7 prio=49 target_cpu=000");
        say(start, "sched_switch: swapper/0:0 [120] R ==> control:7 [49]");
        match k % 2 {
            0 => {
                say(start, "sched_waking: comm=vision pid=8 prio=120 target_cpu=000");
                say(start + 2_000, "sched_switch: control:7 [49] S ==> vision:8 [120]");
                say(start + 7_000, "sched_switch: vision:8 [120] S ==> swapper/0:0 [120]");
            }
            _ => say(start + 2_000, "sched_switch: control:7 [49] S ==> swapper/0:0 [120]"),
        }
    }
    lines.into_iter().map(|(_, line)| line).collect()
}

#[test]
fn a_trace_becomes_a_set_that_every_command_takes() {
    let folder = Folder::new("import");
    folder.write("trace.txt", &trace());
    let text = folder.stdout(&["import", "trace.txt", "-o", "set.toml", "--jobs", "jobs.csv"]);
    assert!(
        text.starts_with("trace: 2 tasks in 992ms, 150 jobs, ") || text.contains("2 tasks in 992.0ms, 150 jobs"),
        "{text}"
    );
    assert!(text.contains("control  periodic  10ms ± 0") && text.contains("measured load: 0.45 of 1 core"), "{text}");
    let set = folder.read("set.toml");
    assert!(set.contains("# a trace has no deadlines") && set.contains("priority = 50"), "{set}");
    assert_eq!(folder.read("jobs.csv").lines().count(), 151);
    assert_eq!(folder.files(), ["jobs.csv", "set.toml", "trace.txt"]);
    let analysis = folder.json(&["analyze", "set.toml", "--json"]);
    assert!(analysis.is_object(), "{analysis}");
    let error = folder.error(&["import", "trace.txt", "-o", "set.toml"]);
    assert!(error.contains("set.toml exists already; --force replaces it"), "{error}");
    assert_eq!(folder.read("set.toml"), set);
    let json = folder.json(&["import", "trace.txt", "--json"]);
    assert_eq!(
        (json["tasks"][0]["name"].as_str(), json["tasks"][0]["max_ns"].as_u64()),
        (Some("control"), Some(2_000_000))
    );
    assert_eq!(json["written"], serde_json::Value::Null);
}

#[test]
fn compare_imports_a_trace_and_says_so() {
    let folder = Folder::new("import-compare");
    folder.write("trace.txt", &trace());
    let output = folder.run(&["compare", "trace.txt", "--schedulers", "edf,rm", "--no-oracle", "--horizon", "1s"]);
    let (out, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success() && out.contains("2 tasks on 1 core"), "{out}{said}");
    assert!(
        said.contains("imported: trace.txt is a trace") && said.contains("note: trace.txt: a trace has no deadlines"),
        "{said}"
    );
}

#[test]
fn what_is_no_trace_is_an_error_and_leaves_nothing_behind() {
    let folder = Folder::new("import-wrong");
    folder.write("letter.txt", "Dear all,\n");
    assert!(folder.error(&["import", "letter.txt", "-o", "set.toml"]).starts_with("error: letter.txt: is no trace"));
    folder.write("trace.txt", &trace());
    let error = folder.error(&["import", "trace.txt", "--threads", "(", "-o", "set.toml"]);
    assert!(error.contains("is no regular expression"), "{error}");
    let error = folder.error(&["import", "trace.txt", "--task-by", "callback", "-o", "set.toml", "--jobs", "jobs.csv"]);
    assert!(error.contains("has no callback_start events of ROS 2: use --task-by thread"), "{error}");
    assert!(folder.error(&["import", "trace.txt", "-o", "set.xml"]).contains("must end in .toml, .csv or .json"));
    assert_eq!(folder.files(), ["letter.txt", "trace.txt"]);
}
