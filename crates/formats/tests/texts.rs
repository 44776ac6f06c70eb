//! Contract: TOML and JSON are read strictly, and every error names file, line and value.

use temponet_formats::{Format, write};
use temponet_task::{Arrival, Attribute, Costs, ExecutionModel, Gap, OnMiss, Preemption, Speed, TaskId, TaskSet, Time};

use crate::{read, toml_error, with_line};

#[test]
fn toml_reads_units_defaults_and_everything_else() {
    let text = r#"
        time_unit = "us"
        cores = 2
        on_miss = "continue"
        speeds = [0.5, 1.0]
        costs = { context_switch = "1us", migration = 5 }
        [[server]]
        name = "s"
        budget = 10
        period = 100
        [[task]]
        name = "a"
        period = 1000
        wcet = "0.2ms"
        deadline = 900
        offset = 1
        jitter = 2
        criticality = "high"
        guarantee = true
        wcet_high = 300
        overrun = 0.1
        value = 2.5
        priority = -3
        skip = 4
        mk = [2, 3]
        server = "s"
        [[task]]
        name = "b"
        kind = "sporadic"
        period = 500
        gap = { model = "exponential", mean = 700 }
        bcet = 10
        acet = 20
        wcet = 100
        guarantee = false
        [[burst]]
        name = "peak"
        jobs = 10
        every = 20000
        wcet = 100
        deadline = 10000
        start = 500
        for = 10000000
        guarantee = true
        [[mode]]
        at = "1s"
        work = 1.5
        tasks = ["a"]
    "#;
    let set = read(text, Format::Toml).unwrap().set;
    let us = Time::from_us;
    assert_eq!((set.cores(), set.on_miss(), set.speeds()), (2, OnMiss::Continue, &[Speed(500), Speed::FULL][..]));
    assert_eq!(*set.costs(), Costs { context_switch: us(1), migration: us(5), decision: us(0) });
    let [a, b, peak] = set.tasks() else { panic!("{:?}", set.tasks()) };
    assert_eq!((a.wcet, a.deadline, a.offset, a.jitter), (us(200), us(900), us(1), us(2)));
    assert_eq!((a.criticality, a.value, a.mk), (1, 2.5, Some((2, 3))));
    assert_eq!(a.wcet_high, Some(us(300)));
    assert_eq!(Attribute::ALL.map(|attribute| a.extra.get(attribute)), [Some(-3), Some(4), Some(0)]);
    assert_eq!((a.guarantee, b.guarantee, peak.guarantee), (true, false, true));
    let overrun = ExecutionModel::Overrun { probability: 0.1, below: Box::new(ExecutionModel::Wcet) };
    assert_eq!(a.execution, overrun);
    assert_eq!(b.arrival, Arrival::Sporadic { minimum: us(500), gap: Gap::Exponential { mean: us(700) } });
    assert_eq!((b.deadline, b.acet, &b.execution), (us(500), Some(us(20)), &ExecutionModel::Weibull { exceed: 0.005 }));
    assert_eq!(peak.arrival, Arrival::Burst { jobs: 10, every: us(20_000), until: us(10_000_500) });
    assert_eq!(set.modes().len(), 1);
    assert_eq!((set.modes()[0].at, &set.modes()[0].stop), (Time::from_secs(1), &vec![TaskId(1), TaskId(2)]));
}

