//! Tests the rules of the engine one by one, on schedules small enough to read.

use temponet_sim::{End, Engine, JobRecord, MOST_READY, Metrics, Recorder, SimError, Unobserved, simulate};
use temponet_task::{
    Arrival, Assignment, Attribute, CoreId, Costs, JobId, NotApplicable, OnMiss, Scheduler, Speed, System, SystemView,
    Task, TaskId, TaskSet, Time,
};

fn ms(n: u64) -> Time {
    Time::from_ms(n)
}

fn set(tasks: &[(u64, u64)], cores: usize) -> TaskSet {
    let named = tasks.iter().zip('A'..);
    let tasks = named.map(|((period, wcet), name)| Task::periodic(name, ms(*period), ms(*wcet))).collect();
    TaskSet::new("test", tasks, cores)
}

fn record(set: &TaskSet, scheduler: &str, horizon: u64) -> (Metrics, Recorder) {
    let mut recorder = Recorder::until(Time::NEVER);
    let mut scheduler = temponet_sched::build(scheduler).unwrap();
    let metrics = simulate(set, 0, ms(horizon), &mut *scheduler, &mut recorder).unwrap();
    (metrics, recorder)
}

/// Draws a schedule: one row per core, one letter per millisecond, `.` for idle.
fn picture(set: &TaskSet, scheduler: &str, horizon: u64) -> String {
    let (_, recorder) = record(set, scheduler, horizon);
    let mut rows = vec![vec!['.'; horizon as usize]; set.cores()];
    for slice in &recorder.slices {
        for at in slice.start.0 / 1_000_000..slice.end.0 / 1_000_000 {
            rows[slice.core.index()][at as usize] = set.tasks()[slice.task].name.chars().next().unwrap();
        }
    }
    rows.iter().map(|row| row.iter().collect::<String>()).collect::<Vec<_>>().join("\n")
}

#[test]
fn golden_edf_and_rm_on_one_core() {
    // The point of Liu and Layland: at a utilization of 0.97, EDF meets all deadlines, while B misses under RM.
    let set = set(&[(5, 2), (7, 4)], 1);
    assert_eq!(picture(&set, "edf", 35), "AABBBBAABBBBAABAABBBAABBBBAABBBBAA.");
    assert_eq!(picture(&set, "rm", 35), "AABBBAABBBAAB.BAABBBAABBBAABBBAABB.");
    assert_eq!(record(&set, "edf", 35).0.missed(), 0);
    assert!(record(&set, "rm", 35).0.missed() > 0);
}

#[test]
fn golden_dhall_effect_on_two_cores() {
    // Two light tasks with earlier deadlines keep global EDF from starting the heavy task in time. EDZL starts it as
    // soon as its laxity is zero.
    let set = set(&[(9, 2), (9, 2), (10, 9)], 2);
    assert_eq!(picture(&set, "edf", 10), "AACCCCCCCC\nBB.......A");
    assert_eq!(picture(&set, "edzl", 10), "AAB......A\nBCCCCCCCCC");
}

#[test]
fn completion_at_the_deadline_is_met() {
    let (metrics, recorder) = record(&set(&[(5, 5)], 1), "edf", 10);
    assert_eq!((metrics.jobs.released, metrics.jobs.met), (2, 2));
    assert!(recorder.jobs.iter().all(|job| job.end == End::Completed && job.left == job.deadline));
}

#[test]
fn only_deadlines_within_the_horizon_count() {
    let (metrics, _) = record(&set(&[(4, 1)], 1), "edf", 11);
    assert_eq!(metrics.jobs.released, 2, "the third job's deadline is at 12");
}

#[test]
fn abort_removes_and_continue_keeps() {
    let mut set = set(&[(4, 3), (6, 3)], 1);
    let ends = |set: &TaskSet| {
        let (metrics, recorder) = record(set, "rm", 24);
        let late = |job: &&JobRecord| job.end == End::Completed && job.left > job.deadline;
        (metrics.missed(), recorder.jobs.iter().filter(late).count())
    };
    assert_eq!(ends(&set), (4, 0), "B gets one millisecond in four and never completes");
    set.system.set_on_miss(OnMiss::Continue);
    let (missed, late) = ends(&set);
    assert!(missed > 0 && late > 0, "{missed} {late}");
}

