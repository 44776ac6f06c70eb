//! Contract of advice: on one set every command names the same scheduler and who decides in it, and says what that
//! rests on.

use serde_json::Value;

use crate::folder::Folder;

/// Two levels of criticality that the shield cannot all guarantee, on one overloaded core with uncertain times.
const LEVELS: &str = r#"
[[task]]
name = "brake"
period = "20ms"
wcet = "9ms"
bcet = "2ms"
criticality = 2
[[task]]
name = "steer"
period = "30ms"
wcet = "14ms"
bcet = "3ms"
criticality = 1
[[task]]
name = "log"
period = "50ms"
wcet = "20ms"
bcet = "4ms"
"#;

/// Overload without critical tasks.
const OVERLOAD: &str = r#"
[[task]]
name = "long"
period = "100ms"
wcet = "60ms"
bcet = "20ms"
[[task]]
name = "a"
period = "70ms"
wcet = "30ms"
bcet = "5ms"
[[task]]
name = "b"
period = "50ms"
wcet = "30ms"
bcet = "5ms"
"#;

/// A robot on four cores with a chain, a lock and a job that is not preempted. At the wcet it is overloaded.
const ROBOT: &str = r#"
cores = 4
[[task]]
name = "imu"
period = "5ms"
bcet = "0.3ms"
wcet = "0.6ms"
criticality = 2
[[task]]
name = "motor"
period = "5ms"
deadline = "4ms"
wcet = "0.9ms"
criticality = 2
section = [{ resource = "can", at = "0.4ms", length = "0.2ms" }]
[[task]]
name = "lidar"
period = "50ms"
bcet = "10ms"
wcet = "22ms"
criticality = 1
[[task]]
name = "fuse"
after = ["lidar"]
deadline = "60ms"
bcet = "3ms"
wcet = "8ms"
criticality = 1
[[task]]
name = "plan"
after = ["fuse"]
deadline = "100ms"
bcet = "5ms"
wcet = "20ms"
[[task]]
name = "camera"
period = "33ms"
bcet = "8ms"
wcet = "24ms"
[[task]]
name = "dnn"
period = "66ms"
bcet = "25ms"
wcet = "45ms"
preemption = "none"
[[task]]
name = "slam"
period = "100ms"
bcet = "30ms"
wcet = "85ms"
[[task]]
name = "costmap"
period = "40ms"
bcet = "8ms"
wcet = "20ms"
section = [{ resource = "can", at = "5ms", length = "1ms" }]
[[task]]
name = "logger"
period = "100ms"
bcet = "10ms"
wcet = "60ms"
[[task]]
name = "voice"
kind = "sporadic"
period = "150ms"
bcet = "30ms"
wcet = "90ms"
[[chain]]
name = "see"
tasks = ["lidar", "fuse", "plan"]
deadline = "100ms"
"#;

fn decider(report: &Value) -> &str {
    report["decider"]["name"].as_str().unwrap_or_else(|| panic!("nobody decides: {report}"))
}

fn of_temponet(comparison: &Value) -> &Value {
    comparison["results"].as_array().unwrap().iter().find(|row| row["scheduler"] == "temponet").unwrap()
}

