//! Contract of the guarantee: commands say which tasks the shield guarantees, and those tasks miss no deadline.

use crate::folder::Folder;
use serde_json::{Value, json};

/// An overload with two levels of criticality: utilization 1.43, of which critical tasks have 0.6.
const OVERLOAD: &str = r#"
[[task]]
name = "brake"
period = 10
wcet = 3
criticality = 2
[[task]]
name = "steer"
period = 20
wcet = 6
criticality = 1
[[task]]
name = "video"
period = 30
wcet = 15
[[task]]
name = "log"
period = 60
wcet = 20
"#;

/// Three tasks that meet every deadline on two cores, but only if one of them is split.
const SPLIT: &str = "cores = 2\n[[task]]\nname = \"a\"\nperiod = 10\nwcet = 6\n[[task]]\nname = \"b\"\nperiod = 10\nwcet = 6\n\
    [[task]]\nname = \"c\"\nperiod = 10\nwcet = 6\n";

/// The overload on two cores, with enough other work to overload both.
fn overload_on_two() -> String {
    format!("cores = 2\n{}", OVERLOAD.replace("wcet = 15", "wcet = 25").replace("wcet = 20", "wcet = 55"))
}

fn analyzed(folder: &Folder, set: &str, more: &[&str]) -> (String, Value) {
    folder.write("set.toml", set);
    let call = [&["analyze", "set.toml", "--no-simulation"], more].concat();
    let guarantee = folder.json(&[&call[..], &["--json"]].concat())["guarantee"].clone();
    (folder.stdout(&call), guarantee)
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|task| task["name"].as_str().unwrap()).collect()
}

/// The guaranteed tasks miss no deadline, even behind a scheduler that neglects them.
fn is_kept(folder: &Folder, guarantee: &Value, more: &[&str]) {
    for scheduler in ["shield:fcfs", "shield:srpt", "temponet"] {
        let call =
            ["simulate", "set.toml", "--horizon", "6s", "--model", "random:1", "--json", "--scheduler", scheduler];
        let run = folder.json(&[&call[..], more].concat());
        for task in run["tasks"].as_array().unwrap() {
            let is_guaranteed = names(&guarantee["tasks"]).contains(&task["task"].as_str().unwrap());
            assert!(!is_guaranteed || task["released"] == task["met"], "{scheduler}: {task}");
        }
    }
}

#[test]
fn the_critical_tasks_of_an_overload_are_guaranteed_on_one_core_and_on_two() {
    let folder = Folder::new("guarantee-overload");
    let (text, guarantee) = analyzed(&folder, OVERLOAD, &[]);
    let table = "guaranteed by the shield  core  utilization  times the wcets\n\
        ────────────────────────────────────────────────────────────\n\
        brake, steer                 0       0.6000            1.666\n\
        not guaranteed: video, log (it is not critical)\n";
    assert!(text.contains(table), "{text}");
    assert!(text.contains("\nThe shield guarantees every deadline of 2 of 4 tasks by slack stealing: brake, steer.\n"));
    let expected = json!({
        "role": "slack_stealing",
        "sentence": "guarantees every deadline of 2 of 4 tasks by slack stealing: brake, steer",
        "tasks": [{ "name": "brake", "core": 0 }, { "name": "steer", "core": 0 }],
        "not_guaranteed": [
            { "name": "video", "reason": "it is not critical" }, { "name": "log", "reason": "it is not critical" },
        ],
        "cores": [{ "core": 0, "utilization": 0.6, "growth": 1.666 }],
        "covers_overruns": true,
        "exceptions": [],
    });
    assert_eq!(guarantee, expected);
    is_kept(&folder, &guarantee, &[]);
    let (text, guarantee) = analyzed(&folder, &overload_on_two(), &[]);
    assert!(
        text.contains(
            "\nbrake                        0       0.3000            3.333\nsteer                        1 "
        )
    );
    assert_eq!(guarantee["tasks"], json!([{ "name": "brake", "core": 0 }, { "name": "steer", "core": 1 }]));
    is_kept(&folder, &guarantee, &[]);
}

