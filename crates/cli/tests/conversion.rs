//! Contract of files: nothing is replaced unasked, and what other tools write is a task set with notes.

use std::path::Path;

use serde_json::Value;

use crate::folder::Folder;

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
    let said: String = notes.iter().map(|note| format!("note: {note}\n")).collect();
    assert_eq!(stderr, said + "wrote set.toml\n");
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
