//! Contract of the files that commands read and write: no file of the user is lost, no file is left half-written, no
//! command hangs, and no name controls the terminal.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::folder::Folder;

const SIMULATE: [&str; 6] = ["simulate", "my.toml", "--scheduler", "edf", "--horizon", "100ms"];
const COMPARE: [&str; 5] = ["compare", "my.toml", "--schedulers", "edf", "--no-oracle"];

fn with<'a>(call: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [call, more].concat()
}

/// Returns a folder with a task set.
fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.stdout(&["new", "my.toml"]);
    folder
}

#[test]
fn a_report_does_not_overwrite_the_model() {
    let folder = folder("over-model");
    folder.stdout(&["model", "new", "random:1", "-o", "m.safetensors"]);
    std::fs::copy(folder.0.join("m.safetensors"), folder.0.join("m.html")).unwrap();
    let before = folder.bytes("m.html");
    let error = folder.error(&with(&COMPARE, &["--model", "m.html", "--report", "./m.html", "--force"]));
    assert_eq!(error, "error: ./m.html: would be written over m.html, which this command reads as well\n");
    let error = folder.error(&["explain", "my.toml", "--model", "m.html", "--report", "m.html", "--force"]);
    assert!(error.contains("would be written over"), "{error}");
    let arena = ["arena", "--quick", "--scenario", "one-core", "--model", "m.html", "--report", "m.html", "--force"];
    assert!(folder.error(&arena).contains("would be written over"));
    let error =
        folder.error(&["model", "note", "m.safetensors", "--provenance", "mine", "-o", "m.safetensors", "--force"]);
    assert!(error.contains("would be written over"), "{error}");
    assert!(folder.bytes("m.html") == before);
}

#[test]
fn jobs_do_not_overwrite_the_measured_times() {
    let folder = folder("over-times");
    folder.write("times.csv", "t\n1\n2\n");
    let set = "[[task]]\nname = \"a\"\nperiod = 10\nexecution = { model = \"empirical\", file = \"times.csv\", column = \"t\" }\n";
    folder.write("my.toml", set);
    let error = folder.error(&with(&SIMULATE, &["--jobs", "times.csv", "--force"]));
    assert!(error.contains("times.csv: would be written over"), "{error}");
    assert_eq!(folder.read("times.csv"), "t\n1\n2\n");
}

#[test]
fn the_log_of_a_training_does_not_overwrite_its_recipe() {
    let folder = folder("over-recipe");
    let recipe = folder.stdout(&["train", "--print-recipe"]);
    for (name, flag) in [("recipe.csv", "--log"), ("recipe.svg", "--plot")] {
        folder.write(name, &recipe);
        let error = folder.error(&["train", "my.toml", "--recipe", name, "-o", "m.safetensors", flag, name, "--force"]);
        assert!(error.contains("would be written over"), "{error}");
        assert_eq!(folder.read(name), recipe);
    }
    assert!(!folder.0.join("m.safetensors").exists());
}

#[test]
fn one_file_under_two_names_is_one_output() {
    let folder = folder("spellings");
    std::fs::create_dir(folder.0.join("sub")).unwrap();
    let twice = |jobs: &str, trace: &str| {
        let error = folder.error(&with(&SIMULATE, &["--jobs", jobs, "--trace", trace, "--force"]));
        assert!(error.contains("would be written over"), "{error}");
    };
    twice("new.csv", "./new.csv");
    twice("sub/new.csv", "sub/../sub/new.csv");
    folder.write("old.csv", "");
    std::fs::hard_link(folder.0.join("old.csv"), folder.0.join("hard.json")).unwrap();
    twice("old.csv", "hard.json");
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink("old.csv", folder.0.join("soft.json")).unwrap();
        symlink("nothing-yet.csv", folder.0.join("dangling.json")).unwrap();
        symlink("sub", folder.0.join("other")).unwrap();
        twice("old.csv", "soft.json");
        twice("nothing-yet.csv", "dangling.json");
        twice("sub/new.csv", "other/new.csv");
    }
    assert_eq!(folder.read("old.csv"), "");
}

#[test]
fn a_file_of_the_users_is_replaced_only_if_forced() {
    let folder = folder("foreign");
    folder.write("thesis.html", "my thesis");
    let error = folder.error(&with(&COMPARE, &["--report", "thesis.html"]));
    assert_eq!(error, "error: thesis.html exists and is not a page of this program; --force replaces it\n");
    assert_eq!(folder.read("thesis.html"), "my thesis");
    folder.stdout(&with(&COMPARE, &["--report", "thesis.html", "--force"]));
    // An earlier output or an empty file may be replaced.
    folder.stdout(&with(&COMPARE, &["--report", "thesis.html"]));
    folder.write("empty.csv", "");
    let outputs = ["--jobs", "empty.csv", "--trace", "t.json", "--gantt", "g.svg"];
    for _ in 0..2 {
        folder.stdout(&with(&SIMULATE, &outputs));
    }
    for (flag, name) in [("--jobs", "g.csv"), ("--trace", "g.json"), ("--gantt", "t.svg")] {
        folder.write(name, "mine");
        assert!(folder.error(&with(&SIMULATE, &[flag, name])).contains("--force replaces it"), "{flag}");
    }
    // Pages and pictures of others are not ours, though they begin alike.
    folder.write("own.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>");
    assert!(folder.error(&with(&SIMULATE, &["--gantt", "own.svg"])).contains("--force replaces it"));
    folder.write("own.html", "<!doctype html>\n<title>Thesis</title>");
    assert!(folder.error(&with(&COMPARE, &["--report", "own.html"])).contains("--force replaces it"));
    let sweep = ["sweep", "--sets", "1", "--jobs", "10", "--loads", "1", "--schedulers", "edf", "-o", "g.csv"];
    assert!(folder.error(&sweep).contains("g.csv exists and is not the table of a sweep"));
    folder.stdout(&with(&sweep, &["--force"]));
    folder.stdout(&sweep);
    assert!(folder.read("g.csv").starts_with("load,cores,tasks,set,scheduler,released,met,options\n1,1,10,0,edf,"));
}

