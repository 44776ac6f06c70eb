use super::*;
use crate::{
    Aim, Arrival, Attribute, Chain, Communication, Core, CoreId, CoreSet, Costs, Estimate, ExecutionModel, Gap,
    ListedJob, Mode, OnMiss, Preemption, Protocol, ResourceId, Section, Server, Speed, Task, TaskId, Time, TimeUnit,
};
use std::collections::HashMap;

#[test]
fn the_hash_is_the_published_one() {
    assert_eq!(fnv(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    assert_eq!(fnv(b"foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
}

/// A change of one property, with its name.
type Change = (&'static str, fn(&mut TaskSet));

/// Every change of one property.
fn changes() -> Vec<Change> {
    fn task(set: &mut TaskSet, change: impl FnOnce(&mut Task)) {
        change(&mut set.system.tasks_mut()[0]);
    }
    fn listed(set: &mut TaskSet, change: impl FnOnce(&mut ListedJob)) {
        let mut job = ListedJob::new(Time(0), Time(9), Time(3));
        change(&mut job);
        task(set, |task| task.arrival = Arrival::Listed(vec![job].into()));
    }
    fn chain(set: &mut TaskSet, change: impl FnOnce(&mut Chain)) {
        let (name, tasks, communication) = ("c".into(), vec![TaskId(0), TaskId(1)], Communication::Implicit);
        let mut chain = Chain { name, tasks, deadline: None, communication };
        change(&mut chain);
        set.system.set_chains(vec![chain]);
    }
    fn server(set: &mut TaskSet, name: &str, budget: u64, period: u64) {
        set.system.set_servers(vec![Server { name: name.into(), budget: Time(budget), period: Time(period) }]);
    }
    fn mode(set: &mut TaskSet, change: impl FnOnce(&mut Mode)) {
        let mut mode = Mode::new("m", Time(1));
        change(&mut mode);
        set.set_modes(vec![mode]);
    }
    fn model(set: &mut TaskSet, model: ExecutionModel) {
        task(set, |task| task.execution = model);
    }
    fn cost(set: &mut TaskSet, times: [u64; 3]) {
        let [context_switch, migration, decision] = times.map(Time);
        set.system.set_costs(Costs { context_switch, migration, decision });
    }
    vec![
        ("nothing", |_| {}),
        ("name", |set| set.name = "other".into()),
        ("description", |set| set.description = "other".into()),
        ("time_unit", |set| set.time_unit = TimeUnit::Us),
        ("mode", |set| mode(set, |_| {})),
        ("mode name", |set| mode(set, |mode| mode.name = "n".into())),
        ("mode at", |set| mode(set, |mode| mode.at = Time(2))),
        ("mode work", |set| mode(set, |mode| mode.work = 2.0)),
        ("mode rate", |set| mode(set, |mode| mode.rate = 2.0)),
        ("mode slow", |set| mode(set, |mode| mode.rate = 0.5)),
        ("mode stop", |set| mode(set, |mode| mode.stop = vec![TaskId(0)])),
        ("mode stop", |set| mode(set, |mode| mode.stop = vec![TaskId(1)])),
        ("mode slower", |set| mode(set, |mode| mode.slower = vec![(TaskId(0), 0.5)])),
        ("mode slower task", |set| mode(set, |mode| mode.slower = vec![(TaskId(1), 0.5)])),
        ("mode slower factor", |set| mode(set, |mode| mode.slower = vec![(TaskId(0), 0.25)])),
        ("fewer tasks", |set| drop(set.system.tasks_mut().pop())),
        ("cores", |set| set.system.set_cores(3)),
        ("machine", |set| set.system.set_machine(vec![Core::new("a", Speed(1)), Core::new("a", Speed(2))])),
        ("machine names", |set| set.system.set_machine(vec![Core::new("b", Speed(1)), Core::new("a", Speed(2))])),
        ("only", |set| {
            set.system.set_machine(vec![Core::new("a", Speed(1)).with_only(true), Core::new("a", Speed(2))])
        }),
        ("on_miss", |set| set.system.set_on_miss(OnMiss::Continue)),
        ("context switch", |set| cost(set, [1, 0, 0])),
        ("migration", |set| cost(set, [0, 1, 0])),
        ("decision", |set| cost(set, [0, 0, 1])),
        ("speeds", |set| set.system.set_speeds(vec![Speed(500), Speed::FULL])),
        ("server", |set| server(set, "s", 1, 2)),
        ("server name", |set| server(set, "t", 1, 2)),
        ("server budget", |set| server(set, "s", 2, 2)),
        ("server period", |set| server(set, "s", 1, 3)),
        ("chain", |set| chain(set, |_| {})),
        ("chain name", |set| chain(set, |chain| chain.name = "d".into())),
        ("chain tasks", |set| chain(set, |chain| chain.tasks = vec![TaskId(1), TaskId(0)])),
        ("chain deadline", |set| chain(set, |chain| chain.deadline = Some(Time(1)))),
        ("communication", |set| chain(set, |chain| chain.communication = Communication::Let)),
        ("resources", |set| set.system.set_resources(vec!["bus".into()])),
        ("protocol", |set| set.system.set_protocol(Protocol::Ceiling)),
        ("aims", |set| set.system.set_aims(vec![Aim::WorstTask])),
        ("aims that derive the same goal", |set| set.system.set_aims(vec![Aim::Met])),
        ("goal", |set| {
            let tasks = set.tasks().to_vec();
            task(set, |task| task.criticality = 9);
            set.system = set.system.described_by(tasks);
        }),
        ("task name", |set| task(set, |task| task.name = "x".into())),
        ("period", |set| task(set, |task| task.arrival = Arrival::Periodic { period: Time(11) })),
        ("sporadic", |set| {
            task(set, |task| {
                task.arrival = Arrival::Sporadic { minimum: Time(10), gap: Gap::Uniform { max: Time(10) } }
            })
        }),
        ("gap", |set| {
            task(set, |task| {
                task.arrival = Arrival::Sporadic { minimum: Time(10), gap: Gap::Uniform { max: Time(11) } }
            })
        }),
        ("exponential", |set| {
            let gap = Gap::Exponential { mean: Time(10) };
            task(set, |task| task.arrival = Arrival::Sporadic { minimum: Time(10), gap })
        }),
        ("minimum", |set| {
            let gap = Gap::Exponential { mean: Time(10) };
            task(set, |task| task.arrival = Arrival::Sporadic { minimum: Time(9), gap })
        }),
        ("burst", |set| task(set, |task| task.arrival = Arrival::Burst { jobs: 1, every: Time(10), until: Time(20) })),
        ("burst jobs", |set| {
            task(set, |task| task.arrival = Arrival::Burst { jobs: 2, every: Time(10), until: Time(20) })
        }),
        ("burst every", |set| {
            task(set, |task| task.arrival = Arrival::Burst { jobs: 1, every: Time(11), until: Time(20) })
        }),
        ("burst until", |set| {
            task(set, |task| task.arrival = Arrival::Burst { jobs: 1, every: Time(10), until: Time(21) })
        }),
        ("no jobs", |set| task(set, |task| task.arrival = Arrival::Listed([].into()))),
        ("listed", |set| listed(set, |_| {})),
        ("listed release", |set| listed(set, |job| job.release = Time(1))),
        ("listed deadline", |set| listed(set, |job| job.deadline = Time(8))),
        ("listed execution", |set| listed(set, |job| job.execution = Time(2))),
        ("listed wcet", |set| listed(set, |job| job.wcet = Time(4))),
        ("listed bcet", |set| listed(set, |job| job.bcet = Time(1))),
        ("listed criticality", |set| listed(set, |job| job.criticality = 1)),
        ("listed value", |set| listed(set, |job| job.value = 2.0)),
        ("estimate", |set| listed(set, |job| job.estimate = Estimate::new(Time(1), Time(2)))),
        ("estimate median", |set| listed(set, |job| job.estimate = Estimate::new(Time(2), Time(2)))),
        ("estimate high", |set| listed(set, |job| job.estimate = Estimate::new(Time(1), Time(3)))),
        ("wcet", |set| task(set, |task| task.wcet = Time(6))),
        ("bcet", |set| task(set, |task| task.bcet = Time(1))),
        ("acet", |set| task(set, |task| task.acet = Some(Time(5)))),
        ("uniform", |set| model(set, ExecutionModel::Uniform)),
        ("normal", |set| model(set, ExecutionModel::Normal { deviation: Time(1) })),
        ("deviation", |set| model(set, ExecutionModel::Normal { deviation: Time(2) })),
        ("weibull", |set| model(set, ExecutionModel::Weibull { exceed: 0.1 })),
        ("exceed", |set| model(set, ExecutionModel::Weibull { exceed: 0.2 })),
        ("pareto", |set| model(set, ExecutionModel::Pareto { shape: 0.1 })),
        ("shape", |set| model(set, ExecutionModel::Pareto { shape: 0.2 })),
        ("lognormal", |set| model(set, ExecutionModel::Lognormal { median: Time(1), sigma: 1.0 })),
        ("median", |set| model(set, ExecutionModel::Lognormal { median: Time(2), sigma: 1.0 })),
        ("sigma", |set| model(set, ExecutionModel::Lognormal { median: Time(1), sigma: 2.0 })),
        ("bimodal", |set| {
            model(set, ExecutionModel::Bimodal { levels: [Time(1), Time(2)], probability: 0.1, spread: 0.1 })
        }),
        ("levels", |set| {
            model(set, ExecutionModel::Bimodal { levels: [Time(2), Time(1)], probability: 0.1, spread: 0.1 })
        }),
        ("probability", |set| {
            model(set, ExecutionModel::Bimodal { levels: [Time(1), Time(2)], probability: 0.2, spread: 0.1 })
        }),
        ("spread", |set| {
            model(set, ExecutionModel::Bimodal { levels: [Time(1), Time(2)], probability: 0.1, spread: 0.2 })
        }),
        ("empirical", |set| model(set, ExecutionModel::Empirical { samples: [Time(1)].into() })),
        ("samples", |set| model(set, ExecutionModel::Empirical { samples: [Time(1), Time(1)].into() })),
        ("overrun", |set| {
            model(set, ExecutionModel::Overrun { probability: 0.1, below: Box::new(ExecutionModel::Wcet) })
        }),
        ("overrun probability", |set| {
            model(set, ExecutionModel::Overrun { probability: 0.2, below: Box::new(ExecutionModel::Wcet) })
        }),
        ("below", |set| {
            model(set, ExecutionModel::Overrun { probability: 0.1, below: Box::new(ExecutionModel::Uniform) })
        }),
        ("estimate_error", |set| task(set, |task| task.estimate_error = Some(0.0))),
        ("wcet_high", |set| task(set, |task| task.wcet_high = Some(Time(5)))),
        ("deadline", |set| task(set, |task| task.deadline = Time(9))),
        ("offset", |set| task(set, |task| task.offset = Time(1))),
        ("jitter", |set| task(set, |task| task.jitter = Time(1))),
        ("criticality", |set| task(set, |task| task.criticality = 1)),
        ("guarantee", |set| task(set, |task| task.guarantee = true)),
        ("value", |set| task(set, |task| task.value = 2.0)),
        ("priority", |set| task(set, |task| task.extra.set(Attribute::Priority, Some(1)))),
        ("skip", |set| task(set, |task| task.extra.set(Attribute::Skip, Some(2)))),
        ("mk", |set| task(set, |task| task.mk = Some((1, 2)))),
        ("mk", |set| task(set, |task| task.mk = Some((2, 1)))),
        ("served by", |set| task(set, |task| task.extra.set(Attribute::Server, Some(0)))),
        ("not preempted", |set| task(set, |task| task.preemption = Preemption::None)),
        ("cancelled", |set| task(set, |task| task.preemption = Preemption::Cancel)),
        ("preempted every", |set| task(set, |task| task.preemption = Preemption::Every(Time(1)))),
        ("after", |set| task(set, |task| task.after = vec![TaskId(1)])),
        ("reads", |set| task(set, |task| task.reads = vec![TaskId(1)])),
        ("section", |set| {
            task(set, |task| task.sections = vec![Section { resource: ResourceId(0), at: Time(0), length: Time(1) }])
        }),
        ("resource", |set| {
            task(set, |task| task.sections = vec![Section { resource: ResourceId(1), at: Time(0), length: Time(1) }])
        }),
        ("at", |set| {
            task(set, |task| task.sections = vec![Section { resource: ResourceId(0), at: Time(1), length: Time(1) }])
        }),
        ("length", |set| {
            task(set, |task| task.sections = vec![Section { resource: ResourceId(0), at: Time(0), length: Time(2) }])
        }),
        ("affinity", |set| task(set, |task| task.cores = CoreSet::of([0, 1].map(CoreId)))),
        ("affinity", |set| task(set, |task| task.cores = CoreSet::of([CoreId(1)]))),
        ("is_part", |set| task(set, |task| task.is_part = true)),
    ]
}

#[test]
fn every_property_changes_the_encoding() {
    let tasks = vec![Task::periodic("a", Time(10), Time(5)), Task::periodic("b", Time(20), Time(5))];
    let base = TaskSet::new("s", tasks, 2);
    let (mut seen, mut systems) = (HashMap::new(), HashMap::new());
    for (index, (name, change)) in changes().into_iter().enumerate() {
        let mut set = base.clone();
        change(&mut set);
        if let Some(other) = seen.insert(set.fingerprint(), name) {
            panic!("{name} and {other} have the same encoding");
        }
        // The first entries change what a set has in addition.
        let is_of_system = set.system != base.system;
        let before = systems.insert(set.system.fingerprint(), index);
        assert_eq!(is_of_system || index == 0, before.is_none(), "{name}");
    }
}

#[test]
fn the_encoding_of_a_version_does_not_change() {
    let tasks = vec![Task::periodic("a", Time(10), Time(5)).with_mk(Some((1, 2))).with_value(0.5)];
    let system = System::new(tasks, 2);
    assert_eq!((VERSION, system.fingerprint().as_str()), (1, "dd50e4825c0e2ba3756cab36e76b6736"));
}
