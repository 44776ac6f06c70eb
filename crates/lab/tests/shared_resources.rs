//! Contract: every scheduler that users can name runs sets whose tasks share resources, or says that it does not. None
//! puts a job on a core that waits for another one, which the simulator would report as an error of the scheduler.

use temponet::{ExecutionModel, Model, OnMiss, Preemption, Task, TaskSet, Time};
use temponet_formats::builtin::Builtin;
use temponet_lab::roster::Roster;
use temponet_sim::{Recorder, simulate};
use temponet_task::{Protocol, ResourceId, Section};

fn set(cores: usize, on_miss: OnMiss, protocol: Protocol) -> TaskSet {
    let ms = Time::from_ms;
    let task = |k: u64| {
        let task = Task::periodic(format!("t{k}"), ms(9 + 4 * k), ms(4 + k));
        let section = |resource: u64, at, length| Section {
            resource: ResourceId(resource as u32),
            at: ms(at),
            length: ms(length),
        };
        let sections = match k % 3 {
            0 => Vec::new(),
            _ => vec![section(k % 2, 1, 3), section(2, 2, 1)],
        };
        let preemption = if k % 4 == 3 { Preemption::Every(ms(2)) } else { Preemption::Free };
        task.with_bcet(ms(1))
            .with_execution(ExecutionModel::Uniform)
            .with_criticality((k % 2) as u8)
            .with_preemption(preemption)
            .with_sections(sections)
    };
    let mut set = TaskSet::new("shared", (0..4 * cores as u64).map(task).collect(), cores);
    set.system.set_resources(["a", "b", "c"].map(String::from).to_vec());
    set.system.set_on_miss(on_miss);
    set.system.set_protocol(protocol);
    set
}

#[test]
fn no_scheduler_runs_a_job_that_waits() {
    let roster = Roster::with(Model::built_in().unwrap());
    let slow = ["planner:futures=2", "shield:srpt"].map(String::from);
    let (mut ran, mut waited) = (0, 0);
    for (cores, on_miss, protocol) in [
        (1, OnMiss::Abort, Protocol::Ceiling),
        (1, OnMiss::Continue, Protocol::Inheritance),
        (2, OnMiss::Abort, Protocol::Inheritance),
        (2, OnMiss::Abort, Protocol::None),
    ] {
        let set = set(cores, on_miss, protocol);
        assert_eq!(set.system.validate(), Ok(()));
        for name in roster.names().into_iter().chain(slow.clone()) {
            let mut scheduler = roster.build(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
            let mut recorder = Recorder::until(Time::NEVER);
            match simulate(&set, 1, Time::from_ms(300), &mut *scheduler, &mut recorder) {
                Ok(metrics) => {
                    ran += usize::from(metrics.jobs.released > 20);
                    waited += usize::from(!recorder.waits.is_empty());
                }
                Err(error) => {
                    let words = error.to_string();
                    let is_known = [
                        "which task \"t3\" does not allow",
                        "it is for tasks that come after each other",
                        "critical sections",
                        "are on different cores",
                    ];
                    assert!(is_known.iter().any(|known| words.contains(known)), "{name}: {error}")
                }
            }
            for hold in &recorder.holds {
                let others = recorder.holds.iter().filter(|other| other.resource == hold.resource && *other != hold);
                assert!(
                    others.clone().all(|other| other.end <= hold.start || other.start >= hold.end),
                    "{name}: {hold:?}"
                );
            }
        }
    }
    assert!(ran > 4 * 25 && waited > 4 * 15, "{ran} {waited}");
}

/// The bug of 1997: the weather task held the mutex, the tasks between kept the processor, and the distribution of data
/// missed its cycle, whereupon the bus scheduler reset the spacecraft.
#[test]
fn mars_pathfinder_resets_without_a_protocol_and_does_not_with_one() {
    let mars = Builtin::find("mars-pathfinder").unwrap().load().unwrap().set;
    let distribution = mars.tasks().iter().position(|task| task.name == "data_distribution").unwrap();
    let run = |protocol: Protocol| {
        let set = mars.clone().with_protocol(protocol);
        let mut recorder = Recorder::until(Time::NEVER);
        let mut fp = temponet_sched::build("fp").unwrap();
        let metrics = simulate(&set, 1, Time::from_secs(2), &mut *fp, &mut recorder).unwrap();
        let first = recorder.jobs.iter().find(|job| !job.met()).map(|job| (job.task.index(), job.deadline));
        (metrics.missed(), first, metrics.tasks[distribution].blocked_max)
    };
    let ms = Time::from_ms;
    assert_eq!(run(Protocol::None), (1, Some((distribution, ms(150))), ms(33)));
    assert_eq!(run(Protocol::Inheritance), (0, None, ms(13)));
    assert_eq!(run(Protocol::Ceiling), (0, None, ms(13)));
}