#[test]
fn a_picture_with_a_wrong_ending_is_refused_before_the_work() {
    let folder = folder("endings");
    let refused = |call: &[&str], message: &str| {
        let error = folder.error(call);
        assert!(error.contains(message), "{error}");
    };
    refused(
        &with(&SIMULATE, &["--gantt", "out.png"]),
        "out.png: the name of a picture of this program must end in .svg",
    );
    refused(&with(&COMPARE, &["--report", "out.txt"]), "must end in .html or .htm");
    refused(&["train", "my.toml", "-o", "m.safetensors", "--plot", "x.jpg"], "must end in .svg, .html or .htm");
    refused(&["train", "my.toml", "-o", "mine"], "must end in .safetensors");
    refused(&with(&SIMULATE, &["--jobs", "jobs"]), "must end in .csv");
    folder.stdout(&with(&SIMULATE, &["--gantt", "OUT.SVG"]));
    assert_eq!(folder.files(), ["OUT.SVG", "my.toml"]);
}

#[test]
#[cfg(unix)]
fn a_replaced_file_keeps_its_permissions_its_links_and_any_name() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = folder("replaced");
    let mode = |name: &str| folder.0.join(name).metadata().unwrap().permissions().mode() & 0o777;
    folder.stdout(&with(&SIMULATE, &["--gantt", "g.svg"]));
    std::fs::set_permissions(folder.0.join("g.svg"), PermissionsExt::from_mode(0o604)).unwrap();
    symlink("g.svg", folder.0.join("link.svg")).unwrap();
    let horizon = with(&SIMULATE[..5], &["200ms", "--gantt", "link.svg", "--gantt-until", "200ms"]);
    let before = folder.read("g.svg");
    folder.stdout(&horizon);
    assert_eq!(mode("g.svg"), 0o604);
    assert!(folder.0.join("link.svg").is_symlink() && folder.read("g.svg") != before);
    std::fs::set_permissions(folder.0.join("g.svg"), PermissionsExt::from_mode(0o444)).unwrap();
    assert!(folder.error(&horizon).contains("link.svg: it is read-only"));
    symlink("later.svg", folder.0.join("dangling.svg")).unwrap();
    folder.stdout(&with(&SIMULATE, &["--gantt", "dangling.svg"]));
    assert!(folder.0.join("dangling.svg").is_symlink() && folder.read("later.svg").starts_with("<svg"));
    symlink("round.svg", folder.0.join("round.svg")).unwrap();
    assert!(folder.error(&with(&SIMULATE, &["--gantt", "round.svg"])).contains("too many links"));
    let longest = "x".repeat(251) + ".svg";
    folder.stdout(&with(&SIMULATE, &["--gantt", &longest]));
    assert!(folder.read(&longest).starts_with("<svg"));
    assert!(folder.files().iter().all(|name| !name.contains("partial")));
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_leaves_no_temporary_file() {
    let folder = folder("interrupted");
    // What begins where hangups are ignored goes on.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")?.trim().chars().last()?.to_digit(16));
    let hangup = (ignored.is_some_and(|ignored| ignored % 2 == 0)).then_some(("-HUP", 129));
    for (signal, code) in [("-INT", 130), ("-TERM", 143)].into_iter().chain(hangup) {
        let call = with(&SIMULATE[..5], &["1000000s", "--jobs", "jobs.csv"]);
        let mut child = folder.command(&call).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while folder.files().len() < 2 && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(folder.files()[0].ends_with(".partial"), "{:?}", folder.files());
        let id = child.id().to_string();
        std::process::Command::new("kill").args([signal, &id]).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_eq!(folder.files(), ["my.toml"]);
    }
}

