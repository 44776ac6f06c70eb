//! Tasks with parts in the engine: they run as tasks that follow each other, and count, are observed and are measured
//! as one. Random sets are held against the same sets with the parts written out as tasks of their own.

use std::collections::HashMap;

use proptest::prelude::*;
use temponet_sched::build;
use temponet_sim::{ChromeTrace, End, JobsCsv, Metrics, Recorder, Slice, simulate};
use temponet_task::{
    Arrival, Chain, Communication, Core, CoreId, CoreSet, ExecutionModel, Gap, Mode, OnMiss, Preemption, Speed, Task,
    TaskId, TaskSet, Time,
};

fn ms(n: u64) -> Time {
    Time::from_ms(n)
}

/// Parts of a task, from its work and its core in each of them.
fn in_parts(name: &str, period: u64, parts: &[(u64, u32)], at: usize) -> Vec<Task> {
    let part = |(place, (wcet, core)): (usize, &(u64, u32))| {
        let is_part = place + 1 < parts.len();
        let name = if is_part { format!("{name} (part {})", place + 1) } else { name.into() };
        let after = if place > 0 { vec![TaskId::new(at + place - 1)] } else { Vec::new() };
        let cores = CoreSet::of([CoreId(*core)]);
        Task::periodic(name, ms(period), ms(*wcet)).with_after(after).with_is_part(is_part).with_cores(cores)
    };
    parts.iter().enumerate().map(part).collect()
}

/// A processor and a GPU.
fn machine() -> Vec<Core> {
    vec![Core::new("cpu", Speed::FULL), Core::new("gpu", Speed::FULL).with_only(true)]
}

/// A camera with 2 ms on the processor, `gpu` on the GPU and 1 ms on the processor, and a control task.
fn camera(gpu: u64) -> TaskSet {
    let mut tasks = vec![Task::periodic("control", ms(10), ms(4))];
    tasks.extend(in_parts("camera", 40, &[(2, 0), (gpu, 1), (1, 0)], 1));
    TaskSet::new("s", tasks, 2).with_machine(machine())
}

fn run(set: &TaskSet, scheduler: &str, seed: u64, horizon: Time) -> (Metrics, Recorder) {
    let mut recorder = Recorder::until(Time::NEVER);
    let metrics = simulate(set, seed, horizon, &mut *build(scheduler).unwrap(), &mut recorder).unwrap();
    (metrics, recorder)
}

/// Core, task, start and end of each slice, in milliseconds.
fn spans(recorder: &Recorder) -> Vec<(u32, u32, u64, u64)> {
    let span = |slice: &Slice| (slice.core.0, slice.task.0, slice.start.0 / 1_000_000, slice.end.0 / 1_000_000);
    let mut spans: Vec<_> = recorder.slices.iter().map(span).collect();
    spans.sort_by_key(|span| (span.2, span.0));
    spans
}

#[test]
fn a_job_goes_from_the_processor_to_the_gpu_and_back() {
    let set = camera(18);
    assert_eq!(set.system.validate(), Ok(()));
    let (metrics, recorder) = run(&set, "edf", 0, ms(40));
    // Control is first by deadline. The camera has the processor from 4, the GPU from 6 and the processor from 24.
    let expected =
        [(0, 0, 0, 4), (0, 3, 4, 6), (1, 3, 6, 24), (0, 0, 10, 14), (0, 0, 20, 24), (0, 3, 24, 25), (0, 0, 30, 34)];
    assert_eq!(spans(&recorder), expected);
    let job = recorder.jobs.iter().find(|job| job.task == TaskId(3)).unwrap();
    assert_eq!((job.release, job.start, job.left, job.executed), (ms(0), Some(ms(4)), ms(25), ms(21)));
    assert_eq!((recorder.jobs.len(), metrics.jobs.released, metrics.jobs.met), (5, 5, 5));
    let of_task: Vec<u64> = metrics.tasks.iter().map(|task| task.jobs.released).collect();
    assert_eq!((of_task, metrics.tasks[3].response_max), (vec![4, 0, 0, 1], ms(25)));
}

