//! Contract of `temponet train`: what it writes and prints, what it rejects before anything is written, and that an
//! interruption does not change the result.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::folder::Folder;

/// Settings of the smallest network and the shortest runs.
const SMALL: &str = "[network]\nwidth = 16\nlayers = 1\nheads = 2\nfeed_forward = 16\n\
    [episode]\nlength = 60\n[validation]\nruns = 2\nlength = 60\n";

const CLONING: &str = "[[stage]]\nphases = 2\n[stage.method.cloning]\nteacher = \"edf\"\nsteps = 100\nenvironments = 4\nbatch = 16\nupdates = 10\n";

const DQN: &str =
    "[[stage]]\nphases = 3\n[stage.method.dqn]\nsteps = 100\nlearn_from = 50\nenvironments = 4\nbatch = 16\n";

fn recipe(folder: &Folder, stages: &[&str]) {
    folder.write("recipe.toml", &format!("{SMALL}{}", stages.concat()));
}

const CALL: [&str; 8] = ["train", "standard-125", "--recipe", "recipe.toml", "--trials", "2", "-o", "m.safetensors"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&CALL[..], more].concat()
}

#[test]
fn a_training_leaves_a_model_its_logs_and_a_verdict() {
    let folder = Folder::new("train");
    recipe(&folder, &[CLONING, DQN]);
    let report = folder.json(&with(&["--log", "log.csv", "--tensorboard", "board", "--plot", "p.svg", "--json"]));
    assert_eq!(folder.files(), ["board", "log.csv", "m.safetensors", "p.svg", "recipe.toml"], "no checkpoint is left");
    let phases = report["phases"].as_array().unwrap();
    let methods: Vec<&str> = phases.iter().map(|phase| phase["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["cloning", "cloning", "dqn", "dqn", "dqn"]);
    for phase in phases {
        let number = |key: &str| phase[key].as_f64().unwrap();
        assert!(number("loss").is_finite() && number("norm") >= 0.0 && number("score") <= number("best"), "{phase}");
    }
    assert_eq!((&report["model"], &report["seed"]), (&"m.safetensors".into(), &1.into()));
    let verdict = &report["verdict"];
    assert_eq!(verdict["trials"], 1, "two runs of a set in which nothing is random are one and the same");
    assert!(verdict["difference"].is_f64() && verdict["difference_ci95"].is_null() && report["seconds"].is_f64());
    let (compliance, most) = (verdict["temponet"]["compliance"].as_f64(), verdict["clairvoyant"].as_f64());
    assert!(compliance > Some(0.0) && compliance <= most, "{verdict}");
    let others: Vec<f64> =
        verdict["others"].as_array().unwrap().iter().map(|row| row["compliance"].as_f64().unwrap()).collect();
    assert!(others.len() > 8 && others.is_sorted_by(|a, b| a >= b), "{others:?}");
    let sentence = report["sentence"].as_str().unwrap();
    assert!(sentence.contains(verdict["others"][0]["name"].as_str().unwrap()), "{sentence}");

    let log = folder.read("log.csv");
    assert_eq!(log.lines().next(), Some("stage,method,phase,updates,loss,norm,score,best,met,critical,skipped"));
    assert_eq!(log.lines().count(), 1 + phases.len());
    assert!(log.lines().skip(1).all(|line| line.split(',').all(|cell| cell.len() <= 12)), "six digits each: {log}");
    let events = folder.bytes("board/events.out.tfevents.0.temponet");
    assert_eq!(events[..8], 24u64.to_le_bytes());
    let count = |name: &[u8]| events.windows(name.len()).filter(|window| *window == name).count();
    assert_eq!([count(b"loss"), count(b"norm"), count(b"score")], [phases.len(); 3]);
    let picture = folder.read("p.svg");
    assert!(picture.starts_with("<svg") && !picture.contains("NaN") && picture.contains("best so far"));

    let model = folder.bytes("m.safetensors");
    let text = folder.stdout(&with(&["--plot", "p.html", "--snapshots", "each", "--force"]));
    assert!(text.contains("clairvoyant, at most") && text.contains(sentence), "{text}");
    assert!(text.contains("1 run: nothing in this set is random"), "{text}");
    assert!(folder.bytes("m.safetensors") == model, "the same recipe, the same model");
    for (stage, phase) in [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)] {
        let name = format!("each/stage-{stage}-phase-{phase:03}.safetensors");
        assert!(folder.stdout(&["model", "show", &name]).contains("standard-125"), "{name}");
    }
    let page = folder.read("p.html");
    assert!(page.starts_with("<!doctype html>") && page.matches("<tr><td>").count() == phases.len(), "{page}");

    let args = ["compare", "standard-125", "--model", "m.safetensors", "--schedulers", "edf,temponet", "--no-oracle"];
    let text = folder.stdout(&args);
    assert!(text.contains("temponet") && !text.contains("untrained"), "{text}");
}

#[test]
fn weights_that_did_not_change_are_not_written_as_a_new_model() {
    let folder = Folder::new("train-unchanged");
    recipe(&folder, &[CLONING]);
    folder.stdout(&with(&[]));
    let still = folder.read("recipe.toml").replace("[[stage]]", "[optimizer]\nrate = 1e-30\n[[stage]]");
    folder.write("recipe.toml", &still);
    let args = ["train", "standard-125", "--recipe", "recipe.toml", "--trials", "2", "-o", "n.safetensors"];
    let args = [&args[..], &["--begin-with", "m.safetensors"]].concat();
    let text = folder.stdout(&args);
    assert!(text.contains("Training found nothing better than m.safetensors: the weights are unchanged"), "{text}");
    assert!(text.ends_with("n.safetensors was not written.\n") && text.contains("\nm.safetensors "), "{text}");
    assert!(!folder.files().contains(&"n.safetensors".to_string()));
    let report = folder.json(&[&args[..], &["--json"]].concat());
    assert_eq!((&report["model"], &report["verdict"]["is_unchanged"]), (&Value::Null, &true.into()));
}

#[test]
fn killed_and_resumed_is_the_same_as_never_killed() {
    let folder = Folder::new("train-resume");
    recipe(&folder, &[CLONING, &DQN.replace("phases = 3", "phases = 80")]);
    let others = ["--log", "log.csv", "--plot", "p.svg"];
    let run = |threads: &str, more: &[&str]| {
        let output = folder.command(&with(more)).env("RAYON_NUM_THREADS", threads).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (folder.bytes("m.safetensors"), folder.read("log.csv"), folder.read("p.svg"))
    };
    let whole = run("3", &others);
    std::fs::remove_file(folder.0.join("m.safetensors")).unwrap();
    let mut command = folder.command(&with(&others));
    command.env("RAYON_NUM_THREADS", "1").stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    while !folder.0.join("m.safetensors.checkpoint").exists() && begun.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!folder.0.join("m.safetensors").exists(), "it was too fast to be killed");
    let checkpoint = folder.bytes("m.safetensors.checkpoint");
    assert!(folder.error(&with(&[])).contains("a training was interrupted; --resume goes on with it"));
    let other_set = ["train", "standard-145", "--recipe", "recipe.toml", "-o", "m.safetensors", "--resume"];
    assert!(
        folder
            .error(&other_set)
            .contains("m.safetensors.checkpoint: the checkpoint cannot be used: it was made with another")
    );
    // A wrong call with --force does not remove the checkpoint.
    let wrong = ["train", "nosuchset", "--recipe", "recipe.toml", "-o", "m.safetensors", "--force"];
    assert!(folder.error(&wrong).contains("no built-in set"));
    assert!(folder.bytes("m.safetensors.checkpoint") == checkpoint);
    let damaged = [&checkpoint[..checkpoint.len() / 2], &checkpoint[checkpoint.len() / 2 + 1..]].concat();
    for bytes in [&damaged[..], &checkpoint[..checkpoint.len() - 1], &checkpoint[..5], b""] {
        std::fs::write(folder.0.join("m.safetensors.checkpoint"), bytes).unwrap();
        assert!(folder.error(&with(&["--resume"])).contains("m.safetensors.checkpoint: the checkpoint cannot be used"));
    }
    std::fs::write(folder.0.join("m.safetensors.checkpoint"), checkpoint).unwrap();
    let resumed = run("3", &[&others[..], &["--resume"]].concat());
    assert!(resumed.0 == whole.0, "another model");
    assert_eq!((resumed.1, resumed.2), (whole.1, whole.2));
    // A process that is killed while writing leaves its temporary file.
    let mut files = folder.files();
    files.retain(|name| !name.ends_with(".partial"));
    assert_eq!(files, ["log.csv", "m.safetensors", "p.svg", "recipe.toml"]);
    assert!(folder.error(&with(&["--resume"])).contains("there is no interrupted training to go on with"));
    assert!(folder.bytes("m.safetensors") == whole.0);
}

