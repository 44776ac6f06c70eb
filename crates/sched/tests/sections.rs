//! Contract where tasks share resources: one job at a time holds a resource, whichever scheduler chooses; under the
//! ceiling protocol a job waits at most once and only before it starts; and no simulation refutes what is proved, nor
//! exceeds a bound on a response time.

use std::collections::{BTreeMap, HashMap};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_analysis::{Outcome, PriorityRule, response_times, sharing_response_times};
use temponet_sched::catalog::all;
use temponet_sched::{build, proofs};
use temponet_sim::{End, Recorder, SimError, Unobserved, simulate};
use temponet_task::{
    Arrival, Attribute, Costs, ExecutionModel, Gap, OnMiss, Preemption, Protocol, ResourceId, Section, Task, TaskSet,
    Time,
};

use crate::task_sets::{Kind, drawn, model, ms, set, uncovered_sets};

/// Gives tasks critical sections, so that some are nested.
fn share(rng: &mut Pcg64, set: &mut TaskSet, most: u64) {
    set.system.set_resources((0..rng.random_range(1..4)).map(|index| format!("r{index}")).collect());
    let resources = set.resources().to_vec();
    for task in set.system.tasks_mut().iter_mut() {
        for _ in 0..rng.random_range(0..4) {
            let at = rng.random_range(0..task.wcet.0);
            let length = rng.random_range(1..=(task.wcet.0 - at).min(most.max(1)));
            let resource = rng.random_range(0..resources.len());
            task.sections.push(Section { resource: ResourceId::new(resource), at: Time(at), length: Time(length) });
            if task.section_problem(&resources).is_some() {
                task.sections.pop();
            }
        }
    }
    if set.tasks().iter().all(|task| task.sections.is_empty()) {
        set.system.tasks_mut()[0].sections = vec![Section { resource: ResourceId(0), at: Time::ZERO, length: Time(1) }];
    }
}

/// A set of tasks that arrive and take as long as they like, on one core.
fn sharing_set(rng: &mut Pcg64) -> TaskSet {
    let tasks = (0..rng.random_range(2..6i64)).map(|index| {
        let period = rng.random_range(10..60);
        let wcet = rng.random_range(1..=(period / 4).max(1));
        let mut task = Task::periodic(format!("t{index}"), Time(period), Time(wcet));
        task.extra.set(Attribute::Priority, Some(index % 4));
        (task.deadline, task.offset) = (Time(rng.random_range(wcet..2 * period)), Time(rng.random_range(0..period)));
        if rng.random_bool(0.4) {
            task.arrival = Arrival::Sporadic { minimum: Time(period), gap: Gap::Uniform { max: Time(2 * period) } };
        }
        if rng.random_bool(0.5) {
            (task.bcet, task.execution) = (Time(1), ExecutionModel::Uniform);
        }
        if rng.random_bool(0.2) {
            task.jitter = Time(rng.random_range(0..period / 2));
        }
        task
    });
    let mut set = TaskSet::new("sharing", tasks.collect(), 1);
    share(rng, &mut set, 8);
    set.system.set_protocol([Protocol::Inheritance, Protocol::Ceiling][rng.random_range(0..2)]);
    if rng.random_bool(0.5) {
        // The levels are then the relative deadlines.
        set.system.tasks_mut()[0].extra.set(Attribute::Priority, None);
    }
    set
}

#[test]
fn one_job_at_a_time_holds_a_resource_under_every_scheduler() {
    let mut rng = Pcg64::seed_from_u64(91);
    let (mut runs, mut waits, mut refused) = (BTreeMap::new(), 0, BTreeMap::new());
    for round in 0..240u64 {
        let cores = [1, 1, 2, 3][round as usize % 4];
        let mut set = drawn(&mut rng, cores, if round % 3 == 0 { Kind::Plain } else { Kind::Wild });
        share(&mut rng, &mut set, 20_000_000);
        set.system.set_protocol(Protocol::ALL[rng.random_range(0..if cores > 1 { 2 } else { 3 })]);
        set.system.set_on_miss([OnMiss::Abort, OnMiss::Continue][rng.random_range(0..2)]);
        if rng.random_bool(0.3) {
            set.system.tasks_mut()[0].preemption =
                [Preemption::None, Preemption::Every(Time::from_ms(1))][rng.random_range(0..2)];
        }
        if rng.random_bool(0.2) {
            set.system.set_costs(Costs { context_switch: Time::from_us(rng.random_range(0..200)), ..*set.costs() });
        }
        assert_eq!(set.system.validate(), Ok(()));
        let horizon = set.tasks().iter().filter_map(Task::period).max().unwrap() * 4;
        for entry in all() {
            let mut recorder = Recorder::until(Time::NEVER);
            match simulate(&set, round, horizon, &mut *build(&entry.name).unwrap(), &mut recorder) {
                Ok(_) => *runs.entry(&*entry.name).or_insert(0) += 1,
                Err(SimError::NotApplicable(_)) => {
                    *refused.entry(&*entry.name).or_insert(0) += 1;
                    continue;
                }
                Err(error) => panic!("{}: {error}: {set:?}", entry.name),
            }
            waits += recorder.waits.len();
            for resource in 0..set.resources().len() as u32 {
                let mut holds: Vec<_> =
                    recorder.holds.iter().filter(|hold| hold.resource == ResourceId(resource)).collect();
                holds.sort_by_key(|hold| (hold.start, hold.end));
                let overlaps = holds.windows(2).find(|pair| pair[0].end > pair[1].start);
                assert_eq!(overlaps, None, "{}: {set:?}", entry.name);
            }
            // A job that waits does not run.
            for wait in &recorder.waits {
                let of_job =
                    recorder.slices.iter().filter(|slice| (slice.task, slice.number) == (wait.task, wait.number));
                let runs = of_job.clone().any(|slice| slice.start < wait.end && slice.end > wait.start);
                assert!(!runs, "{}: {wait:?} {set:?}", entry.name);
            }
        }
    }
    assert!(waits > 20_000, "{waits}");
    for name in [
        "edf",
        "fp",
        "rm",
        "rr",
        "llf",
        "mllf",
        "srpt",
        "mh-edf",
        "look-ahead",
        "dasa",
        "cbs",
        "edf-vd",
        "muf",
        "cc-edf",
    ] {
        assert_eq!(runs.get(name), Some(&240), "{name} {refused:?}");
    }
    for name in ["dp-wrap", "pd2", "er-pd2", "llref", "lre-tl", "run", "cd-split", "d-over"] {
        assert!(!runs.contains_key(name), "{name}");
    }
    assert!(runs["p-edf"] > 100 && refused["p-edf"] > 10, "{:?} {:?}", runs["p-edf"], refused["p-edf"]);
}

