//! Contract of the command line: output, streams and exit codes, and that no file of the user is lost.

use std::collections::HashSet;
use std::path::Path;

use crate::folder::Folder;
use serde_json::Value;

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
fn analyze_says_in_one_sentence_what_is_proved() {
    let folder = Folder::new("analyze");
    let text = folder.stdout(&["analyze", "standard-125"]);
    assert!(
        text.starts_with("Overloaded: utilization 1.25 on 1 core, so no scheduler can meet every deadline"),
        "{text}"
    );
    assert!(text.contains("QPA") && text.contains("not schedulable") && text.contains("99% met up to"), "{text}");
    let text = folder.stdout(&["analyze", "gap-avionics", "--no-simulation"]);
    let sentence = text.lines().next().unwrap();
    assert!(sentence.starts_with("On 1 core every deadline is proved to be met under edf, rm, dm and "), "{sentence}");
    assert!(sentence.ends_with("execution times may grow by 18.33% (edf)."), "{sentence}");
    assert!(!text.contains("99% met"), "{text}");
    let text = folder.stdout(&["analyze", "gap-avionics", "--cores", "2", "--no-simulation"]);
    assert!(text.contains("GFB") && text.contains("partitioned EDF") && !text.contains("hyperbolic"), "{text}");
    folder.write("trace.csv", "name,release,execution,deadline\na,0,2,5\nb,1,2,4\n");
    assert!(folder.stdout(&["analyze", "trace.csv"]).starts_with("Not analysable: it is a list of single jobs"));
    assert!(folder.error(&["analyze", "nosuchset"]).contains("no built-in set"));
    assert!(folder.error(&["analyze", "--schedulers", "eddf"]).contains("did you mean"));
}

#[test]
fn analyze_json_has_every_figure_and_agrees_with_simulation() {
    let folder = Folder::new("analyze-json");
    let report = folder.json(&["analyze", "gap-avionics", "--schedulers", "edf,rm,mh-edf", "--json"]);
    for key in ["task_set", "tasks", "cores", "utilization", "density", "hyperperiod_ns", "verdict", "overloaded"] {
        assert!(!report[key].is_null(), "{key}");
    }
    assert!(report["not_analysable"].is_null());
    let rows = |key: &str| report[key].as_array().unwrap().clone();
    assert!(rows("tests").iter().all(|row| row["result"].is_string() && row["exact"].is_boolean()));
    let survived = report["survived"]["rows"].as_array().unwrap();
    assert_eq!(survived.len(), 3);
    // A set that is proved schedulable up to a factor survives at least that factor in simulation, whose step is 1/512 of full load.
    let factor =
        |rows: &[Value], name: &str| rows.iter().find(|row| row["scheduler"] == name).unwrap()["factor"].as_f64();
    let step = 1.0 / 512.0 / report["utilization"].as_f64().unwrap();
    for name in ["edf", "rm"] {
        assert!(factor(survived, name).unwrap() > factor(&rows("proved_scaling"), name).unwrap() - step, "{name}");
    }
    let seen = folder.json(&["simulate", "gap-avionics", "--scheduler", "rm", "--json"]);
    let bounds = &rows("response_times")[0];
    assert_eq!(bounds["scheduler"], "rm");
    for (bound, seen) in bounds["tasks"].as_array().unwrap().iter().zip(seen["tasks"].as_array().unwrap()) {
        assert!(bound["response_ns"].as_u64() >= seen["response_max_ns"].as_u64(), "{bound} {seen}");
    }
    for proof in rows("proved") {
        let name = proof["scheduler"].as_str().unwrap();
        let run = folder.json(&["simulate", "gap-avionics", "--scheduler", name, "--json"]);
        assert_eq!(run["missed"], 0, "{name}");
    }
}

