//! The answers are those of the lab and of the command line's readers.

use serde_json::{Value, json};
use temponet_formats::builtin::{self, Builtin};
use temponet_lab::comparison::json::JsonReport;
use temponet_lab::comparison::{ComparisonPlan, compare};
use temponet_lab::progress::Progress;
use temponet_lab::roster::Roster;
use temponet_task::Time;

fn result(request: Value) -> Value {
    let mut answer: Value = serde_json::from_str(&temponet_web::answer(&request.to_string())).unwrap();
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].take()
}

fn error(request: Value) -> (String, Option<u64>) {
    let answer: Value = serde_json::from_str(&temponet_web::answer(&request.to_string())).unwrap();
    (answer["error"].as_str().expect("an error").to_string(), answer["line"].as_u64())
}

/// Opens a built-in set and returns it as the page sends it.
fn opened(name: &str) -> Value {
    let opened = result(json!({ "do": "open", "built_in": name }));
    json!({ "name": opened["name"], "text": serde_json::to_string_pretty(&opened["set"]).unwrap() })
}

#[test]
fn every_built_in_set_is_opened_analyzed_and_written_as_it_was() {
    let about = result(json!({ "do": "about" }));
    assert_eq!(about["sets"].as_array().unwrap().len(), builtin::ALL.len());
    for set in builtin::ALL {
        let written = result(json!({ "do": "write", "set": opened(set.name), "to": "toml" }));
        let text = temponet_formats::write(&set.load().unwrap().set, temponet_formats::Format::Toml).unwrap();
        assert_eq!(written["text"], text, "{}", set.name);
    }
    let analysis = result(json!({ "do": "analyze", "set": opened("rosace") }));
    assert!(analysis["verdict"].as_str().unwrap().contains("proved"), "{analysis}");
    assert!(analysis["html"].as_str().unwrap().contains("Response times at most"));
}

#[test]
fn a_comparison_has_the_figures_of_the_lab() {
    let set = Builtin::find("standard-125").unwrap().load().unwrap().set;
    let (horizon, schedulers) = (Time::from_secs(1), ["edf", "rm", "mh-edf"]);
    let plan = ComparisonPlan {
        goal: set.goal().clone(),
        set,
        horizon,
        seed: 3,
        runs: 4,
        schedulers: schedulers.map(String::from).into(),
        roster: Roster::classical(),
        latency: false,
        charge_latency: false,
        record_until: Time::ZERO,
        oracle: Some(1.0),
    };
    let comparison = compare(plan, &Progress::new(1, horizon)).unwrap();
    let expected = serde_json::to_value(JsonReport::of(&comparison, &[])).unwrap();
    let set = opened("standard-125");
    let run = json!({ "do": "compare", "set": set, "schedulers": schedulers, "horizon": "1s", "seed": 3, "runs": 4, "optimum": 1.0 });
    let found = result(run);
    assert_eq!(found["report"]["results"], expected["results"]);
    assert_eq!(found["report"], expected);
    assert!(found["data"]["schedules"].as_array().unwrap().len() >= schedulers.len());
    assert_eq!(found["parts"]["verdict"], expected["verdict"]);
}

#[test]
fn what_is_wrong_in_a_set_is_said_with_its_line() {
    let text = "{\n\"cores\": 1,\n\"task\": [\n{\n\"name\": \"a\",\n\"period\": \"10ms\",\n\"wcet\": \"-4ms\"\n}\n]\n}";
    let set = json!({ "name": "mine", "text": text });
    let (message, line) = error(json!({ "do": "schedules", "set": set, "schedulers": ["edf"] }));
    assert_eq!((message.as_str(), line), ("wcet = \"-4ms\" is negative", Some(7)));
    let set = opened("robot");
    let wrong = [
        (json!({ "do": "schedules", "set": set, "schedulers": ["edg"] }), "edf"),
        (json!({ "do": "schedules", "set": set, "schedulers": [] }), "no scheduler"),
        (json!({ "do": "schedules", "set": set, "schedulers": ["edf"], "horizon": "0s" }), "greater than zero"),
        (json!({ "do": "compare", "set": set, "schedulers": ["edf"], "runs": 0 }), "1..=1000000"),
        (json!({ "do": "open", "built_in": "robto" }), "robot"),
        (json!({ "do": "open", "name": "x.pdf", "text": "" }), "unknown kind of file"),
        (json!({ "do": "curve", "run": { "set": set, "schedulers": ["edf"] }, "load": -1.0 }), "-1"),
        (json!({ "do": "fly" }), "fly"),
    ];
    for (request, words) in wrong {
        let (message, _) = error(request.clone());
        assert!(message.contains(words), "{request}: {message}");
    }
}