/// Returns a call whose trials are random, so that many of them take long.
fn of_robot<'a>(trials: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["train", "robot", "--recipe", "recipe.toml", "--trials", trials, "-o", "m.safetensors"][..], more].concat()
}

#[test]
fn a_training_killed_during_its_verdict_leaves_its_curves_and_resumes_to_it() {
    let folder = Folder::new("train-verdict");
    recipe(&folder, &[CLONING]);
    let plot = ["--plot", "p.svg"];
    let child =
        folder.command(&of_robot("100000", &plot)).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    // The model is written before the verdict, which would take hours.
    while !folder.0.join("m.safetensors").exists() && begun.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(2));
    }
    std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    let expected =
        "interrupted: m.safetensors.checkpoint holds what was learned; the same command with --resume goes on with it";
    assert_eq!(said.lines().last(), Some(expected));
    let model = folder.bytes("m.safetensors");
    assert_eq!(folder.files(), ["m.safetensors", "m.safetensors.checkpoint", "p.svg", "recipe.toml"]);
    assert!(folder.error(&of_robot("2", &[])).contains("--resume goes on with it"));
    let output = folder.run(&of_robot("2", &["--resume"]));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("2 unseen runs"));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("phase"), "nothing is learned again");
    // The verdict is in the header of the file; the weights are behind it.
    let weights = |model: &[u8]| model[8 + u64::from_le_bytes(model[..8].try_into().unwrap()) as usize..].to_vec();
    assert!(weights(&folder.bytes("m.safetensors")) == weights(&model));
    assert_eq!(folder.files(), ["m.safetensors", "p.svg", "recipe.toml"]);
}

