//! Futures drawn from what an online scheduler knows: they continue the present, keep to the tasks' descriptions, and
//! know nothing of what is hidden.

use std::sync::Arc;

use temponet_sched::build;
use temponet_sim::{Engine, JobRecord, Observer, Outlook, Recorder, Unobserved};
use temponet_task::{
    Arrival, Assignment, CoreId, ExecutionModel, Gap, Job, JobId, ListedJob, Mode, Protocol, ResourceId, Section,
    SystemView, Task, TaskId, TaskSet, Time,
};

fn ms(time: u64) -> Time {
    Time::from_ms(time)
}

/// Runs `edf` on a set until a decision point at or after `until`, with an outlook that sees every decision point.
fn seen(set: &TaskSet, seed: u64, until: Time) -> (Engine, Outlook) {
    let set = Arc::new(set.clone());
    let mut engine = Engine::new(set.clone(), seed, Time::from_secs(100));
    let mut outlook = Outlook::new(engine.system());
    let mut scheduler = build("edf").unwrap();
    scheduler.start(engine.system()).unwrap();
    let mut assignment = Assignment::default();
    while engine.advance(&mut Unobserved) {
        outlook.observe(&engine.view());
        if engine.now() >= until {
            break;
        }
        assignment.reset(set.cores());
        scheduler.decide(&engine.view(), &mut assignment);
        engine.apply(&assignment, &mut Unobserved).unwrap();
    }
    (engine, outlook)
}

/// Observer that keeps the released jobs.
#[derive(Default)]
struct Releases(Vec<Job>);

impl Observer for Releases {
    fn released(&mut self, job: &Job) {
        self.0.push(*job);
    }
}

/// Follows a future with `name` and returns its releases.
fn followed(mut future: Engine, name: &str) -> Vec<Job> {
    let mut scheduler = build(name).unwrap();
    scheduler.start(future.system()).unwrap();
    let (mut assignment, mut releases) = (Assignment::default(), Releases::default());
    loop {
        assignment.reset(future.view().cores());
        scheduler.decide(&future.view(), &mut assignment);
        future.apply(&assignment, &mut releases).unwrap();
        if !future.advance(&mut releases) {
            return releases.0;
        }
    }
}

fn uniform(name: &str, period: u64, wcet: u64) -> Task {
    Task::periodic(name, ms(period), ms(wcet)).with_bcet(Time(ms(wcet).0 / 5)).with_execution(ExecutionModel::Uniform)
}

#[test]
fn a_future_continues_the_present_and_hides_what_is_hidden() {
    let set = TaskSet::new("s", vec![uniform("a", 10, 6), uniform("b", 14, 9), uniform("c", 33, 20)], 2);
    let (engine, outlook) = seen(&set, 3, ms(400));
    let view = engine.view();
    let mut differ = 0;
    for seed in 0..200 {
        let future = outlook.draw(&view, seed, view.now + ms(60));
        let drawn = future.view();
        assert_eq!((drawn.now, drawn.active, drawn.running), (view.now, view.active, view.running));
        for (id, job) in drawn.ready() {
            assert_eq!(job, view.job(id));
            let execution = future.true_execution(id);
            assert!(execution > job.executed && execution >= job.bcet && execution <= job.wcet, "{job:?} {execution}");
            differ += u64::from(execution != engine.true_execution(id));
        }
    }
    assert!(differ > 190 * view.active.len() as u64, "drawn anew, not copied: {differ}");
}

#[test]
fn a_job_with_an_estimate_takes_what_it_says() {
    let estimated = |error: f64| uniform("a", 10, 9).with_estimate_error(Some(error));
    for (error, low, high) in [(0.0, 1.0, 1.0), (0.2, 0.3, 2.5)] {
        let set = TaskSet::new("s", vec![estimated(error), estimated(error).with_name("b".into())], 1);
        let (engine, outlook) = seen(&set, 3, ms(400));
        let view = engine.view();
        let (mut near, mut all) = (0, 0);
        for seed in 0..200 {
            let future = outlook.draw(&view, seed, view.now + ms(60));
            for (id, job) in future.view().ready() {
                let estimate = job.estimate.expect("every job carries one");
                let ratio = future.true_execution(id).0 as f64 / estimate.median().0 as f64;
                near += u64::from((low..=high).contains(&ratio));
                all += 1;
            }
            // Jobs to come carry estimates as good as those of today.
            for job in followed(future, "edf").iter().filter(|job| job.release > view.now) {
                assert!(job.estimate.is_some_and(|estimate| error > 0.0 || estimate.error() == 0.0), "{job:?}");
            }
        }
        // One that is not quite certain leaves room for what the task says.
        let least = if error == 0.0 { 1.0 } else { 0.8 };
        assert!(all > 200 && near as f64 >= least * all as f64, "{error}: {near} of {all}");
    }
}