#[test]
fn modes_name_what_they_change_and_the_rest_goes_on() {
    let with = |mode: &str| {
        let tasks =
            ["camera", "radar", "log"].map(|name| format!("[[task]]\nname = \"{name}\"\nperiod = 10\nwcet = 1\n"));
        let after = "[[task]]\nname = \"see\"\nafter = [\"camera\"]\nwcet = 1\n[[task]]\nname = \"fuse\"\nafter = [\"see\", \"radar\"]\nwcet = 1\n";
        read(&format!("{}{after}[[mode]]\nname = \"m\"\nat = 5\n{mode}", tasks.concat()), Format::Toml)
    };
    let mode = |text: &str| with(text).unwrap().set.modes()[0].clone();
    let [camera, radar, log, see, fuse] = [0, 1, 2, 3, 4].map(TaskId);
    assert_eq!(mode("slower = { log = 1.35 }").slower, [(log, 1.35)]);
    assert_eq!(mode("stop = [\"log\"]").stop, [log]);
    // Tasks arrive with those that they come after.
    let both = mode("slower = { camera = 2, radar = 2 }\nstop = []");
    assert_eq!((both.slower, both.stop), (vec![(camera, 2.0), (radar, 2.0), (see, 2.0), (fuse, 2.0)], vec![]));
    assert_eq!(mode("stop = [\"radar\", \"camera\"]").stop, [camera, radar, see, fuse]);
    let old = with("tasks = [\"log\"]").unwrap();
    assert_eq!(old.set.modes()[0].stop, [camera, radar, see, fuse]);
    assert_eq!(old.notes, ["set.toml:24: mode \"m\": tasks = […] stops every other task: camera, radar, see, fuse"]);
    assert_eq!(with("stop = [\"log\"]").unwrap().notes, [""; 0]);
    let errors = [
        ("slower = { lgo = 2 }", "set.toml:24: there is no task \"lgo\"; did you mean \"log\"?"),
        ("slower = { log = 0 }", "set.toml:24: slower = 0 must be a number from 0.001 to 1000"),
        ("slower = 2", "set.toml:24: slower must be a table, not 2"),
        ("stop = [\"log\", \"log\"]", "set.toml:24: stop names \"log\" twice"),
        ("stop = [\"see\"]", "set.toml:24: stop: \"see\" arrives with \"camera\", and must be named like it"),
        ("slower = { see = 2 }", "set.toml:24: slower: \"see\" arrives with \"camera\", and must be named like it"),
        ("stop = [\"camera\"]", "set.toml:24: stop: \"radar\" arrives with \"camera\", and must be named like it"),
        (
            "tasks = [\"log\"]\nstop = [\"radar\"]",
            "set.toml:24: tasks beside stop: tasks stops every task that it does not name, so one of them is enough",
        ),
        (
            "stop = [\"log\"]\nslower = { log = 2 }",
            "set.toml:25: slower names \"log\", which stops in this mode and has no rate",
        ),
        (
            "tasks = [\"camera\", \"radar\", \"see\", \"fuse\"]\nslower = { log = 2 }",
            "set.toml:25: slower names \"log\", which stops in this mode and has no rate",
        ),
        (
            "[[mode]]\nat = 6\n[[mode]]\nat = \"5ms\"",
            "set.toml:26: \"m\" and \"mode 3\" both begin at 5ms: one mode at a time",
        ),
    ];
    for (text, message) in errors {
        assert_eq!(with(text).unwrap_err().to_string(), message);
    }
}