#[test]
fn every_command_names_the_same_winner_and_the_same_decider() {
    let folder = Folder::new("advice");
    folder.write("levels.toml", LEVELS);
    folder.write("overload.toml", OVERLOAD);
    let candidates = "temponet,edf,srpt,mh-edf,muf,dios,look-ahead:caution=0:capacity=0.85";
    for set in ["levels.toml", "overload.toml", "robot", "gap-avionics", "standard-145"] {
        let tuned = folder.json(&["tune", set, "--json"]);
        let name = decider(&tuned);
        let compared = folder.json(&["compare", set, "--schedulers", candidates, "--no-oracle", "--json"]);
        assert_eq!(decider(of_temponet(&compared)), name, "{set}");
        assert_eq!(decider(&folder.json(&["explain", set, "--json"])), name, "{set}");
        let simulated = folder.json(&["simulate", set, "--scheduler", "temponet", "--horizon", "200ms", "--json"]);
        assert_eq!(decider(&simulated), name, "{set}");
        // The best scheduler is the one that tuning follows, behind its shield or bare, or it cannot be told from it.
        let advice = &compared["advice"];
        let best = advice["best"].as_str().unwrap();
        let is_level = |one: &str| advice["level_with"].as_array().unwrap().iter().any(|level| level == one);
        assert!(best == "temponet" || best == name || is_level("temponet"), "{set}: {advice}");
        if best == "temponet" {
            assert_eq!(decider(advice), name, "{set}");
        }
        let evidence = &advice["evidence"];
        assert!(evidence["runs"].as_u64() >= Some(1) && evidence["jobs"].as_u64() > Some(100), "{set}: {evidence}");
        let sentences = advice["sentences"].as_array().unwrap();
        let joined: Vec<&str> = sentences.iter().map(|sentence| sentence.as_str().unwrap()).collect();
        assert_eq!(compared["verdict"], joined.join(" "), "the verdict is the advice");
        // Whoever decides is named in text, too: in the table, and in the first line of an explanation.
        let (short, _) = name.split_once(':').unwrap_or((name, ""));
        let table = folder.stdout(&["compare", set, "--schedulers", "edf,temponet", "--no-oracle", "--runs", "2"]);
        assert!(table.contains(&format!("\ntemponet ({short}) ")), "{set}: {table}");
        let spoken = if name == "network" { "the network" } else { name };
        let explained = folder.stdout(&["explain", set]);
        assert!(explained.lines().next().unwrap().starts_with(&format!("In temponet, {spoken}")), "{explained}");
        assert!(folder.stdout(&["tune", set]).contains(&format!("{spoken} ")), "{set}");
    }
}

/// Whoever reads the verdict finds the recommended scheduler in the first row, and all that are named in the table.
#[test]
fn the_verdict_is_about_the_first_row_and_names_nobody_who_is_not_in_the_table() {
    let folder = Folder::new("advice-table");
    folder.write("robot.toml", ROBOT);
    let args = ["compare", "robot.toml", "--no-oracle", "--runs", "4", "--horizon", "6s"];
    let (json, text) = (folder.json(&[&args[..], &["--json"]].concat()), folder.stdout(&args));
    let results = json["results"].as_array().unwrap();
    assert_eq!(json["advice"]["best"], results[0]["scheduler"]);
    let (table, verdict) = text.rsplit_once("\n\n").unwrap();
    let is_shown = |name: &str| {
        let mut words = table.split(|sign: char| sign.is_whitespace() || sign == ',');
        words.any(|word| word == name)
    };
    let named: Vec<&str> = results.iter().map(|row| row["scheduler"].as_str().unwrap()).collect();
    // Names that are English words are left out.
    let is_named = |name: &&&str| {
        let mut words = verdict.split(|sign: char| !(sign.is_alphanumeric() || sign == '-'));
        !["run", "red"].contains(*name) && words.any(|word| word == **name)
    };
    let missing: Vec<&&str> = named.iter().filter(is_named).filter(|name| !is_shown(name)).collect();
    assert!(missing.is_empty(), "{missing:?} in {text}");
}