#[test]
fn a_job_that_is_lost_in_any_of_its_parts_is_one_miss() {
    // The GPU needs 50 ms: the second part is aborted at the deadline, and the third is never released.
    let (metrics, recorder) = run(&camera(50), "edf", 0, ms(80));
    assert_eq!((metrics.jobs.released, metrics.jobs.met, metrics.missed(), metrics.unreleased), (10, 8, 2, 0));
    let lost: Vec<_> = recorder.jobs.iter().filter(|job| job.task == TaskId(3)).collect();
    assert_eq!(lost.len(), 2);
    assert_eq!((lost[0].end, lost[0].left, lost[0].executed), (End::Aborted, ms(40), ms(36)));
    assert_eq!(recorder.misses.iter().map(|miss| miss.why).collect::<Vec<_>>(), ["late by wcet at its release"; 2]);
    assert_eq!(metrics.response_all_sum / 1_000_000, 8 * 4 + 2 * 40);
    // The first part is never reached.
    let mut starved = camera(18);
    starved.system.tasks_mut()[0].wcet = ms(10);
    let (metrics, recorder) = run(&starved, "rm", 0, ms(40));
    assert_eq!((metrics.jobs.released, metrics.missed(), metrics.unreleased), (5, 1, 0));
    let job = recorder.jobs.iter().find(|job| job.task == TaskId(3)).unwrap();
    assert_eq!((job.end, job.start, recorder.misses[0].why), (End::Aborted, None, "never started"));
    // What comes after the whole is never released, and is a miss of its own.
    let mut followed = camera(50);
    let after = Task::periodic("plan", ms(40), ms(1)).with_after(vec![TaskId(3)]);
    followed.system.tasks_mut().push(after.with_cores(CoreSet::of([CoreId(0)])));
    let (metrics, recorder) = run(&followed, "edf", 0, ms(40));
    assert_eq!((metrics.missed(), metrics.unreleased), (2, 1));
    assert_eq!(recorder.jobs.iter().filter(|job| job.end == End::Unreleased).count(), 1);
}

#[test]
fn a_late_job_goes_on_in_its_next_part() {
    let mut set = camera(50);
    set.system.set_on_miss(OnMiss::Continue);
    let (metrics, recorder) = run(&set, "edf", 0, ms(120));
    let ends: Vec<(End, u64)> =
        recorder.jobs.iter().filter(|job| job.task == TaskId(3)).map(|job| (job.end, job.left.0 / 1_000_000)).collect();
    assert_eq!(ends[0], (End::Completed, 57), "{ends:?}");
    assert_eq!((ends.len(), metrics.tasks[3].jobs.released, metrics.tasks[3].jobs.met), (3, 3, 0));
}

