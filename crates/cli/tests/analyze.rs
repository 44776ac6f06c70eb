//! Contract of `analyze`: it says what is proved, and simulation agrees.

use serde_json::Value;

use crate::folder::Folder;

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
fn rising_load_is_not_simulated_where_a_burst_has_too_many_jobs() {
    let folder = Folder::new("analyze-burst");
    folder.write("set.toml", "[[burst]]\nname = \"b\"\njobs = 1000000\nevery = \"1ns\"\nwcet = \"1ns\"\n");
    let json = folder.json(&["analyze", "set.toml", "--json"]);
    let note = json["notes"][0].as_str().unwrap();
    assert!(note.starts_with("rising load is not simulated: a run has about "), "{note}");
    assert!(json["survived"].is_null(), "{json}");
    folder.write("small.toml", "[[burst]]\nname = \"b\"\njobs = 1000\nevery = \"1ns\"\nwcet = \"1ns\"\n");
    let text = folder.stdout(&["analyze", "small.toml", "--schedulers", "edf"]);
    assert!(text.contains("no factor tried"), "{text}");
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
    // A set that is proved schedulable up to a factor survives at least that factor in simulation, whose step is 1/512
    // of full load.
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
fn what_to_change_is_said_and_true() {
    let folder = Folder::new("analyze-what-if");
    let robot = |mapping: &str| {
        let task = |name: &str, period: &str, wcet: &str| {
            format!("[[task]]\nname = \"{name}\"\nperiod = {period}\nwcet = {wcet}\n")
        };
        task("control", "10", "4") + &task("mapping", mapping, "80")
    };
    folder.write("robot.toml", &robot("100"));
    let args = ["analyze", "robot.toml", "--no-simulation", "--what-if"];
    let text = folder.stdout(&args);
    assert!(text.contains("No scheduler can meet every deadline as the set is."), "{text}");
    let slow = text.lines().find(|line| line.starts_with("slow mapping down")).unwrap();
    assert!(slow.contains("10 Hz (100ms)") && slow.contains("5 Hz (200ms)"), "{text}");
    let report = folder.json(&[&args[..], &["--json"]].concat());
    let advice = report["what_if"]["advice"].as_array().unwrap();
    let slow = advice.iter().find(|row| row["change"] == "period" && row["task"] == "mapping").unwrap();
    assert_eq!((slow["to"].as_u64(), &slow["then"]), (Some(200_000_000), &"fits".into()));
    assert_eq!(slow["not_enough"], 125_000_000, "the next faster rate that people choose");
    folder.write("slower.toml", &robot("200"));
    let slower = folder.json(&["analyze", "slower.toml", "--no-simulation", "--what-if", "--json"]);
    assert_eq!((&slower["what_if"]["answer"], &slower["overloaded"]), (&"fits".into(), &false.into()));
    assert!(!slower["what_if"]["rooms"].as_array().unwrap().is_empty());
    assert!(folder.json(&["analyze", "robot.toml", "--no-simulation", "--json"])["what_if"].is_null());
}

#[test]
fn what_is_not_covered_is_named_and_the_rest_is_analysed() {
    let folder = Folder::new("analyze-rest");
    let tasks = "cores = 2\n[[task]]\nname = \"cam\"\nperiod = 10\nwcet = 2\n\
        [[task]]\nname = \"det\"\nafter = [\"cam\"]\nwcet = 3\n\
        [[task]]\nname = \"log\"\nperiod = 20\nwcet = 1\n";
    folder.write("chain.toml", tasks);
    let report = folder.json(&["analyze", "chain.toml", "--no-simulation", "--json"]);
    assert_eq!(report["not_covered"][0]["tasks"], serde_json::json!(["det"]));
    assert!(report["rest"]["proved"].as_array().unwrap().contains(&"edf".into()), "{report}");
    let text = folder.stdout(&["analyze", "chain.toml", "--no-simulation"]);
    assert!(text.contains("The rest, as if no task comes after another: On 2 cores every deadline"), "{text}");
}

#[test]
fn fail_unless_ends_with_exit_code_one_and_says_what_is_not_proved() {
    let folder = Folder::new("analyze-fail-unless");
    let task = |name: &str, wcet: u32, criticality: u8| {
        format!("[[task]]\nname = \"{name}\"\nperiod = 10\nwcet = {wcet}\ncriticality = {criticality}\n")
    };
    folder.write("fits.toml", &(task("brake", 4, 1) + &task("log", 5, 0)));
    folder.write("overload.toml", &(task("brake", 4, 1) + &task("log", 7, 0)));
    folder.write("too_much.toml", &(task("brake", 4, 1) + &task("steer", 7, 1)));
    let mode = "[[mode]]\nname = \"rush\"\nat = 100\nwork = 2.0\n";
    folder.write("modes.toml", &(task("brake", 4, 1) + mode));
    let analyze = |set: &str, demands: &[&str]| {
        let options = demands.iter().flat_map(|demand| ["--fail-unless", demand]);
        let args: Vec<&str> = ["analyze", set, "--no-simulation"].into_iter().chain(options).collect();
        let output = folder.run(&args);
        let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        let code = output.status.code();
        assert_eq!(stdout.contains("utilization"), code != Some(2), "the report is there all the same: {stdout}");
        (code, stderr)
    };
    assert_eq!(analyze("fits.toml", &["edf", "temponet", "any", "critical", "task.brake"]), (Some(0), String::new()));
    assert_eq!(analyze("overload.toml", &["critical", "task.brake"]), (Some(0), String::new()));
    let (code, error) = analyze("overload.toml", &["edf", "critical", "task.log", "any"]);
    let expected = "failed: edf: not proved to meet every deadline\n\
        failed: task.log: the shield does not guarantee log (it is not critical)\n\
        failed: any: no scheduler is proved to meet every deadline\n";
    assert_eq!((code, error.as_str()), (Some(1), expected));
    let (code, error) = analyze("overload.toml", &["temponet"]);
    assert_eq!((code, error.contains("temponet: the shield does not guarantee log")), (Some(1), true), "{error}");
    let (code, error) = analyze("too_much.toml", &["critical"]);
    assert_eq!((code, error.contains("critical: the shield does not guarantee ")), (Some(1), true), "{error}");
    let (code, error) = analyze("modes.toml", &["critical"]);
    assert_eq!((code, error.contains("critical: In mode rush, jobs that ")), (Some(1), true), "{error}");
    for (set, wrong, why) in [
        ("fits.toml", "eddf", "nor a scheduler without options; did you mean \"edf\"?"),
        ("fits.toml", "task.brak", "there is no task \"brak\"; did you mean \"brake\"?"),
        ("gap-avionics", "critical", "no task is critical"),
    ] {
        let (code, error) = analyze(set, &[wrong]);
        assert_eq!((code, error.contains(why)), (Some(2), true), "{error}");
    }
}
