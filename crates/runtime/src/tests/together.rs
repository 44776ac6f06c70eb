//! Contract of jobs that follow others and of jobs that share resources: in virtual time they run as in the simulator, job
//! by job, and on threads in its order.

use temponet_sim::{End, Recorder, simulate};
use temponet_task::{OnMiss, Protocol, ResourceId, Section, Task, TaskId, TaskSet, Time};

use super::{MACHINES, SCHEDULERS, agrees, in_virtual_time, ms, overloaded};
use crate::trial::{Chooser, LinuxScheduler, Trial};

/// An overloaded set in which every third task starts a path, a fork or a diamond.
fn graphs(cores: usize, on_miss: OnMiss) -> TaskSet {
    let mut set = overloaded(cores, on_miss);
    for (index, task) in set.system.tasks_mut().iter_mut().enumerate() {
        task.deadline = ms(14 + 3 * index as u64);
        task.after = match index % 4 {
            1 => vec![TaskId::new(index - 1)],
            2 => vec![TaskId::new(index - 2)],
            3 => vec![TaskId::new(index - 2), TaskId::new(index - 1)],
            _ => Vec::new(),
        };
    }
    set.system.follow_sources().unwrap();
    set
}

/// A set on one core whose tasks share three resources, in sections that are nested in part.
fn sharing(on_miss: OnMiss) -> TaskSet {
    let mut set = overloaded(1, on_miss);
    set.system.set_resources(vec!["a".into(), "b".into(), "c".into()]);
    let us = Time::from_us;
    for (index, task) in set.system.tasks_mut().iter_mut().enumerate() {
        let section = |resource: usize, at: u64, length: u64| {
            let (resource, at, length) = (ResourceId::new(resource), us(at), us(length));
            Section { resource, at, length }
        };
        task.sections = match index {
            0 => vec![section(0, 500, 700)],
            1 => vec![section(0, 300, 1_500), section(1, 700, 500)],
            2 => vec![section(1, 100, 3_000), section(2, 1_000, 900)],
            _ => vec![section(2, 200, 1_000), section(0, 2_000, 2_500)],
        };
    }
    set
}

#[test]
fn jobs_that_follow_others_run_as_in_the_simulator() {
    for (cores, on_miss) in MACHINES {
        let set = graphs(cores, on_miss);
        assert!(set.system.has_precedence());
        SCHEDULERS.iter().for_each(|name| agrees(&set, name));
    }
}

/// Task, number, end, why, and processor time of the jobs whose deadline lies within the run, by task and number.
type Ended = Vec<(TaskId, u64, Time, End, Time)>;

fn simulated(set: &TaskSet, name: &str, horizon: Time) -> Ended {
    let mut recorder = Recorder::until(Time::NEVER);
    simulate(set, 3, horizon, &mut *temponet_sched::build(name).unwrap(), &mut recorder).unwrap();
    let jobs = recorder.jobs.iter().filter(|job| job.deadline <= horizon);
    let mut jobs: Ended = jobs.map(|job| (job.task, job.number, job.left, job.end, job.executed)).collect();
    jobs.sort_by_key(|job| (job.0, job.1));
    jobs
}

#[test]
fn chosen_jobs_that_wait_lend_their_core_to_the_holder_as_in_the_simulator() {
    let horizon = ms(1_000);
    for on_miss in [OnMiss::Abort, OnMiss::Continue] {
        let set = sharing(on_miss);
        for name in ["edf", "rm", "dm", "fcfs"] {
            let report = in_virtual_time(&set, 3, horizon, &mut *temponet_sched::build(name).unwrap());
            let jobs = report.jobs.iter().filter(|job| job.deadline <= horizon);
            let mut got: Ended = jobs.map(|job| (job.task, job.number, job.left, job.end, job.executed)).collect();
            got.sort_by_key(|job| (job.0, job.1));
            assert!(got.len() > 100, "{name}");
            let expected = simulated(&set, name, horizon);
            for (expected, got) in expected.iter().zip(&got) {
                assert_eq!(expected, got, "{name}, {on_miss:?}");
            }
            assert_eq!(expected.len(), got.len(), "{name}, {on_miss:?}");
        }
    }
    // The sections matter: without them, other jobs are in time.
    let mut without = sharing(OnMiss::Abort);
    without.system = crate::trial::without_sections(&without.system);
    assert_ne!(simulated(&sharing(OnMiss::Abort), "rm", horizon), simulated(&without, "rm", horizon));
}

