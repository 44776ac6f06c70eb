//! Contract of the program: figures are printed, and what is written for other programs can be read.

use crate::folder::Folder;

#[test]
fn bench_sim_prints_its_cases() {
    let folder = Folder::new("bench_sim_prints_its_cases");
    let figures = folder.json(&["bench", "sim", "--case", "edf-1x5", "--jobs", "20000", "--json"]);
    let case = &figures["cases"][0];
    assert_eq!(case["name"], "edf-1x5");
    assert!(case["jobs"].as_u64().unwrap() > 19_000 && case["jobs_per_s"].as_f64().unwrap() > 0.0);
    assert!(case["seconds"].as_f64().unwrap() > 0.0 && case.as_object().unwrap().contains_key("peak_rss_mb"));
    let figures = folder.json(&["bench", "sim", "--case", "compare-all", "--jobs", "400", "--json"]);
    assert!(figures.to_string().contains("compare-all"), "every rule runs: {figures}");
    assert!(folder.error(&["bench", "sim", "--case", "none"]).contains("there is no case \"none\""));
}

#[test]
fn bench_oracle_solves_its_cases_and_writes_them() {
    let folder = Folder::new("bench_oracle_solves_its_cases_and_writes_them");
    let figures = folder.json(&["bench", "oracle", "--case", "one-60", "--instances", "3", "--json"]);
    assert_eq!(figures["cases"][0]["exact"], 1.0);
    folder.stdout(&["bench", "oracle", "--case", "two-40", "--instances", "2", "--write", "lists"]);
    let list = folder.json(&["compare", "lists/two-40-0.csv", "--cores", "2", "--schedulers", "edf", "--json"]);
    assert_eq!(list["clairvoyant"]["released"], 40);
}

#[test]
fn the_command_and_its_parts_have_examples() {
    let folder = Folder::new("the_command_and_its_parts_have_examples");
    for part in ["", "sim", "oracle", "infer", "train"] {
        let call: Vec<&str> = ["bench", part, "--help"].into_iter().filter(|word| !word.is_empty()).collect();
        assert!(folder.stdout(&call).contains("Example"), "{part}");
    }
}

#[test]
fn decisions_of_the_built_in_model_are_timed_part_by_part() {
    let folder = Folder::new("decisions_part_by_part");
    let json = folder.json(&["bench", "infer", "--decisions", "--quick", "--json"]);
    let (cases, shields) = (json["cases"].as_array().unwrap(), json["shield"].as_array().unwrap());
    assert_eq!((cases.len(), shields.len()), (6, 6));
    for (case, shield) in cases.iter().zip(shields) {
        assert_eq!((&case["model"], &case["n"]), (&"built-in".into(), &shield["n"]));
        for (of, part) in
            [(case, "tokens"), (case, "encoder"), (case, "mapping"), (case, "end_to_end"), (shield, "shield")]
        {
            let [best, median] = ["best", "p50"].map(|which| of[format!("{part}_ns_{which}")].as_f64().unwrap());
            assert!(0.0 < best && best <= median, "{part}: {best} {median}");
        }
        assert!(
            case["end_to_end_ns_best"].as_f64() > case["encoder_ns_best"].as_f64().map(|time| time / 2.0),
            "{case}"
        );
    }
    assert!(folder.stdout(&["bench", "infer", "--decisions", "--quick"]).contains("decision"));
    folder.error(&["bench", "infer", "--decisions", "--kernel", "scalar"]);
}

#[test]
fn environments_are_timed_without_a_network_and_show_the_same_every_time() {
    let folder = Folder::new("environments_are_timed");
    let call = |stage: &str| {
        folder.json(&["bench", "train", "--environments", "--stage", stage, "--quick", "--rounds", "1", "--json"])
    };
    let figures = [call("1"), call("1"), call("2")];
    let digests = figures.each_ref().map(|figures| figures["digest"].as_str().unwrap().to_string());
    assert_eq!(digests[0], digests[1]);
    assert_ne!(digests[0], digests[2], "another workload");
    for figures in &figures {
        let sizes: Vec<u64> =
            figures["cases"].as_array().unwrap().iter().map(|case| case["environments"].as_u64().unwrap()).collect();
        assert_eq!(sizes, [1, 64]);
        for case in figures["cases"].as_array().unwrap() {
            let [alone, whole] =
                ["us_per_choice", "us_per_choice_with_episodes"].map(|name| case[name].as_f64().unwrap());
            assert!(0.0 < alone && alone <= whole, "{case}");
        }
        assert!(figures["rows_per_choice"].as_f64().unwrap() > 1.0);
    }
    let text = folder.stdout(&["bench", "train", "--environments", "--quick", "--rounds", "1"]);
    assert!(text.contains("environments in turn") && text.contains("digest"), "{text}");
    assert!(folder.error(&["bench", "train", "--environments", "--stage", "3"]).contains("the recipe has 2"));
}
