//! Contract: a task with parts is read as tasks that follow each other and written as one task again, whatever names it
//! means the whole, and what it cannot have is refused with its line.

use temponet_formats::{Format, schema, to_rt_app, write};
use temponet_task::{CoreId, ExecutionModel, Preemption, Task, TaskId, TaskSet, Time};

use crate::{read, toml_error};

/// A camera with parts on a GPU, what comes before and after it, and modes.
const CAMERA: &str = r#"[[core]]
name = "cpu"
count = 2
[[core]]
name = "gpu"
only = true
[[task]]
name = "plan"
after = ["camera"]
wcet = 3
[[task]]
name = "trigger"
period = 40
jitter = 2
wcet = 1
[[task]]
name = "camera"
after = ["trigger"]
reads = ["odometry"]
deadline = 35
criticality = "high"
guarantee = true
value = 4
mk = [2, 3]
parts = [
  { bcet = 1, wcet = 2 },
  { wcet = 18, cores = ["gpu"], preemption = "none" },
  { wcet = 1, cores = [0] },
]
[[task]]
name = "odometry"
period = 10
wcet = 2
[[task]]
name = "radar"
kind = "sporadic"
period = 50
offset = 5
jitter = 3
preemption = { every = 1 }
parts = [{ wcet = 4 }, { execution = { model = "empirical", samples = [2, 5] }, cores = "gpu" }]
[[chain]]
name = "see"
tasks = ["trigger", "camera", "plan"]
deadline = 60
[[mode]]
at = 1000
slower = { trigger = 1.5, radar = 2.0 }
stop = ["odometry"]
[[mode]]
at = 2000
stop = ["radar"]
"#;

fn names(set: &TaskSet) -> Vec<&str> {
    set.tasks().iter().map(|task| task.name.as_str()).collect()
}

#[test]
fn parts_are_tasks_that_follow_each_other_and_the_last_one_has_the_name() {
    let loaded = read(CAMERA, Format::Toml).unwrap();
    let set = &loaded.set;
    assert_eq!((set.system.validate(), &loaded.warnings[..]), (Ok(()), &[][..]));
    let expected =
        ["plan", "trigger", "camera (part 1)", "camera (part 2)", "camera", "odometry", "radar (part 1)", "radar"];
    assert_eq!((names(set), set.task_count()), (expected.to_vec(), 5));
    let [plan, _, first, second, camera, _, radar_first, radar] = set.tasks() else { panic!("{:?}", names(set)) };
    let after = [first, second, camera, plan].map(|task| task.after.iter().map(|before| before.0).collect::<Vec<_>>());
    assert_eq!(after, [[1], [2], [3], [4]]);
    assert_eq!((&first.reads[..], &camera.reads[..]), (&[TaskId(5)][..], &[][..]));
    for part in [first, second, camera] {
        let shared = (part.deadline, part.criticality, part.guarantee, part.value, part.mk);
        assert_eq!(shared, (Time::from_ms(35), 1, true, 4.0, Some((2, 3))));
        assert_eq!(part.is_part, part.name != "camera");
    }
    assert_eq!(
        (first.bcet, first.wcet, &first.execution),
        (Time::from_ms(1), Time::from_ms(2), &ExecutionModel::Uniform)
    );
    assert_eq!((second.preemption, camera.preemption), (Preemption::None, Preemption::Free));
    let cores = |task: &Task| task.cores.iter(3).collect::<Vec<_>>();
    assert_eq!([first, second, camera].map(cores), [vec![CoreId(0), CoreId(1)], vec![CoreId(2)], vec![CoreId(0)]]);
    assert_eq!((radar_first.jitter, radar.jitter), (Time::from_ms(3), Time::ZERO), "only the first part is delayed");
    assert_eq!(
        (radar_first.offset, radar.offset, &radar.arrival),
        (Time::from_ms(5), Time::from_ms(5), &radar_first.arrival)
    );
    assert_eq!([radar_first, radar].map(|task| task.preemption), [Preemption::Every(Time::from_ms(1)); 2]);
    assert_eq!(set.chains()[0].tasks, [1, 4, 0].map(TaskId), "a chain names the whole");
    let mode = &set.modes()[0];
    assert_eq!(mode.slower.iter().map(|(task, _)| task.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 6, 7]);
    assert_eq!((&mode.stop[..], &set.modes()[1].stop[..]), (&[TaskId(5)][..], &[6, 7].map(TaskId)[..]));
}

#[test]
fn a_part_is_not_named_and_the_message_has_its_name_in_one_piece() {
    let after = |name: &str| toml_error(&CAMERA.replace("after = [\"camera\"]", &format!("after = [\"{name}\"]")));
    let cases = [
        ("camera (part 2)", "set.toml:9: there is no task \"camera (part 2)\"; all parts go by the name \"camera\""),
        ("camra (part 2)", "set.toml:9: there is no task \"camra (part 2)\"; did you mean \"camera\"?"),
        ("my own camera task", "set.toml:9: there is no task \"my\""),
        ("no such task", "set.toml:9: there is no task \"no such task\""),
    ];
    for (name, message) in cases {
        assert_eq!(after(name), message);
    }
}