#[test]
fn what_cannot_be_followed_is_refused_before_anything_is_written() {
    let folder = Folder::new("train-refused");
    recipe(&folder, &[CLONING]);
    folder.write("m.safetensors", "precious");
    assert!(folder.error(&CALL).contains("m.safetensors exists already; --force replaces it"));
    assert_eq!(folder.read("m.safetensors"), "precious");
    std::fs::remove_file(folder.0.join("m.safetensors")).unwrap();
    let wrong = |text: &str, message: &str| {
        folder.write("recipe.toml", text);
        let error = folder.error(&CALL);
        assert!(error.starts_with("error: recipe.toml:") && error.contains(message), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert_eq!(folder.files(), ["recipe.toml"], "{text}");
    };
    wrong("seed = 1\nsede = 2\n", "recipe.toml:2: unknown field `sede`");
    wrong("[optimizer]\nrate = -1.0\n", "recipe.toml:2: optimizer.rate = -1 is not positive");
    wrong("[network]\nwidth = 30\nheads = 4\n", "recipe.toml:1: network: ");
    wrong("stage = []\n", "0 stages");
    wrong(
        "[[stage]]\nphases = 1\nmethod = { sarsa = {} }\n",
        "recipe.toml:3: unknown method `sarsa`, expected one of `cloning`",
    );
    wrong(
        "[[stage]]\nphases = 1\n[stage.method.sac]\nsteps = 1\n",
        "recipe.toml:3: the method `sac` is one of temponet-paper's",
    );
    wrong(&CLONING.replace("\"edf\"", "\"eddf\""), "recipe.toml:4: stage 1: teacher: there is no scheduler \"eddf\"");
    wrong(&CLONING.replace("steps", "step"), "recipe.toml:5: step: unknown field `step`");
    wrong(&CLONING.replace("batch = 16", "batch = true"), "recipe.toml:7: batch: invalid type: boolean `true`");
    wrong(&DQN.replace("batch = 16", "batch = true"), "recipe.toml:7: batch: invalid type: boolean `true`");
    wrong(&CLONING.replace("batch = 16", "batch = 0"), "recipe.toml:7: stage 1: batch = 0 is not from 1");
    wrong(
        &DQN.replace("batch = 16", "epsilon = [1.0, 2.0]"),
        "recipe.toml:7: stage 1: epsilon[1] = 2 is not from 0 to 1",
    );
    wrong("[workload]\nload = [2.0, 1.0]\n", "recipe.toml:2: workload: load = [2, 1] is no range");
    folder.write("recipe.toml", &CLONING.replace("\"edf\"", "\"d-over\""));
    let error = folder.error(&with(&["--cores", "2"]));
    assert!(error.contains("teacher: d-over is defined for one core, not for 2"), "{error}");
    assert!(folder.error(&["train", "--recipe", "recipe.toml", "-o", "m.safetensors"]).contains("teacher: d-over"));

    recipe(&folder, &[CLONING]);
    folder.write("recipe.toml", &format!("tokens = \"full\"\n{}", folder.read("recipe.toml")));
    let error = folder.error(&with(&["--begin-with", "random:1"]));
    assert!(error.contains("--begin-with random:1: the model has another shape than the recipe: width 128"), "{error}");
    let fewer = "[tokens.custom]\nbins = 64\nbinning = { log = { first = 0.05, last = 200.0 } }\nclip = false\nlong_slack_reserve = 0.0\n";
    recipe(&folder, &[CLONING]);
    let error = folder.error(&with(&["--begin-with", "random:1"]));
    assert!(error.contains("--begin-with random:1: the real numbers of the model are not those"), "{error}");
    folder.write("recipe.toml", &format!("{fewer}features = [\"core\"]\n{}", folder.read("recipe.toml")));
    let error = folder.error(&with(&["--begin-with", "random:1"]));
    assert!(error.contains("--begin-with random:1: the job features [\"remaining\""), "{error}");
    assert!(error.contains("are not the first of [\"core\"]"), "{error}");
    recipe(&folder, &[CLONING]);
    assert!(folder.error(&with(&["--begin-with", "nosuch.safetensors"])).contains("nosuch.safetensors"));
    assert!(folder.error(&with(&["--device", "cuda"])).contains("cuda"));
    assert!(folder.error(&with(&["--resume"])).contains("there is no interrupted training"));
    assert!(folder.error(&with(&["--horizon", "1s"])).contains("--horizon: the recipe says"));
    assert!(folder.error(&with(&["--log", "nowhere/log.csv"])).contains("there is no folder nowhere"));
    assert!(folder.error(&with(&["--plot", "m.safetensors"])).contains("written over"));
    let drawn = ["train", "--recipe", "recipe.toml", "-o", "m.safetensors", "--cores", "2"];
    assert!(folder.error(&drawn).contains("there is no task set to change"));
    assert!(folder.error(&["train", "--recipe", "nosuch.toml", "-o", "m"]).contains("nosuch.toml: cannot be read"));
    assert_eq!(folder.files(), ["recipe.toml"]);
}

#[test]
fn a_printed_recipe_reads_back() {
    let folder = Folder::new("train-recipe");
    let printed = folder.stdout(&["train", "--print-recipe", "--seed", "7"]);
    assert!(printed.starts_with("seed = 7\n") && printed.contains("[stage.method.ppo]"), "{printed}");
    folder.write("recipe.toml", &printed);
    assert_eq!(folder.stdout(&["train", "--recipe", "recipe.toml", "--print-recipe"]), printed);
}

#[test]
fn a_seed_of_one_overrides_that_of_a_recipe() {
    let folder = Folder::new("seed-one");
    folder.write("recipe.toml", "seed = 7\n");
    let seed = |more: &[&str]| {
        let printed = folder.stdout(&[&["train", "--recipe", "recipe.toml", "--print-recipe"], more].concat());
        printed.lines().find(|line| line.starts_with("seed = ")).unwrap().to_string()
    };
    assert_eq!((seed(&[]).as_str(), seed(&["--seed", "1"]).as_str()), ("seed = 7", "seed = 1"));
}
