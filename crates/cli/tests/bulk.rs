//! Contract of many sets at once: one table over all of them, with what is proved beside what is simulated, and an
//! error that names every file that cannot be used.

use crate::folder::Folder;

fn task(name: &str, period: u64, wcet: u64) -> String {
    format!("[[task]]\nname = \"{name}\"\nperiod = {period}\nwcet = {wcet}\n")
}

fn sets(name: &str) -> Folder {
    let folder = Folder::new(name);
    std::fs::create_dir(folder.0.join("sets")).unwrap();
    folder.write("sets/fits.toml", &(task("a", 10, 2) + &task("b", 20, 6)));
    folder.write("sets/full.toml", &(task("a", 10, 9) + &task("b", 20, 6)));
    folder.write(
        "sets/measured.toml",
        &task("a", 10, 2)
            .replace("wcet = 2", "execution = { model = \"empirical\", file = \"times.csv\", column = \"t\" }"),
    );
    folder.write("sets/times.csv", "t\n1\n2\n");
    folder
}

#[test]
fn a_folder_gives_one_table_over_its_sets() {
    let folder = sets("bulk");
    let call =
        ["compare", "sets", "robot", "--schedulers", "edf,rm,temponet", "--model", "random:1", "--horizon", "200ms"];
    let text = folder.stdout(&[&call[..], &["--csv", "all.csv", "--plot", "all.svg"]].concat());
    assert!(text.contains("sets/full.toml") && text.contains("nobody: impossible") && text.contains("robot"), "{text}");
    assert!(text.contains("Sets: 4, of which a test proves 2 schedulable"), "{text}");
    assert!(folder.read("all.csv").contains("sets/fits.toml,2,1,0.500000,edf,true,false,1,"));
    assert!(folder.read("all.svg").contains("<circle"));
    let json = folder.json(&[&call[..], &["--json"]].concat());
    assert_eq!(json["sets"].as_array().unwrap().len(), 4, "measured times are no set");
    let proved = |set: usize| json["sets"][set]["proved"].as_array().unwrap().contains(&"edf".into());
    assert!(proved(0) && !proved(1) && json["sets"][1]["impossible"] == true, "{json}");
    let edf = &json["schedulers"][0];
    assert_eq!((&edf["sets"], &edf["proved"]), (&4.into(), &2.into()));
    assert_eq!(json["schedulers"][2]["proved"], 2, "the shield guarantees what fits, whatever the model is");
    let two =
        folder.stdout(&["compare", "sets/fits.toml", "sets/full.toml", "--schedulers", "edf", "--horizon", "200ms"]);
    assert!(two.contains("% (too few sets)") && !two.contains(" ± "), "{two}");
    let swept = ["sweep", "--sets", "sets", "--schedulers", "edf", "-o", "swept.csv", "--jobs", "100"];
    assert!(folder.stdout(&swept).contains("edf"));
    assert!(folder.read("swept.csv").starts_with("set,tasks,cores,load,scheduler,"));
    for option in [["--cores", "2"], ["--method", "uunifast"]] {
        let shaped = folder.error(&[&swept[..], &option].concat());
        assert!(shaped.contains("is for random sets, and --sets sets has its own"), "{shaped}");
    }
    let one = folder.error(&["compare", "robot", "--csv", "one.csv"]);
    assert!(one.contains("--csv and --plot are for several sets"), "{one}");
}

/// A set whose critical task only muf serves, though others meet more deadlines, beside one that muf does not run on.
#[test]
fn the_tables_rank_by_the_goal_of_each_set() {
    let folder = Folder::new("bulk-goals");
    let critical = task("long", 10, 8).replace("wcet = 8", "wcet = 8\ncriticality = 1");
    folder.write("critical.toml", &(critical + &task("a", 10, 4) + &task("b", 10, 4)));
    folder.write("plain.toml", &task("a", 10, 4));
    let call = ["compare", "critical.toml", "plain.toml", "--schedulers", "srpt,muf,edf-vd", "--horizon", "200ms"];
    let text = folder.stdout(&[&call[..], &["--all"]].concat());
    assert!(text.contains("critical met, met") && text.contains("muf 100.00%, 33.33%"), "{text}");
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("muf") || line.starts_with("srpt")).collect();
    assert!(lines[0].starts_with("muf") && lines[1].starts_with("srpt"), "{text}");
    let json = folder.json(&[&call[..], &["--json"]].concat());
    assert_eq!((&json["schedulers"][1]["rank"], &json["sets"][0]["goal"][0]), (&1.into(), &"critical met".into()));
}

#[test]
fn results_do_not_go_among_the_sets_that_they_are_of() {
    let folder = sets("bulk-within");
    let call = |output| ["sweep", "--sets", "sets", "--schedulers", "edf", "--jobs", "50", "-o", output];
    let error = folder.error(&call("sets/x.csv"));
    assert!(error.contains("sets/x.csv would lie among the sets of sets"), "{error}");
    assert!(!folder.0.join("sets/x.csv").exists());
    folder.stdout(&call("x.csv"));
}

#[test]
fn every_file_that_cannot_be_used_is_named() {
    let folder = sets("bulk-bad");
    folder.write("sets/bad.toml", &task("a", 10, 2).replace("wcet = 2", "wcet = \"2 parsec\""));
    let one = folder.error(&["compare", "sets"]);
    assert!(one.contains("sets/bad.toml:4: wcet = "), "{one}");
    folder.write("sets/worse.json", "{ \"task\": [] ");
    let all = folder.error(&["compare", "sets", "nowhere.toml"]);
    let is_named = |part: &str| all.contains(part);
    assert!(
        ["3 sets cannot be used", "sets/bad.toml:4:", "sets/worse.json:", "nowhere.toml"].into_iter().all(is_named),
        "{all}"
    );
    assert!(!all.contains("\\n"), "one line: {all}");
    std::fs::create_dir(folder.0.join("empty")).unwrap();
    assert!(folder.error(&["compare", "empty"]).contains("empty has no task-set file"));
    let neither = folder.error(&["sweep", "--sets", "no-folder", "-o", "s.csv"]);
    assert!(neither.contains("or a folder of task-set files"), "{neither}");
    assert!(folder.error(&["compare", "sets", "robot", "--report", "r.html"]).contains("--report is for one set"));
}
