//! Contract: files of rt-app and SimSo become the task sets that they mean. Whatever else they state becomes a note
//! with its line. What is written for rt-app reads back as the same tasks.

use std::path::Path;

use proptest::prelude::*;
use temponet_formats::{Format, Loaded, load, parse, to_rt_app, write};
use temponet_task::{
    Arrival, Attribute, CoreId, CoreSet, Costs, ExecutionModel, Extra, ListedJob, OnMiss, Protocol, ResourceId,
    Section, Task, TaskSet, Time, TimeUnit,
};

fn ms(n: u64) -> Time {
    Time::from_ms(n)
}

fn us(n: u64) -> Time {
    Time::from_us(n)
}

/// Loads a file from the folder `imports`.
fn fixture(name: &str) -> Loaded {
    load(&Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/imports")).join(name)).unwrap()
}

fn json(text: &str) -> Result<Loaded, String> {
    parse(text, Format::Json, Path::new("w.json")).map_err(|error| error.to_string())
}

fn xml(text: &str) -> Result<Loaded, String> {
    parse(text, Format::SimSo, Path::new("s.xml")).map_err(|error| error.to_string())
}

/// Reads a workload with one thread, whose body begins in line 2.
fn thread(body: &str) -> Result<Loaded, String> {
    json(&format!("{{ \"tasks\": {{ \"a\": {{\n{body}\n}} }} }}"))
}

/// Reads a simulation on one processor. The first task is in line 3.
fn simulation(attributes: &str, processor: &str, tasks: &str) -> Result<Loaded, String> {
    let machine = format!("<processors><processor name='p' id='1' {processor}/></processors><sched class=''/>");
    xml(&format!("<simulation {attributes}>\n{machine}<caches/><tasks>\n{tasks}\n</tasks></simulation>"))
}

const TASK: &str = "<task name='a' id='1' period='10' deadline='10' WCET='4'/>";

/// Returns whether a note, without its file name, begins with `wanted`.
fn has(loaded: &Loaded, wanted: &str) -> bool {
    loaded.notes.iter().any(|note| {
        let cut = [".json:", ".xml:"].iter().find_map(|end| note.split_once(end));
        cut.is_some_and(|(_, note)| note.trim_start().starts_with(wanted))
    })
}

#[test]
fn threads_of_rt_app_become_tasks_and_the_rest_is_named() {
    let loaded = fixture("robot.json");
    let camera = |name: &str| {
        Task::periodic(name, ms(33), ms(3))
            .with_offset(us(500))
            .with_extra(Extra::default().with(Attribute::Priority, 40))
            .with_sections(vec![Section { resource: ResourceId(0), at: Time::ZERO, length: ms(1) }])
    };
    let expected = [
        Task::periodic("servo", ms(1), us(400)).with_deadline(us(800)),
        camera("camera-0"),
        camera("camera-1"),
        Task::periodic("logger", ms(10), ms(3)).with_cores(CoreSet::of([CoreId(0)])),
        Task::periodic("planner", ms(20), ms(9)).with_offset(ms(2)),
    ];
    assert_eq!(loaded.set.tasks(), expected);
    let (TaskSet { name, time_unit, .. }, cores, on_miss) = (&loaded.set, loaded.set.cores(), loaded.set.on_miss());
    assert_eq!((&name[..], cores, on_miss, *time_unit), ("robot", 2, OnMiss::Continue, TimeUnit::Us));
    assert!(loaded.warnings.is_empty());
    for note in [
        "25: task \"logger\": \"priority\" = 5 of SCHED_OTHER is not represented",
        "29: task \"logger\": unknown key \"colour\" is ignored",
        "24: task \"logger\": its sleep begins when its run ends",
        "31: task \"planner\": its jobs run from 1ms to 9ms by turns: each takes 9ms here",
        "32: task \"planner\": \"loop\" = 1 is not represented: its jobs go on",
        "39: task \"worker\": is left out: it has no timer, no sleep and no dl-period, but waits (suspend)",
        "40: task \"spinner\": is left out: it runs without a pause",
        "41: task \"uneven\": is left out: it has several periods, such as 2ms and 3ms",
        "49: \"global\": calibration, logdir concern rt-app itself",
        "50: \"duration\" is not part of a task set: a horizon of 6s",
        "54: \"global\": unknown key \"zeal\" is ignored",
        "names 2 CPUs, so cores = 2",
        "SCHED_DEADLINE: the scheduler edf comes closest",
        "SCHED_FIFO: the scheduler is fp",
        "that policies take precedence",
    ] {
        assert!(has(&loaded, note), "{note} is not in {:#?}", loaded.notes);
    }
    assert_eq!((loaded.set.resources(), loaded.set.protocol()), (&["frame".to_string()][..], Protocol::None));
    assert_eq!(loaded.notes.len(), 16, "{:#?}", loaded.notes);
}

#[test]
fn mutexes_of_rt_app_become_critical_sections() {
    let sections = |body: &str| {
        let loaded = thread(body).unwrap();
        let at = |section: &Section| (section.resource.0, section.at.0 / 1000, section.length.0 / 1000);
        (loaded.set.tasks()[0].sections.iter().map(at).collect::<Vec<_>>(), loaded.set.resources().to_vec())
    };
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    let timer = r#""timer": {"ref": "unique", "period": 90}"#;
    let nested =
        format!(r#""run": 5, "lock": "a", "run": 2, "lock1": "b", "run": 3, "unlock1": "b", "unlock": "a", {timer}"#);
    assert_eq!(sections(&nested), (vec![(0, 7, 3), (1, 5, 5)], names(&["b", "a"])));
    // What comes after the timer belongs to the beginning of the next job.
    let split = format!(r#""lock": "a", "run": 4, "unlock": "a", {timer}, "lock": "b", "run": 3, "unlock": "b""#);
    assert_eq!(sections(&split), (vec![(0, 0, 3), (1, 3, 4)], names(&["b", "a"])));
    let crossed = thread(&format!(
        r#""lock": "a", "run": 1, "lock": "b", "run": 1, "unlock": "a", "run": 1, "unlock": "b", {timer}"#
    ));
    assert!(has(
        &crossed.unwrap(),
        "2: task \"a\": \"lock\" of \"b\" is not represented: the section from 1us to 3us overlaps"
    ));
    let open = thread(&format!(r#""lock": "a", "run": 1, "unlock": "b", {timer}"#)).unwrap();
    assert!(
        has(&open, "2: task \"a\": \"lock\" of \"a\" without an unlock")
            && has(&open, "2: task \"a\": \"unlock\" of \"b\" without")
    );
    assert!(open.set.resources().is_empty() && open.set.protocol() == Protocol::Inheritance, "nothing is shared");
    let turns = thread(&format!(r#""lock": "a", "run": 1, "unlock": "a", {timer}, "run": 2, {timer}"#)).unwrap();
    assert!(has(&turns, "2: task \"a\": its jobs differ by turns"), "{:?}", turns.notes);
    let inherits = json(
        r#"{ "global": { "pi_enabled": true }, "tasks": { "a": { "lock": "m", "run": 1, "unlock": "m", "timer": { "ref": "unique", "period": 9 } } } }"#,
    );
    assert_eq!(inherits.unwrap().set.protocol(), Protocol::Inheritance);
}

#[test]
fn periods_come_from_timers_sleeps_or_the_deadline_class() {
    let one = |body: &str| {
        let task = thread(body).unwrap().set.system.tasks_mut().remove(0);
        (task.period().unwrap(), task.deadline, task.wcet)
    };
    assert_eq!(one(r#""run": 5, "sleep": 10"#), (us(15), us(15), us(5)));
    assert_eq!(one(r#""run": 5, "run": 1, "timer": {"ref": "t", "period": 19}"#), (us(19), us(19), us(6)));
    // A timer without a period is ignored. A timer at the start counts for the events that follow. Two timers in turn
    // make two jobs per repetition.
    assert_eq!(one(r#""run": 5, "sleep": 4, "timer": {"ref": "t", "period": 0}"#), (us(9), us(9), us(5)));
    assert_eq!(one(r#""timer0": {"period": 20}, "run0": 4, "runtime1": 3"#), (us(20), us(20), us(7)));
    let in_turn = r#""run": 4, "timer": {"period": 20}, "run": 7, "timer": {"period": 20}"#;
    assert_eq!(one(in_turn), (us(20), us(20), us(7)));
    let deadline = r#""policy": "SCHED_DEADLINE", "dl-runtime": 3, "dl-period": 9, "dl-deadline": 8, "run": 2"#;
    assert_eq!(one(deadline), (us(9), us(8), us(3)));
    assert!(has(&thread(deadline).unwrap(), "2: task \"a\": its jobs run 2us: the dl-runtime 3us is taken"));
    // The older grammar, and a single phase that states everything.
    let older = r#""policy": "SCHED_DEADLINE", "runtime": 3, "period": 9, "deadline": 8"#;
    assert_eq!(one(older), (us(9), us(8), us(3)));
    let phase = r#""phases": { "p": { "loop": -1, "policy": "SCHED_RR", "run": 3, "timer": { "period": 9 } } }"#;
    assert_eq!(one(phase), (us(9), us(9), us(3)));
    assert_eq!(
        thread(phase).unwrap().set.tasks()[0].extra.get(Attribute::Priority),
        Some(10),
        "what rt-app gives them"
    );
}

#[test]
fn a_timer_of_several_threads_is_named() {
    let timer = r#""run": 1, "timer": { "ref": "tick", "period": 9 }"#;
    let shared = json(&format!(r#"{{ "tasks": {{ "a": {{ {timer} }}, "b": {{ {timer} }} }} }}"#)).unwrap();
    assert!(has(&shared, "1: timer \"tick\" is shared by 2 threads"), "{:?}", shared.notes);
    assert!(!thread(timer).unwrap().notes.iter().any(|note| note.contains("shared")));
    assert!(has(&thread(&format!("\"instance\": 3, {timer}")).unwrap(), "1: timer \"tick\" is shared by 3 threads"));
}

#[test]
fn wrong_workloads_are_one_line_with_file_line_and_value() {
    let most = i32::MAX;
    for (body, expected) in [
        ("\"run\": -5, \"sleep\": 1", format!("w.json:2: run = -5 must be a whole number from 0 to {most}")),
        ("\"run\": \"x\"", format!("w.json:2: run = \"x\" must be a whole number from 0 to {most}")),
        ("\"run\": 1,\n\"timer\": 5", "w.json:3: timer must be a table, not 5".into()),
        ("\"policy\": \"SCHED_EDF\"", "w.json:2: policy \"SCHED_EDF\" is none of SCHED_DEADLINE, ".into()),
        ("\"priority\": 1,\n\"priority\": 2", "w.json:3: key \"priority\" stands twice".into()),
        ("\"instance\": 20000", "w.json:2: instance = 20000 must be a whole number from 0 to 10000".into()),
        ("\"cpus\": [5000]", "w.json:2: cpus = 5000 must be".into()),
        ("\"run\": 5 \"sleep\": 1", "w.json:2: expected `,` or `}`".into()),
        ("\"run\": 5", "w.json: has no thread that can become a task: task \"a\": is left out: it runs without".into()),
        ("\"timer\": { \"mode\": \"odd\" }", "w.json:2: mode = \"odd\" is none of relative, absolute".into()),
    ] {
        let error = thread(body).unwrap_err();
        assert!(error.starts_with(&expected) && !error.contains('\n'), "{error}\n{expected}");
    }
    assert_eq!(json("{ \"tasks\": {} }").unwrap_err(), "w.json: has no thread that can become a task");
    let twice = r#""a-0": { "run": 1, "sleep": 1 }, "a": { "instance": 2, "run": 1, "sleep": 1 }"#;
    assert!(json(&format!("{{ \"tasks\": {{ {twice} }} }}")).unwrap_err().contains("the name \"a-0\" stands already"));
    let late = r#""policy": "SCHED_DEADLINE", "dl-runtime": 9, "dl-period": 5, "run": 9"#;
    assert_eq!(thread(late).unwrap().warnings, ["w.json:1: warning: task \"a\" has wcet 9us > deadline 5us"]);
}

#[test]
fn our_own_json_stays_ours() {
    let own =
        r#"{ "task": [ { "name": "tasks", "period": 5, "wcet": 1 } ], "mode": [ { "at": 5, "tasks": ["tasks"] } ] }"#;
    let loaded = json(own).unwrap();
    assert_eq!((loaded.set.tasks()[0].wcet, loaded.notes.len()), (ms(1), 0));
    assert!(json("{ \"tasks\": [] }").unwrap_err().contains("unknown key \"tasks\""));
    assert!(json("{ /* no comments */ \"task\": [] }").unwrap_err().starts_with("w.json:1: "));
}

#[test]
fn a_simulation_of_simso_becomes_a_set_and_the_rest_is_named() {
    let loaded = fixture("cell.xml");
    let set = &loaded.set;
    let names: Vec<_> = set.tasks().iter().map(|task| &task.name[..]).collect();
    assert_eq!(names, ["Press", "Belt", "Door", "Fixed"]);
    let press = Task::periodic("Press", us(7500), us(2100))
        .with_offset(us(250))
        .with_deadline(ms(7))
        .with_bcet(Time(1))
        .with_acet(Some(us(1500)))
        .with_execution(ExecutionModel::Normal { deviation: us(200) })
        .with_extra(Extra::default().with(Attribute::Priority, 3));
    assert_eq!(set.tasks()[0], press);
    assert_eq!(set.tasks()[1], Task::periodic("Belt", ms(12), ms(5)));
    let Arrival::Listed(jobs) = &set.tasks()[2].arrival else { panic!("a list of jobs") };
    let job = |release: Time| ListedJob::new(release, release + ms(4), ms(1));
    assert_eq!(jobs[..], [job(ms(3)), job(us(9500)), job(ms(20))]);
    assert_eq!((set.tasks()[3].bcet, set.tasks()[3].acet), (ms(2), Some(ms(2))), "always its ACET");
    assert_eq!((set.cores(), set.on_miss()), (2, OnMiss::Abort));
    assert_eq!(*set.costs(), Costs { context_switch: Time(1_200), migration: us(3), decision: Time::ZERO });
    for note in [
        "2: \"duration\" is not part of a task set: a horizon of 420ms",
        "3: the scheduler simso.schedulers.EDF is edf here",
        "3: \"overhead\" = 2us is not represented",
        "4: <caches> are not represented",
        "7: cl_overhead and cs_overhead become a context switch of 1.2us",
        "7: the overheads differ between processors",
        "18: task \"Press\": attribute \"colour\" = red is ignored",
        "20: task \"Belt\": \"followed_by\" = 3 is not represented",
        "20: task \"Belt\": \"preemption_cost\" = 4 is not represented",
        "19: \"abort_on_miss\" differs between tasks",
        "21: task \"Report\": is left out: another task activates it",
        "23: task \"Door\": its ACET is 0: each job takes its WCET",
    ] {
        assert!(has(&loaded, note), "{note} is not in {:#?}", loaded.notes);
    }
    assert_eq!(loaded.notes.len(), 12, "{:#?}", loaded.notes);
    let refused = write(set, Format::Csv).unwrap_err().to_string();
    assert!(refused.contains("single jobs beside tasks that recur cannot be written"), "{refused}");
}

#[test]
fn simulations_keep_their_defaults_and_units() {
    let plain = simulation("", "", TASK).unwrap();
    assert_eq!(plain.set.tasks(), [Task::periodic("a", ms(10), ms(4))]);
    assert!(plain.notes.is_empty(), "{:?}", plain.notes);
    // If all processors are twice as fast, times are halved. Cycles are converted with the clock of the file.
    let fast = simulation("cycles_per_ms='1000'", "speed='2.0' cl_overhead='10.0'", TASK).unwrap();
    assert_eq!((fast.set.tasks()[0].wcet, fast.set.costs().context_switch), (ms(2), us(10)));
    let unequal =
        simulation("cycles_per_ms='1000'", "speed='2.0'/><processor name='slow' speed='0.5'", TASK).unwrap().set;
    assert_eq!((unequal.tasks()[0].wcet, unequal.cores()), (ms(4), 2));
    let cores: Vec<(&str, u32)> =
        unequal.machine().cores().iter().map(|core| (core.name.as_str(), core.speed.0)).collect();
    assert_eq!((cores[0].1, cores[1]), (2_000, ("slow", 500)));
    let ignored = TASK.replace("WCET", "ACET='2' et_stddev='1' WCET");
    let ignored = simulation("etm='wcet'", "", &ignored).unwrap();
    assert_eq!(ignored.set.tasks()[0].execution, ExecutionModel::Wcet);
    assert!(has(&ignored, "\"ACET\" and \"et_stddev\" are ignored"), "{:?}", ignored.notes);
    let beyond = simulation("etm='acet'", "", &TASK.replace("WCET", "ACET='5' et_stddev='1' WCET")).unwrap();
    assert_eq!(beyond.set.tasks()[0].acet, Some(ms(4)));
    assert!(has(&beyond, "3: task \"a\": its ACET 5ms is more than its WCET 4ms"), "{:?}", beyond.notes);
    let text = write(&beyond.set, Format::Toml).unwrap();
    assert_eq!(parse(&text, Format::Toml, Path::new("s.toml")).unwrap().set.tasks(), beyond.set.tasks());
    for (attributes, note) in [
        ("use_wcet='no'", "1: etm = \"cache\" is not represented"),
        ("etm='fixedpenalty' penalty_migration='1000'", "1: \"penalty_migration\" = 1us is not represented"),
        ("etm='magic'", "1: the execution-time model etm = \"magic\" is unknown"),
        ("mood='good'", "1: unknown attribute \"mood\" is ignored"),
    ] {
        let loaded = simulation(attributes, "", TASK).unwrap();
        assert!(has(&loaded, note), "{:?}", loaded.notes);
    }
}

#[test]
fn wrong_simulations_are_one_line_with_file_line_and_value() {
    for (text, expected) in [
        ("", "s.xml:1: is not XML: "),
        ("<simulation>\n<tasks>\n</simulation>", "s.xml:3: is not XML: "),
        ("<project/>", "s.xml:1: is no file of SimSo: its root is <project>, not <simulation>"),
        ("<simulation/>", "s.xml:1: has no <processors>"),
        ("<simulation>\n<processors/></simulation>", "s.xml:2: 0 processors"),
        ("<simulation cycles_per_ms='0'/>", "s.xml:1: cycles_per_ms = 0 must be a whole number from 1 "),
        ("<simulation\n duration='x'/>", "s.xml:2: duration = x is not a number"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><simulation/>", "s.xml:1: is not XML: "),
    ] {
        let error = xml(text).unwrap_err();
        assert!(error.starts_with(expected) && !error.contains('\n'), "{error}");
    }
    for (old, new, expected) in [
        ("WCET='4'", "\nWCET='-4'", "s.xml:4: WCET = -4 is negative"),
        ("WCET='4'", "", "s.xml:3: task \"a\" has no WCET"),
        ("WCET='4'", "WCET='0'", "s.xml:2: has no task that can be simulated here"),
        ("period='10'", "", "s.xml:3: task \"a\" has no period"),
        ("period='10'", "period='nan'", "s.xml:3: period = nan is not a time"),
        ("id='1'", "task_type='Odd'", "s.xml:3: task_type = \"Odd\" is none of Periodic, Sporadic, APeriodic"),
        (
            "id='1'",
            "task_type='Sporadic' list_activation_dates='1,-2'",
            "s.xml:3: list_activation_dates: \"-2\" is negative",
        ),
        (TASK, &format!("{TASK}\n{TASK}"), "s.xml:4: the name \"a\" stands already in line 3"),
    ] {
        let error = simulation("", "", &TASK.replace(old, new)).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    assert!(write(&simulation("", "", TASK).unwrap().set, Format::SimSo).is_err());
}

#[test]
fn a_list_of_jobs_loses_nothing_on_the_way_to_csv() {
    let dates = TASK.replace("id='1'", "id='1' task_type='Sporadic' list_activation_dates='1, 20'");
    let mut set = simulation("", "", &dates).unwrap().set;
    let text = write(&set, Format::Csv).unwrap();
    assert_eq!(parse(&text, Format::Csv, Path::new("s.csv")).unwrap().set.tasks(), set.tasks());
    set.system.set_cores(2);
    assert!(write(&set, Format::Csv).unwrap_err().to_string().starts_with("\"cores\" of the whole set"));
    set.system.set_cores(1);
    set.system.tasks_mut()[0].extra.set(Attribute::Priority, Some(2));
    assert!(write(&set, Format::Csv).unwrap_err().to_string().starts_with("the priority of \"a\""));
    set.system.tasks_mut()[0].extra.set(Attribute::Priority, None);
    set.system.tasks_mut()[0].guarantee = true;
    assert!(write(&set, Format::Csv).unwrap_err().to_string().starts_with("the guarantee of \"a\""));
}

#[test]
fn what_rt_app_has_no_words_for_is_named() {
    let mut set = TaskSet::new("set", vec![Task::periodic("a", Time(10_500_500), Time(1_200_001))], 4);
    set.system.tasks_mut()[0].extra.set(Attribute::Priority, Some(3));
    set.system.tasks_mut()[0].guarantee = true;
    set.system
        .tasks_mut()
        .push(Task::periodic("b", ms(5), ms(2)).with_bcet(ms(1)).with_execution(ExecutionModel::Uniform));
    let burst = Arrival::Burst { jobs: 2, every: ms(5), until: Time::NEVER };
    set.system.tasks_mut().push(Task::periodic("c", ms(5), ms(2)).with_arrival(burst));
    set.system.set_costs(Costs { decision: us(1), ..*set.costs() });
    let exported = to_rt_app(&set).unwrap();
    let expected = [
        "task \"a\": its wcet 1.200001ms is rounded to 1.201ms",
        "task \"a\": its period 10.5005ms is rounded to 10.5ms",
        "task \"a\": its deadline 10.5005ms is rounded to 10.5ms",
        "task \"a\": guarantee is not represented",
        "task \"a\": priority is not represented",
        "task \"b\": execution times below the wcet are not represented",
        "task \"c\": is left out: rt-app has no bursts",
        "cores = 4 is not represented: rt-app uses the machine it runs on",
        "on_miss = abort is not represented: rt-app lets a late job go on",
        "costs are not represented",
    ];
    assert_eq!(exported.notes, expected);
    set.system.tasks_mut().drain(..2);
    let error = to_rt_app(&set).unwrap_err().to_string();
    assert!(error.contains("task \"c\": is left out: rt-app has no bursts"), "{error}");
    let strange = [(Time(400), ms(1)), (Time::from_secs(9_000), ms(1)), (ms(5), Time::ZERO)];
    for (period, wcet) in strange {
        let _ = to_rt_app(&TaskSet::new("set", vec![Task::periodic("a", period, wcet)], 1));
    }
}

#[test]
fn rt_app_gets_names_of_which_it_can_make_files() {
    let named = |name: &str| Task::periodic(name, ms(10), ms(1));
    let tasks = ["a/b/c", "a_b/c", "a_b_c", "plain"].map(named);
    let exported = to_rt_app(&TaskSet::new("set", tasks.into(), 1)).unwrap();
    let names: Vec<&str> = exported.text.lines().filter_map(|line| line.split('"').nth(1)).skip(2).collect();
    assert_eq!(names, ["a_b_c_", "a_b_c__", "a_b_c", "plain"], "{}", exported.text);
    assert!(exported.notes[0].starts_with("task \"a/b/c\": is named \"a_b_c_\""), "{:?}", exported.notes);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_for_rt_app_reads_back(
        tasks in prop::collection::vec(("[a-z \"\\\\/é*,]{1,8}", 1u64..1 << 31, 1u64..1 << 31, 1u64..1 << 31, 0u64..1 << 31), 1..6),
    ) {
        let tasks = tasks.into_iter().enumerate().map(|(index, (name, period, wcet, deadline, offset))| {
            let task = Task::periodic(format!("{index}{name}."), us(period), us(wcet));
            task.with_deadline(us(deadline)).with_offset(us(offset))
        });
        let set = TaskSet::new("set", tasks.collect(), 1).with_on_miss(OnMiss::Continue);
        let exported = to_rt_app(&set).unwrap();
        let again = json(&exported.text);
        prop_assert!(again.is_ok(), "{:?}\n{}", again, exported.text);
        let again = again.unwrap();
        let mut tasks = set.tasks().to_vec();
        tasks.iter_mut().for_each(|task| task.name = task.name.replace('/', "_"));
        prop_assert_eq!(again.set.tasks(), &tasks[..]);
    }

    #[test]
    fn no_mutation_of_an_import_makes_a_parser_panic(
        at in 0.0..1.0f64, length in 0usize..30, insert in "[\\[\\]\"=,.0-9a-z\\-\n#{}<>/*' ]{0,8}",
    ) {
        for (text, format) in [
            (include_str!("imports/robot.json"), Format::Json),
            (include_str!("imports/cell.xml"), Format::SimSo),
        ] {
            let start = (at * text.len() as f64) as usize;
            let mut text = text.to_string();
            text.replace_range(start..(start + length).min(text.len()), &insert);
            if let Err(error) = parse(&text, format, Path::new("file")) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }

    #[test]
    fn no_text_makes_an_importer_panic(text in ".{0,200}") {
        let _ = xml(&text);
        let _ = json(&format!("{{ \"tasks\": {{ {text}"));
    }
}