#[test]
fn a_release_beyond_its_own_deadline_is_missed() {
    let task = Task::periodic("A", ms(10), ms(1)).with_jitter(ms(50)).with_deadline(ms(2));
    for on_miss in [OnMiss::Abort, OnMiss::Continue] {
        let mut set = TaskSet::new("test", vec![task.clone()], 1);
        set.system.set_on_miss(on_miss);
        let (metrics, recorder) = record(&set, "edf", 1_000);
        let stillborn = recorder.jobs.iter().filter(|job| job.release >= job.deadline).count();
        assert!(stillborn > 50);
        assert!(metrics.missed() >= stillborn as u64 - 5);
    }
}

#[test]
fn responses_of_jobs_that_never_complete_last_until_their_deadline() {
    let (metrics, _) = record(&set(&[(10, 20)], 1), "edf", 100);
    assert_eq!(metrics.art_completed(), None);
    assert_eq!(metrics.art_all(), Some(10e6));
    assert_eq!(metrics.lateness.max(), Some(0));
}

#[test]
fn switching_and_migrating_cost_work() {
    // B is preempted at 4 by A and resumes at 6: two dispatches of B, two of A.
    let mut set = set(&[(4, 2), (12, 5)], 1);
    let end = |set: &TaskSet| record(set, "rm", 12).1.jobs.iter().find(|job| job.task == TaskId(1)).unwrap().left;
    assert_eq!(end(&set), ms(11));
    set.system.set_costs(Costs { context_switch: Time::from_us(100), ..Costs::default() });
    // A at 0, B, A at 4, B, A at 8, B: six context switches before B ends.
    assert_eq!(end(&set), ms(11) + Time::from_us(600));
    set.system.set_costs(Costs { decision: Time::from_us(10), ..Costs::default() });
    // Core 0 takes the decisions: at 0, 2.01, 4, 6.01, 8 and 10.01, the job that it then runs waits for the decision.
    assert_eq!(end(&set), ms(11) + Time::from_us(60));
}

#[test]
fn a_migration_adds_its_delay_to_the_work() {
    // C waits for a core, starts on core 1, is preempted by B at 6 and resumes on core 0.
    let mut set = set(&[(20, 7), (6, 3), (30, 6)], 2);
    set.system.tasks_mut()[0].extra.set(Attribute::Priority, Some(2));
    set.system.tasks_mut()[1].extra.set(Attribute::Priority, Some(3));
    let (metrics, recorder) = record(&set, "fp", 30);
    let end = |recorder: &Recorder| recorder.jobs.iter().find(|job| job.task == TaskId(2)).unwrap().left;
    assert_eq!((metrics.migrations, end(&recorder)), (1, ms(10)));
    set.system.set_costs(Costs { migration: Time::from_us(500), ..*set.costs() });
    let (metrics, recorder) = record(&set, "fp", 30);
    assert_eq!((metrics.migrations, end(&recorder)), (1, ms(10) + Time::from_us(500)));
}

/// Scheduler that runs the first ready job on core 0 at a fixed speed.
struct AtSpeed(Speed);

impl Scheduler for AtSpeed {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        if let Some((id, _)) = view.ready().next() {
            assignment.run(CoreId(0), id);
            assignment.set_speed(CoreId(0), self.0);
        }
    }
}

#[test]
fn half_speed_takes_twice_as_long_for_an_eighth_of_the_power() {
    let mut set = set(&[(10, 3)], 1);
    set.system.set_speeds(vec![Speed(333), Speed(500), Speed::FULL]);
    let run = |speed| simulate(&set, 0, ms(100), &mut AtSpeed(speed), &mut Recorder::until(Time::NEVER)).unwrap();
    let (full, half) = (run(Speed::FULL), run(Speed(500)));
    assert!((full.energy - 0.030).abs() < 1e-12, "{}", full.energy);
    assert!((half.energy - 0.060 / 8.0).abs() < 1e-12, "{}", half.energy);
    assert_eq!((full.art_completed(), half.art_completed()), (Some(3e6), Some(6e6)));
    // 3 ms at 333/1000 of full speed take 9.009009… ms, rounded up to the nanosecond.
    assert_eq!(run(Speed(333)).art_completed(), Some(9_009_010.0));
}

