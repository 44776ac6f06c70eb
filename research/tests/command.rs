//! Contract of the program: `reproduce` runs what is asked for, once, and the commands of `temponet` are there, too.

use serde_json::Value;
use temponet_paper::Verdict;

use crate::folder::Folder;

#[test]
fn an_experiment_of_the_paper_is_run_once_and_says_what_came_of_it() {
    let folder = Folder::new("an_experiment_of_the_paper_is_run_once_and_says_what_came_of_it");
    let call = |more: &[&str]| {
        let args = ["reproduce", "e1", "counterexample", "--smallest", "--cache", "kept"];
        folder.run(&[&args, more].concat())
    };
    let first = call(&["--json", "--report", "page.html"]);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    let report: Value = serde_json::from_slice(&first.stdout).unwrap();
    let experiments = report["experiments"].as_array().unwrap();
    let ids: Vec<&str> = experiments.iter().map(|of| of["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["E1", "counterexample"]);
    for experiment in experiments {
        let numbers = experiment["ours"].as_object().unwrap();
        assert!(!numbers.is_empty() && numbers.values().all(Value::is_number), "{experiment}");
        for name in experiment["paper"].as_object().unwrap().keys() {
            assert!(numbers.contains_key(name), "{name}");
        }
        let verdict = experiment["verdict"].as_str().unwrap();
        assert!(Verdict::ALL.map(Verdict::name).contains(&verdict), "{verdict}");
        let details = experiment["details"].as_array().unwrap();
        assert_eq!(details.len(), numbers.len());
    }
    let edf = experiments[0]["details"][0]["references"].as_array().unwrap();
    let columns: Vec<&str> = edf.iter().map(|of| of["column"].as_str().unwrap()).collect();
    assert_eq!(columns, ["edf", "best classical", "optimum"]);
    let page = folder.read("page.html");
    assert!(page.contains("id=\"E1\"") && page.contains("impossible") && !page.contains("NaN"));
    // The second call finds everything in the cache and prints the same.
    let again = call(&["--json"]);
    let said = String::from_utf8_lossy(&again.stderr).to_string();
    assert_eq!(said, "E1: known\ncounterexample: known\n");
    assert_eq!(again.stdout, first.stdout);
    let forced = String::from_utf8_lossy(&call(&["--force"]).stderr).to_string();
    assert!(!forced.contains("known"), "{forced}");
    let markdown = String::from_utf8(call(&["--markdown"]).stdout).unwrap();
    assert!(
        markdown.starts_with("| experiment | verdict |") && markdown.contains("## E1 Standard task set"),
        "{markdown}"
    );
    assert!(folder.stdout(&["reproduce"]).contains("Standard task set"));
}

#[test]
fn trainings_are_planned_and_carried_out_in_parts_and_the_experiment_finds_them() {
    let folder = Folder::new("trainings_are_planned_and_carried_out_in_parts_and_the_experiment_finds_them");
    let call = ["reproduce", "E16", "bound", "--smallest", "--cache", "kept"];
    let plan = |place: &str| -> u64 {
        let plan: Value = folder.json(&[&call[..], &["--plan", "--json"]].concat());
        assert_eq!(plan["experiments"].as_array().unwrap().len(), 1, "bound trains nothing: {plan}");
        assert_eq!(plan["experiments"][0]["experiment"], "E16");
        plan["all"][place].as_u64().unwrap()
    };
    let trainings = plan("trainings");
    assert!(trainings > 2 && plan("done") == 0 && plan("updates") == plan("updates_left"));
    let timed: Value = folder.json(&[&call[..], &["--plan", "--hours", "--json"]].concat());
    assert!(timed["all"]["hours_left"].as_f64().is_some_and(|hours| hours > 0.0), "{timed}");
    assert!(folder.error(&[&call[..], &["--hours"]].concat()).contains("--plan"));
    // The model of eight cores comes first, since the others begin with it.
    let said = folder.stdout(&[&call[..], &["--train", "--most", "1"]].concat());
    assert_eq!((said, plan("done")), (format!("{} trainings left\n", trainings - 1), 1));
    assert_eq!(folder.stdout(&[&call[..], &["--train"]].concat()), "0 trainings left\n");
    assert_eq!((plan("done"), plan("updates_left")), (trainings, 0));
    let models = || {
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let files = std::fs::read_dir(folder.0.join("kept")).unwrap().map(name);
        files.filter(|name| name.starts_with("model-")).collect::<std::collections::BTreeSet<String>>()
    };
    let before = models();
    folder.stdout(&["reproduce", "E16", "--smallest", "--cache", "kept"]);
    assert_eq!(models(), before, "the experiment asks for the trainings of the plan");
    assert!(folder.error(&[&call[..], &["--most", "1"]].concat()).contains("--train"));
}

#[test]
fn parts_of_a_plan_are_carried_out_by_processes_of_one_cache_each_training_once() {
    let folder = Folder::new("parts_of_a_plan_are_carried_out_by_processes_of_one_cache_each_training_once");
    let call = ["reproduce", "E16", "--smallest", "--cache", "kept"];
    let plan = || -> Vec<(String, bool, bool)> {
        let plan: Value = folder.json(&[&call[..], &["--plan", "--json"]].concat());
        let is = |of: &Value, key: &str| of[key].as_bool().unwrap();
        let trainings = plan["trainings"].as_array().unwrap();
        assert_eq!(trainings.len() as u64, plan["all"]["trainings"].as_u64().unwrap());
        trainings.iter().map(|of| (of["file"].to_string(), is(of, "done"), is(of, "waits"))).collect()
    };
    let train = |part: &str| folder.stdout(&[&call[..], &["--train", "--part", part]].concat());
    let before = plan();
    let waiting = before.iter().filter(|(_, _, waits)| *waits).count();
    assert!(waiting > 0 && waiting < before.len() && before.iter().all(|(_, done, _)| !done), "{before:?}");
    let written = || {
        let files = std::fs::read_dir(folder.0.join("kept")).unwrap().map(|entry| entry.unwrap());
        let models = files.filter(|file| file.file_name().to_string_lossy().ends_with(".safetensors"));
        models.map(|file| (file.file_name(), file.metadata().unwrap().modified().unwrap())).collect::<Vec<_>>()
    };
    // The second part has no training at the first place, so what begins with its model is left.
    let said = train("2/2");
    let own = |(place, (_, done, _)): (usize, &(String, bool, bool))| !*done && place % 2 == 1;
    let left = plan();
    let (of_part, of_plan) =
        (left.iter().enumerate().filter(|of| own(*of)).count(), left.iter().filter(|of| !of.1).count());
    let counted = |count: usize| format!("{count} training{}", if count == 1 { "" } else { "s" });
    assert_eq!(said, format!("{} left in this part, {} in all\n", counted(of_part), counted(of_plan)));
    assert!(of_part > 0 && left.iter().enumerate().all(|(place, of)| place % 2 == 1 || !of.1), "{left:?}");
    // Two at the same time; what waits for the other is there the second time.
    let mut known = written();
    for _ in 0..2 {
        std::thread::scope(|scope| {
            let both = ["1/2", "2/2"].map(|part| scope.spawn(move || train(part)));
            both.into_iter().for_each(|one| assert!(one.join().unwrap().contains(" left in this part, ")));
        });
        let all = written();
        assert!(known.iter().all(|file| all.contains(file)), "a model was trained twice: {known:?} {all:?}");
        known = all;
    }
    assert_eq!(train("1/2"), "0 trainings left in this part, 0 trainings in all\n");
    assert_eq!(known.len(), before.len());
    for (part, why) in [("0/4", "no part 0 of 4"), ("5/4", "no part 5 of 4"), ("x", "such as 1/4")] {
        let error = folder.error(&[&call[..], &["--train", "--part", part]].concat());
        assert!(error.contains("--part") && error.contains(why), "{error}");
    }
    assert!(folder.error(&[&call[..], &["--part", "1/2"]].concat()).contains("--train"));
}

#[test]
fn trainings_wait_for_those_that_choose_their_rate() {
    let folder = Folder::new("trainings_wait_for_those_that_choose_their_rate");
    let plan: Value = folder.json(&["reproduce", "E5", "--full", "--cache", "kept", "--plan", "--json"]);
    let (mut trials, mut waiting) = (0, 0);
    for training in plan["trainings"].as_array().unwrap() {
        let name = training["name"].as_str().unwrap();
        let is_trial = name.contains("rate times");
        let is_chosen = name.starts_with("width_") && !is_trial;
        assert_eq!(training["waits"].as_bool(), Some(is_chosen), "{training}");
        trials += usize::from(is_trial);
        waiting += usize::from(is_chosen);
    }
    assert!(trials > 0 && waiting > 0, "{plan}");
}

#[cfg(unix)]
#[test]
fn the_script_trains_by_several_processes_beside_each_other() {
    let folder = Folder::new("the_script_trains_by_several_processes_beside_each_other");
    let run = |words: &[&str]| {
        let mut script = std::process::Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/train-beside"));
        script.args(words).current_dir(&folder.0).env("TEMPONET_PAPER", crate::PROGRAM);
        let output = script.env("TRAIN_LOGS", "logs").output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let call = ["E22", "--smallest", "--cache", "kept"];
    let plan = || -> Value { folder.json(&[&["reproduce"], &call[..], &["--plan", "--json"]].concat()) };
    let updates = plan()["all"]["updates"].as_u64().unwrap();
    let (code, said, _) = run(&[&["3"][..], &call].concat());
    let lines: Vec<&str> = said.lines().collect();
    let is_done = |at: usize| lines[at].starts_with(&format!("part {}/3: 0 trainings left in this part", at + 1));
    assert!(code == Some(0) && lines.len() == 4 && (0..3).all(is_done), "{said}");
    assert!(updates > 0 && lines[3].starts_with(&format!("{updates} updates in ")), "{said}");
    let plan = plan();
    assert_eq!(plan["all"]["done"], plan["all"]["trainings"]);
    let (code, _, error) = run(&["3", "E99"]);
    assert!(code == Some(2) && error.contains("\"E99\""), "{error}");
    let (code, _, error) = run(&["none", "E22"]);
    assert!(code == Some(2) && error.starts_with("usage:"), "{error}");
}

#[test]
fn an_unknown_experiment_is_an_error_that_lists_them() {
    let folder = Folder::new("an_unknown_experiment_is_an_error_that_lists_them");
    let error = folder.error(&["reproduce", "E99", "--cache", "kept"]);
    assert!(error.contains("\"E99\"") && error.contains("E1, E2") && error.contains("bound"), "{error}");
    assert!(folder.files().is_empty(), "nothing is begun");
    assert!(folder.error(&["reproduce", "counter-example"]).contains("did you mean \"counterexample\"?"));
}

#[test]
fn trainings_do_not_compute_together_on_the_processor() {
    let folder = Folder::new("trainings_do_not_compute_together_on_the_processor");
    let error = folder.error(&["reproduce", "E1", "--smallest", "--together", "--cache", "kept"]);
    assert!(error.contains("--together: --device cpu is the processor"), "{error}");
}

#[test]
fn the_commands_of_temponet_are_there_too() {
    let folder = Folder::new("the_commands_of_temponet_are_there_too");
    assert!(folder.stdout(&["compare", "rosace", "--schedulers", "edf", "--no-oracle"]).contains("edf"));
    assert!(folder.stdout(&["reproduce", "--help"]).contains("temponet reproduce E1"));
    assert!(folder.stdout(&["completions", "bash"]).contains("--smallest"), "the options of the added command");
}

#[test]
fn published_figures_are_those_of_this_program_and_others_are_named() {
    let folder = Folder::new("published_figures_are_those_of_this_program_and_others_are_named");
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/results/reproduction.md");
    // None has figures of the network, which another processor may round otherwise, but for the counterexample's two jobs.
    let call = ["check", "bound", "theory", "counterexample", "--published"];
    let text = folder.stdout(&[&call[..], &[published]].concat());
    assert!(text.ends_with("are as this program prints them\n"), "{text}");
    let tables = std::fs::read_to_string(published).unwrap();
    let at = tables.find("## bound ").unwrap();
    let row = tables[at..].lines().find(|line| line.starts_with("| ") && !line.starts_with("| figure")).unwrap();
    let name = row.split(" | ").next().unwrap().trim_start_matches("| ");
    let other = format!("| {name} | 12345 | – | – | – | – |  |");
    folder.write("other.md", &format!("{}{}", &tables[..at], tables[at..].replacen(row, &other, 1)));
    let differing = folder.run(&[&call[..], &["other.md", "--json"]].concat());
    let result: Value = serde_json::from_slice(&differing.stdout).unwrap();
    assert_eq!(differing.status.code(), Some(1));
    let differences = result["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 1, "{result}");
    assert_eq!((differences[0]["figure"].as_str(), differences[0]["published"].as_str()), (Some(name), Some("12345")));
    folder.write("none.md", "# Nothing\n");
    assert!(folder.error(&[&call[..], &["none.md"]].concat()).contains("none.md: there is no table of bound"));
}