/// A network that may be ahead by chance is not followed where chains count.
#[test]
fn where_chains_count_the_network_is_followed_with_certainty_only() {
    let folder = Folder::new("advice-chains");
    folder.write("robot.toml", ROBOT);
    let tuned = folder.json(&["tune", "robot.toml", "--json"]);
    let candidates = tuned["candidates"].as_array().unwrap();
    let of = |name: &str| candidates.iter().find(|row| row["name"] == name).unwrap();
    let pairs = |row: &Value| -> Vec<(f64, f64)> {
        let numbers = |key: &str| row[key].as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect::<Vec<_>>();
        numbers("differences").into_iter().zip(numbers("difference_errors")).collect()
    };
    let network = pairs(of("network")).into_iter().find(|(difference, error)| difference.abs() > *error);
    let is_certain = network.is_some_and(|(difference, error)| difference > 2.0 * error);
    assert_eq!(tuned["name"] == "network", is_certain, "{network:?} {}", tuned["verdict"]);
    // No simple candidate of the final is likely to be ahead of the best one in what counts most.
    let best = of(tuned["best_simple"].as_str().unwrap());
    let last = candidates.iter().filter(|row| row["name"] != "network" && row["blocks"] == best["blocks"]);
    for row in last {
        let first = pairs(row).into_iter().find(|(difference, error)| difference.abs() > error.max(1e-9));
        assert!(first.is_none_or(|(difference, _)| difference < 0.0), "{row}");
    }
}

/// Callbacks of a robot on which one simple scheduler is so far ahead that no other comes into the final.
const CROWDED: &str = r#"
cores = 4
costs = { context_switch = "5us", migration = "20us" }
task = [
    { name = "imu", period = "5ms", wcet = "1ms" },
    { name = "motor", period = "5ms", wcet = "1.5ms", criticality = 3 },
    { name = "odom", period = "20ms", wcet = "4ms", bcet = "1ms", criticality = 2, section = [
        { resource = "tf", at = "1ms", length = "1ms" }] },
    { name = "lidar", period = "50ms", wcet = "15ms", bcet = "5ms" },
    { name = "camera", period = "33ms", wcet = "10ms", bcet = "4ms" },
    { name = "detect", after = "camera", wcet = "30ms", preemption = "none", deadline = "60ms" },
    { name = "fusion", after = "detect", wcet = "6ms", bcet = "2ms", deadline = "66ms", section = [
        { resource = "tf", at = "1ms", length = "2ms" }] },
    { name = "local", period = "50ms", wcet = "25ms", bcet = "8ms", reads = [
        "fusion", "lidar"], criticality = 1, section = [
        { resource = "tf", at = "0ms", length = "3ms" }] },
    { name = "slam", period = "100ms", wcet = "70ms", bcet = "30ms", section = [
        { resource = "tf", at = "5ms", length = "4ms" }] },
    { name = "ctrl", period = "10ms", wcet = "2ms", reads = "local", criticality = 3 },
    { name = "voice", period = "200ms", wcet = "120ms", bcet = "20ms", kind = "sporadic" },
]
chain = [{ name = "see-act", tasks = ["camera", "detect", "fusion", "local", "ctrl"], deadline = "200ms" }]
"#;

#[test]
fn a_single_finalist_has_its_figures() {
    let folder = Folder::new("advice-finalist");
    folder.write("crowded.toml", CROWDED);
    let tuned = folder.json(&["tune", "crowded.toml", "--json"]);
    let measures = tuned["measures"].as_array().unwrap().len();
    for row in tuned["candidates"].as_array().unwrap() {
        assert!(row["blocks"].as_u64() > Some(0) && row["scores"].as_array().unwrap().len() == measures, "{row}");
    }
    let text = folder.stdout(&["tune", "crowded.toml"]);
    assert!(text.contains(tuned["name"].as_str().unwrap()), "{text}");
}

