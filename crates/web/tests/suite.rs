//! The answers are those of the lab and of the command line's readers.

#[path = "../../traces/tests/truth.rs"]
mod truth;
#[path = "../../traces/tests/write_ctf.rs"]
mod write_ctf;
#[path = "../../traces/tests/write_text.rs"]
mod write_text;

use std::sync::Mutex;

use serde_json::{Value, json};
use temponet_formats::builtin::{self, Builtin};
use temponet_lab::comparison::json::JsonReport;
use temponet_lab::comparison::{ComparisonPlan, compare};
use temponet_lab::progress::Progress;
use temponet_lab::roster::Roster;
use temponet_task::Time;

fn result(request: Value) -> Value {
    let mut answer: Value = serde_json::from_str(&temponet_web::answer(&request.to_string(), piece)).unwrap();
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].take()
}

fn error(request: Value) -> (String, Option<u64>) {
    let answer: Value = serde_json::from_str(&temponet_web::answer(&request.to_string(), piece)).unwrap();
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
    let html = analysis["html"].as_str().unwrap();
    assert!(html.contains("Response times at most") && html.contains("The shield guarantees every deadline"), "{html}");
}

/// A deadline that follows from other tasks is none that the set states, so that it follows when they are edited.
#[test]
fn deadlines_that_are_derived_are_not_stated() {
    let text = |period: &str| {
        let task = |rest: &str| format!("[[task]]\nwcet = \"1ms\"\n{rest}\n");
        task(&format!("name = \"src\"\nperiod = \"{period}\""))
            + &task("name = \"dst\"\nafter = \"src\"")
            + &task("name = \"stated\"\nafter = \"src\"\ndeadline = \"7ms\"")
            + &task("name = \"end\"\nafter = \"dst\"")
            + "[[chain]]\nname = \"c\"\ntasks = [\"dst\", \"end\"]\ndeadline = \"9ms\"\n"
    };
    let open = |period: &str| result(json!({ "do": "open", "name": "mine.toml", "text": text(period) }))["set"].take();
    let set = open("10ms");
    let deadlines: Vec<&Value> = set["task"].as_array().unwrap().iter().map(|task| &task["deadline"]).collect();
    assert_eq!(deadlines, [&Value::Null, &Value::Null, &json!("7ms"), &Value::Null]);
    let mut edited = set;
    edited["task"][0]["period"] = json!("80ms");
    assert_eq!(edited, open("80ms"));
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
    let sentences = found["network"]["sentences"].as_str().unwrap();
    assert!(sentences.starts_with("The network decides alone") && sentences.contains("the network wanted"));
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
                let answer: Value = serde_json::from_str(&temponet_web::answer(&request.to_string(), piece)).unwrap();
                if answer["error"].is_string() { answers.0 += 1 } else { answers.1 += 1 }
            }
        }
    }
    assert!(answers.0 > 300 && answers.1 > 100, "refused and answered: {answers:?}");
    for text in ["", "{", "[]", "{\"do\":\"open\"}", "{\"do\":\"compare\"}", "\u{feff}{}"] {
        let answer: Value = serde_json::from_str(&temponet_web::answer(text, piece)).unwrap();
        assert!(answer["error"].is_string(), "{text}: {answer}");
    }
}

/// A file of a test: its path and what it holds.
type Held<'a> = (&'a str, Vec<u8>);

/// What the files of a test hold, in the order of the request.
static HELD: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// Reads a piece of one of them, at most 1000 bytes at a time.
fn piece(file: usize, offset: u64, to: &mut [u8]) -> std::io::Result<usize> {
    let held = HELD.lock().unwrap();
    let content = held.get(file).ok_or_else(|| std::io::Error::other("is no file of the test"))?;
    let from = content.len().min(offset as usize);
    let count = to.len().min(content.len() - from).min(1000);
    to[..count].copy_from_slice(&content[from..from + count]);
    Ok(count)
}

