//! Precedence and chains in the engine: when jobs are released, what becomes of those that lose a predecessor, and
//! reaction times and data ages, held against figures that are computed from the record of a run. `naive_simulator.rs`
//! holds whole schedules against a simulator of its own.

use std::sync::Arc;

use proptest::prelude::*;
use temponet_sched::build;
use temponet_sim::{
    ChromeTrace, End, Engine, JobRecord, JobsCsv, Metrics, Outlook, Recorder, Unobserved, Workload, simulate,
};
use temponet_task::{
    Arrival, Assignment, Chain, Communication, ExecutionModel, Gap, Mode, OnMiss, Task, TaskId, TaskSet, Time,
};

fn ms(n: u64) -> Time {
    Time::from_ms(n)
}

/// Periodic tasks with these periods and wcets in milliseconds; a task with predecessors takes their period.
fn set(cores: usize, given: &[(u64, u64, &[usize])]) -> TaskSet {
    let task = |(index, (period, wcet, after)): (usize, &(u64, u64, &[usize]))| {
        Task::periodic(format!("t{index}"), ms(*period), ms(*wcet))
            .with_after(after.iter().copied().map(TaskId::new).collect())
    };
    let mut set = TaskSet::new("test", given.iter().enumerate().map(task).collect(), cores);
    set.system.follow_sources().unwrap();
    set
}

fn run(set: &TaskSet, scheduler: &str, seed: u64, horizon: Time) -> (Metrics, Vec<JobRecord>) {
    let mut recorder = Recorder::until(Time::NEVER);
    let metrics = simulate(set, seed, horizon, &mut *build(scheduler).unwrap(), &mut recorder).unwrap();
    recorder.jobs.sort_by_key(|job| (job.number, job.task));
    (metrics, recorder.jobs)
}

fn chain(tasks: &[usize], deadline: Option<u64>, communication: Communication) -> Chain {
    Chain {
        name: "chain".into(),
        tasks: tasks.iter().copied().map(TaskId::new).collect(),
        deadline: deadline.map(ms),
        communication,
    }
}

#[test]
fn a_job_is_released_in_the_instant_in_which_its_last_predecessor_completes() {
    // A diamond on two cores: 2 ms, then 3 and 5 ms in parallel, then 1 ms.
    let diamond = set(2, &[(20, 2, &[]), (20, 3, &[0]), (20, 5, &[0]), (20, 1, &[1, 2])]);
    let (metrics, jobs) = run(&diamond, "edf", 0, ms(40));
    let spans: Vec<(Time, Option<Time>, Time)> =
        jobs[..4].iter().map(|job| (job.release, job.start, job.left)).collect();
    let at = |release, start, end| (ms(release), Some(ms(start)), ms(end));
    assert_eq!(spans, [at(0, 0, 2), at(2, 2, 5), at(2, 2, 7), at(7, 7, 8)]);
    assert!(jobs[..4].iter().all(|job| job.deadline == ms(20)), "deadlines count from the arrival of the source");
    assert_eq!((metrics.jobs.released, metrics.jobs.met, metrics.unreleased), (8, 8, 0));
}

#[test]
fn what_comes_after_a_lost_job_is_never_released_and_counts_as_missed() {
    let mut lossy = set(1, &[(20, 9, &[]), (20, 3, &[0]), (20, 1, &[1]), (20, 1, &[])]);
    lossy.system.tasks_mut()[0].deadline = ms(5);
    lossy.system.set_chains(vec![chain(&[0, 1, 2], Some(20), Communication::Implicit)]);
    let (metrics, jobs) = run(&lossy, "edf", 0, ms(40));
    let ends: Vec<End> = jobs[..4].iter().map(|job| job.end).collect();
    assert_eq!(ends, [End::Aborted, End::Unreleased, End::Unreleased, End::Completed]);
    assert_eq!((jobs[1].left, jobs[1].release, jobs[1].start), (ms(5), ms(0), None));
    assert_eq!((metrics.jobs.released, metrics.jobs.met, metrics.unreleased), (8, 2, 4));
    assert_eq!((metrics.chains[0].instances.released, metrics.chains[0].instances.met), (2, 0));
    assert_eq!((metrics.chains[0].reaction.count(), metrics.chains[0].lost), (0, 2));
    lossy.system.set_chains(vec![chain(&[0, 1, 2], None, Communication::Implicit)]);
    let (metrics, _) = run(&lossy, "edf", 0, ms(40));
    assert_eq!((metrics.chains[0].instances.released, metrics.chains[0].lost), (0, 2));
    lossy.system.set_chains(vec![chain(&[0, 1, 2], Some(20), Communication::Implicit)]);
    lossy.system.set_on_miss(OnMiss::Continue);
    let (metrics, _) = run(&lossy, "edf", 0, ms(40));
    assert_eq!((metrics.jobs.met, metrics.unreleased), (6, 0), "a late predecessor still releases its successors");
    assert_eq!((metrics.chains[0].instances.met, metrics.chains[0].reaction.max()), (2, Some(14_000_000)));
    assert_eq!(metrics.chains[0].lost, 0);
}

