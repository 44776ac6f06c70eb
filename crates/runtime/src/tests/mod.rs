//! Contract of the dispatcher in virtual time: it gives the schedule of the simulator, job by job, under any scheduler.

#[cfg(target_os = "linux")]
mod levels;
mod together;

use temponet::Temponet;
use temponet_sim::{End, Recorder, Workload, simulate};
use temponet_task::{
    Arrival, Attribute, CoreId, CoreSet, ExecutionModel, Extra, OnMiss, Preemption, Scheduler, Server, Task, TaskId,
    TaskSet, Time,
};

use crate::dispatcher::DispatchPlan;
use crate::releases::Listed;
use crate::report::JobOutcome;
use crate::runtime::{OnOverrun, dispatched};
use crate::trial::{Chooser, LinuxScheduler, Trial, without_sections};
use crate::virtual_time::VirtualTime;
use crate::{Report, Runtime};

fn ms(n: u64) -> Time {
    Time::from_ms(n)
}

/// Jobs that a set releases before the horizon.
fn drawn(set: &TaskSet, seed: u64, horizon: Time) -> Vec<temponet_sim::ReleasedJob> {
    let mut workload = Workload::until(set, seed, horizon);
    std::iter::from_fn(|| (workload.next_time() < horizon).then(|| workload.pop()).flatten()).collect()
}

/// Runs the drawn jobs of a set in virtual time.
fn in_virtual_time(set: &TaskSet, seed: u64, horizon: Time, scheduler: &mut dyn Scheduler) -> Report {
    let (releases, hopeless) = Listed::new(drawn(set, seed, horizon));
    assert!(hopeless.is_empty());
    let platform = VirtualTime::new(set.cores(), Box::new(|due| due.execution)).with_sections_of(&set.system);
    let plan = plan(set, horizon);
    dispatched(plan, platform, scheduler, Box::new(releases), None).unwrap().1
}

/// What the dispatcher is told of a set.
fn plan(set: &TaskSet, horizon: Time) -> DispatchPlan {
    DispatchPlan {
        system: without_sections(&set.system),
        on_overrun: vec![OnOverrun::Report; set.tasks().len()],
        horizon,
        jobs: 0,
        hopeless: Vec::new(),
        shares: set.system.has_sections(),
    }
}

fn overloaded(cores: usize, on_miss: OnMiss) -> TaskSet {
    let tasks = (1..=4 * cores as u64).map(|k| {
        let task = Task::periodic(format!("t{k}"), ms(7 + 3 * k), ms(2 + k));
        let (deadline, offset, criticality) = (ms(5 + 3 * k), ms(k % 3), (k % 2) as u8);
        task.with_deadline(deadline)
            .with_offset(offset)
            .with_criticality(criticality)
            .with_bcet(ms(1))
            .with_execution(ExecutionModel::Uniform)
    });
    let mut set = TaskSet::new("test", tasks.collect(), cores);
    set.system.set_on_miss(on_miss);
    set
}

/// Name, number, start, end and processor time of the jobs whose deadline lies within the run.
fn summary(
    mut jobs: Vec<(TaskId, u64, Option<Time>, Time, End, Time)>,
) -> Vec<(TaskId, u64, Option<Time>, Time, End, Time)> {
    jobs.sort_by_key(|job| (job.0, job.1));
    jobs
}

/// Runs a set in virtual time and in the simulator, and compares every job.
fn agrees(set: &TaskSet, name: &str) {
    let horizon = ms(1_000);
    let what = format!("{name} on {} cores, {:?}", set.cores(), set.on_miss());
    let scheduler = || match name {
        "temponet" => Box::new(Temponet::built_in().unwrap()) as Box<dyn Scheduler>,
        _ => temponet_sched::build(name).unwrap(),
    };
    let mut recorder = Recorder::until(Time::NEVER);
    let expected = simulate(set, 3, horizon, &mut *scheduler(), &mut recorder).unwrap();
    let report = in_virtual_time(set, 3, horizon, &mut *scheduler());
    assert!(report.jobs.len() > 100, "{what}: {}", report.jobs.len());
    let simulated = recorder.jobs.iter().filter(|job| job.deadline <= horizon);
    let simulated = simulated.map(|job| (job.task, job.number, job.start, job.left, job.end, job.executed));
    let got = report.jobs.iter().filter(|job| job.deadline <= horizon);
    let got = got.map(|job: &JobOutcome| (job.task, job.number, job.start, job.left, job.end, job.executed));
    let (simulated, got) = (summary(simulated.collect()), summary(got.collect()));
    for (simulated, got) in simulated.iter().zip(&got) {
        assert_eq!(simulated, got, "{what}");
    }
    assert_eq!(simulated.len(), got.len(), "{what}");
    assert_eq!((expected.jobs, expected.decisions), (report.metrics.jobs, report.metrics.decisions), "{what}");
    let counts = (report.metrics.preemptions, report.metrics.migrations);
    assert_eq!((expected.preemptions, expected.migrations), counts, "{what}");
}