#[test]
fn files_of_other_tools_are_opened_by_their_names() {
    let csv = "name,period,wcet\na,10ms,2ms\nb,20ms,5ms\n";
    let opened = result(json!({ "do": "open", "name": "mine.csv", "text": csv }));
    assert_eq!((&opened["name"], opened["set"]["task"].as_array().unwrap().len()), (&json!("mine"), 2));
    let (message, _) = error(json!({ "do": "open", "name": "mine.csv", "text": "name,period,wcet\na,10ms,x\n" }));
    assert!(message.starts_with("mine.csv:2: "), "{message}");
}

#[test]
fn a_moment_says_what_each_scheduler_chose_and_the_network_scored() {
    let run = json!({ "set": opened("standard-125"), "schedulers": ["edf", "temponet-unshielded", "d-over"], "horizon": "500ms" });
    let found = result(json!({ "do": "moment", "run": run, "at_ns": 101_000_000 }));
    let edf = &found["schedulers"][0];
    let now = edf["decision"]["now_ns"].as_u64().unwrap();
    assert!(now <= 101_000_000 && now > 60_000_000, "{now}");
    let ready = edf["decision"]["ready"].as_array().unwrap();
    let due = |job: &Value| job["due_in_ns"].as_i64().unwrap();
    let chosen = ready.iter().find(|job| job["core"] == 0).unwrap();
    assert_eq!(Some(due(chosen)), ready.iter().map(due).min(), "EDF runs a job with the earliest deadline: {ready:?}");
    assert!(found["network"]["sentences"].as_str().unwrap().contains("the network wanted"));
    assert!(found["network"]["details"]["decision"]["jobs"][0]["q"].is_number());
    let (message, _) = error(json!({ "do": "moment", "run": run, "at_ns": 900_000_000 }));
    assert!(message.contains("beyond the horizon"), "{message}");
}

#[test]
fn a_curve_falls_and_pictures_and_jobs_are_those_of_a_run() {
    let run = json!({ "set": opened("standard-112"), "schedulers": ["edf"], "horizon": "2s", "runs": 2 });
    let share = |load: f64| result(json!({ "do": "curve", "run": run, "load": load }))["shares"][0]["share"].as_f64();
    assert_eq!(share(0.5), Some(1.0));
    assert!(share(1.6) < Some(0.9));
    let jobs = result(json!({ "do": "jobs", "run": run, "scheduler": "edf" }));
    assert!(jobs["text"].as_str().unwrap().lines().count() > 50);
    let picture = result(json!({ "do": "picture", "run": run, "scheduler": "edf", "until": null }));
    assert!(picture["text"].as_str().unwrap().starts_with("<svg"));
}

/// Whatever a page sends, it gets an answer: sets with strange values, requests that are no requests.
#[test]
fn no_request_ends_the_module() {
    let strange = [
        json!(null),
        json!(-1),
        json!(0),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("1ns"),
        json!("99999999s"),
        json!("\u{0}<b>"),
        json!([]),
        json!({ "x": [1] }),
        json!(true),
    ];
    let mut answers = (0, 0);
    for name in ["standard-112", "mars-pathfinder", "gpu-vision", "autoware-chains"] {
        let set = result(json!({ "do": "open", "built_in": name }))["set"].clone();
        let keys = ["cores", "costs", "time_unit", "on_miss", "protocol", "task", "core", "chain"];
        let task_keys = [
            "name",
            "period",
            "wcet",
            "bcet",
            "deadline",
            "offset",
            "jitter",
            "criticality",
            "after",
            "parts",
            "section",
            "kind",
        ];
        let changes = keys.iter().map(|key| (None, *key)).chain(task_keys.iter().map(|key| (Some(1), *key)));
        for ((task, key), value) in changes.flat_map(|change| strange.iter().map(move |value| (change, value))) {
            let mut set = set.clone();
            match task {
                Some(at) => set["task"][at][key] = value.clone(),
                None => set[key] = value.clone(),
            }
            let set = json!({ "name": "strange", "text": set.to_string() });
            let run = json!({ "set": set, "schedulers": ["edf", "rm"], "horizon": "20us" });
            let mut schedules = run.clone();
            schedules["do"] = json!("schedules");
            for request in [schedules, json!({ "do": "moment", "run": run, "at_ns": 10_000 })] {
                let answer: Value = serde_json::from_str(&temponet_web::answer(&request.to_string())).unwrap();
                if answer["error"].is_string() { answers.0 += 1 } else { answers.1 += 1 }
            }
        }
    }
    assert!(answers.0 > 300 && answers.1 > 100, "refused and answered: {answers:?}");
    for text in ["", "{", "[]", "{\"do\":\"open\"}", "{\"do\":\"compare\"}", "\u{feff}{}"] {
        let answer: Value = serde_json::from_str(&temponet_web::answer(text)).unwrap();
        assert!(answer["error"].is_string(), "{text}: {answer}");
    }
}
