//! Limits on preemption in the engine: who keeps a core and until when, what is illegal, and what becomes of jobs that
//! should leave while they hold a core. `naive_simulator.rs` holds whole schedules against a simulator of its own.

use std::sync::Arc;

use temponet_sched::build;
use temponet_sim::{End, Engine, JobRecord, Outlook, Recorder, SimError, Unobserved, simulate};
use temponet_task::{
    Assignment, CoreId, Costs, Event, OnMiss, Preemption, Scheduler, Speed, SystemView, Task, TaskSet, Time,
};

use crate::engine::Rogue;

fn ms(n: u64) -> Time {
    Time::from_ms(n)
}

/// A long job from time 0 on, and a short one with an earlier deadline that arrives at 1.
fn long_and_short(preemption: Preemption) -> TaskSet {
    let long = Task::periodic("long", ms(100), ms(10)).with_preemption(preemption);
    let short = Task::periodic("short", ms(100), ms(2)).with_offset(ms(1)).with_deadline(ms(20));
    TaskSet::new("test", vec![long, short], 1)
}

fn recorded(set: &TaskSet, scheduler: &mut dyn Scheduler) -> Vec<JobRecord> {
    let mut recorder = Recorder::until(Time::NEVER);
    simulate(set, 0, ms(100), scheduler, &mut recorder).unwrap();
    recorder.jobs.sort_by_key(|job| (job.task, job.number));
    recorder.jobs
}

/// Start and end of every job under EDF.
fn spans(set: &TaskSet) -> Vec<(u64, u64)> {
    let jobs = recorded(set, &mut *build("edf").unwrap());
    jobs.iter().map(|job| (job.start.unwrap().0 / 1_000_000, job.left.0 / 1_000_000)).collect()
}

#[test]
fn a_job_is_preempted_at_once_at_its_next_point_or_never() {
    assert_eq!(spans(&long_and_short(Preemption::Free)), [(0, 12), (1, 3)]);
    assert_eq!(spans(&long_and_short(Preemption::Every(ms(4)))), [(0, 12), (4, 6)]);
    assert_eq!(spans(&long_and_short(Preemption::None)), [(0, 10), (10, 12)]);
}

#[test]
fn points_count_the_work_of_the_job_and_not_its_overhead_nor_the_time() {
    // A switch of 1 ms comes before the work, so the point after 4 ms of work is at 5.
    let mut set = long_and_short(Preemption::Every(ms(4)));
    set.system.set_costs(Costs { context_switch: ms(1), ..Costs::default() });
    assert_eq!(spans(&set)[1], (5, 8));
    // At half speed, 4 ms of work take 8 ms.
    let mut set = long_and_short(Preemption::Every(ms(4)));
    set.system.set_speeds(vec![Speed(500), Speed::FULL]);
    let jobs = recorded(&set, &mut Half(build("edf").unwrap()));
    assert_eq!(jobs[1].start, Some(ms(8)));
}

#[test]
fn what_was_shed_and_what_was_done_for_nothing_is_counted() {
    let figures = |preemption: Preemption| {
        let mut set = long_and_short(preemption);
        for (task, deadline) in set.system.tasks_mut().iter_mut().zip([5, 3]) {
            task.deadline = ms(deadline);
        }
        let metrics = simulate(&set, 0, ms(100), &mut *build("fcfs").unwrap(), &mut Unobserved).unwrap();
        (metrics.shed, metrics.wasted_ns, metrics.work_ns, metrics.wasted_share())
    };
    // The long one is never finished in time; the short one waits for it until it is too late, and never begins.
    assert_eq!(figures(Preemption::Cancel), (1, 5_000_000, 5_000_000, Some(1.0)));
    assert_eq!(figures(Preemption::None), (1, 10_000_000, 10_000_000, Some(1.0)));
    let met = simulate(&long_and_short(Preemption::None), 0, ms(100), &mut *build("edf").unwrap(), &mut Unobserved);
    let met = met.unwrap();
    assert_eq!((met.shed, met.wasted_ns, met.work_ns), (0, 0, 12_000_000));
}