const MACHINES: [(usize, OnMiss); 4] =
    [(1, OnMiss::Abort), (2, OnMiss::Abort), (3, OnMiss::Abort), (2, OnMiss::Continue)];
const SCHEDULERS: [&str; 9] = ["edf", "llf", "mh-edf", "look-ahead", "muf", "rr", "dasa", "shield:srpt", "temponet"];

#[test]
fn virtual_time_gives_the_schedule_of_the_simulator_job_by_job() {
    for (cores, on_miss) in MACHINES {
        let set = overloaded(cores, on_miss);
        SCHEDULERS.iter().for_each(|name| agrees(&set, name));
    }
}

#[test]
fn so_it_does_where_jobs_hold_their_cores() {
    for (cores, on_miss) in MACHINES {
        let mut set = overloaded(cores, on_miss);
        for (index, task) in set.system.tasks_mut().iter_mut().enumerate() {
            task.preemption = [Preemption::None, Preemption::Free, Preemption::Every(ms(2))][index % 3];
        }
        SCHEDULERS.iter().for_each(|name| agrees(&set, name));
    }
}

#[test]
fn threads_refuse_what_they_cannot_keep_to() {
    let run = |preemption: Preemption, chooser: Chooser| {
        let mut set = overloaded(1, OnMiss::Abort);
        set.system.tasks_mut()[0].preemption = preemption;
        let cpus = vec![1];
        let trial = Trial { set: &set, seed: 0, horizon: ms(1), cpus, housekeeping: 0, slices: 0, started: None };
        trial.run(chooser).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let ours = || Chooser::Ours(temponet_sched::build("edf").unwrap(), None);
    assert!(run(Preemption::Every(ms(1)), ours()).contains("a thread cannot be stopped exactly at a preemption point"));
    let linux = Chooser::Linux(LinuxScheduler::Deadline);
    assert!(run(Preemption::None, linux).contains("the schedulers of Linux preempt at any time"));
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
    let one = |report: &Report| *report.jobs.iter().find(|job| (job.task, job.number) == (TaskId(0), 1)).unwrap();
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
    let late: Vec<Time> =
        report.unwrap().jobs.iter().filter(|job| job.task == TaskId(2)).map(|job| job.release).collect();
    assert_eq!(late, [ms(60), ms(80)], "it joined at 40 ms, when its own release of 40 ms had been passed over");
    let error = |runtime: Runtime| runtime.run_virtual(ms(1), |_, _| ms(1)).unwrap_err().to_string();
    assert!(error(Runtime::new()).contains("no task"));
    assert!(error(two_tasks(OnOverrun::Report).housekeeping(1)).contains("housekeeping"));
    assert!(error(two_tasks(OnOverrun::Report).cores([1, 1])).contains("twice"));
    assert!(error(two_tasks(OnOverrun::Report).task("control", ms(1), ms(1), |_| {})).contains("two tasks"));
    assert!(error(Runtime::new().task("a", ms(1), ms(1), |_| {})).contains("no scheduler"));
}

#[test]
fn every_attribute_of_a_task_can_be_set_and_none_before_the_first_task() {
    let edf = || temponet_sched::build("edf").unwrap();
    let extra = Extra::default().with(Attribute::Priority, 3).with(Attribute::Server, 0);
    let described = Task::periodic("b", ms(20), ms(3)).with_guarantee(true).with_cores(CoreSet::of([CoreId(0)]));
    let runtime = Runtime::new()
        .scheduler(edf())
        .servers(vec![Server { name: "s".into(), budget: ms(1), period: ms(10) }])
        .task("a", ms(10), ms(2), |_| {})
        .guarantee()
        .with(|task| task.with_extra(extra).with_mk(Some((2, 3))))
        .task_like(described.clone(), |_| {});
    let system = runtime.system();
    let [a, b] = system.tasks() else { panic!("{system:?}") };
    assert_eq!((a.guarantee, a.extra, a.mk), (true, extra, Some((2, 3))));
    assert_eq!(b, &described);
    assert_eq!(runtime.run_virtual(ms(40), |_, _| ms(1)).unwrap().metrics.jobs.met, 6);
    type Setter = fn(Runtime) -> Runtime;
    let setters: [(&str, Setter); 10] = [
        ("deadline", |runtime| runtime.deadline(ms(1))),
        ("offset", |runtime| runtime.offset(ms(1))),
        ("criticality", |runtime| runtime.criticality(1)),
        ("guarantee", Runtime::guarantee),
        ("value", |runtime| runtime.value(2.0)),
        ("bcet", |runtime| runtime.bcet(ms(1))),
        ("not_preempted", Runtime::not_preempted),
        ("on_overrun", |runtime| runtime.on_overrun(OnOverrun::Abort)),
        ("absent", Runtime::absent),
        ("with", |runtime| runtime.with(|task| task)),
    ];
    for (name, set) in setters {
        let runtime = set(Runtime::new().scheduler(edf())).task("a", ms(10), ms(2), |_| {});
        let error = runtime.run_virtual(ms(1), |_, _| ms(1)).unwrap_err().to_string();
        assert_eq!(error, format!("{name} is set before the first task, and it belongs to one"));
    }
    let refused = |task: Task| {
        let runtime = Runtime::new().scheduler(edf()).task("a", ms(10), ms(2), |_| {}).task_like(task, |_| {});
        runtime.run_virtual(ms(1), |_, _| ms(1)).unwrap_err().to_string()
    };
    let task = || Task::periodic("b", ms(10), ms(2));
    assert!(refused(task().with_after(vec![TaskId(0)])).contains("\"b\" comes after others"));
    let burst = Arrival::Burst { jobs: 2, every: ms(5), until: Time::NEVER };
    assert!(refused(task().with_arrival(burst)).contains("\"b\" arrives in bursts"));
}

/// Virtual time that waits for the answer to every question, before it goes on or right after.
#[cfg(target_os = "linux")]
struct Patient<'a> {
    inner: VirtualTime<'a>,
    doorbell: std::sync::Arc<crate::doorbell::Doorbell>,
    /// Number of rings that have been looked at.
    rings: u32,
    /// Whether the decider has a question to answer.
    is_asked: Box<dyn Fn() -> bool>,
    /// Whether answers come only after something else has happened.
    is_late: bool,
}

