//! No report of a program makes [`ReadyJobs`] panic, and no scheduler of ours answers an accepted report with an
//! illegal assignment.
#![no_main]

use libfuzzer_sys::fuzz_target;
use temponet::tuning::Tuning;
use temponet::{Model, Options, Temponet};
use temponet_sched::build;
use temponet_task::{
    Core, CoreId, CoreSet, Costs, Estimate, OnMiss, Preemption, ReadyJobs, Release, Scheduler, Speed, Task, TaskId,
    TaskSet, Time,
};

fn scheduler(choice: u8) -> Box<dyn Scheduler> {
    const NAMES: [&str; 9] =
        ["edf", "llf", "mh-edf", "look-ahead", "p-edf", "dp-wrap", "muf", "shield:srpt", "shield:fcfs"];
    match NAMES.get(usize::from(choice) % (NAMES.len() + 1)) {
        Some(name) => build(name).expect("it is in the catalog"),
        None => {
            let model = Model::built_in().expect("the built-in model is whole");
            Box::new(
                Temponet::new(model.into(), Options { tuning: Tuning::Off, ..Options::default() })
                    .expect("it runs everywhere"),
            )
        }
    }
}

fn set(data: &[u8; 8]) -> TaskSet {
    let task = |(index, shape): (usize, &[u8])| {
        let (period, wcet) = (u64::from(shape[0]) + 1, u64::from(shape[1]) % 16 + 1);
        Task::periodic(format!("t{index}"), Time::from_us(period), Time::from_us(wcet))
            .with_criticality(shape[0] % 3)
            .with_after(if index > 0 && shape[0] >> 5 == 3 { vec![TaskId(0)] } else { Vec::new() })
            .with_preemption(match shape[1] >> 4 {
                0..8 => Preemption::Free,
                8..12 => Preemption::None,
                every => Preemption::Every(Time::from_us(u64::from(every) - 11)),
            })
    };
    let tasks = data[..6].chunks_exact(2).enumerate().map(task).collect();
    let mut set = TaskSet::new("fuzz", tasks, usize::from(data[6] % 3) + 1);
    set.system.follow_sources().expect("all follow the first task");
    // Cores of different speeds, and tasks that may use some of them.
    if data[6] & 8 > 0 {
        let speed = |core: usize| Speed([400, 1000, 2500][(core + usize::from(data[6] >> 6)) % 3]);
        set.system.set_machine((0..set.cores()).map(|core| Core::new("core", speed(core))).collect());
    }
    if data[6] & 16 > 0 {
        let first = usize::from(data[6] >> 5) % set.cores();
        set.system.tasks_mut()[0].cores = CoreSet::of([CoreId::new(first)]);
        set.system.tasks_mut()[1].cores = CoreSet::of([CoreId::new((first + 1) % set.cores())]);
    }
    set.system.set_on_miss(if data[7] % 2 == 0 { OnMiss::Abort } else { OnMiss::Continue });
    let cost = |shift: u8| Time::from_us(u64::from(data[7] >> shift & 3));
    set.system.set_costs(Costs { context_switch: cost(1), migration: cost(3), decision: cost(5) });
    set
}

fuzz_target!(|data: &[u8]| {
    let Some((shape, [choice, rest @ ..])) = data.split_first_chunk::<8>() else { return };
    let mut ready = ReadyJobs::new(set(shape).system).expect("the system makes sense");
    let mut scheduler = scheduler(*choice);
    if ready.start(&mut *scheduler).is_err() {
        return;
    }
    // Handles of all jobs so far, those that have left included.
    let mut handles = Vec::new();
    for report in rest.chunks_exact(2) {
        let (what, value) = (report[0] % 8, u64::from(report[1]));
        match what {
            0 | 1 => handles.extend(ready.release(TaskId(value as u32 % 4))),
            2 => {
                let mut release = Release::of(&ready.system().tasks()[0], ready.now());
                (release.deadline, release.wcet, release.bcet) = (Time::from_us(value), Time(value), Time(1));
                release.estimate = Estimate::new(Time(value % 7), Time(value / 2));
                handles.extend(ready.release_with(TaskId(0), release));
            }
            3 => drop(handles.get(value as usize).map(|job| ready.complete(*job))),
            4 => drop(handles.last().map(|job| ready.set_executed(*job, Time::from_us(value)))),
            5 => drop(ready.advance(Time(ready.now().0.saturating_add(value * 100)))),
            6 => drop(ready.advance(Time::from_us(value))),
            _ => {
                let decision = ready.decide(&mut *scheduler).expect("our schedulers decide what is legal");
                assert!(
                    decision
                        .cores()
                        .iter()
                        .flatten()
                        .all(|job| decision.stopped().iter().all(|other| other.handle != *job))
                );
            }
        }
    }
});