#[test]
fn a_join_arrives_with_its_latest_source_and_remembers_early_ones() {
    let mut join = set(1, &[(20, 2, &[]), (20, 2, &[]), (20, 2, &[0, 1])]);
    join.system.tasks_mut()[1].offset = ms(6);
    join.system.follow_sources().unwrap();
    let (_, jobs) = run(&join, "edf", 0, ms(60));
    assert_eq!((jobs[2].task, jobs[2].release, jobs[2].deadline), (TaskId(2), ms(8), ms(26)));
    assert!(jobs.iter().filter(|job| job.deadline <= ms(60)).all(|job| job.met()));
}

#[test]
fn sporadic_sources_take_their_followers_along_and_modes_silence_whole_graphs() {
    let mut sporadic = set(1, &[(10, 1, &[]), (10, 1, &[])]);
    sporadic.system.tasks_mut()[0].arrival = Arrival::Sporadic { minimum: ms(10), gap: Gap::Uniform { max: ms(30) } };
    sporadic.system.tasks_mut()[0].jitter = ms(3);
    sporadic.system.tasks_mut()[1].after = vec![TaskId(0)];
    sporadic.system.follow_sources().unwrap();
    let quiet = Mode::new("quiet", ms(300)).with_work(2.0).with_only(&[], 2);
    let loud = Mode::new("loud", ms(500)).with_rate(2.0);
    sporadic.set_modes(vec![quiet, loud]);
    let jobs = Workload::counted(&sporadic, 3, ms(1000));
    let of = |task: u32| jobs.iter().filter(move |job| job.task == TaskId(task));
    assert_eq!(of(0).count(), of(1).count());
    assert!(of(1).all(|job| of(0).any(|source| source.number == job.number && source.deadline == job.deadline)));
    assert!(of(1).all(|job| !(ms(300)..ms(500)).contains(&job.time)));
}

#[test]
fn jobs_do_not_depend_on_the_schedule() {
    let mut random = set(2, &[(10, 6, &[]), (10, 5, &[0]), (10, 4, &[0]), (10, 3, &[1, 2])]);
    for task in random.system.tasks_mut().iter_mut() {
        (task.bcet, task.execution) = (ms(1), ExecutionModel::Uniform);
    }
    random.system.set_on_miss(OnMiss::Continue);
    let executed = |scheduler| {
        let (_, jobs) = run(&random, scheduler, 5, ms(2000));
        let done = jobs.into_iter().filter(|job| job.number < 100 && job.end == End::Completed);
        done.map(|job| (job.task, job.number, job.deadline, job.executed)).collect::<Vec<_>>()
    };
    let edf = executed("edf");
    assert!(edf.len() >= 300);
    for scheduler in ["fcfs", "srpt", "hlfet", "egs"] {
        let other = executed(scheduler);
        assert!(other.iter().filter(|job| edf.contains(job)).count() >= 300, "{scheduler}");
    }
}

#[test]
fn reaction_time_and_data_age_of_readers() {
    // The writer needs 4 of 10 ms; the reader comes every 15 ms, from 1 ms on, and needs 1 ms.
    let mut readers = set(2, &[(10, 4, &[]), (15, 1, &[])]);
    (readers.system.tasks_mut()[1].reads, readers.system.tasks_mut()[1].offset) = (vec![TaskId(0)], ms(1));
    readers.system.set_chains(vec![chain(&[0, 1], Some(15), Communication::Implicit)]);
    let (metrics, _) = run(&readers, "edf", 0, ms(60));
    // Reads at 1 (nothing), 16 (written 14, arrived 10), 31 (written 24, arrived 20), 46 (written 44, arrived 40).
    let figures = &metrics.chains[0];
    assert_eq!((figures.age.count(), figures.age.max()), (3, Some(12_000_000)));
    // Jobs 0 and 1 wait for 17, jobs 2 for 32, 3 and 4 for 47: 17, 7, 12, 17, 7 ms. Job 5 has none before the horizon.
    assert_eq!((figures.reaction.count(), figures.reaction.max()), (5, Some(17_000_000)));
    // Those that arrive until 45 count, and within 15 ms are jobs 1, 2 and 4.
    assert_eq!((figures.instances.released, figures.instances.met), (5, 3));
    readers.system.set_chains(vec![chain(&[0, 1], Some(15), Communication::Let)]);
    let (metrics, _) = run(&readers, "edf", 0, ms(60));
    // Written at 10, 20, 30, …; read at 1, 16, 31, 46; written again at 16, 31, 46, 61.
    assert_eq!((metrics.chains[0].age.max(), metrics.chains[0].age.count()), (Some(31_000_000), 2));
    assert_eq!(
        metrics.chains[0].reaction.max(),
        Some(36_000_000),
        "the job that arrives at 10 is written at 20 and read at 31"
    );
}