#[test]
#[cfg(unix)]
fn devices_and_pipes_neither_hang_nor_pass_for_success() {
    let folder = folder("devices");
    let error = folder.error(&with(&SIMULATE, &["--jobs", "/dev/full"]));
    assert!(error.contains("cannot write /dev/full: No space left"), "{error}");
    folder.stdout(&with(&SIMULATE, &["--jobs", "/dev/null", "--gantt", "/dev/null"]));
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = folder.command(&["sets"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write to stdout"));
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    assert_eq!(folder.command(&["compare", "nosuch"]).stderr(full).output().unwrap().status.code(), Some(2));
    for name in ["zero.toml", "zero.safetensors"] {
        std::os::unix::fs::symlink("/dev/zero", folder.0.join(name)).unwrap();
    }
    assert!(folder.error(&["compare", "zero.toml"]).contains("is too large"));
    assert!(folder.error(&["model", "show", "zero.safetensors"]).contains("is too large"));
    let train = ["train", "my.toml", "--recipe", "zero.toml", "-o", "m.safetensors"];
    assert!(folder.error(&train).contains("is too large"));
    std::fs::create_dir(folder.0.join("folder.toml")).unwrap();
    assert!(folder.error(&["analyze", "folder.toml"]).contains("is a folder, not a file"));
    assert!(folder.error(&with(&SIMULATE, &["--gantt", "folder.toml"])).contains("it is a folder"));
    // A pipe with a writer is read.
    std::process::Command::new("mkfifo").arg(folder.0.join("pipe.toml")).status().unwrap();
    let (path, set) = (folder.0.join("pipe.toml"), folder.read("my.toml"));
    let writer = std::thread::spawn(move || std::fs::write(path, set).unwrap());
    folder.stdout(&["simulate", "pipe.toml", "--scheduler", "edf", "--horizon", "100ms"]);
    writer.join().unwrap();
}

#[test]
#[cfg(unix)]
fn control_characters_do_not_reach_the_terminal() {
    let folder = folder("control");
    let name = "a\x1b[31m\nb.toml";
    std::fs::copy(folder.0.join("my.toml"), folder.0.join(name)).unwrap();
    let call = ["simulate", name, "--scheduler", "edf", "--horizon", "100ms"];
    let text = folder.stdout(&call);
    assert!(text.starts_with("a\\u{1b}[31m\\nb: 3 tasks on 1 core"), "{text}");
    let report = folder.json(&with(&call, &["--json"]));
    assert!(report["task_set"].is_string());
    folder.write(name, "what is this\n");
    let wrong: [&[&str]; 6] = [
        &["compare", name],
        &["compare", "\x1b]0;title\x07"],
        &["compare", "\u{9b}31m.toml"],
        &["simulate", "my.toml", "--scheduler", "\x1b[2J"],
        &["compare", "--horizon", "\x1b[2J"],
        &["\x1b[2J"],
    ];
    for call in wrong {
        let output = folder.run(call);
        assert_eq!(output.status.code(), Some(2), "{call:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
    assert_eq!(folder.error(&["compare", name]).lines().count(), 1);
}

#[test]
fn a_misspelt_name_is_answered_with_the_one_that_was_meant() {
    let folder = folder("names");
    let meant = |call: &[&str], name: &str| {
        let error = folder.error(call);
        assert!(error.contains(&format!("did you mean {name:?}?")), "{error}");
    };
    let simulate = |name: &'static str| ["simulate", "my.toml", "--scheduler", name];
    meant(&simulate("EDF"), "edf");
    meant(&simulate("temponett"), "temponet");
    meant(&simulate("shild:edf"), "shield");
    meant(&simulate("llf:quntum=1ms"), "quantum");
    meant(&["compare", "my.toml", "--schedulers", "edf,edf_skip"], "edf-skip");
    meant(&["compare", "GAP-avionics"], "gap-avionics");
    meant(&["arena", "--scenario", "one-core-overlaod"], "one-core-overload");
    assert!(folder.error(&simulate("temponet:x=1")).contains("there is no option \"x\"; it has none"));
}

#[test]
fn a_bare_number_is_asked_for_its_unit() {
    let folder = folder("units");
    let asked = |call: &[&str]| {
        let error = folder.error(call);
        assert!(error.contains("what? Write"), "{error}");
    };
    asked(&["compare", "--horizon", "10"]);
    asked(&["compare", "--switch-cost", "0.5"]);
    asked(&["explain", "--at", "5"]);
    asked(&with(&SIMULATE, &["--gantt", "g.svg", "--gantt-until", "5"]));
    asked(&["generate", "--tasks", "2", "--utilization", "1", "--periods", "list:10,20", "-o", "g.toml"]);
    assert!(folder.error(&["compare", "--horizon", "10"]).contains("10 what? Write 10us, 10ms or 10s"));
}

#[test]
fn one_task_is_one_task_and_models_are_shown_in_words() {
    let folder = folder("words");
    folder.write("my.toml", "[[task]]\nname = \"a\"\nperiod = 10\nwcet = 4\n");
    let text = folder.stdout(&with(&COMPARE, &["--horizon", "10ms"]));
    assert!(text.contains("my: 1 task on 1 core") && text.contains("1 run from seed 1, 1 job each"), "{text}");
    for name in ["built-in", "random:1", "random-paper:1", "random-raw:1", "random-mlp:1"] {
        let text = folder.stdout(&["model", "show", name]);
        assert!(!text.contains(['{', '}', '[']) && !text.contains("Some("), "{text}");
        assert!(text.contains("crc32-file:"), "{text}");
    }
}
