//! Contract of `generate` and `sweep`: random sets are those that were asked for, and all of them run.

use crate::folder::Folder;

#[test]
fn generate_draws_the_set_that_was_asked_for() {
    let folder = Folder::new("generate");
    let args = ["generate", "--tasks", "12", "--utilization", "3.5", "--cores", "4", "-o"];
    folder.stdout(&[&args[..], &["a.toml"]].concat());
    folder.stdout(&[&args[..], &["b.toml"]].concat());
    assert_eq!(folder.read("a.toml"), folder.read("b.toml"), "the same seed");
    let report = folder.json(&["compare", "a.toml", "--schedulers", "edf,dp-wrap", "--json"]);
    assert!((report["utilization"].as_f64().unwrap() - 3.5).abs() < 1e-2 && report["cores"] == 4);
    let best = &report["results"][0];
    assert_eq!(best["missed"], 0, "{best}");
    assert!(folder.error(&[&args[..], &["a.toml"]].concat()).contains("exists already"));
    let too_much = ["generate", "--tasks", "2", "--utilization", "2.5", "-o", "c.toml"];
    assert!(folder.error(&too_much).contains("at most 2"));
    let wrong = ["generate", "--tasks", "2", "--utilization", "1", "--periods", "log:9ms,3ms", "-o", "c.toml"];
    assert!(folder.error(&wrong).contains("the smaller first"));
    assert_eq!(folder.files(), ["a.toml", "b.toml"]);
}

#[test]
fn generated_sets_of_every_kind_run() {
    let folder = Folder::new("generate-kinds");
    let kinds: [&[&str]; 8] = [
        &["--method", "waters2015"],
        &["--method", "unc:bimo-heavy", "--periods", "uni-short"],
        &["--tasks", "6", "--method", "capped:0.5"],
        &["--tasks", "6", "--wcets", "uniform:10ms,50ms"],
        &["--tasks", "6", "--periods", "pareto:2,10ms"],
        &["--tasks", "6", "--burst", "10,10ms,20ms,1s,0.4"],
        &["--tasks", "6", "--modes", "low=0.5@0s,burst=2@1s,high=1.5@2s"],
        &["--tasks", "6", "--deadlines", "slack:0.5,1", "--bcet", "0.2", "--critical", "0.5", "--critical-factor", "2"],
    ];
    for (index, kind) in kinds.into_iter().enumerate() {
        let file = format!("{index}.toml");
        let args = [&["generate", "--utilization", "1.6", "--cores", "2", "-o", &file], kind].concat();
        folder.stdout(&args);
        let report = folder.json(&["compare", &file, "--horizon", "3s", "--schedulers", "edf,mh-edf", "--json"]);
        assert!(report["results"][0]["released"].as_u64() > Some(100), "{kind:?}");
    }
    for (wrong, message) in [
        (["--method", "unc:heavy"], "bimo-heavy"),
        (["--method", "capped:2"], "from 0.000000001 to 1"),
        (["--modes", "low=1@2s,high=2@1s"], "after the one before"),
        (["--burst", "10,10ms"], "JOBS,DEADLINE"),
    ] {
        let args = [&["generate", "--tasks", "4", "--utilization", "1", "-o", "x.toml"], &wrong[..]].concat();
        assert!(folder.error(&args).contains(message), "{wrong:?}");
    }
    let coarse = ["generate", "--tasks", "5", "--utilization", "0.8", "--granularity", "200ms", "-o", "x.toml"];
    assert!(folder.error(&coarse).contains("makes the total utilization 5"));
    let endless = ["generate", "--tasks", "5", "--utilization", "0.8", "--modes", "a=1e300@0s", "-o", "x.toml"];
    assert!(folder.error(&endless).contains("times as long"));
    let mixed = ["generate", "--method", "waters2015", "--periods", "uni-short", "--utilization", "1", "-o", "x.toml"];
    assert!(folder.error(&mixed).contains("of its own"));
}

