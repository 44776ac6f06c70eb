//! Contract: precedence and chains are read and written, and impossible ones are refused with their line.

use temponet_formats::{Format, write};
use temponet_task::{Chain, Communication, TaskId, Time};

use crate::{read, toml_error};

/// A set with precedence and chains. A follower stands before its source.
const CHAINS: &str = r#"time_unit = "ms"
communication = "let"
[[task]]
name = "fusion"
after = ["camera", "lidar"]
reads = "imu"
wcet = 3
[[task]]
name = "camera"
period = 40
wcet = 5
[[task]]
name = "lidar"
period = 40
offset = 10
wcet = 4
[[task]]
name = "imu"
period = 5
wcet = 1
[[task]]
name = "control"
period = 20
reads = ["fusion"]
wcet = 2
[[task]]
name = "log"
after = ["fusion"]
period = 40
wcet = 1
[[chain]]
name = "see"
tasks = ["camera", "fusion"]
deadline = 90
communication = "implicit"
[[chain]]
name = "act"
tasks = ["lidar", "fusion", "control"]
"#;

#[test]
fn precedence_and_chains_are_read_and_written() {
    let set = read(CHAINS, Format::Toml).unwrap().set;
    let [fusion, .., log] = set.tasks() else { panic!() };
    assert_eq!(
        (&fusion.after[..], &fusion.reads[..], &log.after[..]),
        (&[1, 2].map(TaskId)[..], &[TaskId(3)][..], &[TaskId(0)][..])
    );
    assert_eq!(
        (fusion.period(), fusion.offset),
        (Some(Time::from_ms(40)), Time::from_ms(10)),
        "it arrives with its sources"
    );
    assert_eq!(
        (fusion.deadline, log.deadline),
        (Time::from_ms(90), Time::from_ms(40)),
        "that of its chain, or the period"
    );
    let see = Chain {
        name: "see".into(),
        tasks: vec![TaskId(1), TaskId(0)],
        deadline: Some(Time::from_ms(90)),
        communication: Communication::Implicit,
    };
    assert_eq!(set.chains()[0], see);
    assert_eq!((set.chains()[1].deadline, set.chains()[1].communication), (None, Communication::Let));
    assert_eq!(set.system.validate(), Ok(()));
    for format in [Format::Toml, Format::Json] {
        assert_eq!(read(&write(&set, format).unwrap(), format).unwrap().set, set.clone().with_name("set"));
    }
    assert!(write(&set, Format::Csv).unwrap_err().to_string().contains("[[chain]]"));
    let rows = "name,period,wcet,after,reads\na,10,1,,\nb b,10,1,,a\nc,,1,b b,\nd,,1,a c,\ne,,1,a; b b,c\n";
    let set = read(rows, Format::Csv).unwrap().set;
    let after: Vec<Vec<u32>> = set.tasks().iter().map(|task| task.after.iter().map(|task| task.0).collect()).collect();
    assert_eq!(after, [vec![], vec![], vec![1], vec![0, 2], vec![0, 1]]);
    assert_eq!(read(&write(&set, Format::Csv).unwrap(), Format::Csv).unwrap().set, set);
}