/// Opens files as a page does that holds them.
fn open_held(paths: &[&str], files: &[Held<'_>], trace: Value) -> Value {
    *HELD.lock().unwrap() = files.iter().map(|(_, content)| content.clone()).collect();
    let sizes: Vec<(&str, usize)> = files.iter().map(|(path, content)| (*path, content.len())).collect();
    let request = json!({ "do": "open", "paths": paths, "files": sizes, "trace": trace });
    serde_json::from_str(&temponet_web::answer(&request.to_string(), piece)).unwrap()
}

#[test]
fn what_a_page_holds_is_read_as_the_command_line_reads_it() {
    let truth = truth::truth();
    let folder = std::env::temp_dir().join(format!("temponet-web-traces-{}", std::process::id()));
    let style = write_ctf::Style { is_big: true, is_packetized: true };
    let session = write_ctf::ctf(&truth, style);
    let session: Vec<(String, Vec<u8>)> =
        session.into_iter().map(|(name, content)| (format!("session/kernel/{name}"), content)).collect();
    let in_session = session.iter().map(|(path, content)| (path.as_str(), content.clone())).collect();
    let perf = ("trace.txt", write_text::text(&truth, write_text::Layout::Perf).into_bytes());
    let text = |path, layout| (path, vec![(path, write_text::text(&truth, layout).into_bytes())]);
    let cases: [(&str, Vec<Held<'_>>); 5] = [
        ("trace.txt", vec![perf.clone()]),
        text("trace", write_text::Layout::Ftrace),
        text("short", write_text::Layout::PerfShort),
        text("report.log", write_text::Layout::TraceCmd),
        ("session", in_session),
    ];
    for (path, files) in cases {
        for (name, content) in &files {
            let file = folder.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        }
        let on_disk = [folder.join(path)];
        let expected = temponet_traces::import(&on_disk, &Default::default(), None, &mut |_| {}).unwrap();
        assert!((1..=truth.jobs.len() as u64).contains(&expected.jobs), "{path}: {}", expected.jobs);
        let found = &open_held(&[path], &files, json!({}))["result"];
        assert_eq!((&found["trace"], &found["notes"]), (&expected.json(), &json!(expected.notes)), "{path}");
        let set = temponet_formats::write(&expected.set, temponet_formats::Format::Json).unwrap();
        assert_eq!(found["set"], serde_json::from_str::<Value>(&set).unwrap(), "{path}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
    let control =
        open_held(&["trace.txt"], std::slice::from_ref(&perf), json!({ "threads": "^control", "cores": "4" }));
    assert_eq!(
        (control["result"]["trace"]["tasks"].as_array().unwrap().len(), &control["result"]["set"]["cores"]),
        (1, &json!(4))
    );
    let csv = ("mine.csv", b"name,period,wcet\na,10ms,2ms\n".to_vec());
    assert_eq!(open_held(&["mine.csv"], std::slice::from_ref(&csv), json!({}))["result"]["name"], "mine");
    let refused = |paths: &[&str], files: &[Held<'_>], trace: Value| {
        let answer = open_held(paths, files, trace);
        answer["error"].as_str().unwrap_or_else(|| panic!("{answer}")).to_string()
    };
    let letter = ("letter.txt", b"Dear all,\n".to_vec());
    for (files, trace, words) in [
        (vec![letter.clone()], json!({}), "letter.txt: unknown kind of file"),
        (vec![("a.toml", vec![b'\n', 0xff])], json!({}), "a.toml:2: is not UTF-8 text"),
        (vec![perf.clone()], json!({ "threads": "(" }), "no regular expression"),
        (vec![perf.clone()], json!({ "task_by": "callback" }), "use --task-by thread"),
        (vec![perf.clone()], json!({ "to": "0s" }), "greater than zero"),
        (vec![perf.clone()], json!({ "cores": "5000" }), "1..=4096"),
    ] {
        let said = refused(&[files[0].0], &files, trace);
        assert!(said.contains(words), "{said}");
    }
    let said = refused(&["sub"], &[("sub/letter.txt", letter.1.clone())], json!({}));
    assert_eq!(said, "sub: is a folder without metadata of CTF");
    let said = refused(&["trace.txt", "letter.txt"], &[perf, letter], json!({}));
    assert!(said.starts_with("letter.txt: is no trace"), "{said}");
}