#[test]
fn a_job_that_can_be_cancelled_leaves_at_its_deadline_and_holds_its_core_until_then() {
    let run = |preemption: Preemption| {
        let mut set = long_and_short(preemption);
        set.system.tasks_mut()[0].deadline = ms(5);
        let jobs = recorded(&set, &mut *build("edf").unwrap());
        jobs.iter().map(|job| (job.end, job.start.unwrap(), job.left)).collect::<Vec<_>>()
    };
    assert_eq!(run(Preemption::Cancel), [(End::Aborted, ms(0), ms(5)), (End::Completed, ms(5), ms(7))]);
    assert_eq!(run(Preemption::None), [(End::Completed, ms(0), ms(10)), (End::Completed, ms(10), ms(12))]);
    assert_eq!(
        spans(&long_and_short(Preemption::Cancel)),
        spans(&long_and_short(Preemption::None)),
        "if it is in time"
    );
}

/// A scheduler at half speed.
struct Half(Box<dyn Scheduler>);

impl temponet_task::Wrapper for Half {
    temponet_task::wraps!(0: Box<dyn Scheduler>);

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        Scheduler::decide(&mut self.0, view, assignment);
        assignment.set_speed(CoreId(0), Speed(500));
    }
}

#[test]
fn a_held_job_that_reaches_its_deadline_leaves_at_its_next_point_or_completes_late() {
    let with = |preemption: Preemption, deadline: u64| {
        let mut set = long_and_short(preemption);
        set.system.tasks_mut()[0].deadline = ms(deadline);
        set
    };
    let long = |set: &TaskSet| {
        let jobs = recorded(set, &mut *build("fcfs").unwrap());
        (jobs[0].end, jobs[0].left, jobs[0].executed)
    };
    assert_eq!(long(&with(Preemption::Free, 6)), (End::Aborted, ms(6), ms(6)));
    assert_eq!(long(&with(Preemption::Every(ms(4)), 6)), (End::Aborted, ms(8), ms(8)));
    assert_eq!(long(&with(Preemption::Every(ms(4)), 8)), (End::Aborted, ms(8), ms(8)), "a point at the deadline");
    assert_eq!(long(&with(Preemption::Every(ms(4)), 9)), (End::Completed, ms(10), ms(10)));
    assert_eq!(long(&with(Preemption::None, 6)), (End::Completed, ms(10), ms(10)));
    // Late all the same: the deadline is missed.
    for preemption in [Preemption::Free, Preemption::Every(ms(4)), Preemption::None] {
        let metrics =
            simulate(&with(preemption, 6), 0, ms(100), &mut *build("fcfs").unwrap(), &mut Unobserved).unwrap();
        assert_eq!((metrics.jobs.released, metrics.jobs.met), (2, 1), "{preemption:?}");
    }
}

#[test]
fn a_held_job_that_is_abandoned_leaves_at_its_next_point_unless_it_completes() {
    let mut gives_up = Rogue(|view, assignment| {
        assignment.place(view, &view.active[..1.min(view.active.len())]);
        if view.now == ms(1) {
            assert!(view.is_held(CoreId(0)) && view.held_on(CoreId(0)) == view.running[0]);
            assignment.abandon(view.running[0].unwrap());
        }
        let has_left = view.events.iter().any(|event| matches!(event, Event::Aborted(_)));
        assert!(!has_left || view.now == ms(4));
    });
    let jobs = recorded(&long_and_short(Preemption::Every(ms(4))), &mut gives_up);
    assert_eq!((jobs[0].end, jobs[0].left, jobs[1].start), (End::Abandoned, ms(4), Some(ms(4))));
    let jobs = recorded(&long_and_short(Preemption::None), &mut gives_up);
    assert_eq!((jobs[0].end, jobs[0].left), (End::Completed, ms(10)));
}