#[test]
fn impossible_precedence_and_chains_are_refused_with_their_line() {
    let changed = |from: &str, to: &str| toml_error(&CHAINS.replacen(from, to, 1));
    let camera = "there is no task \"camra\"; did you mean \"camera\"?";
    assert_eq!(changed("\"camera\", \"lidar\"]", "\"camra\"]"), format!("set.toml:5: {camera}"));
    assert_eq!(changed("tasks = [\"camera\"", "tasks = [\"camra\""), format!("set.toml:33: {camera}"));
    let periods = "task \"fusion\": after: its sources \"camera\" and \"lidar\" do not arrive together: \
        several sources must be periodic with the same period";
    assert_eq!(changed("period = 40\noffset", "period = 50\noffset"), format!("set.toml:5: {periods}"));
    let sporadic = changed("period = 40\noffset", "period = 40\nkind = \"sporadic\"\noffset");
    assert_eq!(sporadic, format!("set.toml:5: {periods}"));
    let cycle = changed("name = \"camera\"\nperiod = 40", "name = \"camera\"\nafter = [\"log\"]");
    assert_eq!(
        cycle,
        "set.toml:5: task \"fusion\": after: it comes after itself: fusion after camera after log after fusion"
    );
    assert!(changed("[\"camera\", \"lidar\"]", "[\"fusion\"]").ends_with("after: it names itself"));
    assert!(changed("[\"camera\", \"lidar\"]", "[]").starts_with("set.toml:5: after = [] names no task"));
    assert!(
        changed("[\"camera\", \"lidar\"]", "[\"camera\", \"\"]")
            .contains("after = [\"camera\", \"\"] has an empty name")
    );
    let cell = read("name,period,wcet,after\na,10,1,\nb,,1,a;;a\n", Format::Csv).expect_err("must be refused");
    assert!(cell.contains("after = a;;a has an empty name"), "{cell}");
    let own = "task \"log\": period = 41ms, but the tasks that it comes after have 40ms";
    assert_eq!(changed("period = 40\nwcet = 1", "period = 41\nwcet = 1"), format!("set.toml:29: {own}"));
    let offset = changed("period = 40\nwcet = 1", "offset = 3\nwcet = 1");
    assert_eq!(offset, "set.toml:29: offset = 3: a task with after arrives with its sources");
    let apart = changed("\"lidar\", \"fusion\", \"control\"", "\"lidar\", \"control\"");
    assert_eq!(apart, "set.toml:38: chain \"act\": \"control\" neither comes after \"lidar\" nor reads it");
    assert!(
        changed("tasks = [\"lidar\", \"fusion\", \"control\"]", "tasks = [\"lidar\"]").contains("fewer than two tasks")
    );
    assert!(changed("name = \"act\"", "name = \"see\"").contains("the name \"see\" stands already in line 32"));
    assert!(
        changed("deadline = 90", "deadline = 0").starts_with("set.toml:34: deadline = 0 must be greater than zero")
    );
    assert!(changed("\"implicit\"", "\"explicit\"").contains("communication = \"explicit\" is none of implicit, let"));
    assert!(changed("reads = \"imu\"", "reads = [\"imu\", \"imu\"]").contains("reads names \"imu\" twice"));
    let mode = format!("{CHAINS}[[mode]]\nat = 5\ntasks = [\"camera\", \"fusion\"]\n");
    assert!(toml_error(&mode).starts_with("set.toml:41: a mode must have all or none of the tasks"));
    let burst = format!(
        "{CHAINS}[[burst]]\nname = \"b\"\njobs = 2\nevery = 9\nwcet = 1\n[[task]]\nname = \"x\"\nafter = [\"b\"]\nwcet = 1\n"
    );
    assert!(toml_error(&burst).contains("\"b\" is a burst or a list of jobs, which no task can come after"));
    let listed = read("name,release,execution,deadline,after\na,0,2,9,b\n", Format::Csv).expect_err("must be refused");
    assert!(listed.starts_with("set.csv:1: unknown column \"after\""), "{listed}");
}

#[test]
fn a_chain_whose_jobs_take_longer_than_its_deadline_is_a_warning_with_its_line() {
    let chain = |more: &str| {
        let tasks = "[[task]]\nname = \"a\"\nperiod = 10\nwcet = 3\n[[task]]\nname = \"b\"\nafter = [\"a\"]\nwcet = 3\ndeadline = 10\n";
        let text = format!("{tasks}[[chain]]\nname = \"k\"\ntasks = [\"a\", \"b\"]\ndeadline = 5\n{more}");
        read(&text, Format::Toml).unwrap().warnings
    };
    assert_eq!(chain(""), ["set.toml:10: warning: chain \"k\" has wcets of 6ms in all > deadline 5ms"]);
    assert!(chain("[[core]]\nname = \"big\"\nspeed = 1.5\n").is_empty(), "4 ms on the fast core");
    let slow = chain("[[core]]\nname = \"little\"\nspeed = 0.5\n");
    assert!(slow[0].contains("6ms in all, 12ms on their fastest cores, > deadline 5ms"), "{slow:?}");
}
