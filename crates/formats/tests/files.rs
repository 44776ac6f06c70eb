//! Contract: files are read strictly, and every error names file, line and value. No text makes a parser panic. What is
//! written reads back as the same set.

use std::path::Path;

use proptest::prelude::*;
use temponet_formats::{Format, Loaded, builtin, load, parse, template, write};
use temponet_task::{
    Arrival, Chain, Communication, Core, CoreSet, Costs, ExecutionModel, Gap, ListedJob, Mode, OnMiss, Preemption,
    Protocol, Section, Server, Speed, Task, TaskSet, Time, TimeUnit,
};

fn read(text: &str, format: Format) -> Result<Loaded, String> {
    let file = match format {
        Format::Toml => "set.toml",
        Format::Json => "set.json",
        Format::Csv => "set.csv",
        Format::SimSo => "set.xml",
    };
    parse(text, format, Path::new(file)).map_err(|error| error.to_string())
}

fn toml_error(text: &str) -> String {
    read(text, Format::Toml).expect_err("must be refused")
}

/// Returns a TOML text with one task, in which `line` is the fourth line.
fn with_line(line: &str) -> String {
    format!("[[task]]\nname = \"a\"\nperiod = 10\n{line}\n")
}

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
    assert_eq!((set.cores, set.on_miss, &set.speeds), (2, OnMiss::Continue, &vec![Speed(500), Speed::FULL]));
    assert_eq!(set.costs, Costs { context_switch: us(1), migration: us(5), decision: us(0) });
    let [a, b, peak] = &set.tasks[..] else { panic!("{:?}", set.tasks) };
    assert_eq!((a.wcet, a.deadline, a.offset, a.jitter), (us(200), us(900), us(1), us(2)));
    assert_eq!((a.criticality, a.value, a.priority, a.skip, a.mk), (1, 2.5, Some(-3), Some(4), Some((2, 3))));
    assert_eq!((a.wcet_high, a.server), (Some(us(300)), Some(0)));
    assert_eq!((a.guarantee, b.guarantee, peak.guarantee), (true, false, true));
    let overrun = ExecutionModel::Overrun { probability: 0.1, below: Box::new(ExecutionModel::Wcet) };
    assert_eq!(a.execution, overrun);
    assert_eq!(b.arrival, Arrival::Sporadic { minimum: us(500), gap: Gap::Exponential { mean: us(700) } });
    assert_eq!((b.deadline, b.acet, &b.execution), (us(500), Some(us(20)), &ExecutionModel::Weibull { exceed: 0.005 }));
    assert_eq!(peak.arrival, Arrival::Burst { jobs: 10, every: us(20_000), until: us(10_000_500) });
    assert_eq!(set.modes.len(), 1);
    assert_eq!((set.modes[0].at, &set.modes[0].tasks), (Time::from_secs(1), &Some(vec![0])));
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
        (with_line("offset = 3"), "set.toml:1: task \"a\" has no wcet"),
        (
            with_line("wcet = 3\ncolour = \"red\""),
            "set.toml:5: task \"a\": unknown key \"colour\"; known are name, period",
        ),
        (with_line("wcet = 3\nbcet = 4"), "bcet 4ms is more than the wcet 3ms"),
        (with_line("wcet = 3\nvalue = inf"), "set.toml:5: value = inf must be a number from 0 to 1000000000000"),
        (with_line("wcet = 3\ncriticality = \"huge\""), "set.toml:5: criticality = \"huge\""),
        (with_line("wcet = 3\nguarantee = 1"), "set.toml:5: guarantee = 1 must be true or false"),
        (with_line("wcet = 3\nguarantee = \"true\""), "set.toml:5: guarantee = \"true\" must be true or false"),
        (with_line("wcet = 3\nguarantee = [true]"), "set.toml:5: guarantee = a list must be true or false"),
        (
            "[[burst]]\nname = \"a\"\njobs = 2\nevery = 9\nwcet = 1\nguarantee = \"no\"\n".into(),
            "set.toml:6: guarantee = \"no\" must be true or false",
        ),
        (with_line("wcet = 3\nmk = [3, 2]"), "set.toml:5: mk = a list must be [m, k]"),
        (with_line("wcet = 3\nserver = \"x\""), "set.toml:5: there is no server \"x\""),
        (with_line("wcet = 3\nkind = \"odd\""), "set.toml:5: kind = \"odd\" is none of periodic, sporadic"),
        (with_line("wcet = 3\nexecution = \"weibull\""), "need a bcet"),
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
fn json_has_the_same_keys_and_lines() {
    let set =
        read("{\"task\": [\n {\"name\": \"a\", \"period\": \"10ms\", \"wcet\": 2.5}]}", Format::Json).unwrap().set;
    assert_eq!(set.tasks[0].wcet, Time::from_us(2_500));
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
        assert_eq!((set.tasks[0].guarantee, set.tasks[1].guarantee), (task, burst));
    }
    assert_eq!(with("\"true\"", "true").unwrap_err(), "set.json:2: guarantee = \"true\" must be true or false");
    assert_eq!(with("true", "0").unwrap_err(), "set.json:4: guarantee = 0 must be true or false");
    assert_eq!(with("null", "true").unwrap_err(), "set.json:2: null has no meaning here: leave the key out");
}