#[test]
fn taking_a_job_off_the_core_it_holds_is_illegal_and_named() {
    let mut set = long_and_short(Preemption::None);
    set.system.set_cores(2);
    let error = |decide| match simulate(&set, 0, ms(100), &mut Rogue(decide), &mut Unobserved) {
        Err(SimError::IllegalAssignment { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    let dropped = error(|view, assignment| {
        if view.now == Time::ZERO {
            assignment.run(CoreId(0), view.active[0]);
        }
    });
    assert_eq!(dropped, "job 0 of task \"long\" taken off core 0, which it holds until it can be preempted");
    let moved =
        error(|view, assignment| assignment.run(CoreId::new(usize::from(view.now > Time::ZERO)), view.active[0]));
    assert!(moved.contains("\"long\" taken off core 0"), "{moved}");
}

#[test]
fn schedulers_that_cut_jobs_at_times_of_their_own_refuse_such_sets() {
    let set = long_and_short(Preemption::Every(ms(4)));
    for name in ["dp-wrap", "llref", "lre-tl", "pd2", "er-pd2", "run", "cd-split", "d-over"] {
        let error = simulate(&set, 0, ms(100), &mut *build(name).unwrap(), &mut Unobserved).unwrap_err();
        let expected = format!("{name} cuts jobs at times of its own, which task \"long\" does not allow (preemption)");
        assert_eq!(error.to_string(), expected);
    }
    // Every other scheduler of the catalog for independent tasks runs them, behind the shield or not, with either rule
    // for late jobs.
    let mut set = long_and_short(Preemption::None);
    set.system.tasks_mut().push(Task::periodic("middle", ms(9), ms(5)).with_preemption(Preemption::Every(ms(2))));
    set.system.tasks_mut().push(Task::periodic("fast", ms(5), ms(2)).with_criticality(1));
    for (cores, on_miss) in [(1, OnMiss::Abort), (2, OnMiss::Abort), (1, OnMiss::Continue)] {
        set.system.set_cores(cores);
        set.system.set_on_miss(on_miss);
        for entry in temponet_sched::catalog::all() {
            for name in [entry.name.to_string(), format!("shield:{}", entry.name)] {
                match simulate(&set, 0, ms(100), &mut *build(&name).unwrap(), &mut Unobserved) {
                    Ok(metrics) => assert!(metrics.jobs.released > 10, "{name}"),
                    Err(error) => {
                        let words = error.to_string();
                        let is_known = words.contains("cuts jobs at times of its own")
                            || words.contains("it is for tasks that come after each other");
                        assert!(is_known, "{name}: {error}")
                    }
                }
            }
        }
    }
}

/// A future that is drawn while a job holds its core goes on holding it, to the same point, and a late one leaves
/// there.
#[test]
fn a_future_knows_who_holds_a_core() {
    for (deadline, moment) in [(100, ms(1)), (2, ms(2))] {
        let mut set = long_and_short(Preemption::Every(ms(4)));
        set.system.tasks_mut()[0].deadline = ms(deadline);
        let set = Arc::new(set);
        let mut engine = Engine::new(set.clone(), 0, ms(100));
        let mut outlook = Outlook::new(engine.system());
        let (mut scheduler, mut assignment) = (build("fcfs").unwrap(), Assignment::default());
        scheduler.start(engine.system()).unwrap();
        let mut drawn: Option<Engine> = None;
        while engine.advance(&mut Unobserved) {
            outlook.observe(&engine.view());
            assignment.reset(1);
            scheduler.decide(&engine.view(), &mut assignment);
            if engine.now() == moment {
                let mut future = outlook.draw(&engine.view(), 1, ms(100));
                assert!(future.view().is_held(CoreId(0)));
                future.apply(&assignment, &mut Unobserved).unwrap();
                drawn = Some(future);
            }
            engine.apply(&assignment, &mut Unobserved).unwrap();
            if let Some(mut future) = drawn.take() {
                assert!(future.advance(&mut Unobserved));
                let mut same = engine.clone();
                assert!(same.advance(&mut Unobserved));
                assert_eq!(future.now(), ms(4), "the next point");
                assert_eq!(future.now(), same.now());
                assert_eq!(future.view().events, same.view().events);
                assert!(!future.view().is_held(CoreId(0)));
                assert_eq!(future.view().running, same.view().running);
                assert_eq!(future.view().running[0].is_none(), deadline == 2);
            }
        }
    }
}
