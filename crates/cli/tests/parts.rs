//! Contract of tasks with parts on the command line: one name, one row, one count, and errors with file and line.

use serde_json::Value;

use crate::folder::Folder;

const CAMERA: &str = r#"[[core]]
name = "cpu"
[[core]]
name = "gpu"
only = true
[[task]]
name = "control"
period = 10
wcet = 4
[[task]]
name = "camera"
period = 40
parts = [{ wcet = "2ms" }, { wcet = "18ms", cores = ["gpu"] }, { wcet = "1ms" }]
"#;

#[test]
fn a_task_with_parts_is_one_task_everywhere() {
    let folder = Folder::new("parts");
    folder.write("cam.toml", CAMERA);
    let args = ["--scheduler", "edf", "--horizon", "40ms", "--gantt", "c.svg", "--jobs", "c.csv", "--trace", "c.json"];
    let text = folder.stdout(&[&["simulate", "cam.toml"][..], &args].concat());
    assert!(text.contains("cam: 2 tasks on 2 cores") && text.contains("5 of 5 (100.00%)"), "{text}");
    let row = text.lines().find(|line| line.starts_with("camera")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["camera", "100.00%", "0", "25.00ms", "25.00ms"]);
    for file in ["c.svg", "c.csv", "c.json"] {
        assert!(folder.read(file).contains("camera") && !folder.read(file).contains("(part"), "{file}");
    }
    // One row of the picture for each task, with the cores of the parts below the name.
    let picture = folder.read("c.svg");
    assert_eq!((picture.matches(">camera<").count(), picture.matches("cpu → gpu → cpu").count()), (1, 1));
    let compared = folder.json(&["compare", "cam.toml", "--schedulers", "edf,rm", "--report", "c.html", "--json"]);
    let tasks: Vec<&str> = (compared["results"][0]["tasks"].as_array().unwrap().iter())
        .map(|task| task["task"].as_str().unwrap())
        .collect();
    assert_eq!(tasks, ["control", "camera"]);
    assert!(folder.read("c.html").contains(r#""tasks":["control","camera"]"#));
    let condition = |name: &str| format!("task.{name}<100%");
    folder.stdout(&["compare", "cam.toml", "--schedulers", "edf", "--fail-if", &condition("camera")]);
    let error =
        folder.error(&["compare", "cam.toml", "--schedulers", "edf", "--fail-if", &condition("camera (part 1)")]);
    assert!(error.contains("there is no task \"camera (part 1)\""), "{error}");
}

#[test]
fn parts_on_single_cores_are_analysed_and_others_are_named() {
    let folder = Folder::new("parts-analysis");
    folder.write("cam.toml", CAMERA);
    let found = folder.json(&["analyze", "cam.toml", "--what-if", "--json"]);
    let proved: Vec<&Value> = found["proved"].as_array().unwrap().iter().map(|proof| &proof["scheduler"]).collect();
    assert!(proved.contains(&&"rm".into()), "{proved:?}");
    let under_rm = &found["response_times"][0];
    let names: Vec<&Value> = under_rm["tasks"].as_array().unwrap().iter().map(|task| &task["task"]).collect();
    assert_eq!(names, ["control", "camera"]);
    let bound = under_rm["tasks"][1]["response_ns"].as_u64().unwrap();
    assert!((25_000_000..=40_000_000).contains(&bound), "the schedule of edf has 25 ms: {bound}");
    let guaranteed: Vec<&Value> =
        found["guarantee"]["tasks"].as_array().unwrap().iter().map(|task| &task["name"]).collect();
    assert_eq!(guaranteed, ["control", "camera"]);
    // The last part has the name of the task, whose other parts have rows of their own.
    let text = folder.stdout(&["analyze", "cam.toml", "--what-if", "--no-simulation"]);
    assert!(text.contains("the last part of camera") && text.contains("camera (part 2)"), "{text}");
    let rooms = found["what_if"]["rooms"].as_array().unwrap();
    let parts: Vec<&Value> = rooms.iter().filter(|room| room["task"] == "camera").map(|room| &room["part"]).collect();
    assert_eq!(parts, [&Value::from(3)]);
    // With a second processor nothing is proved of parts, and that is said.
    folder.write("two.toml", &CAMERA.replace("name = \"cpu\"", "name = \"cpu\"\ncount = 2"));
    let text = folder.stdout(&["analyze", "two.toml"]);
    assert!(text.contains("runs in parts") && text.contains("parts are independent tasks"), "{text}");
}

#[test]
fn files_with_parts_are_converted_and_mistakes_have_their_line() {
    let folder = Folder::new("parts-files");
    folder.write("cam.toml", CAMERA);
    folder.stdout(&["convert", "cam.toml", "a.json"]);
    folder.stdout(&["convert", "a.json", "b.toml"]);
    folder.stdout(&["convert", "b.toml", "c.json"]);
    assert_eq!(folder.read("a.json"), folder.read("c.json"));
    folder.write("bad.toml", &format!("{CAMERA}wcet = 4\n"));
    let output = folder.run(&["compare", "bad.toml"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        error.starts_with("error: bad.toml:14: task \"camera\": wcet beside parts: each part states its own"),
        "{error}"
    );
}