#[test]
fn csv_has_a_column_for_the_guarantee_of_tasks_but_not_of_listed_jobs() {
    let text = "name,period,wcet,guarantee\na,10,1,true\nb,10,1,false\nc,10,1,\nd,10,1,TRUE\ne,10,1,False\n";
    let set = read(text, Format::Csv).unwrap().set;
    let guaranteed: Vec<bool> = set.tasks.iter().map(|task| task.guarantee).collect();
    assert_eq!(guaranteed, [true, false, false, true, false]);
    for cell in ["yes", "1", "t", "true false"] {
        let error =
            read(&format!("name,period,wcet,guarantee\na,10,1,true\nb,10,1,{cell}\n"), Format::Csv).unwrap_err();
        assert_eq!(error, format!("set.csv:3: guarantee = {cell} must be true or false"));
    }
    let error = read("name,release,execution,deadline,guarantee\na,0,1,5,true\n", Format::Csv).unwrap_err();
    assert!(error.starts_with("set.csv:2: job \"a\": unknown key \"guarantee\""), "{error}");
}

#[test]
fn a_guarantee_is_written_only_where_there_is_one() {
    let ms = Time::from_ms;
    let mut set = TaskSet::new("set", vec![Task::periodic("a", ms(10), ms(2)), Task::periodic("b", ms(10), ms(2))], 1);
    for format in [Format::Toml, Format::Json, Format::Csv] {
        assert!(!write(&set, format).unwrap().contains("guarantee"));
    }
    set.tasks[1].guarantee = true;
    assert!(
        write(&set, Format::Toml)
            .unwrap()
            .ends_with("name = \"b\"\nperiod = \"10ms\"\nwcet = \"2ms\"\nguarantee = true\n")
    );
    assert_eq!(write(&set, Format::Json).unwrap().matches("\"guarantee\": true").count(), 1);
    assert_eq!(write(&set, Format::Csv).unwrap(), "name,period,wcet,guarantee\na,10ms,2ms,\nb,10ms,2ms,true\n");
}

#[test]
fn csv_reads_tasks_with_units_in_cells_or_headers() {
    let text = "# comment\nname,period,wcet_us,mk,criticality,kind\na,10,2500,2/3,high,\nb,20ms,1ms,,,sporadic\n";
    let set = read(text, Format::Csv).unwrap().set;
    assert_eq!((set.tasks[0].period(), set.tasks[0].wcet), (Some(Time::from_ms(10)), Time::from_us(2_500)));
    assert_eq!((set.tasks[0].mk, set.tasks[0].criticality), (Some((2, 3)), 1));
    assert_eq!(set.tasks[1].wcet, Time::from_ms(1));
    let error = |text| read(text, Format::Csv).unwrap_err();
    assert_eq!(error("name,period,wcet\na,10,1\nb,0,1\n"), "set.csv:3: period = 0 must be greater than zero");
    assert!(error("name,period,wcet\na,10\n").contains("set.csv:2: 2 cells where the header has 3"));
    assert!(error("name,period,wcet,colour\na,10,1,red\n").contains("unknown key \"colour\""));
    assert!(error("").contains("set.csv: is empty"));
    // A quote that is never closed swallows lines. The message is still one short line.
    let open = format!("name,period,wcet\na,\"1\n{}", "b,2,1\n".repeat(100));
    assert!(!error(&open).contains('\n') && error(&open).len() < 200, "{}", error(&open));
    // Blank lines, comments and DOS line ends do not shift line numbers.
    let shifted = "\n# one\nname,period,wcet\r\n\r\n# two\r\na,10,1\r\n\n# three\nb,0,1\r\n";
    assert_eq!(error(shifted), "set.csv:9: period = 0 must be greater than zero");
}

