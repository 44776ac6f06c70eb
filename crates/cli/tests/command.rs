//! Contract of the command line: output, streams and exit codes, and that no file of the user is lost.

use std::collections::HashSet;

use serde_json::Value;

use crate::folder::Folder;

#[test]
fn compare_without_arguments_answers_on_an_overloaded_example() {
    let folder = Folder::new("compare");
    let text = folder.stdout(&["compare"]);
    assert!(text.starts_with("robot: 12 tasks on 3 cores") && text.contains("horizon"), "{text}");
    assert!(text.contains("goal: critical jobs of level 2, then level 1, then jobs in time"), "{text}");
    let rule = text.lines().position(|line| line.starts_with('─')).unwrap();
    let rows: Vec<&str> = text.lines().skip(rule + 1).take_while(|line| line.contains('%')).collect();
    let names: Vec<&str> = rows.iter().map(|row| row.split_whitespace().next().unwrap()).collect();
    assert_eq!(names.len(), 1 + 10, "the bound and ten schedulers: {names:?}");
    assert!(names.contains(&"edf") && names.contains(&"temponet"), "{names:?}");
    assert!(text.contains("\nas edf: ") && text.contains("--all shows every one"), "{text}");
    assert!(
        text.contains("temponet: the shield guarantees every deadline of 6 of 12 tasks by slack stealing: "),
        "{text}"
    );
    let all = folder.stdout(&["compare", "standard-125", "--all"]);
    assert!(all.lines().count() > 45 && !all.contains("\nas "), "{all}");
}

#[test]
fn the_version_names_kernel_features_and_model() {
    let folder = Folder::new("version");
    let text = folder.stdout(&["--version"]);
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{text}"));
    assert!(value("kernel here").contains(temponet_infer::Kernel::best().name()), "{text}");
    assert!(!value("features").trim().is_empty(), "{text}");
    let shown = folder.json(&["model", "show", "built-in", "--json"]);
    assert!(value("model").contains(shown["checksum"].as_str().unwrap()), "{text}");
    assert_eq!(folder.stdout(&["-V"]).lines().count(), 1);
}

