//! Contract of `temponet tune` and of the scheduler `tuned`: the choice is shown, written, found again and the same
//! each time.

use crate::folder::Folder;

/// An overload in which one long task is in the way of three short ones.
const OVERLOAD: &str = r#"
[[task]]
name = "long"
period = "100ms"
wcet = "60ms"
[[task]]
name = "a"
period = "100ms"
wcet = "30ms"
[[task]]
name = "b"
period = "100ms"
wcet = "30ms"
[[task]]
name = "c"
period = "100ms"
wcet = "30ms"
"#;

#[test]
fn a_tuned_model_carries_the_choice_of_its_set() {
    let folder = Folder::new("tune");
    folder.write("set.toml", OVERLOAD);
    let first = folder.json(&["tune", "set.toml", "--json"]);
    let args = ["tune", "set.toml", "-o", "tuned.safetensors"];
    let text = folder.stdout(&args);
    assert!(text.contains("candidate") && text.contains("is followed"), "{text}");
    assert!(folder.error(&args).contains("tuned.safetensors"), "an existing file is not replaced");
    let shown = folder.json(&["model", "show", "tuned.safetensors", "--json"]);
    assert_eq!((&shown["tuned"]["set"], &shown["tuned"]["choice"]["name"]), (&"set".into(), &first["name"]));
    assert_eq!(shown["tuned"]["choice"]["candidates"], first["candidates"], "the same each time");
    assert!(folder.stdout(&["model", "show", "tuned.safetensors"]).contains("for set: "));
    assert!(folder.stdout(&["model", "show", "built-in"]).contains("for no set"));
    // A tuned model is tuned anew, not asked for its own choice.
    let again = folder.json(&["tune", "set.toml", "--model", "tuned.safetensors", "--json"]);
    assert_eq!(again["candidates"], first["candidates"]);
}

#[test]
fn the_seed_and_the_horizon_are_honoured() {
    let folder = Folder::new("tune-longer");
    folder.write("set.toml", OVERLOAD.replace("wcet = \"60ms\"", "wcet = \"60ms\"\nbcet = \"10ms\"").as_str());
    let tune = |more: &[&str]| folder.json(&[&["tune", "set.toml", "--json"], more].concat());
    let (first, other) = (tune(&[]), tune(&["--seed", "5"]));
    assert_ne!(first["candidates"], other["candidates"]);
    let jobs = |horizon: &str| tune(&["--horizon", horizon])["jobs"].as_u64().unwrap();
    assert!(jobs("100s") > 5 * jobs("10s"));
}

#[test]
fn nothing_is_simulated_where_every_deadline_is_guaranteed() {
    let folder = Folder::new("tune-guaranteed");
    let choice = folder.json(&["tune", "rosace", "--json"]);
    assert_eq!(
        (&choice["why"], &choice["name"], &choice["jobs"]),
        (&"guaranteed".into(), &"network".into(), &0.into())
    );
}

#[test]
fn tuned_is_as_good_as_the_best_simple_scheduler_of_an_overload() {
    let folder = Folder::new("tuned");
    folder.write("set.toml", OVERLOAD);
    let schedulers = "edf,srpt,mh-edf,tuned,shield:tuned";
    let json = folder.json(&["compare", "set.toml", "--schedulers", schedulers, "--horizon", "20s", "--json"]);
    let rows = json["results"].as_array().unwrap();
    let met = |name: &str| rows.iter().find(|row| row["scheduler"] == name).unwrap()["met"].as_u64().unwrap();
    assert_eq!((met("tuned"), met("shield:tuned")), (met("mh-edf"), met("mh-edf")));
    assert!(met("tuned") > met("edf"));
    let is_classical = |name: &str| temponet_lab::roster::kind(name).is_classical();
    assert!(!["tuned", "shield:tuned"].into_iter().any(is_classical), "they are our own");
    assert!(folder.error(&["compare", "set.toml", "--schedulers", "tuned:effort=3"]).contains("it has none"));
}