#[test]
fn a_task_that_asks_for_the_guarantee_comes_before_critical_ones() {
    let folder = Folder::new("guarantee-asked");
    let set = OVERLOAD.replace("name = \"video\"", "name = \"video\"\nguarantee = true");
    let (text, guarantee) = analyzed(&folder, &set, &[]);
    assert_eq!(names(&guarantee["tasks"]), ["video"]);
    assert!(text.contains("not guaranteed: brake, steer, log (it does not ask for a guarantee)"), "{text}");
    is_kept(&folder, &guarantee, &[]);
}

#[test]
fn what_does_not_fit_is_named_with_its_reason() {
    let folder = Folder::new("guarantee-most");
    let (text, guarantee) = analyzed(&folder, &OVERLOAD.replace("wcet = 6", "wcet = 16"), &[]);
    assert!(text.contains("of 1 of 4 tasks by slack stealing: brake; not steer.\n"), "{text}");
    let below = "not guaranteed: steer (it is not proved to fit beside them)\nnot guaranteed: video, log (it is not critical)\n";
    assert!(text.contains(below), "{text}");
    is_kept(&folder, &guarantee, &[]);
}

#[test]
fn a_part_is_guaranteed_where_the_tests_do_not_apply() {
    let folder = Folder::new("guarantee-beyond");
    let cost = ["--decision-cost", "20us"];
    let (text, guarantee) = analyzed(&folder, OVERLOAD, &cost);
    assert!(text.contains("The rest is not analysable: decisions cost time"), "{text}");
    let overload = "Jobs ask for 1.43 cores' worth of work, and there are 1.00.";
    assert!(text.starts_with("No scheduler can meet every deadline") && text.contains(overload), "{text}");
    assert_eq!(names(&guarantee["tasks"]), ["brake", "steer"]);
    assert!(guarantee["cores"][0]["growth"].as_f64().unwrap() < 1.666, "decisions take a part of the time");
    is_kept(&folder, &guarantee, &cost);
    let (_, guarantee) = analyzed(&folder, &overload_on_two(), &cost);
    assert_eq!(guarantee["tasks"][0]["core"], 1, "core 0 pays for decisions");
    is_kept(&folder, &guarantee, &cost);
    let mode = format!("{OVERLOAD}[[mode]]\nname = \"rush\"\nat = 1000\nwork = 1.5\n");
    let (text, guarantee) = analyzed(&folder, &mode, &[]);
    assert!(text.contains("In mode rush, jobs ask for 2.15 cores' worth"), "{text}");
    assert!(text.contains("not analysable: ") && names(&guarantee["tasks"]) == ["brake", "steer"], "{text}");
    let exception = "In mode rush, jobs that come or take more than their task says are not guaranteed.";
    let faster =
        |factor: f64| format!("{OVERLOAD}[[mode]]\nname = \"rush\"\nat = 1000\nslower = {{ brake = {factor} }}\n");
    assert_eq!(analyzed(&folder, &faster(0.5), &[]).1["exceptions"], json!([exception]));
    assert_eq!(analyzed(&folder, &faster(1.5), &[]).1["exceptions"], json!([]));
    let unfit = OVERLOAD.replace("wcet = 6", "wcet = 16") + "[[mode]]\nname = \"calm\"\nat = 0\nwork = 0.5\n";
    let basis = "What fits is judged by the tasks alone, as if no mode ever began.";
    assert_eq!(analyzed(&folder, &unfit, &[]).1["exceptions"], json!([basis]));
    assert!(text.contains(exception) && guarantee["exceptions"] == json!([exception]), "{text}");
}

#[test]
fn a_stand_in_guarantees_everything_and_an_overload_without_critical_tasks_nothing() {
    let folder = Folder::new("guarantee-roles");
    let (text, guarantee) = analyzed(&folder, SPLIT, &[]);
    assert!(text.contains("The shield guarantees every deadline; C=D splitting decides alone"), "{text}");
    assert_eq!((&guarantee["role"], &guarantee["cores"]), (&"stand_in".into(), &json!([])));
    assert_eq!(guarantee["tasks"][2], json!({ "name": "c", "core": null }));
    let line = "temponet, shield:srpt: the shield guarantees every deadline; C=D splitting decides alone, the scheduler behind it is not followed";
    let call = ["compare", "set.toml", "--schedulers", "temponet,shield:srpt", "--horizon", "1s"];
    assert!(folder.stdout(&call).contains(line));
    let plain = OVERLOAD.replace("criticality = 2", "").replace("criticality = 1", "");
    let (text, guarantee) = analyzed(&folder, &plain, &[]);
    let reason = "the set is overloaded, and no task is critical";
    assert!(text.contains(&format!("\nThe shield guarantees nothing: {reason}.\n")), "{text}");
    assert_eq!((&guarantee["role"], &guarantee["tasks"]), (&"none".into(), &json!([])));
    assert_eq!(guarantee["not_guaranteed"][3], json!({ "name": "log", "reason": reason }));
}

