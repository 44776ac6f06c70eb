//! Contract: what is written reads back as the same set, and no text makes a parser panic.

use proptest::prelude::*;
use temponet_formats::{Format, builtin, key_tables, template, write};
use temponet_task::{
    Arrival, Attribute, Chain, Communication, Core, CoreId, CoreSet, Costs, ExecutionModel, Gap, Mode, OnMiss,
    Preemption, Protocol, ResourceId, Section, Server, Speed, Task, TaskId, TaskSet, Time, TimeUnit,
};

use crate::read;

#[test]
fn a_guarantee_is_written_only_where_there_is_one() {
    let ms = Time::from_ms;
    let mut set = TaskSet::new("set", vec![Task::periodic("a", ms(10), ms(2)), Task::periodic("b", ms(10), ms(2))], 1);
    for format in [Format::Toml, Format::Json, Format::Csv] {
        assert!(!write(&set, format).unwrap().contains("guarantee"));
    }
    set.system.tasks_mut()[1].guarantee = true;
    assert!(
        write(&set, Format::Toml)
            .unwrap()
            .ends_with("name = \"b\"\nperiod = \"10ms\"\nwcet = \"2ms\"\nguarantee = true\n")
    );
    assert_eq!(write(&set, Format::Json).unwrap().matches("\"guarantee\": true").count(), 1);
    assert_eq!(write(&set, Format::Csv).unwrap(), "name,period,wcet,guarantee\na,10ms,2ms,\nb,10ms,2ms,true\n");
}

#[test]
fn built_in_sets_survive_every_format_that_can_hold_them() {
    for set in builtin::ALL {
        let set = set.load().unwrap().set;
        for format in [Format::Toml, Format::Json] {
            let text = write(&set, format).unwrap();
            let again = read(&text, format).unwrap().set;
            assert_eq!(again.with_name(set.name.clone()), set, "{text}");
        }
    }
}

#[test]
fn the_template_is_a_valid_set_also_with_everything_uncommented() {
    let template = template();
    let loaded = read(&template, Format::Toml).unwrap();
    assert_eq!((loaded.set.tasks().len(), loaded.warnings.len()), (3, 0));
    assert!(loaded.set.mean_utilization() > 1.0);
    // The commented blocks at the end are valid as they are, and every other commented key is known.
    let (tasks, blocks) = template.split_at(template.find("# A load peak").unwrap());
    let is_data = |line: &&str| line.starts_with("[[") || line.contains(" = ");
    let blocks: Vec<&str> = blocks.lines().filter_map(|line| line.strip_prefix("# ")).filter(is_data).collect();
    // The tables of cores take the place of their number.
    let others = tasks.replace("\ncores = 1", "\n# cores = 1");
    let set = read(&format!("{others}\n{}", blocks.join("\n")), Format::Toml).unwrap().set;
    assert_eq!((set.tasks().len(), set.modes().len(), set.servers().len(), set.chains().len()), (5, 1, 1, 1));
    assert_eq!(set.cores(), 6);
    // Every key of every table is there, with its meaning where it stands first.
    for (name, table) in key_tables().into_iter().filter(|(name, _)| !["job", "execution"].contains(name)) {
        let keys = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        for key in keys.filter(|key| *key != "$schema") {
            let is_there = template.contains(&format!("{key} = ")) || template.contains(key) && key.starts_with("[[");
            assert!(is_there, "{key} of {name}");
        }
    }
    let keys: Vec<&str> = tasks.lines().filter(|line| line.starts_with("# ") && line.contains(" = ")).collect();
    assert!(keys.len() > 10);
    for key in keys {
        let error = read(&tasks.replace(key, &key[2..]), Format::Toml).err().unwrap_or_default();
        assert!(!error.contains("unknown key"), "{error}");
    }
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
        task.extra.set(Attribute::Priority, priority);
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
            (task.wcet_high, task.mk) = (Some(wcet + bcet), Some((1, 2)));
            task.extra.set(Attribute::Skip, Some(3));
            task.execution = ExecutionModel::Overrun { probability: 0.25, below: Box::new(task.execution) };
        }
        task
    })
}