#[test]
fn what_is_written_is_one_task_again() {
    let set = read(CAMERA, Format::Toml).unwrap().set;
    for format in [Format::Toml, Format::Json] {
        let text = write(&set, format).unwrap();
        assert!(!text.contains("(part"), "{text}");
        assert_eq!(read(&text, format).unwrap().set, set.clone().with_name("set"), "{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&write(&set, Format::Json).unwrap()).unwrap();
    let camera = &json["task"][2];
    assert_eq!(camera["parts"][1], serde_json::json!({ "wcet": "18ms", "cores": ["gpu"], "preemption": "none" }));
    for key in ["wcet", "cores", "bcet", "preemption", "period"] {
        assert!(camera.get(key).is_none(), "{key}: {camera}");
    }
    let refused = write(&read(SHORT, Format::Toml).unwrap().set, Format::Csv).unwrap_err().to_string();
    assert!(refused.contains("the parts of \"a\" cannot be written as CSV"), "{refused}");
    let exported = to_rt_app(&set).unwrap();
    assert!(!exported.text.contains("camera") && exported.text.contains("odometry"), "{}", exported.text);
    assert!(
        exported.notes.iter().any(|note| note.contains("task \"camera\": is left out: rt-app has no tasks with parts"))
    );
}

/// A task with two parts on two cores without names.
const SHORT: &str =
    "cores = 2\n[[task]]\nname = \"a\"\nperiod = 10\nparts = [{ wcet = 2, cores = [0] }, { wcet = 3, cores = [1] }]\n";

#[test]
fn a_set_is_the_same_with_its_parts_in_json() {
    let json = r#"{ "cores": 2, "task": [{ "name": "a", "period": 10, "parts": [
        { "wcet": 2, "cores": [0] }, { "wcet": 3, "cores": [1] }] }] }"#;
    assert_eq!(read(json, Format::Json).unwrap().set, read(SHORT, Format::Toml).unwrap().set);
}

#[test]
fn impossible_parts_are_refused_with_their_line() {
    let with = |more: &str| format!("{SHORT}{more}");
    let cases = [
        (with("wcet = 4\n"), "set.toml:6: task \"a\": wcet beside parts: each part states its own"),
        (with("bcet = 4\n"), "set.toml:6: task \"a\": bcet beside parts"),
        (with("cores = [0]\n"), "set.toml:6: task \"a\": cores beside parts"),
        (with("wcet_high = 9\n"), "set.toml:6: task \"a\": wcet_high beside parts: a task with parts cannot have it"),
        (with("[[task.section]]\nresource = \"r\"\nlength = 1\n"), "task \"a\": section beside parts"),
        (SHORT.replace("{ wcet = 2, cores = [0] }, ", ""), "set.toml:5: parts = "),
        (SHORT.replace("wcet = 2", "wcet = 0"), "set.toml:5: wcet = 0"),
        (SHORT.replace("wcet = 2", "bcet = 2"), "set.toml:5: task \"a (part 1)\" has no wcet"),
        (
            SHORT.replace("wcet = 2", "wcet = 2, bcet = 3"),
            "set.toml:5: task \"a (part 1)\": bcet 3ms is more than the wcet",
        ),
        (SHORT.replace("cores = [1]", "cores = [7]"), "set.toml:5: cores = 7: there is no core 7"),
        (SHORT.replace("cores = [1]", "core = [1]"), "set.toml:5: part: unknown key \"core\""),
        (SHORT.replace("period = 10\n", ""), "task \"a\" has no period"),
        (with("[[task]]\nname = \"a\"\nperiod = 9\nwcet = 1\n"), "set.toml:7: the name \"a\" stands already in line 3"),
        (with("[[task]]\nname = \"a (part 1)\"\nperiod = 9\nwcet = 1\n"), "the name \"a (part 1)\" stands already"),
        (with("[[task]]\nname = \"b\"\nafter = [\"a (part 1)\"]\nwcet = 1\n"), "set.toml:8: there is no task"),
        (with("reads = [\"a\"]\n"), "set.toml:6: task \"a\": reads names itself"),
        (with("after = [\"a\"]\n").replace("period = 10\n", ""), "task \"a\": after: it comes after itself"),
        (with("[[chain]]\nname = \"c\"\ntasks = [\"a\"]\n"), "chain \"c\": it has fewer than two tasks"),
    ];
    for (text, expected) in cases {
        let error = toml_error(&text);
        assert!(error.contains(expected), "{error}\n{text}");
    }
    let loaded = read(&SHORT.replace("wcet = 3", "wcet = 9"), Format::Toml).unwrap();
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert!(warnings[0].contains("task \"a\" has parts that take 11ms in all > deadline 10ms"), "{warnings:?}");
}

#[test]
fn the_schema_knows_parts() {
    let schema = schema();
    let task = &schema["properties"]["task"]["items"];
    let parts = &task["properties"]["parts"];
    assert_eq!((&parts["minItems"], &parts["items"]["additionalProperties"]), (&2.into(), &false.into()));
    let wcet = serde_json::json!({ "anyOf": [{ "required": ["wcet"] }, { "required": ["execution"] }, { "required": ["parts"] }] });
    assert!(task["allOf"].as_array().unwrap().contains(&wcet), "{}", task["allOf"]);
}