#[test]
fn arrivals_are_known_where_they_are_periodic_and_do_not_depend_on_decisions() {
    let set = TaskSet::new("s", vec![uniform("a", 10, 6), uniform("b", 14, 9).with_offset(ms(3))], 1);
    let (engine, outlook) = seen(&set, 5, ms(200));
    let view = engine.view();
    let futures: Vec<Vec<Job>> = ["edf-skip", "srpt"]
        .into_iter()
        .map(|name| followed(outlook.draw(&view, 8, view.now + ms(100)), name))
        .collect();
    assert_eq!(futures[0], futures[1]);
    assert!(futures[0].len() > 14);
    for job in &futures[0] {
        let task = &set.tasks()[job.task];
        let expected = task.offset + task.period().unwrap() * job.number;
        assert_eq!((job.release, job.deadline), (expected, expected + task.deadline));
    }
}

#[test]
fn sporadic_gaps_and_jitter_go_on_from_what_has_passed() {
    let sporadic = |gap| uniform("s", 10, 2).with_arrival(Arrival::Sporadic { minimum: ms(10), gap });
    let jittery = uniform("j", 20, 2).with_jitter(ms(6));
    let (uniform, exponential) = (Gap::Uniform { max: ms(30) }, Gap::Exponential { mean: ms(25) });
    for first in [sporadic(uniform), sporadic(exponential)] {
        let set = TaskSet::new("s", vec![first, jittery.clone()], 1);
        for until in [101, 113, 127, 131] {
            let (engine, outlook) = seen(&set, 9, ms(until));
            let view = engine.view();
            for seed in 0..50 {
                let jobs = followed(outlook.draw(&view, seed, view.now + ms(150)), "edf");
                assert!(jobs.len() > 6 && jobs.iter().all(|job| job.release > view.now), "nothing comes late");
                for task in 0..2 {
                    let arrivals: Vec<Time> =
                        jobs.iter().filter(|job| job.task == TaskId(task)).map(|job| job.deadline).collect();
                    let least = if task == 0 { ms(10) } else { ms(20) };
                    assert!(arrivals.windows(2).all(|pair| pair[1] >= pair[0] + least), "{arrivals:?}");
                }
            }
        }
    }
}

#[test]
fn a_change_of_mode_is_seen_in_the_jobs_and_a_silent_task_stays_silent() {
    let mut set = TaskSet::new("s", vec![uniform("a", 10, 2), uniform("b", 10, 2)], 1);
    set.set_modes(vec![
        Mode::new("half", ms(100)).with_work(2.0).with_rate(0.5).with_only(&[TaskId(0)], set.tasks().len()),
    ]);
    let (engine, outlook) = seen(&set, 1, ms(151));
    let jobs = followed(outlook.draw(&engine.view(), 1, engine.now() + ms(100)), "edf");
    assert!(!jobs.is_empty() && jobs.iter().all(|job| job.task == TaskId(0) && job.wcet == ms(4)));
    assert!(jobs.windows(2).all(|pair| pair[1].release - pair[0].release == ms(20)));
}

#[test]
fn the_jobs_of_a_list_are_not_read_ahead() {
    let job = |k: u64, execution: u64| {
        ListedJob::new(ms(10 * k), ms(10 * k + 12), Time::from_us(execution)).with_wcet(ms(9)).with_bcet(Time(1))
    };
    let set = |late: u64| {
        let jobs: Arc<[ListedJob]> = (0..60).map(|k| job(k, if k < 20 { 4_000 + 100 * k } else { late })).collect();
        TaskSet::new("s", vec![Task::periodic("l", ms(10), ms(9)).with_arrival(Arrival::Listed(jobs))], 1)
    };
    let futures: Vec<Vec<Job>> = [1_000, 8_900]
        .into_iter()
        .map(|late| {
            let (engine, outlook) = seen(&set(late), 1, ms(195));
            followed(outlook.draw(&engine.view(), 4, engine.now() + ms(200)), "edf")
        })
        .collect();
    assert_eq!(futures[0], futures[1], "the lists differ only after the decision");
    assert!(futures[0].len() > 10, "and the future has jobs like those seen");
    let relative = |job: &Job| job.deadline - job.release;
    assert!(futures[0].iter().all(|job| relative(job) == ms(12) && job.wcet == ms(9)));
}