#[test]
fn a_header_with_release_makes_a_job_list() {
    let text = "name,release,execution,deadline,value,wcet\ncam,0,2,10,3,4\ncam,5,1,8,1,\nlog,0.5,1,3,1,\n";
    let loaded = read(text, Format::Csv).unwrap();
    assert!(loaded.warnings.is_empty());
    let [cam, log] = &loaded.set.tasks[..] else { panic!() };
    let Arrival::Listed(jobs) = &cam.arrival else { panic!() };
    let ms = Time::from_ms;
    let first = ListedJob {
        release: ms(0),
        deadline: ms(10),
        execution: ms(2),
        wcet: ms(4),
        bcet: Time(1),
        criticality: 0,
        value: 3.0,
        estimate: None,
    };
    assert_eq!((jobs.len(), jobs[0], jobs[1].wcet), (2, first, ms(1)));
    assert_eq!(log.name, "log");
    assert_eq!(loaded.set.utilization(), 6.0 / 10.0, "4 + 1 + 1 ms at the wcet in 10 ms");
    let error = |text| read(text, Format::Csv).unwrap_err();
    assert!(error("name,release,execution,deadline\na,5,1,5\n").contains("set.csv:2: deadline 5ms is not after"));
    assert!(error("name,release,execution,deadline,wcet\na,0,3,5,2\n").contains("wcet 2ms is less than the execution"));
    assert!(error("name,release,execution,deadline\n").contains("has no jobs"));
    let hopeless = read("name,release,execution,deadline\na,0,9,5\n", Format::Csv).unwrap();
    assert!(hopeless.warnings[0].contains("set.csv:2: warning: job of \"a\" has wcet 9ms > its window 5ms"));
    assert_eq!(hopeless.warnings.len(), 1);
    let three = read("name,release,execution,deadline\na,0,9,5\na,10,9,15\nb,0,9,5\nb,0,1,5\n", Format::Csv).unwrap();
    assert!(three.warnings[1].contains("set.csv: warning: 2 more jobs have a wcet > their window"), "{three:?}");
    assert_eq!(three.warnings.len(), 2);
}

#[test]
fn a_trace_does_not_tell_which_jobs_take_their_whole_wcet() {
    let told = |text: &str| {
        let set = read(text, Format::Csv).unwrap().set;
        let again = read(&write(&set, Format::Csv).unwrap(), Format::Csv).unwrap().set;
        assert_eq!(again.tasks, set.tasks, "written and read again");
        let Arrival::Listed(jobs) = &set.tasks[0].arrival else { panic!() };
        let told: Vec<(Time, Time)> = jobs.iter().map(|job| (job.bcet, job.wcet)).collect();
        (told, set.system().mean_utilizations())
    };
    let header = "name,release,execution,deadline,wcet\n";
    let (one, other) = ("a,0,4,10,4\na,5,1,15,4\n", "a,0,1,10,4\na,5,4,15,4\n");
    assert_eq!(told(&(header.to_string() + one)), told(&(header.to_string() + other)), "whatever they really take");
    assert!(told(&(header.to_string() + one)).0.iter().all(|(bcet, _)| *bcet == Time(1)));
    // In a list without wcets, execution times are known.
    let (known, load) = told("name,release,execution,deadline\na,0,4,10\nb,5,1,15\n");
    assert!(known.iter().all(|(bcet, wcet)| bcet == wcet));
    assert_eq!(load, [4.0 / 15.0, 1.0 / 15.0], "over the time of all jobs together");
}

