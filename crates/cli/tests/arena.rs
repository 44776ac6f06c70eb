//! Contract of `arena`: scores stand beside the optimum, and both versions are listed.

use crate::folder::Folder;

#[test]
fn the_arena_prints_scores_beside_the_optimum() {
    let folder = Folder::new("arena");
    let schedulers = "edf,mh-edf,temponet,d-over";
    let call = ["arena", "--quick", "--scenario", "standard-sets", "--schedulers", schedulers, "--model", "random:1"];
    let with = |more: &[&'static str]| [&call[..], more].concat();
    let json = folder.json(&with(&["--json"]));
    assert_eq!(json, folder.json(&with(&["--json"])), "the same every time");
    let scenario = &json["scenarios"][0];
    assert_eq!((&scenario["name"], &scenario["goal"]), (&"standard-sets".into(), &"met".into()));
    let schedulers = scenario["schedulers"].as_array().unwrap();
    let names: Vec<&str> = schedulers.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"temponet (untrained)") && names.len() == 4, "{names:?}");
    let upper = scenario["clairvoyant"]["upper"].as_f64().unwrap();
    assert_eq!(scenario["clairvoyant"]["exact"], true);
    for row in schedulers {
        let score = row["score"].as_f64().unwrap();
        assert!(score <= upper && row["compliance"] == row["score"] && row["ci95"].is_f64(), "{row}");
    }
    assert_eq!(scenario["best_classical"], "mh-edf");
    assert!(scenario["paired_delta"]["mean"].as_f64().unwrap() <= 0.0 && scenario["paired_delta"]["ci95"].is_f64());
    assert_eq!(
        ["below", "level", "undecided", "above"].map(|key| json["summary"][key].as_u64().unwrap()).iter().sum::<u64>(),
        1
    );
    let classical = folder.json(&["arena", "--scenario", "standard-sets", "--schedulers", "edf", "--json"]);
    assert!(classical["scenarios"][0]["paired_delta"].is_null() && classical["summary"].is_null());
    let text = folder.stdout(&with(&["--report", "arena.html"]));
    assert!(text.contains("clairvoyant optimum") && text.contains("temponet (untrained)"), "{text}");
    assert!(folder.read("arena.html").contains("id=\"standard-sets\""));
    let markdown = folder.stdout(&with(&["--markdown"]));
    assert!(markdown.contains("| standard-sets | ") && !markdown.contains("| temponet |"), "{markdown}");
    let error = folder.error(&["arena", "--scenario", "one-cores"]);
    assert!(error.contains("there is no scenario \"one-cores\"") && error.contains("one-core, one-core-overload"));
    assert!(folder.error(&["arena", "--schedulers", "eddf"]).contains("did you mean"));
}

#[test]
fn the_versions_of_the_arena_are_listed_and_hold_rivals_and_levels() {
    let folder = Folder::new("arena2");
    let listed = |version: &'static str| folder.json(&["arena", "--version", version, "--list", "--json"]);
    let (first, second, all) = (listed("1"), listed("2"), listed("all"));
    let count = |list: &serde_json::Value| list.as_array().unwrap().len();
    assert_eq!((count(&first), count(&second), count(&all)), (21, 43, 64));
    assert!(second.as_array().unwrap().iter().all(|scenario| scenario["arena"] == 2));
    let text = folder.stdout(&["arena", "--version", "2", "--list"]);
    assert!(text.contains("video-frames           version 2  held out  value"), "{text}");
    assert!(folder.error(&["arena", "--version", "3"]).contains("[possible values: 1, 2, all]"));
    let schedulers = "edf,muf,look-ahead,temponet";
    let call = ["arena", "--quick", "--scenario", "far-labels", "--schedulers", schedulers, "--model", "random:1"];
    let json = folder.json(&[&call[..], &["--json", "--planner-sets", "2"]].concat());
    let scenario = &json["scenarios"][0];
    assert_eq!((&scenario["held_out"], &scenario["goal"]), (&true.into(), &"critical".into()));
    let rows = scenario["schedulers"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["levels"].as_array().unwrap().len() == 3), "{rows:?}");
    assert!(rows.iter().all(|row| row["scores"].as_array().unwrap().len() == 5 && row["sets"].is_null()));
    assert_eq!(scenario["best_classical"], "muf");
    assert!(scenario["other_delta"]["mean"].is_f64() && scenario["planner"].is_null());
    assert!(scenario["sets_with_fewer_critical"].is_u64() && json["summary"]["critical"] == 1);
    let more = folder.json(&["arena", "--quick", "--scenario", "two-tasks", "--schedulers", "edf,all,edf", "--json"]);
    let names =
        more["scenarios"][0]["schedulers"].as_array().unwrap().iter().filter(|row| row["name"] == "edf").count();
    assert_eq!(names, 1);
}