/// A robot with a bus that drivers lock, a job that is not preempted, and a chain; one task nests sections.
const ROBOT: &str = r#"
cores = 2
[[task]]
name = "imu"
period = 5
wcet = 0.5
criticality = 1
section = [{ resource = "bus", at = 0.1, length = 0.2 }]
[[task]]
name = "motors"
after = ["imu"]
wcet = 0.8
criticality = 1
section = [{ resource = "bus", at = 0.1, length = 0.2 }]
[[task]]
name = "detector"
period = 100
wcet = 60
preemption = "none"
[[task]]
name = "camera"
period = 10
wcet = 9
section = [{ resource = "bus", at = 1, length = 0.2 }]
[[task]]
name = "map"
period = 100
wcet = 50
criticality = 1
section = [{ resource = "disk", at = 1, length = 3 }, { resource = "tiles", at = 2, length = 1 }]
"#;

#[test]
fn a_lock_a_chain_and_a_job_that_is_not_preempted_leave_a_guarantee_on_several_cores() {
    let folder = Folder::new("guarantee-robot");
    let (text, guarantee) = analyzed(&folder, ROBOT, &[]);
    assert_eq!(names(&guarantee["tasks"]), ["imu", "motors"]);
    let reasons = [
        ("detector", "it is not critical"),
        ("camera", "it is not critical"),
        ("map", "it shares a resource whose sections are nested with others"),
    ];
    let reasons = reasons.map(|(name, reason)| json!({ "name": name, "reason": reason }));
    assert_eq!(guarantee["not_guaranteed"], json!(reasons));
    let ruled = "Behind the shield, jobs wait for bus on their cores, first come first served; they are not preempted while they wait for it or hold it.";
    let restricted = "Jobs of detector keep a core for some time; out of turn they get it only where the slack of the guaranteed tasks covers that, which may be never.";
    assert_eq!(guarantee["exceptions"], json!([ruled, restricted]));
    assert!(text.contains(ruled) && text.contains(restricted), "{text}");
    assert!(
        text.contains("not guaranteed: map (it shares a resource whose sections are nested with others)\n"),
        "{text}"
    );
    is_kept(&folder, &guarantee, &[]);
    let costly = format!("costs = {{ decision = 0.001 }}\n{ROBOT}");
    let (text, guarantee) = analyzed(&folder, &costly, &[]);
    let reason = "task \"detector\" limits preemption, which is not covered where decisions cost time";
    assert!(text.contains(&format!("The shield guarantees nothing: {reason}.\n")), "{text}");
    assert_eq!(guarantee["not_guaranteed"][0], json!({ "name": "imu", "reason": reason }));
    let nested = ROBOT.replace("resource = \"bus\"", "resource = \"disk\"");
    let (text, _) = analyzed(&folder, &nested, &[]);
    assert!(
        text.contains("not guaranteed: imu, motors, camera, map (it shares a resource whose sections are nested"),
        "{text}"
    );
}