#[test]
fn wcet_beyond_the_deadline_is_a_warning_with_its_line() {
    let loaded = read(&with_line("wcet = 14"), Format::Toml).unwrap();
    assert_eq!(loaded.warnings, ["set.toml:1: warning: task \"a\" has wcet 14ms > deadline 10ms"]);
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

#[test]
fn empirical_times_come_from_a_column_of_a_csv_beside_the_file() {
    let folder = std::env::temp_dir().join(format!("temponet-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("times.csv"), "n,time_us\n1,100\n2,250.5\n3,300\n").unwrap();
    let file = folder.join("set.toml");
    let task = |column: &str| {
        with_line(&format!("execution = {{ model = \"empirical\", file = \"times.csv\", column = \"{column}\" }}"))
    };
    std::fs::write(&file, task("time_us")).unwrap();
    let set = load(&file).unwrap().set;
    let samples = [Time::from_us(100), Time(250_500), Time::from_us(300)].into();
    assert_eq!(set.tasks[0].execution, ExecutionModel::Empirical { samples });
    assert_eq!((set.tasks[0].bcet, set.tasks[0].wcet), (Time::from_us(100), Time::from_us(300)));
    std::fs::write(&file, task("nowhere")).unwrap();
    assert!(load(&file).unwrap_err().to_string().contains("has no column \"nowhere\""));
    std::fs::write(folder.join("times.csv"), "n,time_us\n1,100\n2,-1\n").unwrap();
    std::fs::write(&file, task("time_us")).unwrap();
    assert!(load(&file).unwrap_err().to_string().contains("times.csv:3: time_us = -1us is negative"));
    std::fs::write(&file, b"cores = 1\n\xff\xfe").unwrap();
    assert!(load(&file).unwrap_err().to_string().ends_with("set.toml:2: is not UTF-8 text"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_template_is_a_valid_set_also_with_everything_uncommented() {
    let template = template();
    let loaded = read(&template, Format::Toml).unwrap();
    assert_eq!((loaded.set.tasks.len(), loaded.warnings.len()), (3, 0));
    assert!(loaded.set.mean_utilization() > 1.0);
    // The commented blocks at the end are valid as they are, and every other commented key is known.
    let (tasks, blocks) = template.split_at(template.find("# A load peak").unwrap());
    let is_data = |line: &&str| line.starts_with("[[") || line.contains(" = ");
    let blocks: Vec<&str> = blocks.lines().filter_map(|line| line.strip_prefix("# ")).filter(is_data).collect();
    // The tables of cores take the place of their number.
    let others = tasks.replace("\ncores = 1", "\n# cores = 1");
    let set = read(&format!("{others}\n{}", blocks.join("\n")), Format::Toml).unwrap().set;
    assert_eq!((set.tasks.len(), set.modes.len(), set.servers.len(), set.chains.len()), (5, 1, 1, 1));
    assert_eq!(set.cores, 6);
    let keys: Vec<&str> = tasks.lines().filter(|line| line.starts_with("# ") && line.contains(" = ")).collect();
    assert!(keys.len() > 10);
    for key in keys {
        let error = read(&tasks.replace(key, &key[2..]), Format::Toml).err().unwrap_or_default();
        assert!(!error.contains("unknown key"), "{error}");
    }
}

#[test]
fn built_in_sets_survive_every_format_that_can_hold_them() {
    for set in builtin::ALL {
        let set = set.load().unwrap().set;
        for format in [Format::Toml, Format::Json] {
            let text = write(&set, format).unwrap();
            let again = read(&text, format).unwrap().set;
            assert_eq!(TaskSet { name: set.name.clone(), ..again }, set, "{text}");
        }
    }
}

#[test]
fn csv_says_what_it_cannot_hold() {
    let tasks = vec![Task::periodic("a", Time::from_ms(10), Time::from_ms(2))];
    let mut set = TaskSet::new("set", tasks, 2);
    assert!(write(&set, Format::Csv).unwrap_err().to_string().contains("\"cores\""));
    set.cores = 1;
    assert!(write(&set, Format::Csv).unwrap().starts_with("name,period,wcet\na,10ms,2ms\n"));
}

#[test]
fn limits_on_preemption_are_read_from_the_task_the_file_and_the_cell() {
    let text = "preemption = \"none\"\n[[task]]\nname = \"a\"\nperiod = 10\nwcet = 4\n\
        [[task]]\nname = \"b\"\nperiod = 10\nwcet = 4\npreemption = { every = 1.5 }\n\
        [[task]]\nname = \"c\"\nperiod = 10\nwcet = 4\npreemption = \"free\"\n\
        [[burst]]\nname = \"d\"\njobs = 2\nevery = 50\nwcet = 1\npreemption = { every = \"500us\" }\n\
        [[burst]]\nname = \"e\"\njobs = 2\nevery = 50\nwcet = 1\n";
    let set = read(text, Format::Toml).unwrap().set;
    let limits = |set: &TaskSet| set.tasks.iter().map(|task| task.preemption).collect::<Vec<_>>();
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
    let jobs = "name,release,execution,deadline,preemption\na,0,2,9,none\nb,1,2,9,\na,5,2,19,none\nc,1,2,9,1ms\n";
    let set = read(jobs, Format::Csv).unwrap().set;
    assert_eq!(limits(&set), [Preemption::None, Preemption::Free, every(1_000)]);
    assert_eq!(limits(&read(&write(&set, Format::Csv).unwrap(), Format::Csv).unwrap().set), limits(&set));
}

#[test]
fn wrong_limits_on_preemption_are_errors_with_their_line() {
    let error = |value: &str| toml_error(&format!("{}preemption = {value}\n", with_line("wcet = 4")));
    let wrong = "is none of \"free\", \"none\", { every = TIME }";
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
    let [fusion, .., log] = &set.tasks[..] else { panic!() };
    assert_eq!((&fusion.after[..], &fusion.reads[..], &log.after[..]), (&[1, 2][..], &[3][..], &[0][..]));
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
        tasks: vec![1, 0],
        deadline: Some(Time::from_ms(90)),
        communication: Communication::Implicit,
    };
    assert_eq!(set.chains[0], see);
    assert_eq!((set.chains[1].deadline, set.chains[1].communication), (None, Communication::Let));
    assert_eq!(set.system().validate(), Ok(()));
    for format in [Format::Toml, Format::Json] {
        assert_eq!(
            read(&write(&set, format).unwrap(), format).unwrap().set,
            TaskSet { name: "set".into(), ..set.clone() }
        );
    }
    assert!(write(&set, Format::Csv).unwrap_err().to_string().contains("[[chain]]"));
    let rows = "name,period,wcet,after,reads\na,10,1,,\nb b,10,1,,a\nc,,1,b b,\nd,,1,a c,\ne,,1,a; b b,c\n";
    let set = read(rows, Format::Csv).unwrap().set;
    let after: Vec<&[usize]> = set.tasks.iter().map(|task| &task.after[..]).collect();
    assert_eq!(after, [&[][..], &[], &[1], &[0, 2], &[0, 1]]);
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
    assert!(changed("[\"camera\", \"lidar\"]", "[\"camera\", \"\"]").contains("after = a list has an empty name"));
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
    assert!(listed.contains("unknown key \"after\""), "{listed}");
}

fn any_time() -> impl Strategy<Value = Time> {
    (1u64..1_000_000_000_000).prop_map(Time)
}

fn any_task() -> impl Strategy<Value = Task> {
    let times = (any_time(), any_time(), any_time(), any_time(), any_time());
    let importance = (0u8..4, any::<bool>(), 0.0..10.0f64);
    let extras = (0..6usize, 0..3usize, importance, proptest::option::of(-5i64..5), "[a-z \"\\\\é]{1,8}");
    (times, extras).prop_map(|((period, low, high, deadline, offset), (model, arrival, importance, priority, name))| {
        let (bcet, wcet) = (low.min(high), low.max(high));
        let mut task = Task::periodic(name, period, wcet);
        (task.deadline, task.offset, task.jitter) = (deadline, offset, Time(offset.0 / 2));
        (task.criticality, task.guarantee, task.value) = importance;
        task.priority = priority;
        task.preemption = match deadline.0 % 3 {
            0 => Preemption::Free,
            1 => Preemption::None,
            _ => Preemption::Every(Time(wcet.0.div_ceil(1 + offset.0 % 1_000))),
        };
        (task.bcet, task.acet) = (bcet, Some(Time(bcet.0 / 2 + wcet.0 / 2)).filter(|acet| *acet >= bcet));
        task.execution = match model {
            0 => ExecutionModel::Uniform,
            1 => ExecutionModel::Normal { deviation: bcet },
            2 if task.acet.is_some() => ExecutionModel::Weibull { exceed: 0.01 },
            3 => ExecutionModel::Pareto { shape: 1.5 },
            4 => ExecutionModel::Empirical { samples: [bcet, wcet].into() },
            _ => ExecutionModel::Wcet,
        };
        if arrival == 1 {
            task.arrival = Arrival::Sporadic { minimum: period, gap: Gap::Uniform { max: period + period } };
        } else if arrival == 2 {
            (task.wcet_high, task.mk, task.skip) = (Some(wcet + bcet), Some((1, 2)), Some(3));
            task.execution = ExecutionModel::Overrun { probability: 0.25, below: Box::new(task.execution) };
        }
        task
    })
}

fn any_set() -> impl Strategy<Value = TaskSet> {
    (prop::collection::vec(any_task(), 1..5), 1usize..9, any::<bool>()).prop_map(|(mut tasks, cores, more)| {
        for (index, task) in tasks.iter_mut().enumerate() {
            task.name = format!("#{} {index}", task.name);
        }
        let mut set = TaskSet::new("set", tasks, cores);
        if more {
            set.description = "with \"quotes\"".into();
            (set.on_miss, set.time_unit) = (OnMiss::Continue, TimeUnit::Us);
            set.speeds = vec![Speed(250), Speed::FULL];
            set.costs.migration = Time::from_us(5);
            set.servers = vec![Server { name: "s".into(), budget: Time(5), period: Time(9) }];
            set.tasks[0].server = Some(0);
            set.modes = vec![Mode { name: "m".into(), at: Time(7), work: 1.25, rate: 0.5, tasks: Some(vec![0]) }];
            let arrival = Arrival::Burst { jobs: 2, every: Time(50), until: Time(500) };
            let Task { guarantee, .. } = set.tasks[0];
            let preemption = Preemption::Every(Time(2));
            set.tasks.push(Task { arrival, guarantee, preemption, ..Task::periodic("burst", Time(50), Time(3)) });
        } else if set.tasks.len() > 2 {
            // Where the first task is a source, the second follows it and the third reads.
            set.tasks[1].after = vec![0];
            set.tasks[2].reads = vec![1, 0];
            if cores % 2 == 0 {
                let (name, tasks, deadline) = ("chain".into(), vec![0, 1, 2], Some(Time(77)));
                set.chains = vec![Chain { name, tasks, deadline, communication: Communication::Let }];
            }
            set.follow_sources().unwrap();
        }
        if cores > 2 && set.speeds.len() == 1 {
            let core = |core: usize| match core < cores / 2 {
                true => Core { name: "big".into(), speed: Speed(1_500) },
                false => Core { name: "little".into(), speed: Speed(370) },
            };
            set.machine = (0..cores).map(core).filter(|_| cores > 4).collect();
        }
        for (index, task) in set.tasks.iter_mut().enumerate().filter(|(index, _)| index % 2 == 1) {
            let first = if index % 4 == 1 { 0 } else { cores / 2 };
            task.cores = CoreSet::of([first, cores - 1 - first % 2]);
        }
        if more {
            // The first resource that a task names is the first of the set.
            for (index, task) in set.tasks.iter_mut().enumerate().filter(|(_, task)| task.wcet > Time(2)) {
                if matches!(task.arrival, Arrival::Burst { .. }) || index > 1 {
                    continue;
                }
                let section = |resource, length| Section { resource, at: Time(1), length: Time(length) };
                task.sections = vec![section(0, task.wcet.0 - 1), section(1, 1)];
                set.resources = vec!["the bus".into(), "\"b\"".into()];
            }
            set.protocol = if set.cores == 1 { Protocol::Ceiling } else { Protocol::None };
        }
        set
    })
}

const BIG_LITTLE: &str = r#"
    [[core]]
    name = "big"
    speed = 1.5
    count = 2

    [[core]]
    name = "little"
    speed = 0.4
    count = 2

    [[task]]
    name = "vision"
    period = 33
    wcet = 20
    cores = ["big"]

    [[task]]
    name = "driver"
    period = 10
    wcet = 5
    cores = [0, 2]

    [[burst]]
    name = "peak"
    jobs = 2
    every = 10
    wcet = 1
    cores = "little"
"#;

#[test]
fn cores_have_names_and_speeds_and_tasks_name_them() {
    let loaded = read(BIG_LITTLE, Format::Toml).unwrap();
    let speeds: Vec<u32> = loaded.set.machine.iter().map(|core| core.speed.0).collect();
    assert_eq!((loaded.set.cores, speeds), (4, vec![1_500, 1_500, 400, 400]));
    let own = |task: usize| loaded.set.tasks[task].cores.iter(4).collect::<Vec<usize>>();
    assert_eq!([own(0), own(1), own(2)], [vec![0, 1], vec![0, 2], vec![2, 3]]);
    assert!(loaded.warnings.is_empty(), "5 ms of work take 3.3 ms on a big core");
    for format in [Format::Toml, Format::Json] {
        let text = write(&loaded.set, format).unwrap();
        assert_eq!(read(&text, format).unwrap().set, loaded.set, "{text}");
        assert!(text.contains("\"little\"") && text.contains("count"), "{text}");
    }
    let csv = write(&loaded.set, Format::Csv).unwrap_err().to_string();
    assert!(csv.contains("[[core]]"), "{csv}");
    // The fastest core that a task may use decides whether it is hopeless.
    let slow = read(&BIG_LITTLE.replace("wcet = 5\n    cores = [0, 2]", "wcet = 5\n    cores = [2]"), Format::Toml);
    let slow = slow.unwrap().warnings;
    assert!(slow[0].contains("wcet 5ms, 12.5ms on its fastest core, > deadline 10ms"), "{slow:?}");
}

const SHARING: &str = r#"
    protocol = "ceiling"
    [[task]]
    name = "weather"
    period = 100
    wcet = 10
    [[task.section]]
    resource = "bus"
    at = "1ms"
    length = 6
    [[task.section]]
    resource = "disk"
    at = 2
    length = 5

    [[task]]
    name = "control"
    period = 10
    wcet = 2
    section = [{ resource = "bus", length = 1 }]
"#;

#[test]
fn critical_sections_are_read_and_written() {
    let set = read(SHARING, Format::Toml).unwrap().set;
    let section = |resource, at, length| Section { resource, at: Time::from_ms(at), length: Time::from_ms(length) };
    assert_eq!((set.resources.clone(), set.protocol), (vec!["bus".into(), "disk".into()], Protocol::Ceiling));
    assert_eq!(set.tasks[0].sections, [section(0, 1, 6), section(1, 2, 5)]);
    assert_eq!(set.tasks[1].sections, [section(0, 0, 1)]);
    for format in [Format::Toml, Format::Json] {
        let text = write(&set, format).unwrap();
        assert_eq!(read(&text, format).unwrap().set, set, "{text}");
    }
    let plain = TaskSet { protocol: Protocol::default(), ..set };
    let csv = write(&plain, Format::Csv).unwrap_err().to_string();
    assert_eq!(csv, "the critical sections of \"weather\" cannot be written as CSV: use TOML or JSON");
    assert_eq!(read(&SHARING.replace("protocol = \"ceiling\"", ""), Format::Toml).unwrap().set, plain);
    assert!(
        read("name,period,wcet,section\na,10,4,bus\n", Format::Csv).unwrap_err().contains("section must be a list")
    );
}

#[test]
fn impossible_critical_sections_are_errors_with_their_line() {
    let cases = [
        (
            "protocol = \"ceiling\"",
            "protocol = \"pip\"",
            ":2: protocol = \"pip\" is none of none, inheritance, ceiling",
        ),
        (
            "protocol = \"ceiling\"",
            "protocol = \"ceiling\"\ncores = 2",
            ":2: the protocol ceiling is for one core, and there are 2",
        ),
        ("length = 6", "length = 12", ":7: task \"weather\": the section ends at 13ms, after the wcet of 10ms"),
        ("length = 6", "length = 0", ":10: length = 0 must be greater than zero"),
        ("length = 6", "", ":7: section has no length"),
        ("at = 2", "at = 4", ":11: task \"weather\": the section from 4ms to 9ms overlaps the one from 1ms to 7ms"),
        (
            "resource = \"disk\"",
            "resource = \"bus\"",
            ":11: task \"weather\": the section locks \"bus\" within a section that holds it already",
        ),
        ("resource = \"disk\"", "resource = \" \"", ":12: name = \"\" must be a printable text"),
        ("at = 2", "from = 2", ":13: section: unknown key \"from\""),
    ];
    for (from, to, expected) in cases {
        let error = read(&SHARING.replacen(from, to, 1), Format::Toml).unwrap_err();
        assert!(error.contains(expected), "{to}: {error}");
    }
}

#[test]
fn machines_that_make_no_sense_are_errors_with_their_line() {
    let plain = "cores = 2\n[[task]]\nname = \"a\"\nperiod = 10\nwcet = 1\n";
    let cases = [
        ("speed = 1.5", "speed = 0", ":4: speed = 0 must be a number from 0.001 to 1000"),
        ("speed = 1.5", "speed = nan", ":4: speed = nan"),
        ("speed = 1.5", "speed = 1001", ":4: speed = 1001 must be"),
        ("speed = 1.5", "speed = 0.3333", ":4: speed = 0.3333 has more than three decimals; 0.333 is near"),
        ("count = 2", "count = 0", ":5: count = 0 must be a whole number from 1"),
        ("count = 2", "count = 4096", ":7: core \"little\" is one of 4098 cores"),
        ("name = \"big\"", "name = \"7\"", ":3: name = \"7\" of a core must not be a number"),
        ("name = \"big\"", "", ":2: core has no name"),
        ("cores = [\"big\"]", "cores = [\"bgi\"]", ":16: there is no core \"bgi\"; did you mean \"big\"?"),
        ("cores = [\"big\"]", "cores = []", ":16: cores = [] names no core"),
        ("cores = [0, 2]", "cores = [2, 0, 2]", ":22: cores names core 2 twice"),
        ("cores = [0, 2]", "cores = [0, \"big\"]", ":22: cores names core 0 twice"),
        ("cores = [0, 2]", "cores = [0, 4]", ":22: cores = 4: there is no core 4, cores 0 to 3"),
        ("cores = [0, 2]", "cores = [-1]", ":22: cores = -1 must be"),
        ("\n    [[core]]", "speeds = [0.5, 1.0]\n    [[core]]", ":1: speeds to choose from beside core \"big\""),
        ("\n    [[core]]", "cores = 3\n    [[core]]", ":1: cores = 3 where the [[core]] tables state 4"),
    ];
    for (from, to, expected) in cases {
        let error = read(&BIG_LITTLE.replacen(from, to, 1), Format::Toml).unwrap_err().to_string();
        assert!(error.contains(expected), "{to}: {error}");
    }
    let named = read(&format!("{plain}cores = [\"big\"]\n"), Format::Toml).unwrap_err().to_string();
    assert!(named.contains(":6: there is no core \"big\"; cores have names only in [[core]] tables"), "{named}");
    let one = read(&format!("{plain}cores = [2]\n"), Format::Toml).unwrap_err().to_string();
    assert!(one.contains("there is no core 2, cores 0 to 1"), "{one}");
    // The largest speeds and the longest times do not overflow.
    let extreme =
        "[[core]]\nname = \"c\"\nspeed = 0.001\n[[task]]\nname = \"a\"\nperiod = \"1s\"\nwcet = \"900000000s\"\n";
    assert_eq!(read(extreme, Format::Toml).unwrap().warnings.len(), 1);
}

#[test]
fn a_csv_column_binds_tasks_to_cores_and_implies_their_number() {
    let text = "name,period,wcet,cores\na,10,1,0 2\nb,10,1,\n";
    let set = read(text, Format::Csv).unwrap().set;
    assert_eq!((set.cores, set.tasks[0].cores.clone()), (3, CoreSet::of([0, 2])));
    assert!(set.tasks[1].cores.is_all());
    let again = write(&set, Format::Csv).unwrap();
    assert_eq!(read(&again, Format::Csv).unwrap().set.tasks, set.tasks, "{again}");
    let more = TaskSet { cores: 4, ..set.clone() };
    assert!(write(&more, Format::Csv).unwrap_err().to_string().contains("\"cores\" of the whole set"));
    let jobs = "name,release,execution,deadline,cores\na,0,1,5,1\na,5,1,9,1\nb,0,1,9,\n";
    let listed = read(jobs, Format::Csv).unwrap().set;
    assert_eq!((listed.cores, listed.tasks[0].cores.clone()), (2, CoreSet::of([1])));
    let again = write(&listed, Format::Csv).unwrap();
    assert_eq!(read(&again, Format::Csv).unwrap().set.tasks, listed.tasks, "{again}");
    let other = read(&jobs.replace("9,1", "9,0"), Format::Csv).unwrap_err().to_string();
    assert!(other.contains(":3: the jobs of \"a\" have other cores in line 2"), "{other}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_reads_back(set in any_set()) {
        for format in [Format::Toml, Format::Json, Format::Csv] {
            match write(&set, format) {
                Ok(text) => match read(&text, format) {
                    Ok(loaded) => prop_assert_eq!(&TaskSet { time_unit: set.time_unit, ..loaded.set }, &set, "{}", text),
                    Err(error) => prop_assert!(false, "{}\n{}", error, text),
                },
                Err(_) => prop_assert_eq!(format, Format::Csv),
            }
        }
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in ".{0,200}") {
        for format in [Format::Toml, Format::Json, Format::Csv] {
            let _ = read(&text, format);
        }
    }

    #[test]
    fn no_mutation_of_a_file_makes_a_parser_panic(
        which in 0..builtin::ALL.len() + 1, at in 0.0..1.0f64, length in 0usize..30, insert in "[\\[\\]\"=,.0-9a-z\\-\n#{}]{0,8}",
    ) {
        let text = builtin::ALL.get(which).map_or(template(), |set| set.text.into());
        let set = read(&text, Format::Toml).unwrap().set;
        for format in [Format::Toml, Format::Json, Format::Csv] {
            let Ok(mut text) = write(&set, format) else { continue };
            let boundary = |mut at: usize, text: &str| { while !text.is_char_boundary(at) { at -= 1 } at };
            let start = boundary((at * text.len() as f64) as usize, &text);
            let end = boundary((start + length).min(text.len()), &text);
            text.replace_range(start..end, &insert);
            if let Err(error) = read(&text, format) {
                prop_assert!(!error.contains('\n'));
            }
        }
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
    assert_eq!(column, "set.csv:2: task \"a\": unknown key \"perod_ms\"; did you mean \"period\"?");
}

#[test]
fn semicolons_and_tabs_separate_cells_as_spreadsheets_write_them() {
    let text = "name,period,wcet,value\n\"a,b\",10,2.5,3\nc,20us,5us,\n";
    let expected = read(text, Format::Csv).unwrap().set;
    for separator in [";", "\t"] {
        let other = text.replace("\"a,b\"", "A").replace(',', separator).replace('A', "a,b");
        assert_eq!(read(&other, Format::Csv).unwrap().set, expected, "{other}");
    }
    let jobs = read("name;release_ms;execution_ms;deadline_ms\na;1;2;4\n", Format::Csv).unwrap().set;
    assert!(matches!(&jobs.tasks[0].arrival, Arrival::Listed(jobs) if jobs.len() == 1));
}

#[test]
fn a_decimal_comma_is_named_and_not_read_as_something_else() {
    let error = |text: &str| read(text, Format::Csv).expect_err("must be refused");
    let comma = "set.csv:3: wcet_ms = 2,5 has a decimal comma: write a point, 2.5";
    assert_eq!(error("name;period_ms;wcet_ms\na;10;2\nb;10;2,5\n"), comma);
    assert!(error("name\tperiod\twcet\na\t10ms\t1,25ms\n").contains("write a point, 1.25ms"));
}

#[test]
fn an_endless_device_and_a_folder_are_errors() {
    let folder = std::env::temp_dir().join(format!("temponet-input-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("set.toml")).unwrap();
    assert!(load(&folder.join("set.toml")).unwrap_err().to_string().ends_with("is a folder, not a file"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/dev/zero", folder.join("zero.csv")).unwrap();
        assert!(load(&folder.join("zero.csv")).unwrap_err().to_string().ends_with("is too large: more than 64 MiB"));
    }
    let large = folder.join("large.toml");
    std::fs::File::create(&large).unwrap().set_len((1 << 30) + 1).unwrap();
    assert!(load(&large).unwrap_err().to_string().ends_with("is too large: more than 1024 MiB"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_name_with_control_characters_gives_a_printable_set() {
    let text = with_line("wcet = 3");
    let set = parse(&text, Format::Toml, Path::new("a\x1b[31m\nb.toml")).unwrap().set;
    assert_eq!(set.name, "a\\u{1b}[31m\\nb");
    let error = toml_error(&(text + "[[mode]]\nat = 1\nname = \"\\u001b[2J\"\n"));
    assert!(error.contains("must be a printable text") && !error.contains('\x1b'), "{error}");
}

#[test]
fn the_files_that_a_set_refers_to_are_known() {
    let folder = std::env::temp_dir().join(format!("temponet-refers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("times.csv"), "t_ms;u\n1;2\n").unwrap();
    let text = with_line("execution = { model = \"empirical\", file = \"times.csv\", column = \"u\" }");
    std::fs::write(folder.join("set.toml"), text).unwrap();
    assert_eq!(load(&folder.join("set.toml")).unwrap().files, [folder.join("times.csv")]);
    std::fs::remove_dir_all(folder).unwrap();
}