#[test]
fn under_the_ceiling_protocol_a_job_waits_once_and_before_it_starts() {
    let mut rng = Pcg64::seed_from_u64(92);
    let mut waited = 0;
    for round in 0..3_000u64 {
        let mut set = sharing_set(&mut rng);
        set.system.set_protocol(Protocol::Ceiling);
        set.system.tasks_mut().iter_mut().for_each(|task| task.jitter = Time::ZERO);
        set.system.set_on_miss([OnMiss::Abort, OnMiss::Continue][round as usize % 2]);
        // Fixed priorities in the order of the levels; EDF and DM where these are the relative deadlines.
        let by_priority = set.tasks().iter().all(|task| task.extra.has(Attribute::Priority));
        for scheduler in if by_priority { &["fp", "fcfs"][..] } else { &["edf", "dm", "fcfs"][..] } {
            let mut recorder = Recorder::until(Time::NEVER);
            simulate(&set, round, Time(600), &mut *build(scheduler).unwrap(), &mut recorder).unwrap();
            let starts: HashMap<_, _> =
                recorder.jobs.iter().map(|job| ((job.task, job.number), job.start.unwrap_or(Time::NEVER))).collect();
            let mut times = HashMap::new();
            for wait in &recorder.waits {
                let job = (wait.task, wait.number);
                assert!(wait.end <= starts[&job], "{scheduler}: {wait:?} {set:?}");
                *times.entry(job).or_insert(0) += 1;
                waited += 1;
            }
            assert!(times.values().all(|times| *times == 1), "{scheduler}: {times:?} {set:?}");
        }
    }
    assert!(waited > 3_000, "{waited}");
}

#[test]
fn no_response_exceeds_its_bound() {
    let mut rng = Pcg64::seed_from_u64(93);
    let (mut checked, mut close) = ([0; 2], [0; 2]);
    let rules =
        [PriorityRule::RateMonotonic, PriorityRule::DeadlineMonotonic, PriorityRule::Given, PriorityRule::Equal];
    for round in 0..12_000u64 {
        let mut set = sharing_set(&mut rng);
        set.system.set_on_miss(OnMiss::Continue);
        let rule = rules[round as usize % 4];
        let bounds = sharing_response_times(&set, rule).unwrap().bounds;
        if bounds.iter().any(Option::is_none) {
            continue;
        }
        let mut recorder = Recorder::until(Time::NEVER);
        simulate(&set, round, Time(1_500), &mut *build(rule.scheduler()).unwrap(), &mut recorder).unwrap();
        let which = usize::from(set.protocol() == Protocol::Ceiling);
        for job in recorder.jobs.iter().filter(|job| job.end == End::Completed) {
            let arrival = job.deadline - set.tasks()[job.task].deadline;
            let bound = bounds[job.task].unwrap();
            assert!(job.left - arrival <= bound, "{rule:?} {job:?} {bound}: {set:?}");
            checked[which] += 1;
            close[which] += usize::from((job.left - arrival).0 * 10 >= bound.0 * 9);
        }
    }
    assert!(checked.iter().all(|checked| *checked > 50_000), "{checked:?}");
    assert!((0..2).all(|which| close[which] * 50 > checked[which]), "{close:?} of {checked:?}");
}

