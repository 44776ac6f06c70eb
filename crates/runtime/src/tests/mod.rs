//! Contract of the dispatcher in virtual time: it gives the schedule of the simulator, job by job, under any scheduler.

use temponet::Temponet;
use temponet_sim::{End, Recorder, Workload, simulate};
use temponet_task::{ExecutionModel, OnMiss, Scheduler, Task, TaskSet, Time};

use crate::dispatcher::DispatchPlan;
use crate::releases::Listed;
use crate::report::JobOutcome;
use crate::runtime::{OnOverrun, dispatched};
use crate::virtual_time::VirtualTime;
use crate::{Report, Runtime};

fn ms(n: u64) -> Time {
    Time::from_ms(n)
}

/// Runs the drawn jobs of a set in virtual time.
fn in_virtual_time(set: &TaskSet, seed: u64, horizon: Time, scheduler: &mut dyn Scheduler) -> Report {
    let mut workload = Workload::until(set, seed, horizon);
    let drawn = std::iter::from_fn(|| (workload.next_time() < horizon).then(|| workload.pop()).flatten());
    let (releases, hopeless) = Listed::new(drawn);
    assert!(hopeless.is_empty());
    let plan =
        DispatchPlan { system: set.system(), on_overrun: vec![OnOverrun::Report; set.tasks.len()], horizon, jobs: 0 };
    let platform = VirtualTime::new(set.cores, Box::new(|due| due.execution));
    dispatched(plan, platform, scheduler, Box::new(releases), None).unwrap().1
}

fn overloaded(cores: usize, on_miss: OnMiss) -> TaskSet {
    let tasks = (1..=4 * cores as u64).map(|k| {
        let task = Task::periodic(format!("t{k}"), ms(7 + 3 * k), ms(2 + k));
        let (deadline, offset, criticality) = (ms(5 + 3 * k), ms(k % 3), (k % 2) as u8);
        Task { deadline, offset, criticality, bcet: ms(1), execution: ExecutionModel::Uniform, ..task }
    });
    let mut set = TaskSet::new("test", tasks.collect(), cores);
    set.on_miss = on_miss;
    set
}

/// Name, number, start, end and processor time of the jobs whose deadline lies within the run.
fn summary(
    mut jobs: Vec<(usize, u64, Option<Time>, Time, End, Time)>,
) -> Vec<(usize, u64, Option<Time>, Time, End, Time)> {
    jobs.sort_by_key(|job| (job.0, job.1));
    jobs
}

#[test]
fn virtual_time_gives_the_schedule_of_the_simulator_job_by_job() {
    let horizon = ms(1_000);
    for (cores, on_miss) in [(1, OnMiss::Abort), (2, OnMiss::Abort), (3, OnMiss::Abort), (2, OnMiss::Continue)] {
        let set = overloaded(cores, on_miss);
        for name in ["edf", "llf", "mh-edf", "look-ahead", "muf", "rr", "dasa", "shield:srpt", "temponet"] {
            let scheduler = || match name {
                "temponet" => Box::new(Temponet::built_in().unwrap()) as Box<dyn Scheduler>,
                _ => temponet_sched::build(name).unwrap(),
            };
            let mut recorder = Recorder::until(Time::NEVER);
            let expected = simulate(&set, 3, horizon, &mut *scheduler(), &mut recorder).unwrap();
            let report = in_virtual_time(&set, 3, horizon, &mut *scheduler());
            assert!(report.jobs.len() > 100, "{name}: {}", report.jobs.len());
            let simulated = recorder.jobs.iter().filter(|job| job.deadline <= horizon);
            let simulated =
                simulated.map(|job| (job.task as usize, job.number, job.start, job.left, job.end, job.executed));
            let got = report.jobs.iter().filter(|job| job.deadline <= horizon);
            let got = got.map(|job: &JobOutcome| (job.task, job.number, job.start, job.left, job.end, job.executed));
            let (simulated, got) = (summary(simulated.collect()), summary(got.collect()));
            for (simulated, got) in simulated.iter().zip(&got) {
                assert_eq!(simulated, got, "{name} on {cores} cores, {on_miss:?}");
            }
            assert_eq!(simulated.len(), got.len(), "{name} on {cores} cores, {on_miss:?}");
            assert_eq!((expected.jobs, expected.decisions), (report.metrics.jobs, report.metrics.decisions), "{name}");
            assert_eq!(
                (expected.preemptions, expected.migrations),
                (report.metrics.preemptions, report.metrics.migrations),
                "{name} on {cores} cores, {on_miss:?}"
            );
        }
    }
}