#[test]
fn a_sweep_runs_over_cores_and_tasks_too() {
    let folder = Folder::new("sweep-grid");
    let args = "sweep --loads 0.8,1.2 --cores 1,2 --tasks 4,8 --sets 2 --jobs 100 --schedulers edf,d-over -o s.csv";
    let args: Vec<&str> = args.split(' ').chain(["--report", "s.html"]).collect();
    let with_parquet = [&args[..], &["--parquet", "s.parquet"]].concat();
    if cfg!(feature = "parquet") {
        folder.stdout(&with_parquet);
        assert_eq!(&folder.bytes("s.parquet")[..4], b"PAR1");
    } else {
        assert!(folder.error(&with_parquet).contains("--features parquet"));
    }
    let report = folder.json(&[&args[..], &["--json"]].concat());
    let lengths = [0, 1].map(|at| report["curves"][at]["points"].as_array().unwrap().len());
    assert_eq!(lengths, [8, 4], "d-over runs on one core only");
    assert_eq!(folder.read("s.csv").lines().count(), 1 + 2 * (3 * 8 + 4));
    assert!(folder.read("s.html").contains("2 cores, 8 tasks"));
    assert!(folder.error(&["sweep", "--cores", "2,x", "-o", "t.csv"]).contains("whole numbers"));
}

#[test]
fn a_sweep_goes_on_where_it_stopped() {
    let folder = Folder::new("sweep");
    let args = [
        "sweep",
        "--loads",
        "0.8:1.2:0.2",
        "--sets",
        "5",
        "--jobs",
        "200",
        "--schedulers",
        "edf,mh-edf,d-over",
        "-o",
        "s.csv",
    ];
    folder.stdout(&[&args[..], &["--plot", "s.svg"]].concat());
    let whole = folder.read("s.csv");
    assert_eq!(whole.lines().count(), 1 + 3 * 5 * (3 + 2), "three schedulers and the optimum's two bounds");
    let columns = whole.lines().next().unwrap().split(',').count();
    assert!(whole.lines().all(|line| line.split(',').count() == columns), "any program reads it");
    assert!(folder.read("s.svg").contains("mh-edf"));
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(String::from).collect();
        lines.sort();
        lines
    };
    // Wherever the file is cut off, incomplete sets are run again and complete ones are kept.
    let first_rows = whole.lines().take(2).map(|line| line.len() + 1).sum::<usize>();
    for cut in [whole.len() * 2 / 3, whole.len() - 2, first_rows, first_rows - 2] {
        folder.write("s.csv", &whole[..cut]);
        folder.stdout(&args);
        assert_eq!(sorted(&folder.read("s.csv")), sorted(&whole), "cut at {cut}");
    }
    folder.stdout(&[&args[..], &["--plot", "s.html"]].concat());
    assert!(folder.read("s.html").starts_with("<!doctype html>"));
    let report = folder.json(&[&args[..], &["--json"]].concat());
    let points = report["curves"][0]["points"].as_array().unwrap();
    assert_eq!((points.len(), points[0]["acceptance"].as_f64()), (3, Some(1.0)), "EDF meets all at 0.8");
    // A file with other options is not continued.
    let other = [&args[..], &["--seed", "2"]].concat();
    assert!(folder.error(&other).contains("not made with these options"));
    assert_eq!(sorted(&folder.read("s.csv")), sorted(&whole));
    // Nor is one that has more than this sweep: its rows would be lost.
    let fewer = args.map(|arg| if arg == "0.8:1.2:0.2" { "0.8" } else { arg });
    assert!(folder.error(&fewer).contains("would be lost"));
    assert!(folder.error(&args.map(|arg| if arg == "5" { "2" } else { arg })).contains("would be lost"));
    assert_eq!(sorted(&folder.read("s.csv")), sorted(&whole));
    assert!(folder.error(&["sweep", "--loads", "1:0:1", "-o", "t.csv"]).contains("FROM:TO:STEP"));
}

#[test]
fn generated_sets_can_have_every_property() {
    let folder = Folder::new("variety");
    let call = |variety: &'static str, file: &'static str| {
        vec!["generate", "--tasks", "8", "--utilization", "1.5", "--cores", "2", "--variety", variety, "-o", file]
    };
    folder.stdout(&call("sporadic,values,told", "varied.toml"));
    let text = folder.read("varied.toml");
    assert!(text.contains("kind = \"sporadic\"") && text.contains("value = "), "{text}");
    let lists = ["generate", "--tasks", "8", "--utilization", "0.8", "--variety", "execution,lists", "-o", "jobs.csv"];
    folder.stdout(&lists);
    assert!(folder.read("jobs.csv").contains("release_ns"));
    for seed in ["1", "2", "3", "4", "5", "6", "7", "8"] {
        folder.stdout(&[&call("wide", "wide.toml")[..], &["--seed", seed, "--force"]].concat());
        folder.stdout(&["simulate", "wide.toml", "--scheduler", "edf"]);
    }
    assert!(folder.error(&call("jiter", "wrong.toml")).contains("\"jiter\" is none of sporadic, bursts"));
}
