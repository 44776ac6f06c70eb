//! Contract of [`ReadyJobs`]: what a program reports is what a scheduler sees, ids never alias, and mistakes are
//! errors.

use temponet_task::AssignmentProblem;
use temponet_task::ready_jobs::ReleaseProblem;
use temponet_task::{
    Arrival, Assignment, Attribute, CoreId, Costs, Estimate, Event, ExecutionModel, Gap, InvalidSystem, JobId,
    NotApplicable, OnMiss, Preemption, ReadyJobs, ReadyJobsError, Release, Scheduler, Server, Speed, System,
    SystemView, Task, TaskId, TaskSet, TaskSettingProblem, Time,
};

const fn ms(n: u64) -> Time {
    Time::from_ms(n)
}

type Decide = fn(&SystemView<'_>, &mut Assignment);

/// A scheduler that does what the test says, and remembers what it was shown.
#[derive(Default)]
struct Scripted {
    decide: Option<Decide>,
    seen: Vec<Event>,
}

impl Scheduler for Scripted {
    fn start(&mut self, _: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.seen = view.events.to_vec();
        match self.decide {
            Some(decide) => decide(view, assignment),
            None => {
                let mut ready: Vec<JobId> = view.active.to_vec();
                ready.sort_by_key(|id| (view.job(*id).deadline, view.job(*id).tie()));
                ready.truncate(view.cores());
                assignment.place(view, &ready);
            }
        }
    }
}

fn two_tasks(cores: usize) -> TaskSet {
    let tasks = vec![Task::periodic("fast", ms(10), ms(4)), Task::periodic("slow", ms(30), ms(10))];
    TaskSet::new("test", tasks, cores)
}

fn ready(set: &TaskSet) -> (ReadyJobs, Scripted) {
    let (mut ready, mut scheduler) = (ReadyJobs::new(set.system.clone()).unwrap(), Scripted::default());
    ready.start(&mut scheduler).unwrap();
    (ready, scheduler)
}

#[test]
fn an_estimate_is_seen_within_best_and_worst_case() {
    let (mut ready, _) = ready(&two_tasks(1));
    let mut release = Release::of(&ready.system().tasks()[1], ms(0));
    assert_eq!(release.estimate, None);
    (release.bcet, release.estimate) = (ms(2), Estimate::new(ms(1), ms(40)));
    ready.release_with(TaskId(1), release).unwrap();
    ready.release(TaskId(0)).unwrap();
    let seen: Vec<Option<Estimate>> = ready.view().ready().map(|(_, job)| job.estimate).collect();
    assert_eq!(seen, [Estimate::new(ms(2), ms(10)), None]);
}

#[test]
fn jobs_are_released_run_preempted_and_completed() {
    let (mut ready, mut scheduler) = ready(&two_tasks(1));
    let slow = ready.release(TaskId(1)).unwrap();
    let decision = ready.decide(&mut scheduler).unwrap();
    assert_eq!((decision.cores(), decision.next()), (&[Some(slow)][..], Some(ms(30))));
    ready.advance(ms(5)).unwrap();
    let fast = ready.release(TaskId(0)).unwrap();
    assert_eq!(ready.decide(&mut scheduler).unwrap().cores(), [Some(fast)]);
    assert_eq!(scheduler.seen, [Event::Released(fast.id())]);
    let job = *ready.job(slow).unwrap();
    assert_eq!((job.executed, job.running, job.last_core), (ms(5), false, Some(CoreId(0))));
    ready.advance(ms(8)).unwrap();
    assert_eq!(ready.complete(fast), Ok(true));
    assert_eq!(ready.decide(&mut scheduler).unwrap().cores(), [Some(slow)]);
    assert_eq!(scheduler.seen, [Event::Completed(fast.id())]);
    assert_eq!((ready.len(), ready.job(fast)), (1, None));
}

#[test]
fn an_id_is_taken_until_the_scheduler_knows_that_its_job_left() {
    let (mut ready, mut scheduler) = ready(&two_tasks(1));
    let first = ready.release(TaskId(0)).unwrap();
    ready.decide(&mut scheduler).unwrap();
    ready.complete(first).unwrap();
    let second = ready.release(TaskId(0)).unwrap();
    assert_ne!(first.id(), second.id(), "the completion has not been told yet");
    ready.decide(&mut scheduler).unwrap();
    assert_eq!(scheduler.seen, [Event::Completed(first.id()), Event::Released(second.id())]);
    let third = ready.release(TaskId(1)).unwrap();
    assert_eq!((third.id(), third == first), (first.id(), false));
    assert_eq!(ready.job(second).unwrap().number, 1);
    // A late report of the first job does not hit the one that has its id now.
    assert_eq!(ready.complete(first), Err(ReadyJobsError::Left(first)));
    assert_eq!(ready.iter().count(), 2);
}

#[test]
fn a_passed_deadline_stops_the_job_or_is_told_once() {
    let mut set = two_tasks(1);
    let (mut ready_jobs, mut scheduler) = ready(&set);
    let job = ready_jobs.release(TaskId(0)).unwrap();
    ready_jobs.decide(&mut scheduler).unwrap();
    ready_jobs.advance(ms(10)).unwrap();
    let decision = ready_jobs.decide(&mut scheduler).unwrap();
    let [stopped] = *decision.stopped() else { panic!("{decision:?}") };
    assert_eq!((stopped.handle, stopped.job.task, stopped.is_late), (job, TaskId(0), true));
    assert_eq!((decision.cores(), decision.next()), (&[None][..], None));
    assert_eq!(scheduler.seen, [Event::Aborted(job.id())]);
    assert_eq!(ready_jobs.complete(job), Err(ReadyJobsError::Left(job)));

    set.system.set_on_miss(OnMiss::Continue);
    let (mut ready_jobs, mut scheduler) = ready(&set);
    let job = ready_jobs.release(TaskId(0)).unwrap();
    ready_jobs.advance(ms(12)).unwrap();
    let late = [job];
    let told = [Event::Released(job.id()), Event::DeadlinePassed(job.id())];
    for (late, events) in [(&late[..], &told[..]), (&[], &[])] {
        let decision = ready_jobs.decide(&mut scheduler).unwrap();
        assert_eq!((decision.stopped(), decision.late(), decision.cores()), (&[][..], late, &[Some(job)][..]));
        assert_eq!(scheduler.seen, events);
    }
    // A scheduler that takes over hears of it, the program does not hear of it again.
    ready_jobs.start(&mut scheduler).unwrap();
    assert!(ready_jobs.decide(&mut scheduler).unwrap().late().is_empty());
    assert_eq!(scheduler.seen, told);
    assert_eq!(ready_jobs.complete(job), Ok(false));
}

#[test]
fn a_completion_at_the_deadline_is_on_time() {
    let (mut ready, mut scheduler) = ready(&two_tasks(1));
    let job = ready.release(TaskId(0)).unwrap();
    ready.decide(&mut scheduler).unwrap();
    ready.advance(ms(10)).unwrap();
    assert_eq!(ready.complete(job), Ok(true));
    assert!(ready.decide(&mut scheduler).unwrap().stopped().is_empty());
}

#[test]
fn a_job_that_the_scheduler_gives_up_is_stopped() {
    let (mut ready, mut scheduler) = ready(&two_tasks(1));
    let job = ready.release(TaskId(0)).unwrap();
    ready.decide(&mut scheduler).unwrap();
    scheduler.decide = Some(|view, assignment| assignment.abandon(view.active[0]));
    let [stopped] = *ready.decide(&mut scheduler).unwrap().stopped() else { panic!() };
    assert_eq!((stopped.handle, stopped.is_late), (job, false));
    assert!(ready.is_empty());
}

#[test]
fn illegal_assignments_are_errors_and_change_nothing() {
    let decisions: [(Decide, AssignmentProblem); 6] = [
        (|_, to| to.run(CoreId(0), JobId(7)), AssignmentProblem::UnknownJob(JobId(7))),
        (|_, to| (0..2).for_each(|core| to.run(CoreId(core), JobId(0))), AssignmentProblem::TwoCores(JobId(0))),
        (|_, to| to.set_speed(CoreId(1), Speed(500)), AssignmentProblem::Speed { core: CoreId(1), speed: Speed(500) }),
        (|view, to| to.wake_at(view.now), AssignmentProblem::Wake(Time::ZERO)),
        (|_, to| (to.abandon(JobId(0)), to.run(CoreId(0), JobId(0))).1, AssignmentProblem::GivenUp(JobId(0))),
        (|_, to| to.reset(3), AssignmentProblem::Cores(3)),
    ];
    for (decide, problem) in decisions {
        let (mut ready, mut scheduler) = ready(&two_tasks(2));
        let job = ready.release(TaskId(0)).unwrap();
        assert_eq!(ready.decide(&mut scheduler).unwrap().cores(), [Some(job), None]);
        let mut wrong = Scripted { decide: Some(decide), ..Scripted::default() };
        assert_eq!(ready.decide(&mut wrong).err(), Some(ReadyJobsError::Assignment(problem)));
        assert_eq!(ready.view().running, [Some(job.id()), None]);
        // Another scheduler takes over, and hears of the job that is there.
        ready.start(&mut scheduler).unwrap();
        assert_eq!(ready.decide(&mut scheduler).unwrap().cores(), [Some(job), None]);
        assert_eq!(scheduler.seen, [Event::Released(job.id())]);
    }
}

#[test]
fn a_job_stopped_at_a_failed_decision_is_reported_by_the_next() {
    let (mut ready, mut scheduler) = ready(&two_tasks(1));
    let job = ready.release(TaskId(0)).unwrap();
    ready.decide(&mut scheduler).unwrap();
    ready.advance(ms(10)).unwrap();
    let mut wrong = Scripted { decide: Some(|_, to| to.run(CoreId(0), JobId(0))), ..Scripted::default() };
    assert!(ready.decide(&mut wrong).is_err(), "the job was aborted");
    ready.start(&mut scheduler).unwrap();
    let other = ready.release(TaskId(1)).unwrap();
    assert_ne!(other.id(), job.id());
    let decision = ready.decide(&mut scheduler).unwrap();
    assert_eq!((decision.stopped()[0].handle, decision.cores()), (job, &[Some(other)][..]));
}

#[test]
fn wrong_reports_are_errors() {
    let (mut ready, _) = ready(&two_tasks(1));
    ready.advance(ms(5)).unwrap();
    assert_eq!(ready.advance(ms(4)), Err(ReadyJobsError::Time { from: ms(5), to: ms(4) }));
    assert!(ready.advance(Time::NEVER).is_err());
    assert_eq!(ready.release(TaskId(2)), Err(ReadyJobsError::UnknownTask(TaskId(2))));
    let unstarted = ReadyJobs::new(two_tasks(1).system).unwrap().decide(&mut Scripted::default()).err();
    assert_eq!(unstarted, Some(ReadyJobsError::NotStarted));
    let task = ready.system().tasks()[0].clone();
    let mut wrong = |change: fn(&mut Release), problem: ReleaseProblem| {
        let mut release = Release::of(&task, ms(5));
        change(&mut release);
        assert_eq!(
            ready.release_with(TaskId(0), release),
            Err(ReadyJobsError::Release { task: "fast".into(), what: problem })
        );
    };
    wrong(|release| release.release = ms(6), ReleaseProblem::Future);
    wrong(|release| release.deadline = ms(5), ReleaseProblem::Deadline);
    wrong(|release| release.deadline = Time::NEVER, ReleaseProblem::Deadline);
    wrong(|release| release.wcet = Time::ZERO, ReleaseProblem::Work);
    wrong(|release| release.bcet = ms(20), ReleaseProblem::Work);
    wrong(|release| release.value = f64::NAN, ReleaseProblem::Value);
    assert!(ready.is_empty());
}

#[test]
fn systems_that_make_no_sense_are_refused() {
    let refused = |change: fn(&mut System)| {
        let mut system = two_tasks(1).system;
        change(&mut system);
        ReadyJobs::new(system).unwrap_err()
    };
    assert_eq!(refused(|system| system.set_cores(0)), InvalidSystem::Cores(0));
    assert_eq!(refused(|system| system.set_cores(usize::MAX)), InvalidSystem::Cores(usize::MAX));
    assert_eq!(
        refused(|system| system.set_costs(Costs { migration: Time::NEVER, ..Costs::default() })),
        InvalidSystem::Cost(Time::NEVER)
    );
    assert_eq!(refused(|system| system.tasks_mut()[1].name = "fast".into()), InvalidSystem::TaskName("fast".into()));
    let empty =
        |system: &mut System| system.set_servers(vec![Server { name: "s".into(), budget: Time::ZERO, period: ms(1) }]);
    assert_eq!(refused(empty), InvalidSystem::Server("s".into()));
    let setting = |change: fn(&mut Task), problem: TaskSettingProblem| {
        let mut system = two_tasks(1).system;
        change(&mut system.tasks_mut()[0]);
        let expected = InvalidSystem::TaskSetting { task: "fast".into(), what: problem };
        assert_eq!(ReadyJobs::new(system).unwrap_err(), expected);
    };
    setting(|task| task.offset = Time::NEVER, TaskSettingProblem::Offset);
    let gap =
        |task: &mut Task| task.arrival = Arrival::Sporadic { minimum: ms(2), gap: Gap::Uniform { max: Time::NEVER } };
    setting(gap, TaskSettingProblem::Gap);
    setting(|task| task.acet = Some(ms(5)), TaskSettingProblem::Average);
    setting(|task| task.wcet_high = Some(ms(3)), TaskSettingProblem::HighWcet);
    setting(|task| task.execution = ExecutionModel::Empirical { samples: [].into() }, TaskSettingProblem::Execution);
    let lognormal = |task: &mut Task| task.execution = ExecutionModel::Lognormal { median: ms(2), sigma: f64::NAN };
    setting(lognormal, TaskSettingProblem::Execution);
    setting(|task| task.estimate_error = Some(-0.1), TaskSettingProblem::Estimate);
    setting(|task| task.estimate_error = Some(f64::NAN), TaskSettingProblem::Estimate);
    setting(|task| task.mk = Some((5, 3)), TaskSettingProblem::Mk);
    setting(|task| task.extra.set(Attribute::Skip, Some(0)), TaskSettingProblem::Skip);
    setting(|task| task.preemption = Preemption::Every(Time::ZERO), TaskSettingProblem::Preemption);
    setting(|task| task.preemption = Preemption::Every(Time(3)), TaskSettingProblem::Preemption);
    assert_eq!(refused(|system| system.set_speeds(Vec::new())), InvalidSystem::Speeds);
    assert_eq!(refused(|system| system.set_speeds(vec![Speed(0), Speed::FULL])), InvalidSystem::Speeds);
    assert!(matches!(
        refused(|system| system.tasks_mut()[0].wcet = Time::ZERO),
        InvalidSystem::TaskTime { what: "wcet", .. }
    ));
    let period = |system: &mut System| system.tasks_mut()[1] = Task::periodic("slow", Time::ZERO, ms(1));
    assert!(matches!(refused(period), InvalidSystem::TaskTime { .. }));
    assert!(matches!(refused(|system| system.tasks_mut()[0].bcet = ms(5)), InvalidSystem::BcetAboveWcet { .. }));
    assert!(matches!(refused(|system| system.tasks_mut()[0].value = -1.0), InvalidSystem::Value { .. }));
    assert!(matches!(
        refused(|system| system.tasks_mut()[0].extra.set(Attribute::Server, Some(0))),
        InvalidSystem::UnknownServer { .. }
    ));
}

#[test]
fn a_withdrawn_job_leaves_like_an_aborted_one_and_skipped_jobs_are_numbered() {
    let (mut ready, mut scheduler) = ready(&two_tasks(1));
    let job = ready.release(TaskId(0)).unwrap();
    ready.decide(&mut scheduler).unwrap();
    ready.withdraw(job).unwrap();
    assert_eq!(ready.withdraw(job), Err(ReadyJobsError::Left(job)));
    assert_eq!(ready.decide(&mut scheduler).unwrap().cores(), [None]);
    assert_eq!(scheduler.seen, [Event::Aborted(job.id())]);
    ready.skip(TaskId(0)).unwrap();
    assert_eq!(ready.skip(TaskId(7)), Err(ReadyJobsError::UnknownTask(TaskId(7))));
    let next = ready.release(TaskId(0)).unwrap();
    assert_eq!(ready.job(next).map(|job| job.number), Some(2));
}

#[test]
fn held_ids_are_not_used_again_before_they_are_freed() {
    let (mut ready, mut scheduler) = ready(&two_tasks(1));
    ready.hold_ids();
    let first = ready.release(TaskId(0)).unwrap();
    ready.decide(&mut scheduler).unwrap();
    ready.complete(first).unwrap();
    ready.decide(&mut scheduler).unwrap();
    let second = ready.release(TaskId(0)).unwrap();
    assert_ne!(first.id(), second.id(), "another reader has not been told of the completion");
    ready.free_ids();
    assert_eq!(ready.release(TaskId(0)).unwrap().id(), first.id());
}

#[test]
fn an_assignment_from_elsewhere_is_checked_and_carried_out() {
    let (mut ready, mut scheduler) = ready(&two_tasks(1));
    let (fast, slow) = (ready.release(TaskId(0)).unwrap(), ready.release(TaskId(1)).unwrap());
    assert_eq!(ready.decide(&mut scheduler).unwrap().cores(), [Some(fast)]);
    ready.advance(ms(1)).unwrap();
    let mut other = Assignment::default();
    other.reset(1);
    other.run(CoreId(0), slow.id());
    other.wake_at(ms(1));
    let decision = ready.adopt(&other).unwrap();
    assert_eq!((decision.cores(), decision.next()), (&[Some(slow)][..], Some(ms(1) + Time(1))), "the date has passed");
    let job = *ready.job(fast).unwrap();
    assert_eq!((job.executed, job.running), (ms(1), false));
    other.run(CoreId(0), JobId(9));
    let error = ready.adopt(&other).unwrap_err();
    assert_eq!(error, ReadyJobsError::Assignment(AssignmentProblem::UnknownJob(JobId(9))));
}

/// Two tasks of which the slow one can be preempted as it says.
fn limited(preemption: Preemption) -> (ReadyJobs, Scripted) {
    let mut set = two_tasks(1);
    set.system.tasks_mut()[1].preemption = preemption;
    ready(&set)
}

#[test]
fn a_job_holds_its_core_until_its_next_point() {
    let (mut ready, mut scheduler) = limited(Preemption::Every(ms(4)));
    let slow = ready.release(TaskId(1)).unwrap();
    assert_eq!(ready.decide(&mut scheduler).unwrap().next(), Some(ms(4)), "its first point");
    ready.advance(ms(1)).unwrap();
    let fast = ready.release(TaskId(0)).unwrap();
    assert!(ready.view().is_held(CoreId(0)));
    assert_eq!(ready.decide(&mut scheduler).unwrap().cores(), [Some(slow)], "the scheduler would run the fast one");
    // A scheduler that takes it off all the same is told so, and the job stays.
    scheduler.decide = Some(|view, assignment| assignment.run(CoreId(0), view.active[1]));
    let error = ready.decide(&mut scheduler).err();
    assert_eq!(error, Some(ReadyJobsError::Assignment(AssignmentProblem::Held(slow.id()))));
    scheduler.decide = None;
    ready.advance(ms(4)).unwrap();
    assert_eq!(ready.decide(&mut scheduler).unwrap().cores(), [Some(fast)]);
    // A program that comes late to a point finds it passed.
    ready.advance(ms(5)).unwrap();
    ready.complete(fast).unwrap();
    ready.decide(&mut scheduler).unwrap();
    let fast = {
        ready.advance(ms(11)).unwrap();
        ready.release(TaskId(0)).unwrap()
    };
    assert_eq!(ready.decide(&mut scheduler).unwrap().cores(), [Some(fast)]);
}

#[test]
fn a_held_job_that_should_leave_does_so_at_its_next_point_or_completes() {
    let late = |preemption: Preemption| {
        let (mut ready, mut scheduler) = limited(preemption);
        let slow = ready.release(TaskId(1)).unwrap();
        ready.decide(&mut scheduler).unwrap();
        ready.advance(ms(28)).unwrap();
        ready.set_executed(slow, ms(3)).unwrap();
        ready.decide(&mut scheduler).unwrap();
        ready.advance(ms(30)).unwrap();
        ready.set_executed(slow, ms(5)).unwrap();
        (ready, scheduler, slow)
    };
    let (mut ready, mut scheduler, slow) = late(Preemption::Every(ms(6)));
    let decision = ready.decide(&mut scheduler).unwrap();
    assert_eq!((decision.cores(), decision.late()), (&[Some(slow)][..], &[slow][..]));
    assert_eq!((decision.stopped(), decision.next()), (&[][..], Some(ms(31))));
    ready.advance(ms(31)).unwrap();
    let decision = ready.decide(&mut scheduler).unwrap();
    assert_eq!((decision.cores(), decision.stopped().len()), (&[None][..], 1));
    assert!(decision.stopped()[0].handle == slow && decision.stopped()[0].is_late);
    assert_eq!(scheduler.seen, [Event::Aborted(slow.id())]);
    let (mut ready, mut scheduler, slow) = late(Preemption::None);
    assert_eq!(ready.decide(&mut scheduler).unwrap().cores(), [Some(slow)]);
    ready.advance(ms(31)).unwrap();
    assert_eq!(ready.complete(slow), Ok(false), "done, but late");
    // Given up while it holds its core.
    let (mut ready, mut scheduler) = limited(Preemption::Every(ms(4)));
    let slow = ready.release(TaskId(1)).unwrap();
    ready.decide(&mut scheduler).unwrap();
    ready.advance(ms(1)).unwrap();
    scheduler.decide = Some(|view, assignment| {
        assignment.place(view, view.active);
        assignment.abandon(view.active[0]);
    });
    assert_eq!(ready.decide(&mut scheduler).unwrap().cores(), [Some(slow)]);
    scheduler.decide = None;
    ready.advance(ms(4)).unwrap();
    let decision = ready.decide(&mut scheduler).unwrap();
    assert!(decision.stopped()[0].handle == slow && !decision.stopped()[0].is_late);
}