#[test]
fn every_error_is_one_line_with_file_line_and_value() {
    let cases = [
        (with_line("wcet = 0"), "set.toml:4: wcet = 0 must be greater than zero"),
        (with_line("wcet = -2"), "set.toml:4: wcet = -2 is negative"),
        (with_line("wcet = nan"), "set.toml:4: wcet = nan is not a time"),
        (with_line("wcet = \"3 parsec\""), "set.toml:4: wcet = \"3 parsec\" has an unknown unit"),
        (with_line("wcet = 1e40"), "set.toml:4: wcet = 1e40 is too large"),
        (with_line("wcet = 99999999999999999999"), "set.toml:4:"),
        (with_line("wcet = true"), "set.toml:4: wcet must be a time, not true"),
        (with_line("wcet = \"_1ms\""), "set.toml:4: wcet = \"_1ms\" is not a time"),
        (with_line("wcet = 3\nwcet = 4"), "set.toml:5: key \"wcet\" stands twice"),
        (with_line("wcet = 3\n\"wcet\" = 4"), "set.toml:5: key \"wcet\" stands twice"),
        (with_line("wcet = 1979-05-27"), "set.toml:4: wcet must be a time, not 1979-05-27"),
        (with_line("wcet = 3\nkind = 07:32:00"), "set.toml:5: kind must be a text, not 07:32:00"),
        ("[[task]]\nname = 1979-05-27\n".into(), "set.toml:2: name must be a text, not 1979-05-27"),
        ("[[task]]\nname = 5\n".into(), "set.toml:2: name must be a text, not 5"),
        (with_line("offset = 3"), "set.toml:1: task \"a\" has no wcet"),
        (
            with_line("wcet = 3\ncolour = \"red\""),
            "set.toml:5: task \"a\": unknown key \"colour\"; known are name, period",
        ),
        (with_line("wcet = 3\nbcet = 4"), "set.toml:5: task \"a\": bcet 4ms is more than the wcet 3ms"),
        (with_line("wcet = 3\nwcet_high = 2"), "set.toml:5: task \"a\": wcet_high 2ms is less than the wcet 3ms"),
        (with_line("wcet = 3\nbcet = 1\nacet = 4"), "set.toml:6: task \"a\": acet 4ms is not between bcet 1ms and"),
        (with_line("parts = [{ wcet = 1 }]"), "set.toml:4: parts = [{ wcet = 1 }] has fewer than two parts"),
        (with_line("parts = [{ wcet = 1 }, { wcet = 2, bcet = 3 }]"), "set.toml:4: task \"a\": bcet 3ms is more than"),
        (with_line("wcet = 3\nvalue = inf"), "set.toml:5: value = inf must be a number from 0 to 1000000000000"),
        (with_line("wcet = 3\ncriticality = \"huge\""), "set.toml:5: criticality = \"huge\""),
        (with_line("wcet = 3\nguarantee = 1"), "set.toml:5: guarantee = 1 must be true or false"),
        (with_line("wcet = 3\nguarantee = \"true\""), "set.toml:5: guarantee = \"true\" must be true or false"),
        (with_line("wcet = 3\nguarantee = [true]"), "set.toml:5: guarantee = [true] must be true or false"),
        (
            "[[burst]]\nname = \"a\"\njobs = 2\nevery = 9\nwcet = 1\nguarantee = \"no\"\n".into(),
            "set.toml:6: guarantee = \"no\" must be true or false",
        ),
        (with_line("wcet = 3\nmk = [3, 2]"), "set.toml:5: mk = [3, 2] must be [m, k]"),
        (with_line("wcet = 3\nserver = \"x\""), "set.toml:5: there is no server \"x\""),
        (with_line("wcet = 3\nkind = \"odd\""), "set.toml:5: kind = \"odd\" is none of periodic, sporadic"),
        (with_line("wcet = 3\nexecution = \"weibull\""), "need a bcet"),
        (with_line("wcet = 3\nexecution = \"weibul\""), "set.toml:5: execution model \"weibul\" is none of"),
        (with_line("wcet = 3\nexecution = { model = \"weibul\" }"), "did you mean \"weibull\""),
        (with_line("wcet = 3\nbcet = 1\nexecution = \"gamma\""), "set.toml:6: execution model \"gamma\" is none of"),
        (with_line("wcet = 3") + &with_line("wcet = 3"), "set.toml:6: the name \"a\" stands already in line 2"),
        ("cores = 0\n".into(), "set.toml:1: cores = 0 must be a whole number from 1 to 4096"),
        ("cores = 2\n".into(), "set.toml: has no tasks"),
        (String::new(), "set.toml: has no tasks"),
        ("[[task]\n".into(), "set.toml:1: "),
        ("time_unit = \"h\"".into(), "set.toml:1: time_unit = \"h\" is none of ns, us, ms, s"),
    ];
    for (text, expected) in cases {
        let error = toml_error(&text);
        assert!(error.contains(expected) && !error.contains('\n'), "{error:?} should contain {expected:?}");
        assert!(error.starts_with("set.toml"), "{error}");
    }
}

