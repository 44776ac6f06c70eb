//! Contract of the learned scheduler on the command line: it is explained, and its model is a file like others.

use crate::folder::Folder;

#[test]
fn a_run_of_the_learned_scheduler_is_explained() {
    let folder = Folder::new("explain-run");
    let args = ["explain", "standard-125", "--model", "random:1", "--run", "--horizon", "3s"];
    let found = folder.json(&[&args[..], &["--json", "--report", "run.html"]].concat());
    let run = &found["run"];
    let share = |value: &serde_json::Value| (0.0..=1.0).contains(&value.as_f64().unwrap());
    assert!(run["decisions"].as_u64().unwrap() > 50 && share(&run["alignment"]), "{run}");
    assert_eq!((run["entropy_bits"].as_array().unwrap().len(), run["top_k_alignment"][1]["k"].as_u64()), (2, Some(3)));
    assert_eq!(run["agreement"][1]["scheduler"], "srpt");
    assert!(run["agreement"].as_array().unwrap().iter().all(|of| share(&of["all"]) && share(&of["contested"])));
    let weights = [&run["rule"]["alpha"], &run["rule"]["beta"]].map(|weight| weight.as_f64().unwrap());
    assert!((weights[0] + weights[1] - 1.0).abs() < 1e-9, "{weights:?}");
    let text = folder.stdout(&args);
    assert!(text.contains("top-3 alignment") && text.contains("same as edf") && text.contains("untrained"), "{text}");
    let page = String::from_utf8(folder.bytes("run.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("NaN") && page.contains("layer 2"));
    assert!(folder.error(&["explain", "--model", "random:1", "--run", "--at", "5ms"]).contains("cannot be used with"));
    let beyond = folder.error(&["explain", "standard-125", "--horizon", "3s", "--at", "999999s"]);
    assert!(beyond.starts_with("error: --at 999999s is beyond the horizon of 3s"), "{beyond}");
}

#[test]
fn the_learned_scheduler_runs_without_its_shield_if_asked() {
    let folder = Folder::new("no-shield");
    let model = ["gap-avionics", "--horizon", "2s", "--model", "random:1", "--json"];
    let simulated = |scheduler: &str, more: &[&str]| {
        folder.json(&[&["simulate"], &model[..], &["--scheduler", scheduler], more].concat())
    };
    let (shielded, open) = (simulated("temponet", &[]), simulated("temponet", &["--no-shield"]));
    assert_eq!(open["scheduler"], "temponet-unshielded (untrained)");
    assert_eq!(open, simulated("temponet-unshielded", &[]));
    assert_eq!(shielded["missed"], 0);
    assert!(open["missed"].as_u64().unwrap() > 0 && open.get("shield_overrides").is_none());
    let list = ["--schedulers", "temponet,edf,temponet-unshielded", "--no-shield"];
    let compared = folder.json(&[&["compare"], &model[..], &list].concat());
    let names: Vec<&str> =
        compared["results"].as_array().unwrap().iter().map(|row| row["scheduler"].as_str().unwrap()).collect();
    assert_eq!(names, ["edf", "temponet-unshielded (untrained)"]);
    let explained = folder.json(&[&["explain"], &model[..], &["--no-shield"]].concat());
    assert_eq!((&explained["shield"], &explained["done"]), (&false.into(), &explained["wanted"]));
    let text = folder.stdout(&["explain", "gap-avionics", "--model", "random:1", "--no-shield"]);
    assert!(text.contains("no shield was asked"), "{text}");
}

#[test]
fn a_model_can_be_written_shown_run_and_explained() {
    let folder = Folder::new("model");
    folder.stdout(&["model", "new", "random:7", "-o", "m.safetensors"]);
    assert!(folder.error(&["model", "new", "random:7", "-o", "m.safetensors"]).contains("exists already"));
    let shown = folder.json(&["model", "show", "m.safetensors", "--json"]);
    assert_eq!((shown["untrained"].as_bool(), shown["architecture"]["width"].as_u64()), (Some(true), Some(128)));
    assert!(folder.stdout(&["model", "show", "m.safetensors"]).contains("seed 7"));
    // Random weights are never reported as TempoNet's result, neither from a file nor by name.
    let run = |model: &str| {
        let args =
            ["compare", "democar", "--horizon", "200ms", "--schedulers", "edf,temponet-unshielded", "--model", model];
        folder.json(&[&args[..], &["--runs", "2", "--json"]].concat())
    };
    let (from_file, by_name) = (run("m.safetensors"), run("random:7"));
    assert_eq!(from_file["results"], by_name["results"]);
    let rows = from_file["results"].as_array().unwrap();
    let row = rows.iter().find(|row| row["scheduler"] == "temponet-unshielded (untrained)").unwrap();
    assert_eq!(row["fallbacks"], 0);
    // Files that are truncated, damaged or of another kind are rejected.
    let bytes = folder.bytes("m.safetensors");
    let cases: [(&str, Vec<u8>, &str); 3] = [
        ("cut.safetensors", bytes[..bytes.len() / 2].to_vec(), "not a whole safetensors file"),
        ("damaged.safetensors", [&bytes[..bytes.len() - 1], &[bytes[bytes.len() - 1] ^ 64]].concat(), "checksum"),
        ("other.safetensors", b"hello".to_vec(), "not a whole safetensors file"),
    ];
    for (name, content, message) in cases {
        std::fs::write(folder.0.join(name), content).unwrap();
        assert!(folder.error(&["model", "show", name]).contains(message), "{name}");
    }
    // The built-in model is the default, and it is trained.
    let shown = folder.json(&["model", "show", "built-in", "--json"]);
    assert_eq!(shown["untrained"].as_bool(), Some(false), "{shown}");
    let built_in = folder.json(&["compare", "standard-125", "--schedulers", "edf,mh-edf,temponet", "--json"]);
    let met = |name: &str| {
        let rows = built_in["results"].as_array().unwrap();
        rows.iter().find(|row| row["scheduler"] == name).unwrap()["met"].as_u64().unwrap()
    };
    assert!(met("temponet") > met("edf") && met("temponet") == met("mh-edf"));
    // The metadata of a model can be changed, its weights cannot.
    folder.stdout(&["model", "note", "m.safetensors", "--provenance", "mine", "-o", "noted.safetensors"]);
    let noted = folder.json(&["model", "show", "noted.safetensors", "--json"]);
    assert_eq!(noted["provenance"].as_str(), Some("mine"));
    for (name, slack) in [
        ("random-raw:1", "continuous, as it is"),
        ("random-mlp:1", "continuous, through a hidden layer of 64"),
        ("random-paper:1", "128 bins"),
    ] {
        assert!(folder.stdout(&["model", "show", name]).contains(slack), "{name}");
        let text = folder.stdout(&["explain", "--model", name, "--at", "100ms"]);
        assert!(text.contains("the network wanted") || text.contains("The network would have "), "{text}");
    }
    assert!(folder.error(&["compare", "--model", "random:x"]).contains("whole number"));
    let args = ["explain", "standard-125", "--model", "m.safetensors", "--at", "100ms"];
    let decision = folder.json(&[&args[..], &["--json", "--report", "d.html"]].concat());
    let jobs = decision["decision"]["jobs"].as_array().unwrap();
    let q: Vec<f64> = jobs.iter().map(|job| job["q"].as_f64().unwrap()).collect();
    assert!(jobs.len() >= 2 && q.windows(2).all(|pair| pair[0] >= pair[1]), "the best first: {q:?}");
    assert_eq!(decision["decision"]["attention"].as_array().unwrap().len(), 2 * 4);
    assert!(folder.read("d.html").matches("<figure>").count() == 8);
    assert!(folder.stdout(&args).contains("EDF would have"));
    assert!(folder.error(&["explain", "--model", "random:1", "--at", "1000s"]).contains("is beyond the horizon of "));
}