/// An explanation is of the run that `simulate` shows, also where a simple scheduler decides.
#[test]
fn an_explanation_shows_the_state_of_the_run_that_is_decided() {
    let folder = Folder::new("advice-explained");
    folder.write("levels.toml", &LEVELS.replace("wcet = \"20ms\"", "wcet = \"40ms\""));
    let run = ["simulate", "levels.toml", "--scheduler", "temponet", "--horizon", "2s", "--jobs", "jobs.csv", "--json"];
    assert_ne!(decider(&folder.json(&run)), "network", "otherwise this test shows nothing");
    let csv = folder.read("jobs.csv");
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| header.iter().position(|head| *head == name).unwrap();
    let jobs: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    for at in ["400ms", "900ms", "1500ms"] {
        let explained = folder.json(&["explain", "levels.toml", "--at", at, "--horizon", "2s", "--json"]);
        let now = explained["decision"]["now_ns"].as_u64().unwrap();
        let mut shown: Vec<String> = explained["decision"]["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|job| format!("{}#{}", job["task"].as_str().unwrap(), job["job"]))
            .collect();
        let number = |job: &Vec<&str>, name: &str| job[column(name)].parse::<u64>().ok();
        let is_active = |job: &&Vec<&str>| {
            // Jobs that are late are aborted.
            let left = number(job, "completion_ns").or(number(job, "deadline_ns"));
            number(job, "release_ns") <= Some(now) && left > Some(now)
        };
        let mut active: Vec<String> = jobs
            .iter()
            .filter(is_active)
            .map(|job| format!("{}#{}", job[column("task")], job[column("job")]))
            .collect();
        shown.sort();
        active.sort();
        assert_eq!(shown, active, "at {at}");
    }
}

#[test]
fn deadlines_that_were_met_carry_their_evidence() {
    let folder = Folder::new("advice-evidence");
    // Overloaded at the wcet, but hardly ever in a run.
    let set = "[[task]]\nname = \"a\"\nperiod = 10\nwcet = 6\nbcet = 1\n\
        [[task]]\nname = \"b\"\nperiod = 40\nwcet = 18\nbcet = 2\n";
    folder.write("set.toml", set);
    let text = folder.stdout(&["compare", "set.toml", "--schedulers", "edf", "--horizon", "300ms", "--no-oracle"]);
    assert!(
        text.contains("edf meets every deadline in these 10 runs (370 jobs; at the wcet the set is overloaded)."),
        "{text}"
    );
    assert!(
        text.contains("leave open up to 1 miss in 124 jobs if each comes by itself, and a miss in up to 26%"),
        "{text}"
    );
    assert!(text.contains("≥99.19%"), "not ±0.00%: {text}");
    let proved =
        folder.stdout(&["compare", "gap-avionics", "--schedulers", "edf,rm", "--no-oracle", "--horizon", "2s"]);
    assert!(proved.contains("It is proved for"), "{proved}");
}

/// A mode that nobody sees coming ends a guarantee, and whoever speaks of the guarantee says so.
#[test]
fn a_mode_that_breaks_a_guarantee_is_said_beside_it() {
    let folder = Folder::new("advice-mode");
    let set = |mode: &str| {
        format!(
            "[[task]]\nname = \"a\"\nperiod = \"10ms\"\nwcet = \"4ms\"\ncriticality = 1\n[[task]]\nname = \"b\"\nperiod = \"14ms\"\nwcet = \"6ms\"\n{mode}"
        )
    };
    folder.write("plain.toml", &set(""));
    folder.write("rate.toml", &set("[[mode]]\nat = \"100ms\"\nrate = 1.6\n"));
    let table = |set: &str| {
        folder.stdout(&["compare", set, "--schedulers", "edf,shield:edf", "--no-oracle", "--horizon", "1s"])
    };
    let exception = "jobs that come or take more than their task says are not guaranteed";
    let (plain, rate) = (table("plain.toml"), table("rate.toml"));
    assert!(plain.contains("the shield guarantees every deadline") && !plain.contains(exception), "{plain}");
    assert!(rate.contains("the shield guarantees every deadline") && rate.contains(exception), "{rate}");
    // Tuning simulates what the user has described, and a run shows what became of the guarantee.
    let of = |set: &str| folder.json(&["tune", set, "--json"]);
    assert_eq!((&of("plain.toml")["why"], &of("plain.toml")["jobs"]), (&"guaranteed".into(), &0.into()));
    let tuned = of("rate.toml");
    assert!(tuned["jobs"].as_u64() > Some(100) && tuned["modes"] == serde_json::json!(["mode 1"]), "{tuned}");
    let sentence = tuned["verdict"].as_str().unwrap();
    assert!(
        sentence.ends_with("; its modes can end the guarantee of every deadline and were simulated, too"),
        "{sentence}"
    );
    let run = |set: &str| folder.stdout(&["simulate", set, "--scheduler", "temponet", "--horizon", "1s"]);
    let (plain, rate) = (run("plain.toml"), run("rate.toml"));
    assert!(!plain.contains("guarantee lapses") && rate.contains("guarantee lapses "), "{rate}");
    assert!(rate.contains(&format!("decides                {sentence}\n")), "{rate}");
}

#[test]
fn a_run_without_a_deadline_has_no_share_in_time() {
    let folder = Folder::new("advice-none");
    folder.write("set.toml", "[[task]]\nname = \"a\"\nperiod = \"1s\"\nwcet = \"1ms\"\n");
    let text = folder.stdout(&["simulate", "set.toml", "--scheduler", "edf", "--horizon", "10ms"]);
    assert!(
        text.contains("deadlines met          – (no deadline lies within the horizon)") && !text.contains('%'),
        "{text}"
    );
}

/// (m,k)-firm tasks on an overloaded core: nothing is guaranteed, and `mk-dbp` is followed.
const FIRM: &str = r#"
[[task]]
name = "v1"
period = "10ms"
wcet = "5ms"
mk = [2, 3]
[[task]]
name = "v2"
period = "15ms"
wcet = "7ms"
mk = [1, 2]
[[task]]
name = "v3"
period = "20ms"
wcet = "8ms"
bcet = "4ms"
mk = [3, 5]
"#;

#[test]
fn where_nothing_is_guaranteed_constraints_are_kept_alike_with_and_without_the_shield() {
    let folder = Folder::new("advice-firm");
    folder.write("firm.toml", FIRM);
    let report =
        folder.json(&["compare", "firm.toml", "--schedulers", "tuned,temponet,edf", "--horizon", "3s", "--json"]);
    let row = |name: &str| report["results"].as_array().unwrap().iter().find(|row| row["scheduler"] == name).unwrap();
    assert_eq!(row("tuned")["decider"]["name"], "mk-dbp");
    for figure in ["met", "preemptions", "art_completed_ns", "tasks", "goal"] {
        assert_eq!(row("tuned")[figure], row("temponet")[figure], "{figure}");
    }
}

#[test]
fn a_verdict_says_nothing_twice_and_names_who_decides_in_temponet() {
    let folder = Folder::new("advice-once");
    folder.write("overload.toml", OVERLOAD);
    folder.write(
        "fits.toml",
        "[[task]]\nname = \"a\"\nperiod = 10\nwcet = 2\njitter = 7\n[[task]]\nname = \"b\"\nperiod = 20\nwcet = 8\n",
    );
    for set in ["overload.toml", "fits.toml"] {
        let report = folder.json(&["compare", set, "--horizon", "3s", "--json"]);
        let sentences: Vec<&str> =
            report["advice"]["sentences"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let behind = sentences.iter().filter(|sentence| sentence.contains(" more than temponet")).count();
        assert!(behind <= 1, "{sentences:?}");
        assert!(sentences.iter().any(|sentence| sentence.contains("In temponet, ")), "{sentences:?}");
    }
}

#[test]
fn the_scheduler_that_a_verdict_is_about_has_a_row_of_its_own() {
    let folder = Folder::new("advice-row");
    // Every scheduler meets the same deadlines.
    folder.write("late.toml", "[[task]]\nname = \"a\"\nperiod = 10\nwcet = 12\nbcet = 8\n");
    let call = ["compare", "late.toml", "--schedulers", "edf,fcfs,hrrn,srpt", "--horizon", "1s"];
    let best = folder.json(&[&call[..], &["--json"]].concat())["advice"]["best"].as_str().unwrap().to_string();
    let text = folder.stdout(&call);
    assert!(text.lines().any(|line| line.starts_with(&format!("{best} "))), "{best}: {text}");
}