#[test]
fn a_comparison_names_the_guaranteed_tasks_and_its_page_marks_them() {
    let folder = Folder::new("guarantee-compare");
    folder.write("set.toml", OVERLOAD);
    let call = ["compare", "set.toml", "--schedulers", "edf,temponet,shield:fcfs", "--model", "random:1"];
    let text = folder.stdout(&[&call[..], &["--report", "page.html"]].concat());
    let sentence = "the shield guarantees every deadline of 2 of 4 tasks by slack stealing: brake, steer";
    assert!(
        text.contains(&format!(", shield:fcfs: {sentence}\n")) || text.contains(&format!(" (untrained): {sentence}\n"))
    );
    for name in ["temponet (untrained, ", "shield:fcfs"] {
        let row = text.lines().find(|line| line.starts_with(name)).unwrap();
        let critical: Vec<&str> = row.split_whitespace().filter(|word| word.ends_with('%')).take(2).collect();
        assert_eq!(critical, ["100.00%"; 2], "{row}");
    }
    let report = folder.json(&[&call[..], &["--json"]].concat());
    assert_eq!(names(&report["guarantee"]["tasks"]), ["brake", "steer"]);
    assert_eq!(report["guarantee"]["sentence"], report["shield"]);
    assert!(report["guarantee"].get("cores").is_none());
    let page = folder.read("page.html");
    assert!(page.contains(sentence) && page.contains("◆</span> guaranteed behind the shield"));
    assert_eq!(page.matches("title=\"guaranteed behind the shield: core 0 keeps the time\"").count(), 2);
    // Without the shield nothing is guaranteed, and nothing is said about it.
    let call = ["compare", "set.toml", "--schedulers", "edf,fcfs", "--report", "page.html"];
    assert!(!folder.stdout(&call).contains("shield") && !folder.read("page.html").contains("◆"));
    assert!(folder.json(&[&call[..4], &["--json"]].concat()).get("guarantee").is_none());
}

#[test]
fn a_decision_is_explained_with_the_jobs_that_cores_keep_time_for() {
    let folder = Folder::new("guarantee-explain");
    folder.write("set.toml", &overload_on_two());
    let call = ["explain", "set.toml", "--model", "random:1"];
    let decision = folder.json(&[&call[..], &["--json"]].concat());
    assert_eq!(decision["kept"], json!(["brake#0", "steer#0"]));
    assert_eq!(names(&decision["guarantee"]["tasks"]), ["brake", "steer"]);
    let text = folder.stdout(&call);
    assert!(text.contains("brake, steer. Time is kept on core 0 for brake#0, core 1 for steer#0. "), "{text}");
    let open = folder.json(&[&call[..], &["--json", "--no-shield"]].concat());
    assert!(open["kept"].is_null() && open["guarantee"].is_null());
}

#[test]
fn a_budget_leaves_decisions_to_simpler_schedulers() {
    let folder = Folder::new("budget");
    folder.write("set.toml", OVERLOAD);
    let simulated = |budget: &[&str]| {
        let call = ["simulate", "set.toml", "--scheduler", "temponet-unshielded", "--horizon", "3s", "--json"];
        folder.json(&[&call[..], budget].concat())
    };
    let (free, ample, tiny) = (simulated(&[]), simulated(&["--budget", "1s"]), simulated(&["--budget", "1ns"]));
    assert_eq!((&free["fallbacks"], free.get("edf_fallbacks")), (&0.into(), None));
    assert_eq!((&ample["fallbacks"], &ample["met"]), (&0.into(), &free["met"]));
    assert!(tiny["fallbacks"].as_u64().unwrap() > 100 && tiny["fallbacks"] == tiny["edf_fallbacks"], "{tiny}");
    // The runs of a comparison share one calibration.
    let call = ["compare", "set.toml", "--schedulers", "temponet", "--runs", "2", "--horizon", "1s", "--json"];
    let compared = folder.json(&[&call[..], &["--budget", "1ns"]].concat());
    assert!(compared["results"][0]["edf_fallbacks"].as_u64().unwrap() > 0);
    let wrong = |budget: &str| folder.error(&["compare", "set.toml", "--budget", budget]);
    assert!(wrong("0").contains("--budget <TIME>': must be greater than zero"));
    assert!(wrong("soon").contains("is not a time") && wrong("50").contains("Write 50us"));
}

#[test]
fn growth_that_counts_overruns_says_so_beside_the_utilization_at_the_wcet() {
    let folder = Folder::new("guarantee-growth");
    let overruns = "period = 10\nwcet = 3\nwcet_high = 5\noverrun = 0.1";
    folder.write("plain.toml", OVERLOAD);
    folder.write("overruns.toml", &OVERLOAD.replacen("period = 10\nwcet = 3", overruns, 1));
    let is_said = |file: &str| folder.stdout(&["analyze", file]).contains("The factor scales wcet_high, too");
    assert!(is_said("overruns.toml") && !is_said("plain.toml"));
}