#[test]
fn exports_have_one_row_for_a_job_and_its_slices_under_one_name() {
    let mut set = camera(18);
    let after = Task::periodic("plan", ms(40), ms(1)).with_after(vec![TaskId(3)]);
    set.system.tasks_mut().push(after.with_cores(CoreSet::of([CoreId(0)])));
    let horizon = ms(40);
    let mut both =
        (JobsCsv::new(&set, horizon, Vec::new()).unwrap(), ChromeTrace::new(&set, horizon, Vec::new()).unwrap());
    simulate(&set, 0, horizon, &mut *build("edf").unwrap(), &mut both).unwrap();
    let csv = String::from_utf8(both.0.finish().unwrap()).unwrap();
    let rows: Vec<&str> = csv.lines().filter(|row| row.starts_with("camera")).collect();
    assert_eq!(rows, ["camera,0,0,40000000,4000000,25000000,21000000,true,0,0,,"]);
    let trace: serde_json::Value = serde_json::from_slice(&both.1.finish().unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let named = |name: &str| events.iter().filter(|event| event["ph"] == "X" && event["name"] == name).count();
    assert_eq!((named("camera"), named("camera (part 1)")), (3, 0));
    let flows: Vec<(&str, f64)> = (events.iter().filter(|event| event["cat"] == "after"))
        .map(|event| (event["id"].as_str().unwrap(), event["ts"].as_f64().unwrap()))
        .collect();
    assert_eq!(flows, [("3-4-0", 24_999.999), ("3-4-0", 25_000.0)]);
}

#[test]
fn a_chain_goes_through_all_parts() {
    let mut set = camera(18);
    let after = Task::periodic("plan", ms(40), ms(1)).with_after(vec![TaskId(3)]);
    set.system.tasks_mut().push(after.with_cores(CoreSet::of([CoreId(0)])));
    let chain = |tasks: &[u32], communication| Chain {
        name: "c".into(),
        tasks: tasks.iter().copied().map(TaskId).collect(),
        deadline: Some(ms(30)),
        communication,
    };
    set.system.set_chains(vec![chain(&[3, 4], Communication::Implicit)]);
    assert_eq!(set.system.validate(), Ok(()));
    assert!(set.chains()[0].is_triggered(set.tasks()));
    let (metrics, _) = run(&set, "edf", 0, ms(80));
    assert_eq!((metrics.chains[0].instances.met, metrics.chains[0].reaction.max()), (2, Some(26_000_000)));
    // A whole that reads: what it reads, its first part does, when it starts at 4 ms.
    set.system.tasks_mut()[1].reads = vec![TaskId(0)];
    set.system.set_chains(vec![chain(&[0, 3], Communication::Implicit)]);
    assert_eq!(set.system.validate(), Ok(()));
    let (metrics, _) = run(&set, "edf", 0, ms(80));
    assert_eq!(metrics.chains[0].age.max(), Some(25_000_000));
}

/// A random set with parts, in which something of everything occurs.
fn random_set() -> impl Strategy<Value = TaskSet> {
    let part = (1..6u64, 0..3u32, 0..4u8);
    let task = (prop::collection::vec(part, 1..4), 10..40u64, 0..5u64, 0..6u8, any::<bool>());
    let settings = (any::<bool>(), 0..3u64, any::<bool>());
    (prop::collection::vec(task, 1..5), settings).prop_map(|(given, (continues, switch, has_mode))| {
        let mut tasks: Vec<Task> = Vec::new();
        for (number, (parts, period, jitter, kind, follows)) in given.into_iter().enumerate() {
            let whole_before = tasks.len().checked_sub(1).map(TaskId::new);
            let count = parts.len();
            for (place, (wcet, core, model)) in parts.into_iter().enumerate() {
                let is_part = place + 1 < count;
                let name = if is_part { format!("t{number} (part {place})") } else { format!("t{number}") };
                let mut task = Task::periodic(name, ms(period), ms(wcet)).with_is_part(is_part);
                task.cores = if core == 2 { CoreSet::ALL } else { CoreSet::of([CoreId(core)]) };
                task.deadline = ms(period * 3 / 4 + u64::from(kind));
                task.criticality = kind / 3;
                task.value = f64::from(kind) + 1.0;
                task.mk = (kind == 1).then_some((1, 2));
                if model == 1 {
                    (task.bcet, task.execution) = (Time(task.wcet.0 / 2), ExecutionModel::Uniform);
                }
                task.preemption = if model == 2 { Preemption::None } else { Preemption::Free };
                match (place, whole_before.filter(|_| follows)) {
                    (0, Some(before)) => task.after = vec![before],
                    (0, None) if kind == 2 => {
                        let gap = Gap::Uniform { max: ms(period + 9) };
                        task.arrival = Arrival::Sporadic { minimum: ms(period), gap };
                    }
                    (0, None) => task.jitter = ms(jitter),
                    _ => task.after = vec![TaskId::new(tasks.len() - 1)],
                }
                tasks.push(task);
            }
        }
        let mut set = TaskSet::new("random", tasks, 2);
        set.system.follow_sources().unwrap();
        set.system.set_on_miss(if continues { OnMiss::Continue } else { OnMiss::Abort });
        set.system
            .set_costs(temponet_task::Costs { context_switch: Time::from_us(100 * switch), ..Default::default() });
        let mut mode = Mode::new("busy", ms(150));
        (mode.work, mode.rate) = (1.25, 0.8);
        if has_mode { set.with_modes(vec![mode]) } else { set }
    })
}

/// Returns the set with parts as tasks of their own.
fn written_out(set: &TaskSet) -> TaskSet {
    let mut plain = set.clone();
    plain.system.tasks_mut().iter_mut().for_each(|task| task.is_part = false);
    plain
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The schedule of a set with parts is that of the set with the parts written out, slice by slice. A job counts, is
    /// recorded and ends as its last part does there, from the release of the first.
    #[test]
    fn parts_run_as_tasks_that_follow_each_other_and_count_once(set in random_set(), seed in 0..1000u64) {
        prop_assert_eq!(set.system.validate(), Ok(()));
        let (horizon, plain) = (ms(400), written_out(&set));
        // Not behind the shield, which guarantees a task with all its parts or not at all.
        for scheduler in ["edf", "rm", "llf", "mh-edf", "srpt", "look-ahead"] {
            let ((whole, drawn), (parts, written)) =
                (run(&set, scheduler, seed, horizon), run(&plain, scheduler, seed, horizon));
            let renamed: Vec<Slice> =
                written.slices.iter().map(|slice| Slice { task: set.whole(slice.task), ..*slice }).collect();
            prop_assert_eq!(&drawn.slices, &renamed, "{}", scheduler);
            prop_assert_eq!((whole.preemptions, whole.migrations, whole.decisions, whole.idle_ns),
                (parts.preemptions, parts.migrations, parts.decisions, parts.idle_ns));
            let wholes: Vec<TaskId> = set.whole_tasks().collect();
            for task in set.task_ids() {
                let expected = if wholes.contains(&task) { parts.tasks[task].jobs } else { Default::default() };
                prop_assert_eq!(whole.tasks[task].jobs, expected, "{} of {}", task, scheduler);
                let windows = if wholes.contains(&task) { parts.tasks[task].windows } else { Default::default() };
                prop_assert_eq!(whole.tasks[task].windows, windows);
            }
            prop_assert_eq!(whole.jobs.released, wholes.iter().map(|task| parts.tasks[*task].jobs.released).sum::<u64>());
            prop_assert_eq!(whole.jobs.met, wholes.iter().map(|task| parts.tasks[*task].jobs.met).sum::<u64>());
            // One record for each job: it is released with its first part, and completes with its last.
            let of: HashMap<(TaskId, u64), _> =
                written.jobs.iter().map(|job| ((job.task, job.number), job)).collect();
            let mut seen = HashMap::new();
            for job in &drawn.jobs {
                prop_assert!(seen.insert((job.task, job.number), job).is_none(), "twice: {:?}", job);
                let last = of[&(job.task, job.number)];
                // A source that jitter would release beyond the horizon is not recorded.
                if let Some(first) = of.get(&(set.first_part(job.task), job.number)) {
                    prop_assert_eq!(
                        (job.release, job.deadline, job.start),
                        (first.release, last.deadline, first.start)
                    );
                }
                prop_assert_eq!(job.met(), last.met());
                prop_assert_eq!(job.completion(), last.completion());
                let done: u64 =
                    set.parts(job.task).filter_map(|part| of.get(&(part, job.number))).map(|job| job.executed.0).sum();
                prop_assert_eq!(job.executed.0, done);
            }
            let last_parts = written.jobs.iter().filter(|job| wholes.contains(&job.task)).count();
            prop_assert_eq!(drawn.jobs.len(), last_parts);
        }
    }
}