/// Scheduler that calls a function, to make illegal decisions.
pub struct Rogue(pub fn(&SystemView<'_>, &mut Assignment));

impl Scheduler for Rogue {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        (self.0)(view, assignment);
    }
}

#[test]
fn illegal_assignments_are_errors_with_names() {
    let two = set(&[(10, 3), (10, 3)], 2);
    let error = |decide| match simulate(&two, 0, ms(100), &mut Rogue(decide), &mut Recorder::until(Time::NEVER)) {
        Err(SimError::IllegalAssignment { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    let twice = error(|view, assignment| {
        let id = view.active[0];
        assignment.run(CoreId(0), id);
        assignment.run(CoreId(1), id);
    });
    assert!(twice.contains("\"A\"") && twice.contains("two cores"), "{twice}");
    assert!(error(|_, assignment| assignment.run(CoreId(0), JobId(99))).contains("unknown job id 99"));
    assert!(error(|view, assignment| assignment.wake_at(view.now)).contains("not in the future"));
    assert!(error(|_, assignment| assignment.set_speed(CoreId(0), Speed(700))).contains("700/1000"));
    let finished = error(|view, assignment| match view.events[0] {
        temponet_task::Event::Completed(id) => assignment.run(CoreId(1), id),
        _ => assignment.run(CoreId(0), view.active[0]),
    });
    assert!(finished.contains("after it left"), "{finished}");
    let keeps_and_copies = error(|view, assignment| {
        let running = view.running[0];
        assignment.run(CoreId(0), running.unwrap_or(view.active[0]));
        if let Some(id) = running {
            assignment.run(CoreId(1), id);
        }
        assignment.wake_at(view.now + Time(1));
    });
    assert!(keeps_and_copies.contains("two cores"), "{keeps_and_copies}");
}

#[test]
fn a_job_given_up_leaves_and_counts_as_missed() {
    let one = set(&[(10, 3)], 1);
    let mut recorder = Recorder::until(Time::NEVER);
    let mut rogue = Rogue(|view, assignment| view.active.iter().for_each(|id| assignment.abandon(*id)));
    let metrics = simulate(&one, 0, ms(50), &mut rogue, &mut recorder).unwrap();
    assert_eq!((metrics.jobs.released, metrics.jobs.met), (5, 0));
    assert!(recorder.jobs.iter().all(|job| job.end == End::Abandoned && job.left == job.release));
    assert_eq!(metrics.art_all(), Some(10e6), "giving up early does not look fast");
}

/// EDF that accepts at most a hundred ready jobs.
struct Slow(Box<dyn Scheduler>);

impl temponet_task::Wrapper for Slow {
    temponet_task::wraps!(0: Box<dyn Scheduler>);

    fn most_ready(&self) -> usize {
        100
    }
}

/// In overload with the rule `continue`, the backlog and the time of every decision would grow until the horizon.
#[test]
fn a_backlog_without_end_is_an_error_with_the_load_in_it() {
    let mut set = set(&[(10, 30)], 1);
    set.system.set_on_miss(OnMiss::Continue);
    let mut slow = Slow(temponet_sched::build("edf").unwrap());
    let error = simulate(&set, 0, Time::MAX_INPUT, &mut slow, &mut Unobserved).unwrap_err();
    // At 1490 ms, the 150th job is released and 49 jobs are complete.
    assert!(matches!(error, SimError::TooManyReady { most: 100, time, .. } if time == ms(1490)), "{error}");
    let text = error.to_string();
    assert!(text.contains("load 3.00 per core, and late jobs stay") && text.contains("abort"), "{text}");
    set.system.set_on_miss(OnMiss::Abort);
    assert!(simulate(&set, 0, ms(5_000), &mut slow, &mut Unobserved).is_ok());
}

/// Four billion jobs at once would exhaust the memory.
#[test]
fn a_burst_of_billions_is_refused_before_memory_is_full() {
    let arrival = Arrival::Burst { jobs: u32::MAX, every: ms(1_000), until: Time::NEVER };
    let set = TaskSet::new("test", vec![Task::periodic("A", ms(1_000), ms(1)).with_arrival(arrival)], 1);
    let mut engine = Engine::new(&set, 0, ms(2_000));
    assert!(engine.advance(&mut Unobserved));
    assert_eq!(engine.view().active.len(), MOST_READY + 1);
    drop(engine);
    let mut edf = temponet_sched::build("edf").unwrap();
    let error = simulate(&set, 0, ms(2_000), &mut *edf, &mut Unobserved).unwrap_err();
    assert!(matches!(error, SimError::TooManyReady { most: MOST_READY, time: Time::ZERO, .. }), "{error}");
}
