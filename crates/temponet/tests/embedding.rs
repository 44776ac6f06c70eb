//! Contract of the embeddable crate: a program that reports to [`ReadyJobs`] what happens gets, decision by decision,
//! the schedule that the simulator gets; and schedulers that share weights decide as if each had its own.

use temponet::{Assignment, JobHandle, JobId, OnMiss, ReadyJobs, Scheduler, Task, TaskSet, Temponet, Time};
use temponet_sim::{Engine, Unobserved};
use temponet_task::TaskId;

/// What happened at one decision: the date, the jobs on the cores and the jobs that are ready, each as task and number.
type Step = (Time, Vec<Option<(TaskId, u64)>>, usize);

/// The schedule in the simulator. Every job takes its whole wcet.
fn simulated(set: &TaskSet, scheduler: &mut dyn Scheduler, horizon: Time) -> Vec<Step> {
    scheduler.start(&set.system).unwrap();
    let mut engine = Engine::new(set, 1, horizon);
    let mut assignment = Assignment::default();
    let mut steps = Vec::new();
    while engine.advance(&mut Unobserved) {
        assignment.reset(set.cores());
        scheduler.decide(&engine.view(), &mut assignment);
        let view = engine.view();
        let name = |id: JobId| (view.job(id).task, view.job(id).number);
        steps.push((view.now, assignment.cores().iter().map(|id| id.map(name)).collect(), view.active.len()));
        engine.apply(&assignment, &mut Unobserved).unwrap();
    }
    steps
}

/// The same by a program of its own, a plain loop over dates.
fn embedded(set: &TaskSet, scheduler: &mut dyn Scheduler, horizon: Time) -> Vec<Step> {
    let mut ready = ReadyJobs::new(set.system.clone()).unwrap();
    ready.start(scheduler).unwrap();
    let mut next_release: Vec<Time> = set.tasks().iter().map(|task| task.offset).collect();
    let (mut wake, mut steps) = (None, Vec::new());
    loop {
        let end = |(handle, job): (JobHandle, &temponet::Job)| {
            job.running.then(|| (ready.now() + job.wcet.saturating_sub(job.executed), handle))
        };
        let ends: Vec<(Time, JobHandle)> = ready.iter().filter_map(end).collect();
        let dates = next_release.iter().copied().chain(ends.iter().map(|(end, _)| *end)).chain(wake);
        let now = dates.min().unwrap();
        if now >= horizon {
            return steps;
        }
        ready.advance(now).unwrap();
        ends.iter().filter(|(end, _)| *end == now).for_each(|(_, job)| _ = ready.complete(*job).unwrap());
        for (task, date) in next_release.iter_mut().enumerate().filter(|(_, date)| **date == now) {
            ready.release(TaskId::new(task)).unwrap();
            *date = now + set.tasks()[task].period().unwrap();
        }
        let decision = ready.decide(scheduler).unwrap();
        wake = decision.next();
        let cores = decision.cores().to_vec();
        let name = |handle: JobHandle| ready.job(handle).map(|job| (job.task, job.number)).unwrap();
        steps.push((now, cores.into_iter().map(|job| job.map(name)).collect(), ready.len()));
    }
}

fn overloaded(cores: usize, on_miss: OnMiss) -> TaskSet {
    let ms = |n: u64| Time::from_ms(n);
    let tasks = (1..=4 * cores as u64).map(|k| {
        let task = Task::periodic(format!("t{k}"), ms(7 + 3 * k), ms(2 + k));
        task.with_deadline(ms(5 + 3 * k)).with_offset(ms(k % 3)).with_criticality((k % 2) as u8)
    });
    let mut set = TaskSet::new("test", tasks.collect(), cores);
    set.system.set_on_miss(on_miss);
    set
}

#[test]
fn an_embedding_program_gets_the_schedule_of_the_simulator() {
    let horizon = Time::from_ms(400);
    for (cores, on_miss) in [(1, OnMiss::Abort), (2, OnMiss::Abort), (3, OnMiss::Abort), (2, OnMiss::Continue)] {
        let set = overloaded(cores, on_miss);
        for name in ["edf", "llf", "mh-edf", "look-ahead", "muf", "shield:srpt", "temponet"] {
            let scheduler = || match name {
                "temponet" => Box::new(Temponet::built_in().unwrap()) as Box<dyn Scheduler>,
                _ => temponet_sched::build(name).unwrap(),
            };
            let (expected, got) =
                (simulated(&set, &mut *scheduler(), horizon), embedded(&set, &mut *scheduler(), horizon));
            assert!(expected.len() > 100, "{name}: {} decisions", expected.len());
            for (place, (expected, got)) in expected.iter().zip(&got).enumerate() {
                assert_eq!(expected, got, "{name} on {cores} cores, {on_miss:?}, decision {place}");
            }
            assert_eq!(expected.len(), got.len(), "{name} on {cores} cores, {on_miss:?}");
        }
    }
}

#[test]
fn schedulers_that_share_weights_decide_as_if_each_had_its_own() {
    let (set, horizon) = (overloaded(2, OnMiss::Abort), Time::from_ms(300));
    let one = Temponet::built_in().unwrap();
    let expected = simulated(&set, &mut Temponet::built_in().unwrap(), horizon);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (mut own, set) = (one.share(), &set);
                scope.spawn(move || simulated(set, &mut own, horizon))
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), expected);
        }
    });
}