#[test]
fn what_threads_cannot_share_is_refused() {
    let error = |set: &TaskSet, cores: usize| {
        let (cpus, horizon) = ((1..=cores).collect(), ms(1));
        let trial = Trial { set, seed: 0, horizon, cpus, housekeeping: 0, slices: 0, started: None };
        let chooser = Chooser::Ours(temponet_sched::build("rm").unwrap(), None);
        trial.run(chooser).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let mut set = sharing(OnMiss::Abort);
    set.system.set_protocol(Protocol::Ceiling);
    assert!(error(&set, 1).contains("asks for the protocol ceiling"), "{}", error(&set, 1));
    set.system.set_protocol(Protocol::Inheritance);
    set.system.change_cores(2).unwrap();
    assert!(error(&set, 2).contains("--cores 1"), "{}", error(&set, 2));
}

/// Runs a trial on threads; none where that is not possible.
#[cfg(target_os = "linux")]
fn on_threads(set: &TaskSet, chooser: Chooser, horizon: Time) -> Option<crate::Report> {
    let cpus = crate::linux::usable_cpus();
    let problem = crate::linux::launch::is_permitted().err().map(|why| why.to_string());
    let problem = problem.or_else(|| (cpus.len() < 2).then(|| "one processor".into()));
    if let Some(problem) = problem {
        eprintln!("skipped: {problem}");
        return None;
    }
    let (seed, housekeeping) = (3, cpus[0]);
    let trial = Trial { set, seed, horizon, cpus: vec![cpus[1]], housekeeping, slices: 0, started: None };
    Some(trial.run(chooser).unwrap().report)
}

/// The order in which the jobs of each period of 100 ms complete.
#[cfg(target_os = "linux")]
fn orders(mut ended: Ended) -> Vec<Vec<TaskId>> {
    ended.sort_by_key(|job| job.2);
    let periods = ended.iter().map(|job| job.1).max().unwrap_or(0);
    let of = |number| ended.iter().filter(move |job| job.1 == number && job.3 == End::Completed).map(|job| job.0);
    (0..=periods).map(|number| of(number).collect()).collect()
}

/// Holds the order of completions on threads against the simulator's. The machine may stand still now and then, so most
/// periods have to agree, and not all.
#[cfg(target_os = "linux")]
fn has_the_order_of_the_simulator(set: &TaskSet) {
    let horizon = ms(600);
    let expected = orders(simulated(set, "rm", horizon));
    assert!(expected.iter().all(|order| order.len() == set.tasks().len()), "{expected:?}");
    for linux in [None, Some(LinuxScheduler::Fifo)] {
        let ours = || Chooser::Ours(temponet_sched::build("rm").unwrap(), None);
        let Some(report) = on_threads(set, linux.map_or_else(ours, Chooser::Linux), horizon) else { return };
        let ended: Ended =
            report.jobs.iter().map(|job| (job.task, job.number, job.left, job.end, job.executed)).collect();
        let found = orders(ended);
        let equal = found.iter().zip(&expected).filter(|(found, expected)| found == expected).count();
        assert!(2 * equal > expected.len(), "{linux:?}: {found:?} and {expected:?}");
        // No job begins before those that it follows have ended, wherever the machine stood still.
        for job in report.jobs.iter().filter(|job| job.start.is_some()) {
            for before in &set.tasks()[job.task].after {
                let before = report.jobs.iter().find(|other| (other.task, other.number) == (*before, job.number));
                assert!(before.is_some_and(|before| before.end == End::Completed && Some(before.left) <= job.start));
            }
        }
    }
}

fn task(name: &str, wcet: u64, offset: u64, rank: u64) -> Task {
    // Rate-monotonic order by a nanosecond, so that all tasks have a job in each period of 100 ms.
    Task::periodic(name, Time(ms(100).0 + rank), ms(wcet)).with_offset(ms(offset)).with_deadline(ms(90))
}

#[test]
#[cfg(target_os = "linux")]
fn threads_follow_each_other_in_the_order_of_the_simulator() {
    // A diamond beside a task of its own: first, then the two in the middle by rank, then the last.
    let mut tasks = vec![task("first", 5, 0, 0), task("slow", 8, 0, 0), task("quick", 3, 0, 0), task("last", 4, 0, 0)];
    (tasks[1].after, tasks[2].after) = (vec![TaskId(0)], vec![TaskId(0)]);
    tasks[3].after = vec![TaskId(1), TaskId(2)];
    tasks.push(task("alone", 20, 2, 9));
    let mut set = TaskSet::new("diamond", tasks, 1);
    set.system.follow_sources().unwrap();
    has_the_order_of_the_simulator(&set);
}

#[test]
#[cfg(target_os = "linux")]
fn a_thread_that_holds_a_resource_inherits_the_priority_of_the_one_that_waits() {
    // Without inheritance, medium would take the core from low, which holds what high waits for, and end before high.
    let section = |length: u64| vec![Section { resource: ResourceId(0), at: Time::from_us(100), length: ms(length) }];
    let mut tasks = vec![task("high", 4, 4, 0), task("medium", 10, 7, 1), task("low", 16, 0, 2)];
    (tasks[0].sections, tasks[2].sections) = (section(2), section(12));
    let mut set = TaskSet::new("inversion", tasks, 1);
    set.system.set_resources(vec!["bus".into()]);
    let names: Vec<u32> = orders(simulated(&set, "rm", ms(600)))[0].iter().map(|task| task.0).collect();
    assert_eq!(names, [0, 1, 2], "high, medium, low");
    has_the_order_of_the_simulator(&set);
}