fn two_tasks(on_overrun: OnOverrun) -> Runtime {
    Runtime::new()
        .scheduler(temponet_sched::build("edf").unwrap())
        .task("control", ms(10), ms(2), |_| {})
        .on_overrun(on_overrun)
        .task("vision", ms(40), ms(20), |_| {})
}

#[test]
fn closures_are_called_once_a_job_in_the_order_of_their_starts() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let other = sender.clone();
    let report = Runtime::new()
        .scheduler(temponet_sched::build("edf").unwrap())
        .task("control", ms(10), ms(2), move |job| sender.send(("control", job.number)).unwrap())
        .task("vision", ms(40), ms(20), move |job| other.send(("vision", job.number)).unwrap())
        .run_virtual(ms(80), |task, _| if task == "control" { ms(2) } else { ms(20) })
        .unwrap();
    let calls: Vec<(&str, u64)> = receiver.try_iter().collect();
    let expected = [("control", 0), ("vision", 0), ("control", 1), ("control", 2), ("control", 3)];
    assert_eq!(calls[..5], expected);
    assert_eq!((report.metrics.jobs.released, report.metrics.jobs.met), (10, 10));
}

#[test]
fn an_overrun_is_reported_demoted_or_aborted() {
    let run = |rule: OnOverrun| {
        let execution = |task: &str, number| if task == "control" && number == 1 { ms(6) } else { ms(2) };
        two_tasks(rule).run_virtual(ms(40), execution).unwrap()
    };
    let one = |report: &Report| *report.jobs.iter().find(|job| (job.task, job.number) == (0, 1)).unwrap();
    let reported = run(OnOverrun::Report);
    assert_eq!((reported.counts.overruns, one(&reported).end, one(&reported).executed), (1, End::Completed, ms(6)));
    assert!(one(&reported).met() && one(&reported).overran);
    let demoted = run(OnOverrun::Demote);
    assert_eq!((demoted.counts.overruns, one(&demoted).met()), (1, false), "in virtual time it never resumes");
    let aborted = run(OnOverrun::Abort);
    assert_eq!((one(&aborted).end, one(&aborted).met()), (End::Abandoned, false));
    assert_eq!(one(&aborted).left, ms(12) + Time(1), "a nanosecond after its wcet");
}

#[test]
fn absent_tasks_keep_their_grid_and_wrong_descriptions_are_errors() {
    let runtime = two_tasks(OnOverrun::Report).task("late", ms(20), ms(1), |_| {}).absent();
    let handle = runtime.handle("late").unwrap();
    let report = runtime.run_virtual(ms(100), |task, number| {
        if (task, number) == ("control", 4) {
            handle.join();
        }
        ms(1)
    });
    let late: Vec<Time> = report.unwrap().jobs.iter().filter(|job| job.task == 2).map(|job| job.release).collect();
    assert_eq!(late, [ms(60), ms(80)], "it joined at 40 ms, when its own release of 40 ms had been passed over");
    let error = |runtime: Runtime| runtime.run_virtual(ms(1), |_, _| ms(1)).unwrap_err().to_string();
    assert!(error(Runtime::new()).contains("no task"));
    assert!(error(two_tasks(OnOverrun::Report).housekeeping(1)).contains("housekeeping"));
    assert!(error(two_tasks(OnOverrun::Report).cores([1, 1])).contains("twice"));
    assert!(error(two_tasks(OnOverrun::Report).task("control", ms(1), ms(1), |_| {})).contains("two tasks"));
    assert!(error(Runtime::new().task("a", ms(1), ms(1), |_| {})).contains("no scheduler"));
}