#[test]
fn compare_json_has_every_field_and_adds_up() {
    let folder = Folder::new("json");
    let report = folder.json(&["compare", "democar", "--runs", "3", "--json"]);
    for key in ["task_set", "cores", "horizon_ns", "on_miss", "runs", "results"] {
        assert!(!report[key].is_null(), "{key}");
    }
    assert_eq!((report["runs"].as_u64(), report["on_miss"].as_str()), (Some(3), Some("abort")));
    let results = report["results"].as_array().unwrap();
    let skipped: Vec<&str> =
        report["skipped"].as_array().unwrap().iter().map(|row| row["scheduler"].as_str().unwrap()).collect();
    assert_eq!(skipped, ["edf-chain", "hlfet", "egs"], "no task comes after another");
    let classical =
        temponet_sched::catalog::all().into_iter().map(|entry| &*entry.name).filter(|name| !skipped.contains(name));
    let expected: HashSet<&str> = classical.chain(["temponet", "temponet-unshielded", "tuned"]).collect();
    assert_eq!(results.len(), expected.len());
    assert_eq!(results.iter().map(|row| row["scheduler"].as_str().unwrap()).collect::<HashSet<_>>(), expected);
    for row in results {
        let keys = [
            "scheduler",
            "released",
            "met",
            "missed",
            "compliance",
            "compliance_ci95",
            "pitmd",
            "value",
            "art_completed_ns",
            "art_all_ns",
            "lateness_p95_ns",
            "preemptions",
            "migrations",
            "energy",
        ];
        let object = row.as_object().unwrap();
        assert!(keys.iter().all(|key| object.contains_key(*key)), "{row}");
        let number = |key: &str| row[key].as_u64().unwrap();
        assert_eq!(number("met") + number("missed"), number("released"));
        let share = number("met") as f64 / number("released") as f64;
        assert!((row["compliance"].as_f64().unwrap() - share).abs() < 1e-12);
        assert_eq!(results[0]["released"], row["released"], "all schedulers see the same jobs");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
    let folder = Folder::new("seed");
    let run = |seed: &str| folder.stdout(&["compare", "democar", "--seed", seed, "--runs", "4", "--json"]);
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
}

#[test]
fn compare_says_what_it_skips_and_refuses_what_it_does_not_know() {
    let folder = Folder::new("names");
    let text = folder.stdout(&["compare", "standard-125", "--cores", "2", "--all"]);
    assert!(text.contains("not run: d-over (d-over is defined for one core, not for 2)"), "{text}");
    assert!(folder.error(&["compare", "--schedulers", "edf,eddf"]).contains("there is no scheduler \"eddf\""));
    assert!(folder.error(&["compare", "--schedulers", ","]).contains("names no scheduler"));
    assert!(folder.error(&["compare", "nosuchset"]).contains("no file and no built-in set \"nosuchset\""));
    assert!(folder.error(&["compare", "nosuch.toml"]).contains("nosuch.toml: "));
    assert!(folder.error(&["compare", "--horizon", "0"]).contains("greater than zero"));
    assert!(folder.error(&["compare", "--cores", "0"]).contains("--cores"));
}

#[test]
fn a_broken_file_is_one_line_with_file_line_and_value() {
    let folder = Folder::new("broken");
    folder.write("set.toml", "[[task]]\nname = \"a\"\nperiod = 10\nwcet = -1\n");
    assert_eq!(folder.error(&["compare", "set.toml"]), "error: set.toml:4: wcet = -1 is negative\n");
    assert_eq!(
        folder.error(&["simulate", "set.toml", "--scheduler", "edf"]),
        "error: set.toml:4: wcet = -1 is negative\n"
    );
    assert_eq!(folder.error(&["convert", "set.toml", "out.json"]), "error: set.toml:4: wcet = -1 is negative\n");
    assert_eq!(folder.files(), ["set.toml"]);
}

#[test]
fn the_report_is_one_html_page() {
    let folder = Folder::new("report");
    folder.stdout(&["compare", "gap-avionics", "--schedulers", "edf,rm", "--report", "out.html"]);
    let page = folder.read("out.html");
    assert!(page.starts_with("<!doctype html>") && page.contains("Weapon_Release"));
    assert!(!page.contains("src=") && !page.contains("href="), "self-contained");
    assert_eq!(folder.files(), ["out.html"]);
}

#[test]
fn simulate_writes_jobs_trace_and_picture() {
    let folder = Folder::new("simulate");
    let args = ["simulate", "standard-125", "--scheduler", "edf", "--horizon", "600ms", "--json"];
    let row = folder.json(&[&args[..], &["--jobs", "jobs.csv", "--trace", "trace.json", "--gantt", "g.svg"]].concat());
    let jobs = folder.read("jobs.csv");
    let mut lines = jobs.lines();
    let header = "task,job,release_ns,deadline_ns,start_ns,completion_ns,executed_ns,met,core,criticality,why_missed,ran_instead";
    assert_eq!(lines.next(), Some(header));
    let (released, met) = (jobs.lines().count() - 1, lines.filter(|line| line.contains(",true,")).count());
    assert_eq!((row["released"].as_u64(), row["met"].as_u64()), (Some(released as u64), Some(met as u64)));
    let trace: Value = serde_json::from_str(&folder.read("trace.json")).unwrap();
    assert!(trace["traceEvents"].as_array().unwrap().len() > 20);
    assert!(folder.read("g.svg").starts_with("<svg"));
    assert_eq!(folder.files(), ["g.svg", "jobs.csv", "trace.json"], "no temporary file stays behind");
}

#[test]
fn simulate_and_compare_agree() {
    let folder = Folder::new("agree");
    let one = folder.json(&["simulate", "democar", "--scheduler", "mh-edf", "--json"]);
    let args = ["compare", "democar", "--schedulers", "mh-edf,edf", "--runs", "1", "--no-oracle", "--json"];
    let many = folder.json(&args);
    let row = many["results"].as_array().unwrap().iter().find(|row| row["scheduler"] == "mh-edf").unwrap();
    for (key, value) in row.as_object().unwrap() {
        assert_eq!(&one[key], value, "{key}");
    }
    assert_eq!((one["task_set"].as_str(), one["seed"].as_u64()), (Some("democar"), Some(1)));
}

#[test]
fn latency_is_reported_when_asked_for() {
    let folder = Folder::new("latency");
    let row = folder.json(&["simulate", "rosace", "--scheduler", "edf", "--latency", "--json"]);
    let latency = &row["decision_latency_ns"];
    let figures: Vec<_> = ["p50", "p99", "p999", "max"].iter().map(|key| latency[key].as_u64().unwrap()).collect();
    assert!(figures[0] > 0 && figures.is_sorted(), "{figures:?}");
}

#[test]
fn the_clairvoyant_optimum_stands_beside_every_result() {
    let folder = Folder::new("oracle");
    let report = folder.json(&["compare", "standard-125", "--schedulers", "edf,mh-edf", "--json"]);
    let optimum = &report["clairvoyant"];
    assert_eq!(
        (optimum["exact"].as_bool(), &optimum["met"], &optimum["upper"]),
        (Some(true), &optimum["lower"], &optimum["lower"])
    );
    let met = optimum["met"].as_f64().unwrap();
    for row in report["results"].as_array().unwrap() {
        let share = row["met"].as_f64().unwrap() / met;
        assert!(share <= 1.0 && (row["of_optimum"].as_f64().unwrap() - share).abs() < 1e-12, "{row}");
    }
    assert!(report["verdict"].as_str().unwrap().contains("of the clairvoyant optimum"));
    let text = folder.stdout(&["compare", "standard-125", "--schedulers", "edf"]);
    assert!(text.contains("clairvoyant optimum") && text.contains("of opt."), "{text}");
    let without = folder.json(&["compare", "standard-125", "--schedulers", "edf", "--no-oracle", "--json"]);
    assert!(without.get("clairvoyant").is_none() && without["results"][0].get("of_optimum").is_none());
    // Values and criticalities have their own optima.
    let text = "cores = 1\n[[task]]\nname=\"a\"\nperiod=\"10ms\"\nwcet=\"8ms\"\nvalue=5\n\
        [[task]]\nname=\"b\"\nperiod=\"10ms\"\nwcet=\"4ms\"\ncriticality=\"high\"\n\
        [[task]]\nname=\"c\"\nperiod=\"10ms\"\nwcet=\"4ms\"\n";
    folder.write("v.toml", text);
    let report = folder.json(&["compare", "v.toml", "--schedulers", "edf", "--horizon", "100ms", "--json"]);
    let optimum = &report["clairvoyant"];
    let expected = [("met", 20.0), ("value", 50.0), ("critical_met", 10.0), ("met_critical_first", 20.0)];
    assert!(expected.iter().all(|(key, value)| optimum[key].as_f64() == Some(*value)), "{optimum}");
    // Without time to find the optimum, bounds are reported as such.
    folder.stdout(&["generate", "--tasks", "30", "--utilization", "5", "--cores", "4", "-o", "hard.toml"]);
    let args = ["compare", "hard.toml", "--schedulers", "edf", "--oracle-budget", "0.00001"];
    let report = folder.json(&[&args[..], &["--json"]].concat());
    let optimum = &report["clairvoyant"];
    assert!(optimum["exact"] == false && optimum["met"].is_null(), "{optimum}");
    assert!(optimum["upper"].as_u64() > optimum["lower"].as_u64());
    let text = folder.stdout(&args);
    assert!(
        text.contains("clairvoyant bound") && text.contains('≤') && !text.contains("clairvoyant optimum  "),
        "{text}"
    );
    assert!(folder.error(&["compare", "--oracle-budget", "0"]).contains("greater than zero"));
}

#[test]
fn a_job_list_runs_to_its_last_deadline() {
    let folder = Folder::new("list");
    folder.write("trace.csv", "name,release,execution,deadline,criticality\na,0,2,5,high\nb,1,2,4,low\na,6,1,9,high\n");
    let report = folder.json(&["compare", "trace.csv", "--schedulers", "edf,fcfs", "--json"]);
    assert_eq!((report["horizon_ns"].as_u64(), report["runs"].as_u64()), (Some(9_000_000), Some(1)));
    let edf = &report["results"][0];
    assert_eq!((edf["released"].as_u64(), edf["pitmd"].as_f64()), (Some(3), Some(1.0)));
}

#[test]
fn schedulers_take_options_after_a_comma_or_a_colon() {
    let folder = Folder::new("options");
    let list = "edf,look-ahead:caution=0.2,capacity=0.9,c-edf:size=1:fit=worst";
    let report = folder.json(&["compare", "standard-145", "--horizon", "1s", "--schedulers", list, "--json"]);
    let names: Vec<_> = report["results"].as_array().unwrap().iter().map(|row| row["scheduler"].as_str()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names.contains(&Some("look-ahead:caution=0.2,capacity=0.9")), "{names:?}");
}

#[test]
fn a_rival_of_the_paper_is_named_as_such() {
    let error = Folder::new("rival").error(&["compare", "standard-145", "--schedulers", "edf,pso"]);
    assert!(error.contains("\"pso\"") && error.contains("one of temponet-paper's"), "{error}");
    assert_eq!(error.trim().lines().count(), 1, "{error}");
}

#[test]
fn lists_and_manuals_print() {
    let folder = Folder::new("lists");
    for set in temponet_formats::builtin::ALL {
        assert!(folder.stdout(&["sets"]).contains(set.name));
        assert_eq!(folder.stdout(&["sets", set.name]), set.text);
    }
    let classical = temponet_sched::catalog::all().into_iter().map(|entry| &*entry.name);
    let ours = ["temponet", "temponet-unshielded", "tuned", "planner"].into_iter();
    let names: Vec<_> = ours.chain(classical).collect();
    let listed = folder.json(&["schedulers", "--json"]);
    let listed: Vec<_> =
        listed["schedulers"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(listed, names);
    assert_eq!(folder.json(&["schedulers", "--json"])["schedulers"][names.len() - 1]["kind"], "classical");
    assert!(folder.stdout(&["completions", "bash"]).contains("temponet"));
    assert!(folder.stdout(&["man"]).contains(".TH temponet"));
    for command in [
        "compare",
        "simulate",
        "analyze",
        "train",
        "tune",
        "sets",
        "schedulers",
        "new",
        "convert",
        "generate",
        "sweep",
        "completions",
        "man",
    ] {
        assert!(folder.stdout(&[command, "--help"]).contains("Example"), "{command}");
    }
}

#[test]
fn a_negative_number_is_out_of_the_range_of_its_option() {
    let folder = Folder::new("negative");
    let drawn = ["generate", "--tasks", "4", "-o", "a.toml", "--utilization"];
    let cases = [
        ([&drawn[..], &["-1"]].concat(), "--utilization"),
        ([&drawn[..], &["-0.5"]].concat(), "--utilization"),
        ([&drawn[..], &["1", "--seed", "-1"]].concat(), "--seed"),
        (vec!["compare", "--seed", "-1"], "--seed"),
        (vec!["compare", "--runs", "-2"], "--runs"),
        (vec!["compare", "--oracle-budget", "-1"], "--oracle-budget"),
        ([&drawn[..], &["-1e-3"]].concat(), "--utilization"),
        (vec!["compare", "--horizon", "-5ms"], "--horizon"),
        (vec!["compare", "--horizon", "-.5s"], "--horizon"),
    ];
    for (call, option) in cases {
        let error = folder.error(&call);
        assert!(error.contains(option) && !error.contains("unexpected argument"), "{call:?}: {error}");
    }
    assert!(folder.error(&["compare", "-1"]).contains("unexpected argument '-1'"), "no option takes it");
    assert!(folder.files().is_empty());
}

/// Tells the process that a test starts from its own program to be the program with the wrong scheduler.
const AS_PROGRAM: &str = "TEMPONET_TEST_AS_PROGRAM";

#[test]
fn a_program_cannot_give_its_scheduler_a_name_of_temponets() {
    use temponet_sched::catalog::{self, Entry};
    // The catalog is that of the whole process, so the program has one of its own.
    if std::env::var_os(AS_PROGRAM).is_some() {
        let own = Entry::new("tuned", "a test's", "this test", |_| Ok(catalog::global_edf()));
        catalog::register(own).unwrap();
        let code = temponet_cli::Program::named("mine").main();
        std::process::exit(if code == std::process::ExitCode::from(2) { 2 } else { 1 });
    }
    let mut program = std::process::Command::new(std::env::current_exe().unwrap());
    let test = "command::a_program_cannot_give_its_scheduler_a_name_of_temponets";
    let output = program.args(["--exact", test, "--nocapture"]).env(AS_PROGRAM, "").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let expected =
        "error: mine has a scheduler under a name of TempoNet's own: there is a scheduler \"tuned\" already\n";
    assert_eq!((output.status.code(), text.as_str()), (Some(2), expected));
}