#[test]
fn analyze_tests_both_criticalities_where_there_are_two() {
    let folder = Folder::new("analyze-mixed");
    let low = "[[task]]\nname = \"low\"\nperiod = 10\nwcet = 6\n";
    let high =
        "[[task]]\nname = \"high\"\nperiod = 20\nwcet = 4\nwcet_high = 9\noverrun = 0.1\ncriticality = \"high\"\n";
    folder.write("mixed.toml", &format!("{low}{high}"));
    let report = folder.json(&["analyze", "mixed.toml", "--no-simulation", "--json"]);
    assert!(report["survived"].is_null());
    let verdict = report["verdict"].as_str().unwrap();
    assert!(verdict.contains("critical deadline is proved to be met under edf-vd and amc"), "{verdict}");
    let result = |name: &str| {
        let tests = report["tests"].as_array().unwrap();
        tests.iter().find(|row| row["test"] == name).unwrap()["result"].as_str().unwrap().to_string()
    };
    assert_eq!((result("EDF-VD").as_str(), result("AMC-rtb").as_str()), ("schedulable", "schedulable"));
}

#[test]
fn new_and_convert_never_replace_a_file_unasked() {
    let folder = Folder::new("convert");
    folder.stdout(&["new", "mine.toml"]);
    folder.stdout(&["compare", "mine.toml"]);
    folder.write("mine.toml", "precious");
    assert!(folder.error(&["new", "mine.toml"]).contains("exists already"));
    assert_eq!(folder.read("mine.toml"), "precious");
    assert!(folder.error(&["new", "mine.yaml"]).contains(".toml"));
    folder.stdout(&["convert", "waters2019", "a.json"]);
    folder.stdout(&["convert", "a.json", "b.toml"]);
    folder.stdout(&["convert", "b.toml", "c.json"]);
    assert_eq!(folder.read("a.json"), folder.read("c.json"));
    assert!(folder.error(&["convert", "gap-avionics", "a.json"]).contains("exists already"));
    folder.stdout(&["convert", "gap-avionics", "a.json", "--force"]);
    assert!(folder.error(&["convert", "waters2019", "a.csv"]).contains("cannot be written as CSV"));
    assert!(folder.error(&["convert", "gap-avionics", "a.xml"]).contains(".toml, .csv or .json"));
}

const WORKLOAD: &str = r#"{
    /* as rt-app has it */
    "tasks": {
        "control": { "lock": "m", "run": 4000, "unlock": "m", "timer": { "ref": "unique", "period": 10000 }, },
        "spin": { "run": 10 }
    }
}"#;

