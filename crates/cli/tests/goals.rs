//! Contract of the goal of a set: what `compare` ranks by, and `--fail-if`.

use std::process::Command;

fn compare(arguments: &[&str]) -> (Option<i32>, String, String) {
    let command = Command::new(env!("CARGO_BIN_EXE_temponet")).arg("compare").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (command.status.code(), text(command.stdout), text(command.stderr))
}

/// Returns a set with a critical task that leaves no time for both of two other tasks.
fn set() -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    let text = "[[task]]\nname = \"brake\"\nperiod = 10\nwcet = 6\ncriticality = 1\n\
        [[task]]\nname = \"log\"\nperiod = 10\nwcet = 3\n[[task]]\nname = \"stats\"\nperiod = 10\nwcet = 3\n";
    std::fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn the_goal_is_shown_and_can_be_led_by_another_aim() {
    let set = set();
    let path = set.path().to_str().unwrap();
    let (code, table, _) = compare(&[path, "--schedulers", "srpt,muf"]);
    assert_eq!(code, Some(0));
    assert!(table.contains("goal: critical jobs, then jobs in time"), "{table}");
    assert!(table.contains("muf serves the goal best: 100.00% of the critical jobs"), "{table}");
    let (_, table, _) = compare(&[path, "--schedulers", "srpt,muf", "--rank-by", "met"]);
    let place = |name: &str| table.find(&format!("\n{name} ")).unwrap();
    assert!(place("srpt") <= place("muf") && table.contains("goal: jobs in time, then critical jobs"), "{table}");
    let (code, _, error) = compare(&[path, "--rank-by", "speed"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("critical, chains, mk, value, met, worst-task"), "{error}");
}

#[test]
fn fail_if_ends_with_exit_code_one_and_says_why() {
    let set = set();
    let path = set.path().to_str().unwrap();
    let (code, table, error) = compare(&[path, "--schedulers", "srpt,muf", "--fail-if", "srpt:critical<100%"]);
    assert_eq!((code, table.contains("scheduler")), (Some(1), true), "the table is there all the same");
    assert_eq!(error, "failed: srpt:critical<100%: critical of srpt is 0.00%\n");
    let all = [
        "--fail-if",
        "srpt:critical.1<1",
        "--fail-if",
        "met>1%",
        "--fail-if",
        "srpt:task.log<1",
        "--fail-if",
        "srpt:task.brake<1",
    ];
    let (code, _, error) = compare(&[&[path, "--schedulers", "srpt,muf"], &all[..]].concat());
    let expected = "failed: srpt:critical.1<1: critical.1 of srpt is 0.00%\nfailed: met>1%: met of muf is 33.33%\n\
        failed: srpt:task.brake<1: task.brake of srpt is 0.00%\n";
    assert_eq!((code, error.as_str()), (Some(1), expected), "all that hold are named, and no other");
    for (wrong, why) in [
        ("critical.2<1", "no task has criticality 2"),
        ("task.brak<1", "there is no task \"brak\"; did you mean \"brake\"?"),
    ] {
        let (code, _, error) = compare(&[path, "--schedulers", "srpt", "--fail-if", wrong]);
        assert_eq!((code, error.contains(why)), (Some(2), true), "{error}");
    }
    let (code, ..) = compare(&[path, "--schedulers", "srpt,muf", "--fail-if", "critical<100%"]);
    assert_eq!(code, Some(0), "the best one meets them all");
    let (code, _, error) = compare(&[path, "--schedulers", "muf", "--fail-if", "edf:met<1"]);
    assert_eq!((code, error.contains("no result of edf")), (Some(2), true), "{error}");
    let (code, _, error) = compare(&["standard-125", "--schedulers", "edf", "--fail-if", "critical<100%"]);
    assert_eq!((code, error.contains("no task is critical")), (Some(2), true), "a check of nothing: {error}");
    let (code, _, error) = compare(&["standard-125", "--schedulers", "edf", "--rank-by", "mk"]);
    assert_eq!((code, error.contains("no task has an (m,k) constraint")), (Some(2), true), "{error}");
}

#[test]
fn figures_of_the_optimum_that_no_schedule_has_together_are_bounds() {
    let set = set();
    let path = set.path().to_str().unwrap();
    let (_, table, _) = compare(&[path, "--schedulers", "muf"]);
    assert!(table.contains("clairvoyant bound") && table.contains("≤66.67%"), "{table}");
    // The optimum does not pay for context switches.
    let (_, table, _) = compare(&["standard-125", "--schedulers", "edf", "--switch-cost", "90ms"]);
    assert!(table.contains("clairvoyant bound") && table.contains("a switch costs 90ms"), "{table}");
}

#[test]
fn the_table_of_chains_has_every_scheduler_that_was_asked_for() {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    let text = "[[task]]\nname = \"a\"\nperiod = 10\nwcet = 2\n[[task]]\nname = \"b\"\nafter = [\"a\"]\nwcet = 2\n\
        [[chain]]\nname = \"path\"\ntasks = [\"a\", \"b\"]\ndeadline = 9\n";
    std::fs::write(file.path(), text).unwrap();
    let names = ["edf", "edf-chain", "hlfet", "srpt", "rm", "dm"];
    let (_, table, _) = compare(&[file.path().to_str().unwrap(), "--schedulers", &names.join(",")]);
    let rows = table.lines().filter(|line| line.starts_with("path (within 9ms)")).count();
    assert_eq!(rows, names.len(), "{table}");
}