/// Figures of a chain, by brute force from the jobs of a run: reaction times and data ages, in nanoseconds, sorted.
fn by_hand(set: &TaskSet, chain: &Chain, jobs: &[JobRecord]) -> (Vec<u64>, Vec<u64>) {
    let is_let = chain.communication == Communication::Let && !chain.is_triggered(set.tasks());
    let of = |task: usize| jobs.iter().filter(move |job| job.task.index() == task);
    let arrival = |job: &JobRecord| job.deadline.0 - set.tasks()[job.task].deadline.0;
    let written = |job: &JobRecord| {
        let completion = job.completion()?.0;
        Some(if is_let { completion.max(job.deadline.0) } else { completion })
    };
    // The source job whose value a job at a place carries.
    fn origin<'a>(
        place: usize,
        job: &'a JobRecord,
        steps: &[bool],
        of: &dyn Fn(usize) -> Vec<&'a JobRecord>,
        read: &dyn Fn(&JobRecord) -> Option<u64>,
        written: &dyn Fn(&JobRecord) -> Option<u64>,
    ) -> Option<&'a JobRecord> {
        if place == 0 {
            return Some(job);
        }
        let before = of(place - 1);
        let value = if steps[place - 1] {
            before.into_iter().find(|other| other.number == job.number)?
        } else {
            let date = read(job)?;
            let visible = before.into_iter().filter(|other| written(other).is_some_and(|written| written <= date));
            visible.max_by_key(|other| other.number)?
        };
        origin(place - 1, value, steps, of, read, written)
    }
    let steps: Vec<bool> = chain.steps(set.tasks()).collect();
    let at = |place: usize| of(chain.tasks[place].index()).collect::<Vec<_>>();
    let read = |job: &JobRecord| if is_let { Some(job.release.0) } else { Some(job.start?.0) };
    let last = chain.tasks.len() - 1;
    let mut outputs: Vec<(u64, u64, u64)> = Vec::new();
    for job in at(last) {
        let Some(date) = written(job).filter(|date| *date <= HORIZON.0) else { continue };
        if let Some(source) = origin(last, job, &steps, &at, &read, &written) {
            outputs.push((date, source.number, date - arrival(source)));
        }
    }
    let mut ages: Vec<u64> = outputs.iter().map(|(.., age)| *age).collect();
    let is_triggered = chain.is_triggered(set.tasks());
    let reacts = |job: &JobRecord| {
        let fits = |number: u64| if is_triggered { number == job.number } else { number >= job.number };
        let first = outputs.iter().filter(|(_, number, _)| fits(*number)).map(|(date, ..)| *date).min()?;
        // A source job that was not released yet cannot be waited for.
        (first >= arrival(job)).then(|| first - arrival(job))
    };
    let mut reactions: Vec<u64> = at(0).into_iter().filter_map(reacts).collect();
    reactions.sort_unstable();
    ages.sort_unstable();
    (reactions, ages)
}

const HORIZON: Time = Time(300_000_000);