#[test]
fn a_workload_of_rt_app_is_a_task_set_with_notes() {
    let folder = Folder::new("rt-app");
    folder.write("w.json", WORKLOAD);
    let output = folder.run(&["convert", "w.json", "set.toml", "--json"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let notes: Vec<_> = printed["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect();
    assert!(notes[0].starts_with("w.json:5: task \"spin\": is left out: it runs without a pause"), "{notes:?}");
    assert_eq!(stderr, notes.iter().map(|note| format!("note: {note}\n")).collect::<String>());
    assert!(folder.read("set.toml").contains(
        "period = \"10ms\"\nwcet = \"4ms\"\nsection = [{ resource = \"m\", at = \"0ms\", length = \"4ms\" }]\n"
    ));
    // Every command that reads a task set reads this file too.
    let report = folder.json(&["compare", "w.json", "--schedulers", "edf,rm", "--json"]);
    assert_eq!((&report["on_miss"], &report["notes"]), (&"continue".into(), &printed["notes"]));
    let run = folder.json(&["simulate", "w.json", "--scheduler", "edf", "--json"]);
    assert_eq!((run["missed"].as_u64(), &run["notes"]), (Some(0), &printed["notes"]));
    assert!(folder.json(&["compare", "set.toml", "--schedulers", "edf,rm", "--json"])["notes"].is_null());
    folder.write("bad.json", &WORKLOAD.replace("4000", "\n-4"));
    let error = folder.error(&["compare", "bad.json"]);
    assert!(error.starts_with("error: bad.json:5: run = -4 must be a whole number"), "{error}");
    folder.write("none.json", "{ \"tasks\": { \"spin\": { \"run\": 1 } } }");
    let error = folder.error(&["convert", "none.json", "none.toml"]);
    assert!(error.starts_with("error: none.json: has no thread that can become a task"), "{error}");
    assert_eq!(folder.files(), ["bad.json", "none.json", "set.toml", "w.json"]);
}

#[test]
fn a_set_goes_to_rt_app_and_back() {
    let folder = Folder::new("to-rt-app");
    let exported = folder.json(&["convert", "gap-avionics", "w.json", "--to", "rt-app", "--json"]);
    let notes = exported["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().starts_with("w.json: cores = 1 is not")), "{notes:?}");
    folder.stdout(&["convert", "w.json", "back.json"]);
    folder.stdout(&["convert", "gap-avionics", "there.json"]);
    let tasks = |name: &str| {
        let set: Value = serde_json::from_str(&folder.read(name)).unwrap();
        let times = |task: &Value| ["name", "period", "wcet", "deadline", "offset"].map(|key| task[key].to_string());
        set["task"].as_array().unwrap().iter().map(times).collect::<Vec<_>>()
    };
    assert_eq!(tasks("back.json"), tasks("there.json"));
    assert!(folder.error(&["convert", "rosace", "w.toml", "--to", "rt-app"]).contains("must end in .json"));
    assert!(folder.error(&["convert", "rosace", "w.json", "--to", "rt-app"]).contains("exists already"));
    assert!(folder.error(&["convert", "rosace", "x.json", "--to", "cheddar"]).contains("--to"));
}

#[test]
fn a_simulation_of_simso_is_a_task_set_with_notes() {
    let folder = Folder::new("simso");
    let simulation = |class: &str| {
        let task = "<task name='a' id='1' period='10' deadline='8' WCET='4' activationDate='1'/>";
        let dates = "<task name='b' id='2' period='1' deadline='5' WCET='1' task_type='Sporadic' \
                     list_activation_dates='2,30'/>";
        format!(
            "<simulation duration='100000000'>\n<sched class='simso.schedulers.{class}'/>\n<processors>\
             <processor name='p' id='1'/></processors>\n<tasks>{task}\n{dates}</tasks></simulation>"
        )
    };
    folder.write("s.xml", &simulation("EDF"));
    let run = folder.json(&["simulate", "s.xml", "--scheduler", "edf", "--json"]);
    assert!(run["released"].as_u64().unwrap() > 9_000 && run["missed"] == 0, "{run}");
    let horizon = "s.xml:1: \"duration\" is not part of a task set: --horizon 100ms runs as long";
    let scheduler = "s.xml:2: the scheduler simso.schedulers.EDF is edf here";
    assert_eq!(run["notes"], serde_json::json!([horizon, scheduler]));
    let short = folder.json(&["simulate", "s.xml", "--scheduler", "edf", "--horizon", "100ms", "--json"]);
    assert_eq!(short["released"].as_u64(), Some(12), "ten periodic jobs and two listed ones");
    let refused = folder.run(&["convert", "s.xml", "s.toml"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("error: single jobs beside tasks that recur cannot"));
    folder.write("bad.xml", &simulation("EDF").replace("'4'", "'4 sec'"));
    assert_eq!(
        folder.error(&["compare", "bad.xml"]),
        "error: bad.xml:4: WCET = 4 sec has an unknown unit: use ns, us, ms or s\n"
    );
    // Every scheduler that a note recommends exists.
    for class in
        ["RM", "FP", "LLF", "MLLF", "P_EDF", "P_RM", "EDZL", "EDCL", "EDF_US", "G_FL", "PD2", "ER_PD2", "LLREF"]
            .into_iter()
            .chain(["LRE_TL", "DP_WRAP", "CC_EDF", "Static_EDF"])
    {
        let loaded = temponet_formats::parse(&simulation(class), temponet_formats::Format::SimSo, Path::new("s"));
        let note = loaded.unwrap().notes.remove(1);
        let ours = note.split(" is ").nth(1).and_then(|rest| rest.strip_suffix(" here")).unwrap_or_default();
        assert!(temponet_sched::build(ours).is_ok(), "{note}");
    }
}

#[test]
fn generate_draws_the_set_that_was_asked_for() {
    let folder = Folder::new("generate");
    let args = ["generate", "--tasks", "12", "--utilization", "3.5", "--cores", "4", "-o"];
    folder.stdout(&[&args[..], &["a.toml"]].concat());
    folder.stdout(&[&args[..], &["b.toml"]].concat());
    assert_eq!(folder.read("a.toml"), folder.read("b.toml"), "the same seed");
    let report = folder.json(&["compare", "a.toml", "--schedulers", "edf,dp-wrap", "--json"]);
    assert!((report["utilization"].as_f64().unwrap() - 3.5).abs() < 1e-2 && report["cores"] == 4);
    let best = &report["results"][0];
    assert_eq!(best["missed"], 0, "{best}");
    assert!(folder.error(&[&args[..], &["a.toml"]].concat()).contains("exists already"));
    let too_much = ["generate", "--tasks", "2", "--utilization", "2.5", "-o", "c.toml"];
    assert!(folder.error(&too_much).contains("at most 2"));
    let wrong = ["generate", "--tasks", "2", "--utilization", "1", "--periods", "log:9ms,3ms", "-o", "c.toml"];
    assert!(folder.error(&wrong).contains("the smaller first"));
    assert_eq!(folder.files(), ["a.toml", "b.toml"]);
}

#[test]
fn generated_sets_of_every_kind_run() {
    let folder = Folder::new("generate-kinds");
    let kinds: [&[&str]; 8] = [
        &["--method", "waters2015"],
        &["--method", "unc:bimo-heavy", "--periods", "uni-short"],
        &["--tasks", "6", "--method", "capped:0.5"],
        &["--tasks", "6", "--wcets", "uniform:10ms,50ms"],
        &["--tasks", "6", "--periods", "pareto:2,10ms"],
        &["--tasks", "6", "--burst", "10,10ms,20ms,1s,0.4"],
        &["--tasks", "6", "--modes", "low=0.5@0s,burst=2@1s,high=1.5@2s"],
        &["--tasks", "6", "--deadlines", "slack:0.5,1", "--bcet", "0.2", "--critical", "0.5", "--critical-factor", "2"],
    ];
    for (index, kind) in kinds.into_iter().enumerate() {
        let file = format!("{index}.toml");
        let args = [&["generate", "--utilization", "1.6", "--cores", "2", "-o", &file], kind].concat();
        folder.stdout(&args);
        let report = folder.json(&["compare", &file, "--horizon", "3s", "--schedulers", "edf,mh-edf", "--json"]);
        assert!(report["results"][0]["released"].as_u64() > Some(100), "{kind:?}");
    }
    for (wrong, message) in [
        (["--method", "unc:heavy"], "bimo-heavy"),
        (["--method", "capped:2"], "from 0.000000001 to 1"),
        (["--modes", "low=1@2s,high=2@1s"], "after the one before"),
        (["--burst", "10,10ms"], "JOBS,DEADLINE"),
    ] {
        let args = [&["generate", "--tasks", "4", "--utilization", "1", "-o", "x.toml"], &wrong[..]].concat();
        assert!(folder.error(&args).contains(message), "{wrong:?}");
    }
    let coarse = ["generate", "--tasks", "5", "--utilization", "0.8", "--granularity", "200ms", "-o", "x.toml"];
    assert!(folder.error(&coarse).contains("makes the total utilization 5"));
    let endless = ["generate", "--tasks", "5", "--utilization", "0.8", "--modes", "a=1e300@0s", "-o", "x.toml"];
    assert!(folder.error(&endless).contains("times as long"));
    let mixed = ["generate", "--method", "waters2015", "--periods", "uni-short", "--utilization", "1", "-o", "x.toml"];
    assert!(folder.error(&mixed).contains("of its own"));
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
    assert!(text.contains("clairvoyant optimum") && text.contains("of optimum"), "{text}");
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
fn a_run_of_the_learned_scheduler_is_explained() {
    let folder = Folder::new("explain-run");
    let args = ["explain", "standard-125", "--model", "random:1", "--run", "--horizon", "3s"];
    let found = folder.json(&[&args[..], &["--json", "--report", "run.html"]].concat());
    let run = &found["run"];
    let share = |value: &serde_json::Value| (0.0..=1.0).contains(&value.as_f64().unwrap());
    assert!(run["decisions"].as_u64().unwrap() > 50 && share(&run["alignment"]), "{run}");
    assert_eq!((run["entropy_bits"].as_array().unwrap().len(), run["top_k_alignment"][1]["k"].as_u64()), (2, Some(3)));
    assert_eq!(run["agreement"][1]["scheduler"], "srpt");
    assert!(run["agreement"].as_array().unwrap().iter().all(|of| share(&of["all"]) && share(&of["contested"])));
    let weights = [&run["rule"]["alpha"], &run["rule"]["beta"]].map(|weight| weight.as_f64().unwrap());
    assert!((weights[0] + weights[1] - 1.0).abs() < 1e-9, "{weights:?}");
    let text = folder.stdout(&args);
    assert!(text.contains("top-3 alignment") && text.contains("same as edf") && text.contains("untrained"), "{text}");
    let page = String::from_utf8(folder.bytes("run.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("NaN") && page.contains("layer 2"));
    assert!(folder.error(&["explain", "--model", "random:1", "--run", "--at", "5ms"]).contains("cannot be used with"));
}

#[test]
fn the_learned_scheduler_runs_without_its_shield_if_asked() {
    let folder = Folder::new("no-shield");
    let model = ["gap-avionics", "--horizon", "2s", "--model", "random:1", "--json"];
    let simulated = |scheduler: &str, more: &[&str]| {
        folder.json(&[&["simulate"], &model[..], &["--scheduler", scheduler], more].concat())
    };
    let (shielded, open) = (simulated("temponet", &[]), simulated("temponet", &["--no-shield"]));
    assert_eq!(open["scheduler"], "temponet-unshielded (untrained)");
    assert_eq!(open, simulated("temponet-unshielded", &[]));
    assert_eq!(shielded["missed"], 0);
    assert!(open["missed"].as_u64().unwrap() > 0 && open.get("shield_overrides").is_none());
    let list = ["--schedulers", "temponet,edf,temponet-unshielded", "--no-shield"];
    let compared = folder.json(&[&["compare"], &model[..], &list].concat());
    let names: Vec<&str> =
        compared["results"].as_array().unwrap().iter().map(|row| row["scheduler"].as_str().unwrap()).collect();
    assert_eq!(names, ["edf", "temponet-unshielded (untrained)"]);
    let explained = folder.json(&[&["explain"], &model[..], &["--no-shield"]].concat());
    assert_eq!((&explained["shield"], &explained["done"]), (&false.into(), &explained["wanted"]));
    let text = folder.stdout(&["explain", "gap-avionics", "--model", "random:1", "--no-shield"]);
    assert!(text.contains("no shield was asked"), "{text}");
}

#[test]
fn a_model_can_be_written_shown_run_and_explained() {
    let folder = Folder::new("model");
    folder.stdout(&["model", "new", "random:7", "-o", "m.safetensors"]);
    assert!(folder.error(&["model", "new", "random:7", "-o", "m.safetensors"]).contains("exists already"));
    let shown = folder.json(&["model", "show", "m.safetensors", "--json"]);
    assert_eq!((shown["untrained"].as_bool(), shown["architecture"]["width"].as_u64()), (Some(true), Some(128)));
    assert!(folder.stdout(&["model", "show", "m.safetensors"]).contains("seed 7"));
    // Random weights are never reported as TempoNet's result, neither from a file nor by name.
    let run = |model: &str| {
        let args =
            ["compare", "democar", "--horizon", "200ms", "--schedulers", "edf,temponet-unshielded", "--model", model];
        folder.json(&[&args[..], &["--runs", "2", "--json"]].concat())
    };
    let (from_file, by_name) = (run("m.safetensors"), run("random:7"));
    assert_eq!(from_file["results"], by_name["results"]);
    let rows = from_file["results"].as_array().unwrap();
    let row = rows.iter().find(|row| row["scheduler"] == "temponet-unshielded (untrained)").unwrap();
    assert_eq!(row["fallbacks"], 0);
    // Files that are truncated, damaged or of another kind are rejected.
    let bytes = folder.bytes("m.safetensors");
    let cases: [(&str, Vec<u8>, &str); 3] = [
        ("cut.safetensors", bytes[..bytes.len() / 2].to_vec(), "not a whole safetensors file"),
        ("damaged.safetensors", [&bytes[..bytes.len() - 1], &[bytes[bytes.len() - 1] ^ 64]].concat(), "checksum"),
        ("other.safetensors", b"hello".to_vec(), "not a whole safetensors file"),
    ];
    for (name, content, message) in cases {
        std::fs::write(folder.0.join(name), content).unwrap();
        assert!(folder.error(&["model", "show", name]).contains(message), "{name}");
    }
    // The built-in model is the default, and it is trained.
    let shown = folder.json(&["model", "show", "built-in", "--json"]);
    assert_eq!(shown["untrained"].as_bool(), Some(false), "{shown}");
    let built_in = folder.json(&["compare", "standard-125", "--schedulers", "edf,mh-edf,temponet", "--json"]);
    let met = |name: &str| {
        let rows = built_in["results"].as_array().unwrap();
        rows.iter().find(|row| row["scheduler"] == name).unwrap()["met"].as_u64().unwrap()
    };
    assert!(met("temponet") > met("edf") && met("temponet") == met("mh-edf"));
    // The metadata of a model can be changed, its weights cannot.
    folder.stdout(&["model", "note", "m.safetensors", "--provenance", "mine", "-o", "noted.safetensors"]);
    let noted = folder.json(&["model", "show", "noted.safetensors", "--json"]);
    assert_eq!(noted["provenance"].as_str(), Some("mine"));
    for (name, slack) in [
        ("random-raw:1", "continuous, as it is"),
        ("random-mlp:1", "continuous, through a hidden layer of 64"),
        ("random-paper:1", "128 bins"),
    ] {
        assert!(folder.stdout(&["model", "show", name]).contains(slack), "{name}");
        let text = folder.stdout(&["explain", "--model", name, "--at", "100ms"]);
        assert!(text.contains("the network wanted"), "{text}");
    }
    assert!(folder.error(&["compare", "--model", "random:x"]).contains("whole number"));
    let args = ["explain", "standard-125", "--model", "m.safetensors", "--at", "100ms"];
    let decision = folder.json(&[&args[..], &["--json", "--report", "d.html"]].concat());
    let jobs = decision["decision"]["jobs"].as_array().unwrap();
    let q: Vec<f64> = jobs.iter().map(|job| job["q"].as_f64().unwrap()).collect();
    assert!(jobs.len() >= 2 && q.windows(2).all(|pair| pair[0] >= pair[1]), "the best first: {q:?}");
    assert_eq!(decision["decision"]["attention"].as_array().unwrap().len(), 2 * 4);
    assert!(folder.read("d.html").matches("<figure>").count() == 8);
    assert!(folder.stdout(&args).contains("EDF would have"));
    assert!(folder.error(&["explain", "--model", "random:1", "--at", "1000s"]).contains("no job is ready"));
}

#[test]
fn a_sweep_runs_over_cores_and_tasks_too() {
    let folder = Folder::new("sweep-grid");
    let args = "sweep --loads 0.8,1.2 --cores 1,2 --tasks 4,8 --sets 2 --jobs 100 --schedulers edf,d-over -o s.csv";
    let args: Vec<&str> = args.split(' ').chain(["--report", "s.html"]).collect();
    let with_parquet = [&args[..], &["--parquet", "s.parquet"]].concat();
    if cfg!(feature = "parquet") {
        folder.stdout(&with_parquet);
        assert_eq!(&folder.bytes("s.parquet")[..4], b"PAR1");
    } else {
        assert!(folder.error(&with_parquet).contains("--features parquet"));
    }
    let report = folder.json(&[&args[..], &["--json"]].concat());
    let lengths = [0, 1].map(|at| report["curves"][at]["points"].as_array().unwrap().len());
    assert_eq!(lengths, [8, 4], "d-over runs on one core only");
    assert_eq!(folder.read("s.csv").lines().count(), 2 + 2 * (3 * 8 + 4));
    assert!(folder.read("s.html").contains("2 cores, 8 tasks"));
    assert!(folder.error(&["sweep", "--cores", "2,x", "-o", "t.csv"]).contains("whole numbers"));
}

#[test]
fn a_sweep_goes_on_where_it_stopped() {
    let folder = Folder::new("sweep");
    let args = [
        "sweep",
        "--loads",
        "0.8:1.2:0.2",
        "--sets",
        "5",
        "--jobs",
        "200",
        "--schedulers",
        "edf,mh-edf,d-over",
        "-o",
        "s.csv",
    ];
    folder.stdout(&[&args[..], &["--plot", "s.svg"]].concat());
    let whole = folder.read("s.csv");
    assert_eq!(whole.lines().count(), 2 + 3 * 5 * (3 + 2), "three schedulers and the optimum's two bounds");
    assert!(folder.read("s.svg").contains("mh-edf"));
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(String::from).collect();
        lines.sort();
        lines
    };
    // Wherever the file is cut off, incomplete sets are run again and complete ones are kept.
    let first_rows = whole.lines().take(3).map(|line| line.len() + 1).sum::<usize>();
    for cut in [whole.len() * 2 / 3, whole.len() - 2, first_rows, first_rows - 2] {
        folder.write("s.csv", &whole[..cut]);
        folder.stdout(&args);
        assert_eq!(sorted(&folder.read("s.csv")), sorted(&whole), "cut at {cut}");
    }
    let report = folder.json(&[&args[..], &["--json"]].concat());
    let points = report["curves"][0]["points"].as_array().unwrap();
    assert_eq!((points.len(), points[0]["acceptance"].as_f64()), (3, Some(1.0)), "EDF meets all at 0.8");
    // A file with other options is not continued.
    let other = [&args[..], &["--seed", "2"]].concat();
    assert!(folder.error(&other).contains("not made with these options"));
    assert_eq!(sorted(&folder.read("s.csv")), sorted(&whole));
    // Nor is one that has more than this sweep: its rows would be lost.
    let fewer = args.map(|arg| if arg == "0.8:1.2:0.2" { "0.8" } else { arg });
    assert!(folder.error(&fewer).contains("would be lost"));
    assert!(folder.error(&args.map(|arg| if arg == "5" { "2" } else { arg })).contains("would be lost"));
    assert_eq!(sorted(&folder.read("s.csv")), sorted(&whole));
    assert!(folder.error(&["sweep", "--loads", "1:0:1", "-o", "t.csv"]).contains("FROM:TO:STEP"));
}

#[test]
fn the_arena_prints_scores_beside_the_optimum() {
    let folder = Folder::new("arena");
    let schedulers = "edf,mh-edf,temponet,d-over";
    let call = ["arena", "--quick", "--scenario", "standard-sets", "--schedulers", schedulers, "--model", "random:1"];
    let with = |more: &[&'static str]| [&call[..], more].concat();
    let json = folder.json(&with(&["--json"]));
    assert_eq!(json, folder.json(&with(&["--json"])), "the same every time");
    let scenario = &json["scenarios"][0];
    assert_eq!((&scenario["name"], &scenario["goal"]), (&"standard-sets".into(), &"met".into()));
    let schedulers = scenario["schedulers"].as_array().unwrap();
    let names: Vec<&str> = schedulers.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"temponet (untrained)") && names.len() == 4, "{names:?}");
    let upper = scenario["clairvoyant"]["upper"].as_f64().unwrap();
    assert_eq!(scenario["clairvoyant"]["exact"], true);
    for row in schedulers {
        let score = row["score"].as_f64().unwrap();
        assert!(score <= upper && row["compliance"] == row["score"] && row["ci95"].is_f64(), "{row}");
    }
    assert_eq!(scenario["best_classical"], "mh-edf");
    assert!(scenario["paired_delta"]["mean"].as_f64().unwrap() <= 0.0 && scenario["paired_delta"]["ci95"].is_f64());
    assert_eq!(
        ["below", "level", "undecided", "above"].map(|key| json["summary"][key].as_u64().unwrap()).iter().sum::<u64>(),
        1
    );
    let classical = folder.json(&["arena", "--scenario", "standard-sets", "--schedulers", "edf", "--json"]);
    assert!(classical["scenarios"][0]["paired_delta"].is_null() && classical["summary"].is_null());
    let text = folder.stdout(&with(&["--report", "arena.html"]));
    assert!(text.contains("clairvoyant optimum") && text.contains("temponet (untrained)"), "{text}");
    assert!(folder.read("arena.html").contains("id=\"standard-sets\""));
    let markdown = folder.stdout(&with(&["--markdown"]));
    assert!(markdown.contains("| standard-sets | ") && !markdown.contains("| temponet |"), "{markdown}");
    let error = folder.error(&["arena", "--scenario", "one-cores"]);
    assert!(error.contains("there is no scenario \"one-cores\"") && error.contains("one-core, one-core-overload"));
    assert!(folder.error(&["arena", "--schedulers", "eddf"]).contains("did you mean"));
}

#[test]
fn the_versions_of_the_arena_are_listed_and_hold_rivals_and_levels() {
    let folder = Folder::new("arena2");
    let listed = |version: &'static str| folder.json(&["arena", "--version", version, "--list", "--json"]);
    let (first, second, all) = (listed("1"), listed("2"), listed("all"));
    let count = |list: &serde_json::Value| list.as_array().unwrap().len();
    assert_eq!((count(&first), count(&second), count(&all)), (21, 39, 60));
    assert!(second.as_array().unwrap().iter().all(|scenario| scenario["arena"] == 2));
    let text = folder.stdout(&["arena", "--version", "2", "--list"]);
    assert!(text.contains("video-frames           version 2  held out  value"), "{text}");
    assert!(folder.error(&["arena", "--version", "3"]).contains("[possible values: 1, 2, all]"));
    let schedulers = "edf,muf,look-ahead,temponet";
    let call = ["arena", "--quick", "--scenario", "far-labels", "--schedulers", schedulers, "--model", "random:1"];
    let json = folder.json(&[&call[..], &["--json", "--planner-sets", "2"]].concat());
    let scenario = &json["scenarios"][0];
    assert_eq!((&scenario["held_out"], &scenario["goal"]), (&true.into(), &"critical".into()));
    let rows = scenario["schedulers"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["levels"].as_array().unwrap().len() == 3), "{rows:?}");
    assert!(rows.iter().all(|row| row["scores"].as_array().unwrap().len() == 5 && row["sets"].is_null()));
    assert_eq!(scenario["best_classical"], "muf");
    assert!(scenario["other_delta"]["mean"].is_f64() && scenario["planner"].is_null());
    assert!(scenario["sets_with_fewer_critical"].is_u64() && json["summary"]["critical"] == 1);
    let more = folder.json(&["arena", "--quick", "--scenario", "two-tasks", "--schedulers", "edf,all,edf", "--json"]);
    let names =
        more["scenarios"][0]["schedulers"].as_array().unwrap().iter().filter(|row| row["name"] == "edf").count();
    assert_eq!(names, 1);
}

#[test]
fn generated_sets_can_have_every_property() {
    let folder = Folder::new("variety");
    let call = |variety: &'static str, file: &'static str| {
        vec!["generate", "--tasks", "8", "--utilization", "1.5", "--cores", "2", "--variety", variety, "-o", file]
    };
    folder.stdout(&call("sporadic,values,told", "varied.toml"));
    let text = folder.read("varied.toml");
    assert!(text.contains("kind = \"sporadic\"") && text.contains("value = "), "{text}");
    let lists = ["generate", "--tasks", "8", "--utilization", "0.8", "--variety", "execution,lists", "-o", "jobs.csv"];
    folder.stdout(&lists);
    assert!(folder.read("jobs.csv").contains("release_ns"));
    for seed in ["1", "2", "3", "4", "5", "6", "7", "8"] {
        folder.stdout(&[&call("wide", "wide.toml")[..], &["--seed", seed, "--force"]].concat());
        folder.stdout(&["simulate", "wide.toml", "--scheduler", "edf"]);
    }
    assert!(folder.error(&call("jiter", "wrong.toml")).contains("\"jiter\" is none of sporadic, bursts"));
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
fn an_unwritable_output_is_a_clear_error() {
    let folder = Folder::new("unwritable");
    let error = folder.error(&["simulate", "rosace", "--scheduler", "edf", "--jobs", "nowhere/jobs.csv"]);
    assert!(error.contains("cannot write nowhere/jobs.csv"), "{error}");
    let output = folder.run(&["compare", "rosace", "--report", "nowhere/out.html"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn what_is_read_is_not_written_over() {
    let folder = Folder::new("overwrite");
    folder.stdout(&["new", "my.toml"]);
    let before = folder.read("my.toml");
    assert!(
        folder.error(&["simulate", "my.toml", "--scheduler", "edf", "--gantt", "my.toml"]).contains("written over")
    );
    assert!(folder.error(&["compare", "my.toml", "--report", "./my.toml"]).contains("written over"));
    let twice = ["sweep", "--sets", "1", "--jobs", "10", "-o", "s.csv", "--report", "p.svg", "--plot", "p.svg"];
    assert!(folder.error(&twice).contains("written over"));
    assert_eq!(folder.files(), ["my.toml"]);
    assert_eq!(folder.read("my.toml"), before);
}