#[cfg(target_os = "linux")]
impl crate::platform::Platform for Patient<'_> {
    fn wait(&mut self, until: Time) -> Time {
        if self.is_late {
            self.inner.wait(until);
        }
        while (self.is_asked)() {
            std::thread::sleep(std::time::Duration::from_micros(20));
        }
        let rings = self.doorbell.rings();
        if std::mem::replace(&mut self.rings, rings) == rings && !self.is_late {
            self.inner.wait(until);
        }
        self.inner.date()
    }

    fn date(&self) -> Time {
        self.inner.date()
    }

    fn note(&mut self) -> Option<crate::platform::Note> {
        self.inner.note()
    }

    fn admit(&mut self, due: &crate::releases::Due) -> Option<usize> {
        self.inner.admit(due)
    }

    fn vacate(&mut self, slot: usize) {
        self.inner.vacate(slot);
    }

    fn executed(&mut self, slot: usize) -> Option<Time> {
        self.inner.executed(slot)
    }

    fn switch(&mut self, cores: &[Option<usize>]) -> Time {
        self.inner.switch(cores)
    }

    fn retire(&mut self, slot: usize, expired: bool) {
        self.inner.retire(slot, expired);
    }
}

/// Runs `fast` on the spot and `slow` on a decider thread. Answers come before anything else happens, or only after.
#[cfg(target_os = "linux")]
fn with_decider(set: &TaskSet, horizon: Time, fast: &str, mut slow: Box<dyn Scheduler>, is_late: bool) -> Report {
    let doorbell = std::sync::Arc::<crate::doorbell::Doorbell>::default();
    slow.start(&set.system).unwrap();
    let (mailbox, decider) = crate::decider::pair(slow, set.system.clone(), doorbell.clone());
    let is_asked = Box::new(mailbox.is_asked());
    let thread = std::thread::spawn(move || decider.serve(|| 0));
    let (releases, _) = Listed::new(drawn(set, 3, horizon));
    let plan = plan(set, horizon);
    let inner = VirtualTime::new(set.cores(), Box::new(|due| due.execution));
    let mut fast = temponet_sched::build(fast).unwrap();
    let platform = Patient { inner, doorbell, rings: 0, is_asked, is_late };
    let report = dispatched(plan, platform, &mut *fast, Box::new(releases), Some(mailbox)).unwrap().1;
    thread.join().unwrap();
    report
}

#[test]
#[cfg(target_os = "linux")]
fn answers_that_come_in_time_are_carried_out_and_late_ones_are_dropped() {
    let horizon = ms(600);
    for cores in [1, 2] {
        let set = overloaded(cores, OnMiss::Abort);
        for slow in ["edf", "llf", "shield:srpt", "temponet"] {
            let scheduler = || match slow {
                "temponet" => Box::new(Temponet::built_in().unwrap()) as Box<dyn Scheduler>,
                _ => temponet_sched::build(slow).unwrap(),
            };
            let report = with_decider(&set, horizon, "fcfs", scheduler(), false);
            let alone = in_virtual_time(&set, 3, horizon, &mut *scheduler());
            assert_eq!(report.counts.overtaken, 0, "{slow}");
            let counts = report.counts;
            assert!(counts.adopted + counts.agreed > counts.decisions / 5, "{slow}: {counts:?}");
            assert!(counts.adopted > 0 && counts.agreed > 0, "{slow}: {counts:?}");
            assert_eq!(report.metrics.jobs, alone.metrics.jobs, "{slow} on {cores} cores");
        }
        let report = with_decider(&set, horizon, "edf", temponet_sched::build("fcfs").unwrap(), true);
        let alone = in_virtual_time(&set, 3, horizon, &mut *temponet_sched::build("edf").unwrap());
        assert_eq!(report.counts.adopted, 0, "something has always happened since");
        let counts = report.counts;
        assert!(counts.agreed + counts.overtaken > counts.decisions / 5, "{counts:?}");
        assert_eq!(report.metrics.jobs, alone.metrics.jobs);
    }
}
