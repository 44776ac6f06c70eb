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