#[test]
fn ids_and_views_stay_consistent_when_a_future_goes_on() {
    let set = TaskSet::new("s", (0..9).map(|k| uniform(&format!("t{k}"), 10 + 3 * k, 4 + k)).collect(), 3);
    let (engine, outlook) = seen(&set, 2, ms(300));
    let mut future = outlook.draw(&engine.view(), 1, engine.now() + ms(500));
    let mut scheduler = build("mh-edf").unwrap();
    scheduler.start(future.system()).unwrap();
    let mut assignment = Assignment::default();
    let mut decisions = 0;
    loop {
        let view: SystemView<'_> = future.view();
        for (core, id) in view.running.iter().enumerate() {
            let Some(id) = id else { continue };
            assert!(
                view.active.contains(id)
                    && view.job(*id).last_core == Some(CoreId(core as u32))
                    && view.job(*id).running
            );
        }
        let mut ids: Vec<JobId> = view.active.to_vec();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), view.active.len());
        assignment.reset(3);
        scheduler.decide(&view, &mut assignment);
        future.apply(&assignment, &mut Unobserved).unwrap();
        decisions += 1;
        if !future.advance(&mut Unobserved) {
            break;
        }
    }
    assert!(decisions > 200);
}

/// Records of the jobs that leave under `edf-skip`, which keeps no state.
fn left(mut engine: Engine, until: Time) -> Vec<JobRecord> {
    engine.set_horizon(until);
    let mut scheduler = build("edf-skip").unwrap();
    scheduler.start(engine.system()).unwrap();
    let (mut assignment, mut recorder) = (Assignment::default(), Recorder::until(Time::NEVER));
    loop {
        assignment.reset(engine.view().cores());
        scheduler.decide(&engine.view(), &mut assignment);
        engine.apply(&assignment, &mut recorder).unwrap();
        if !engine.advance(&mut recorder) {
            return recorder.jobs;
        }
    }
}

#[test]
fn a_future_knows_who_holds_what() {
    let section = |resource, at: u64, length: u64| Section { resource, at: ms(at), length: ms(length) };
    let task = |name: &str, period, wcet, sections: &[Section]| {
        Task::periodic(name, ms(period), ms(wcet)).with_sections(sections.to_vec())
    };
    let tasks = vec![
        task("a", 10, 3, &[section(ResourceId(0), 0, 2)]),
        task("b", 14, 5, &[section(ResourceId(1), 1, 4), section(ResourceId(0), 2, 2)]),
        task("c", 33, 12, &[section(ResourceId(0), 3, 5), section(ResourceId(1), 9, 3)]),
    ];
    let mut held = 0;
    for (cores, protocol) in
        [(1, Protocol::None), (1, Protocol::Inheritance), (1, Protocol::Ceiling), (2, Protocol::Inheritance)]
    {
        let set = TaskSet::new("s", tasks.clone(), cores)
            .with_resources(vec!["r".into(), "s".into()])
            .with_protocol(protocol);
        for until in 40..120 {
            let (engine, outlook) = seen(&set, 0, ms(until));
            let (view, end) = (engine.view(), engine.now() + ms(60));
            held += usize::from((0..2).any(|resource| view.locks.unwrap().holder(ResourceId(resource)).is_some()));
            let key = |job: &JobRecord| (job.task, job.number, job.left, job.end);
            let expected: Vec<_> = left(engine.clone(), end).iter().map(key).collect();
            let found: Vec<_> = left(outlook.draw(&view, 1, end), end).iter().map(key).collect();
            assert_eq!(found, expected, "{cores} {protocol:?} {until}");
        }
    }
    assert!(held > 60, "{held}");
}