fn any_chained_set() -> impl Strategy<Value = TaskSet> {
    let task = (1u64..=4, 1u64..=5, 0u64..=6, any::<bool>(), any::<bool>());
    (prop::collection::vec(task, 3..=5), 1usize..=2, any::<bool>(), any::<bool>()).prop_map(
        |(given, cores, aborts, is_let)| {
            let mut tasks: Vec<Task> = Vec::new();
            for (index, (period, wcet, offset, follows, is_random)) in given.into_iter().enumerate() {
                let mut task = Task::periodic(format!("t{index}"), ms(5 * period), ms(wcet));
                task.offset = ms(offset);
                if is_random {
                    (task.bcet, task.execution) = (Time(1), ExecutionModel::Uniform);
                }
                if index > 0 {
                    if follows {
                        task.after = vec![TaskId::new(index - 1)]
                    } else {
                        task.reads = vec![TaskId::new(index - 1)]
                    }
                }
                tasks.push(task);
            }
            let all: Vec<usize> = (0..tasks.len()).collect();
            let mut set = TaskSet::new("random", tasks, cores);
            set.system.set_on_miss(if aborts { OnMiss::Abort } else { OnMiss::Continue });
            let communication = if is_let { Communication::Let } else { Communication::Implicit };
            set.system.set_chains(vec![chain(&all, Some(40), communication), chain(&all[..2], None, communication)]);
            set.system.follow_sources().unwrap();
            set
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chains_are_measured_as_the_record_of_the_run_says(set in any_chained_set(), seed in 0u64..1000) {
        prop_assert_eq!(set.system.validate(), Ok(()));
        for scheduler in ["edf", "fcfs", "srpt", "llf"] {
            let (metrics, jobs) = run(&set, scheduler, seed, HORIZON);
            for (chain, figures) in set.chains().iter().zip(&metrics.chains) {
                let (reactions, ages) = by_hand(&set, chain, &jobs);
                prop_assert_eq!(figures.age.count(), ages.len() as u64, "{} ages", scheduler);
                prop_assert_eq!(figures.age.max(), ages.last().map(|age| *age as i64), "{} age", scheduler);
                prop_assert_eq!(figures.reaction.count(), reactions.len() as u64, "{} reactions", scheduler);
                prop_assert_eq!(figures.reaction.max(), reactions.last().map(|time| *time as i64), "{}", scheduler);
                let sum: u64 = reactions.iter().sum();
                let mean = reactions.len() as f64 * figures.reaction.mean().unwrap_or(0.0);
                prop_assert!((mean - sum as f64).abs() < 1.0, "{}", scheduler);
                let met = reactions.iter().filter(|time| chain.deadline.is_none_or(|deadline| **time <= deadline.0));
                prop_assert!(figures.instances.met <= met.count() as u64 && figures.instances.met <= figures.instances.released);
            }
        }
    }

    /// Contract: where nothing is random, a future that is drawn at any decision point is the run itself.
    #[test]
    fn the_outlook_knows_which_jobs_wait(set in any_chained_set(), until in 1u64..120) {
        let mut set = set;
        set.system.tasks_mut().iter_mut().for_each(|task| (task.bcet, task.execution) = (task.wcet, ExecutionModel::Wcet));
        // A predecessor that leaves without completing is not known to have.
        set.system.set_on_miss(OnMiss::Continue);
        let set = Arc::new(set);
        let mut scheduler = build("edf").unwrap();
        let mut engine = Engine::new(set.clone(), 0, HORIZON);
        scheduler.start(engine.system()).unwrap();
        let mut outlook = Outlook::new(engine.system());
        let mut assignment = Assignment::default();
        while engine.advance(&mut Unobserved) {
            outlook.observe(&engine.view());
            if engine.now() >= ms(until) {
                break;
            }
            assignment.reset(set.cores());
            scheduler.decide(&engine.view(), &mut assignment);
            engine.apply(&assignment, &mut Unobserved).unwrap();
        }
        let mut future = outlook.draw(&engine.view(), 7, HORIZON);
        // The decision of the present is the same in both, then EDF goes on with what it sees.
        let (mut real, mut drawn) = (Recorder::until(Time::NEVER), Recorder::until(Time::NEVER));
        follow(&mut engine, &mut real);
        follow(&mut future, &mut drawn);
        for recorder in [&mut real, &mut drawn] {
            recorder.jobs.sort_by_key(|job| (job.task, job.number));
        }
        let ends = |recorder: &Recorder| {
            recorder.jobs.iter().map(|job| (job.task, job.number, job.deadline, job.left, job.end)).collect::<Vec<_>>()
        };
        prop_assert_eq!(ends(&drawn), ends(&real));
    }
}

/// Goes on with EDF that keeps no state, from a decision point.
fn follow(engine: &mut Engine, recorder: &mut Recorder) {
    let mut assignment = Assignment::default();
    loop {
        let view = engine.view();
        assignment.reset(view.cores());
        let mut best: Vec<_> = view.active.to_vec();
        best.sort_by_key(|id| (view.job(*id).deadline, view.job(*id).tie()));
        best.truncate(view.cores());
        assignment.place(&view, &best);
        engine.apply(&assignment, recorder).unwrap();
        if !engine.advance(recorder) {
            return;
        }
    }
}

#[test]
fn traces_and_job_lists_show_precedence() {
    let mut lossy = set(1, &[(20, 4, &[]), (20, 3, &[0]), (20, 9, &[]), (20, 1, &[2])]);
    lossy.system.tasks_mut()[2].deadline = ms(5);
    let horizon = ms(20);
    let mut watchers =
        (ChromeTrace::new(&lossy, horizon, Vec::new()).unwrap(), JobsCsv::new(&lossy, horizon, Vec::new()).unwrap());
    simulate(&lossy, 0, horizon, &mut *build("rm").unwrap(), &mut watchers).unwrap();
    let trace: serde_json::Value = serde_json::from_slice(&watchers.0.finish().unwrap()).unwrap();
    let flows =
        |phase: &str| trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == phase).count();
    assert_eq!((flows("s"), flows("f")), (1, 1));
    let rows = String::from_utf8(watchers.1.finish().unwrap()).unwrap();
    assert!(rows.contains("t3,0,0,20000000,,,0,false,,0,never released,\n"), "{rows}");
}