#[test]
fn what_is_proved_is_never_refuted() {
    let mut rng = Pcg64::seed_from_u64(94);
    let mut proved = BTreeMap::new();
    for round in 0..8_000u64 {
        let set = sharing_set(&mut rng);
        for proof in proofs(&set) {
            let run = simulate(&set, round, Time(1_500), &mut *build(proof.scheduler).unwrap(), &mut Unobserved);
            assert_eq!(run.unwrap().missed(), 0, "{} by {:?}: {set:?}", proof.scheduler, proof.by);
            *proved.entry((proof.scheduler, set.protocol().name())).or_insert(0) += 1;
        }
    }
    for name in ["edf", "rm", "dm", "fp", "fcfs"] {
        for protocol in ["inheritance", "ceiling"] {
            assert!(proved.get(&(name, protocol)).is_some_and(|times| *times > 50), "{name} {protocol}: {proved:?}");
        }
    }
    assert_eq!(proved.len(), 10, "{proved:?}");
}

#[test]
fn sets_beyond_the_tests_are_not_proved() {
    let mut rng = Pcg64::seed_from_u64(95);
    let mut changed = 0;
    for _ in 0..400 {
        let set = sharing_set(&mut rng);
        if proofs(&set).is_empty() {
            continue;
        }
        changed += 1;
        let mut limited = set.clone();
        limited.system.tasks_mut()[0].preemption = Preemption::None;
        let mut costly = set.clone();
        costly.system.set_costs(Costs { context_switch: Time(1), ..*costly.costs() });
        let several = set.clone().with_cores(2).with_protocol(Protocol::Inheritance);
        let without = set.clone().with_protocol(Protocol::None);
        for other in [limited, costly, several, without] {
            assert_eq!(proofs(&other), []);
            let found = sharing_response_times(&other, PriorityRule::RateMonotonic).unwrap();
            assert!(matches!(found.outcome, Outcome::NotApplicable(_)));
        }
    }
    assert!(changed > 50, "{changed}");
}

#[test]
fn resources_that_are_not_shared_delay_nobody() {
    let plain = set(&[(1, 5, 5), (3, 12, 12), (6, 40, 40)], 1);
    let bounds = response_times(&model(&plain), PriorityRule::RateMonotonic).bounds;
    let mut own = plain.clone();
    own.system.set_resources(["a", "b", "c"].map(String::from).to_vec());
    for (resource, task) in own.system.tasks_mut().iter_mut().enumerate() {
        task.sections = vec![Section { resource: ResourceId::new(resource), at: Time::ZERO, length: task.wcet }];
    }
    for protocol in [Protocol::Inheritance, Protocol::Ceiling] {
        let own = own.clone().with_protocol(protocol);
        assert_eq!(sharing_response_times(&own, PriorityRule::RateMonotonic).unwrap().bounds, bounds);
        // The longest task shares two milliseconds with the shortest, which waits for them at worst.
        let mut shared = own.clone();
        shared.system.tasks_mut()[2].sections = vec![Section { resource: ResourceId(0), at: ms(1), length: ms(2) }];
        let found = sharing_response_times(&shared, PriorityRule::RateMonotonic).unwrap().bounds;
        assert_eq!((found[0], found[2]), (bounds[0].map(|bound| bound + ms(2)), bounds[2]));
    }
}

#[test]
fn sets_that_cannot_be_analyzed_are_not_proved_with_sections_either() {
    let share = |mut set: TaskSet| {
        set.system.set_resources(vec!["r".into()]);
        set.system.tasks_mut().iter_mut().for_each(|task| {
            task.sections = vec![Section { resource: ResourceId(0), at: Time::ZERO, length: Time(9) }]
        });
        set
    };
    let (plain, others) = uncovered_sets();
    assert!(!proofs(&share(plain)).is_empty());
    for set in others {
        assert_eq!(proofs(&share(set)), []);
    }
}

/// Two tasks that lock two resources in opposite orders.
#[test]
fn a_deadlock_is_possible_with_inheritance_and_impossible_with_the_ceiling() {
    let section = |resource, at, length| Section { resource, at: Time(at), length: Time(length) };
    let mut low = Task::periodic("low", Time(100), Time(10));
    low.sections = vec![section(ResourceId(0), 0, 8), section(ResourceId(1), 4, 2)];
    let mut high = Task::periodic("high", Time(100), Time(10)).with_offset(Time(2)).with_deadline(Time(60));
    high.sections = vec![section(ResourceId(1), 0, 8), section(ResourceId(0), 4, 2)];
    let mut set = TaskSet::new("circle", vec![low, high], 1);
    set.system.set_resources(vec!["a".into(), "b".into()]);
    let missed = |protocol: Protocol| {
        let set = set.clone().with_protocol(protocol);
        (
            simulate(&set, 0, Time(100), &mut *build("edf").unwrap(), &mut Unobserved).unwrap().missed(),
            proofs(&set).len(),
        )
    };
    // At the deadline of the more urgent job it is removed, and the other one can go on.
    assert_eq!(missed(Protocol::Inheritance), (1, 0));
    assert_eq!(missed(Protocol::None), (1, 0));
    let (missed, proved) = missed(Protocol::Ceiling);
    assert!(missed == 0 && proved > 0);
}