pub fn any_set() -> impl Strategy<Value = TaskSet> {
    (prop::collection::vec(any_task(), 1..5), 1usize..9, any::<bool>()).prop_map(|(mut tasks, cores, more)| {
        for (index, task) in tasks.iter_mut().enumerate() {
            task.name = format!("#{} {index}", task.name);
        }
        let mut set = TaskSet::new("set", tasks, cores);
        if more {
            set.description = "with \"quotes\"".into();
            set.system.set_on_miss(OnMiss::Continue);
            set.time_unit = TimeUnit::Us;
            set.system.set_speeds(vec![Speed(250), Speed::FULL]);
            set.system.set_costs(Costs { migration: Time::from_us(5), ..*set.costs() });
            set.system.set_servers(vec![Server { name: "s".into(), budget: Time(5), period: Time(9) }]);
            set.system.tasks_mut()[0].extra.set(Attribute::Server, Some(0));
            let slower = set.task_ids().skip(1).map(|task| (task, 1.35)).collect();
            let mode = Mode::new("m", Time(7)).with_work(1.25).with_rate(0.5);
            set.set_modes(vec![mode.with_slower(slower).with_stop(vec![TaskId(0)])]);
            let arrival = Arrival::Burst { jobs: 2, every: Time(50), until: Time(500) };
            let Task { guarantee, .. } = set.tasks()[0];
            let preemption = Preemption::Every(Time(2));
            set.system.tasks_mut().push(
                Task::periodic("burst", Time(50), Time(3))
                    .with_arrival(arrival)
                    .with_guarantee(guarantee)
                    .with_preemption(preemption),
            );
        } else if set.tasks().len() > 2 {
            // Where the first task is a source, the second follows it and the third reads.
            set.system.tasks_mut()[1].after = vec![TaskId(0)];
            set.system.tasks_mut()[2].reads = vec![TaskId(1), TaskId(0)];
            if cores % 2 == 0 {
                let (name, tasks, deadline) = ("chain".into(), [0, 1, 2].map(TaskId).into(), Some(Time(77)));
                set.system.set_chains(vec![Chain { name, tasks, deadline, communication: Communication::Let }]);
            }
            set.system.follow_sources().unwrap();
        }
        if cores > 2 && set.speeds().len() == 1 {
            let core = |core: usize| match core < cores / 2 {
                true => Core::new("big", Speed(1_500)),
                false => Core::new("little", Speed(370)).with_only(cores == 5),
            };
            set.system.set_machine((0..cores).map(core).filter(|_| cores > 4).collect());
        }
        for (index, task) in set.system.tasks_mut().iter_mut().enumerate().filter(|(index, _)| index % 2 == 1) {
            let first = if index % 4 == 1 { 0 } else { cores / 2 };
            task.cores = CoreSet::of([first, cores - 1 - first % 2].map(CoreId::new));
        }
        if more {
            // The first resource that a task names is the first of the set.
            for (index, task) in set.system.tasks_mut().iter_mut().enumerate().filter(|(_, task)| task.wcet > Time(2)) {
                if matches!(task.arrival, Arrival::Burst { .. }) || index > 1 {
                    continue;
                }
                let section = |resource, length| Section { resource, at: Time(1), length: Time(length) };
                task.sections = vec![section(ResourceId(0), task.wcet.0 - 1), section(ResourceId(1), 1)];
            }
            if set.task_with_sections().is_some() {
                set.system.set_resources(vec!["the bus".into(), "\"b\"".into()]);
            }
            set.system.set_protocol(if set.cores() == 1 { Protocol::Ceiling } else { Protocol::None });
        }
        set
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_reads_back(set in any_set()) {
        for format in [Format::Toml, Format::Json, Format::Csv] {
            match write(&set, format) {
                Ok(text) => match read(&text, format) {
                    Ok(loaded) => prop_assert_eq!(&loaded.set.with_time_unit(set.time_unit), &set, "{}", text),
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
