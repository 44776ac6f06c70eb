//! Contract of `advise`: today's settings stand beside others, what is proved is marked, and settings are written in the
//! form in which they are applied, never over another file.

use crate::folder::Folder;

/// Two tasks that fair shares miss and priorities meet, and one that is bound to a core.
const SET: &str = "cores = 2\n\
    [[task]]\nname = \"control\"\nperiod = \"5ms\"\ndeadline = \"4ms\"\nwcet = \"2ms\"\npriority = 10\n\
    [[task]]\nname = \"vision\"\nperiod = \"100ms\"\nwcet = \"50ms\"\ncores = [0]\n\
    [[task]]\nname = \"logging\"\nperiod = \"50ms\"\nwcet = \"30ms\"\n";

#[test]
fn advice_ranks_settings_beside_those_of_today() {
    let folder = Folder::new("advise");
    folder.write("set.toml", SET);
    let text = folder.stdout(&["advise", "set.toml"]);
    assert!(text.contains("today's settings") && text.contains("FIFO, pinned") && text.contains("proved"), "{text}");
    let json = folder.json(&["advise", "set.toml", "--json", "--report", "page.html"]);
    let lines = json["lines"].as_array().unwrap();
    let line = |name: &str| lines.iter().find(|line| line["name"] == name).unwrap();
    let (today, pinned) = (line("today's settings"), line("FIFO, pinned"));
    assert_eq!((&today["today"], &pinned["verdict"]), (&true.into(), &"proved".into()));
    assert_eq!(today["threads"][0]["setting"]["policy"], "SCHED_FIFO");
    assert_eq!(today["threads"][1]["setting"]["policy"], "SCHED_OTHER");
    assert_eq!(pinned["threads"][1]["setting"]["cores"][0], 0, "the file binds it there");
    assert!(pinned["threads"][0]["response_bound_ns"].as_u64().unwrap() <= 4_000_000);
    assert!(pinned["proved_up_to"].as_f64().unwrap() >= 1.0);
    assert!(json["notes"][0].as_str().unwrap().contains("bound to cores"), "{json}");
    let page = folder.read("page.html");
    assert!(page.contains("settings of Linux · TempoNet</title>") && page.contains("response at most"));
}

#[test]
fn settings_are_written_in_every_form_and_over_nothing() {
    let folder = Folder::new("advise-forms");
    folder.write("set.toml", SET);
    for (form, file, expected) in [
        ("chrt", "apply.sh", "thread 'control' fifo 49"),
        ("systemd", "units.sh", "CPUSchedulingPolicy=fifo\nCPUSchedulingPriority=49"),
        ("rt-app", "workload.json", "\"policy\": \"SCHED_FIFO\""),
        ("cie", "threads.yaml", "policy: SCHED_FIFO\n    priority: 49"),
        ("toml", "new.toml", "priority = 49"),
    ] {
        let call = ["advise", "set.toml", "--for", form, "-o", file];
        folder.stdout(&call);
        let text = folder.read(file);
        assert!(text.contains(expected), "{form}: {text}");
        folder.write(file, "mine\n");
        folder.error(&call);
        assert_eq!(folder.read(file), "mine\n", "{form}");
        let printed = folder.stdout(&call[..4]);
        assert_eq!(printed, text, "{form} on standard output");
    }
    // What is written is read again: the same settings are today's then.
    folder.stdout(&["advise", "set.toml", "--for", "toml", "-o", "again.toml"]);
    let json = folder.json(&["advise", "again.toml", "--json"]);
    let today = json["lines"].as_array().unwrap().iter().find(|line| line["today"] == true).unwrap().clone();
    assert_eq!(today["verdict"], "proved", "{today}");
}

#[test]
fn what_cannot_be_done_is_said() {
    let folder = Folder::new("advise-errors");
    folder.write("set.toml", SET);
    assert!(folder.error(&["advise", "gpu-vision"]).contains("parts on several cores"));
    assert!(folder.error(&["advise", "set.toml", "--for", "chrt", "--line", "99"]).contains("--line 99"));
    assert!(folder.error(&["advise", "set.toml", "--for", "yaml"]).contains("is none of chrt"));
    assert!(folder.error(&["advise", "set.toml", "--margin", "-1"]).contains("percentage"));
    assert!(folder.error(&["advise", "set.toml", "--line", "1"]).contains("--for"));
    assert!(folder.error(&["advise", "set.toml", "--for", "chrt", "-o", "x.yaml"]).contains(".sh"));
    // Lists of single jobs have no period: settings are simulated, and nothing is proved.
    folder.write("jobs.csv", "name,release,execution,deadline\na,0,2,5\nb,1,2,4\n");
    let text = folder.stdout(&["advise", "jobs.csv"]);
    assert!(text.contains("0 of ") && !text.contains("proved to meet"), "{text}");
}
