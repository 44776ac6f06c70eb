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
fn an_unknown_experiment_is_an_error_that_lists_them() {
    let folder = Folder::new("an_unknown_experiment_is_an_error_that_lists_them");
    let error = folder.error(&["reproduce", "E99", "--cache", "kept"]);
    assert!(error.contains("\"E99\"") && error.contains("E1, E2") && error.contains("bound"), "{error}");
    assert!(folder.files().is_empty(), "nothing is begun");
    assert!(folder.error(&["reproduce", "counter-example"]).contains("did you mean \"counterexample\"?"));
}

#[test]
fn the_commands_of_temponet_are_there_too() {
    let folder = Folder::new("the_commands_of_temponet_are_there_too");
    assert!(folder.stdout(&["compare", "rosace", "--schedulers", "edf", "--no-oracle"]).contains("edf"));
    assert!(folder.stdout(&["reproduce", "--help"]).contains("temponet reproduce E1"));
    assert!(folder.stdout(&["completions", "bash"]).contains("--smallest"), "the options of the added command");
}