#[test]
fn a_misspelt_key_is_named_with_its_task_and_the_key_that_was_meant() {
    let cases = [
        (with_line("wect = 3"), "set.toml:4: task \"a\": unknown key \"wect\"; did you mean \"wcet\"?"),
        (with_line("wcet = 3\nperoid = 4"), "set.toml:5: task \"a\": unknown key \"peroid\"; did you mean \"period\"?"),
        (
            "[[task]]\nname = \"lidar\"\nperod = 4\n".into(),
            "set.toml:3: task \"lidar\": unknown key \"perod\"; did you mean \"period\"?",
        ),
        ("[[task]]\nnmae = \"lidar\"\n".into(), "set.toml:2: task: unknown key \"nmae\"; did you mean \"name\"?"),
        ("core = 2\n".into(), "set.toml:1: core = 2 is not a list of tables; did you mean \"cores\"?"),
        (
            "costs = { Migration = 2 }\n".into(),
            "set.toml:1: costs: unknown key \"Migration\"; did you mean \"migration\"?",
        ),
        (
            with_line("wcet = 3\n[[mode]]\nat = 1\ntasks = [\"A\"]"),
            "set.toml:7: there is no task \"A\"; did you mean \"a\"?",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(toml_error(&text), expected);
    }
    let column = read("name,perod_ms,wcet\na,1,2\n", Format::Csv).expect_err("must be refused");
    assert_eq!(column, "set.csv:1: unknown column \"perod_ms\"; did you mean \"period\"?");
}

#[test]
fn json_has_the_same_keys_and_lines() {
    let set =
        read("{\"task\": [\n {\"name\": \"a\", \"period\": \"10ms\", \"wcet\": 2.5}]}", Format::Json).unwrap().set;
    assert_eq!(set.tasks()[0].wcet, Time::from_us(2_500));
    let error = |text| read(text, Format::Json).unwrap_err();
    assert_eq!(
        error("{\"task\": [\n {\"name\": \"a\",\n \"period\": 0, \"wcet\": 1}]}"),
        "set.json:3: period = 0 must be greater than zero"
    );
    assert!(error("{\"task\": [\n{\"name\": \"a\",,}]}").starts_with("set.json:2:"));
    assert!(error("{\"cores\": 1,\n\"cores\": 2}").contains("set.json:2: key \"cores\" stands twice"));
    assert!(error("").starts_with("set.json:"));
    assert!(error("[1, 2]").contains("must be a table"));
    let deep = format!("{{\"task\": {}1{}}}", "[".repeat(100), "]".repeat(100));
    assert_eq!(error(&deep), "set.json:1: nested too deeply");
}

#[test]
fn json_reads_and_refuses_a_guarantee_like_toml() {
    let with = |task: &str, burst: &str| {
        let task = format!("{{\"name\": \"a\", \"period\": 10, \"wcet\": 2,\n\"guarantee\": {task}}}");
        let burst = format!("{{\"name\": \"b\", \"jobs\": 2, \"every\": 9, \"wcet\": 1,\n\"guarantee\": {burst}}}");
        read(&format!("{{\"task\": [{task}],\n\"burst\": [{burst}]}}"), Format::Json)
    };
    for (task, burst) in [(true, false), (false, true)] {
        let set = with(&task.to_string(), &burst.to_string()).unwrap().set;
        assert_eq!((set.tasks()[0].guarantee, set.tasks()[1].guarantee), (task, burst));
    }
    assert_eq!(with("\"true\"", "true").unwrap_err(), "set.json:2: guarantee = \"true\" must be true or false");
    assert_eq!(with("true", "0").unwrap_err(), "set.json:4: guarantee = 0 must be true or false");
    assert_eq!(with("null", "true").unwrap_err(), "set.json:2: null has no meaning here: leave the key out");
}

#[test]
fn wcet_beyond_the_deadline_is_a_warning_with_its_line() {
    let loaded = read(&with_line("wcet = 14"), Format::Toml).unwrap();
    assert_eq!(loaded.warnings, ["set.toml:1: warning: task \"a\" has wcet 14ms > deadline 10ms"]);
}

#[test]
fn limits_on_preemption_are_read_from_the_task_the_file_and_the_cell() {
    let text = "preemption = \"none\"\n[[task]]\nname = \"a\"\nperiod = 10\nwcet = 4\n\
        [[task]]\nname = \"b\"\nperiod = 10\nwcet = 4\npreemption = { every = 1.5 }\n\
        [[task]]\nname = \"c\"\nperiod = 10\nwcet = 4\npreemption = \"free\"\n\
        [[burst]]\nname = \"d\"\njobs = 2\nevery = 50\nwcet = 1\npreemption = { every = \"500us\" }\n\
        [[burst]]\nname = \"e\"\njobs = 2\nevery = 50\nwcet = 1\n";
    let set = read(text, Format::Toml).unwrap().set;
    let limits = |set: &TaskSet| set.tasks().iter().map(|task| task.preemption).collect::<Vec<_>>();
    let every = |us| Preemption::Every(Time::from_us(us));
    let expected = [Preemption::None, every(1_500), Preemption::Free, every(500), Preemption::None];
    assert_eq!(limits(&set), expected);
    // Written to each task of its own, because the set as a whole does not remember its default.
    let again = read(&write(&set, Format::Json).unwrap(), Format::Json).unwrap().set;
    assert_eq!(limits(&again), expected);
    let csv = "name,period,wcet,preemption\na,10,4,none\nb,10,4,2ms\nc,10,4,\nd,10,4,free\n";
    let set = read(csv, Format::Csv).unwrap().set;
    assert_eq!(limits(&set), [Preemption::None, every(2_000), Preemption::Free, Preemption::Free]);
    assert!(
        write(&set, Format::Csv).unwrap().starts_with("name,period,wcet,preemption\na,10ms,4ms,none\nb,10ms,4ms,2ms\n")
    );
    let jobs = "name,release,execution,deadline,preemption\na,0,2,9,none\nb,1,2,9,\na,5,2,19,none\nc,1,2,9,1ms\nd,1,2,9,cancel\n";
    let set = read(jobs, Format::Csv).unwrap().set;
    assert_eq!(limits(&set), [Preemption::None, Preemption::Free, every(1_000), Preemption::Cancel]);
    assert_eq!(limits(&read(&write(&set, Format::Csv).unwrap(), Format::Csv).unwrap().set), limits(&set));
}

#[test]
fn wrong_limits_on_preemption_are_errors_with_their_line() {
    let error = |value: &str| toml_error(&format!("{}preemption = {value}\n", with_line("wcet = 4")));
    let wrong = "is none of \"free\", \"none\", \"cancel\", { every = TIME }";
    assert_eq!(error("\"never\""), format!("set.toml:5: preemption = \"never\" {wrong}"));
    assert_eq!(error("2"), format!("set.toml:5: preemption = 2 {wrong}"));
    assert_eq!(error("{ every = 0 }"), "set.toml:5: every = 0 must be greater than zero");
    assert!(
        error("{ evry = 1 }").contains("set.toml:5: preemption: unknown key \"evry\""),
        "{}",
        error("{ evry = 1 }")
    );
    assert!(error("{ }").contains("preemption has no every"));
    let many = "every = 3ns gives task \"a\" with wcet 4ms more than 1 000 000 preemption points";
    assert_eq!(error("{ every = \"3ns\" }"), format!("set.toml:5: {many}"));
    // The line of the default that does it.
    let whole = format!("cores = 1\npreemption = {{ every = \"3ns\" }}\n{}", with_line("wcet = 4"));
    assert_eq!(toml_error(&whole), format!("set.toml:2: {many}"));
    let csv = |text: &str| read(text, Format::Csv).expect_err("must be refused");
    assert!(csv("name,period,wcet,preemption\na,10,4,never\n").starts_with("set.csv:2: preemption = never "));
    let jobs = "name,release,execution,deadline,preemption\na,0,2,9,none\na,5,2,19,1ms\n";
    assert_eq!(csv(jobs), "set.csv:3: the jobs of \"a\" have another preemption in line 2");
}
