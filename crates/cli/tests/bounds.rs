//! Extreme inputs, which could hang a command, exhaust memory or lead to contradictions: every command ends and reports
//! what it left out.

use crate::folder::Folder;

const MIXED: &str = "[[task]]\nname = \"fast\"\nperiod = \"1us\"\nwcet = \"100ns\"\n\n[[task]]\nname = \"slow\"\nperiod = \"86400s\"\nwcet = \"1s\"\n";

#[test]
fn a_microsecond_beside_a_day_ends_and_says_who_does_not_count() {
    let folder = Folder::new("mixed");
    folder.write("mixed.toml", MIXED);
    let output = folder.run(&["simulate", "mixed.toml", "--scheduler", "edf", "--json"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("note: no job of task \"slow\" counts"), "{error}");
    let row: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(row["notes"][0].as_str().unwrap().contains("--horizon 86400s"), "{row}");
    assert!((10_000..=200_000).contains(&row["released"].as_u64().unwrap()), "{row}");
}

#[test]
fn jitter_beyond_the_horizon_ends() {
    let folder = Folder::new("jitter");
    folder.write("j.toml", "[[task]]\nname = \"a\"\nperiod = \"1us\"\nwcet = \"100ns\"\njitter = \"86400s\"\n");
    let row = folder.json(&["simulate", "j.toml", "--scheduler", "edf", "--horizon", "1ms", "--json"]);
    assert_eq!(row["released"], 1_000, "{row}");
}

#[test]
fn a_burst_that_is_too_large_for_a_planner_is_one_line() {
    let folder = Folder::new("burst");
    let burst = "[[burst]]\nname = \"peak\"\njobs = 60000\nevery = \"1s\"\nwcet = \"1us\"\n";
    folder.write("b.toml", burst);
    let error = folder.error(&["simulate", "b.toml", "--scheduler", "mh-edf"]);
    assert!(
        error.contains("more than 50000 jobs are ready at once at 0ms") && error.contains("such as edf"),
        "{error}"
    );
    let compared = folder.json(&["compare", "b.toml", "--schedulers", "edf,mh-edf", "--no-oracle", "--json"]);
    assert_eq!(compared["results"][0]["scheduler"], "edf");
    assert_eq!(compared["skipped"][0]["scheduler"], "mh-edf");
}

#[test]
fn an_optimum_beyond_its_budget_is_said_not_to_be_computed() {
    let folder = Folder::new("optimum");
    folder.write("t.toml", "[[task]]\nname = \"a\"\nperiod = \"1us\"\nwcet = \"100ns\"\n");
    let args = ["compare", "t.toml", "--schedulers", "edf", "--horizon", "300ms", "--oracle-budget", "0.01"];
    let text = folder.stdout(&args);
    assert!(text.contains("not run: clairvoyant optimum (not computed: a run has more than 204000 jobs"), "{text}");
}

#[test]
fn overload_at_the_wcet_does_not_contradict_what_is_met() {
    let folder = Folder::new("wcet");
    folder.write("o.csv", "name,period,wcet,bcet,execution\na,10,6,1,uniform\nb,10,6,1,uniform\n");
    let text = folder.stdout(&["analyze", "o.csv", "--no-simulation"]);
    assert!(text.contains("no scheduler can meet every deadline if every job takes its wcet"), "{text}");
}

#[test]
fn the_learned_scheduler_is_known_everywhere() {
    let folder = Folder::new("learned");
    let listed = folder.json(&["schedulers", "--json"]);
    let names: Vec<&str> =
        listed["schedulers"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"temponet") && names.contains(&"temponet-unshielded"), "{names:?}");
    assert!(folder.stdout(&["schedulers"]).starts_with("temponet "));
    let args = "sweep --loads 1.2 --tasks 3 --sets 1 --jobs 50 --schedulers edf,temponet --no-oracle -o s.csv";
    assert!(folder.stdout(&args.split(' ').collect::<Vec<_>>()).contains("temponet "));
    let stamp = folder.read("s.csv").lines().next().unwrap().to_string();
    assert!(!stamp.contains("Some(") && !stamp.contains('{'), "{stamp}");
    let args = ["analyze", "standard-125", "--schedulers", "temponet", "--horizon", "1s", "--json"];
    assert_eq!(folder.json(&args)["survived"]["rows"][0]["scheduler"], "temponet");
}

#[test]
fn one_task_is_not_one_tasks() {
    let folder = Folder::new("one");
    folder.write("t.toml", "[[task]]\nname = \"a\"\nperiod = 10\nwcet = 1\nvalue = 0.1\n");
    let text = folder.stdout(&["simulate", "t.toml", "--scheduler", "edf", "--horizon", "1s"]);
    assert!(text.starts_with("t: 1 task on 1 core"), "{text}");
    assert!(text.contains("response (completed)") && text.contains("response (all)"), "{text}");
    assert!(text.contains("10.00 of 10.00\n") || text.contains("10 of 10\n"), "{text}");
}

/// Schedulers that look at every ready job would take a minute for 40 000 jobs that come together.
#[test]
fn rising_load_is_not_simulated_where_bursts_are_huge() {
    let folder = Folder::new("huge-burst");
    folder.write("b.toml", "[[burst]]\nname = \"b\"\njobs = 40000\nevery = \"1ms\"\nwcet = \"10ns\"\n");
    let analysis = folder.json(&["analyze", "b.toml", "--json"]);
    let notes = analysis["notes"].to_string();
    assert!(notes.contains("rising load is not simulated: 40000 jobs come at once; --horizon "), "{notes}");
}
