//! Contract: for every scheduler and every set, a run is physically possible and its metrics add up.

use std::collections::HashMap;

use proptest::prelude::*;
use temponet_sched::catalog::Need;
use temponet_sim::{End, Engine, Recorder, Unobserved, Workload, simulate};
use temponet_task::{
    Arrival, Assignment, CoreId, Costs, ExecutionModel, Gap, Mode, OnMiss, Scheduler, Task, TaskId, TaskSet, Time,
};

const HORIZON: Time = Time::from_ms(400);

/// Schedulers that never leave a core idle while a job is ready. The others are left out because jobs are bound to
/// cores (p-*, c-edf), because jobs are not always eligible (pd2), or because jobs are abandoned (d-over).
const WORK_CONSERVING: [&str; 11] =
    ["fcfs", "rr", "fp", "rm", "dm", "edf", "llf", "srpt", "edf-skip", "mh-edf", "edzl"];

fn any_task() -> impl Strategy<Value = Task> {
    let times = (500u64..20_000, 100u64..9_000, 100u64..30_000, 0u64..5_000, 0u64..8_000);
    let kinds = (0..4usize, 0..6usize, 0u8..3);
    (times, kinds).prop_map(|((period, wcet, deadline, offset, jitter), (arrival, model, criticality))| {
        let us = Time::from_us;
        let mut task = Task::periodic("t", us(period), us(wcet));
        task.arrival = match arrival {
            0 => Arrival::Sporadic { minimum: us(period), gap: Gap::Exponential { mean: us(2 * period) } },
            1 => Arrival::Burst { jobs: 3, every: us(3 * period), until: us(200_000) },
            _ => Arrival::Periodic { period: us(period) },
        };
        task.jitter = if arrival == 2 { us(jitter) } else { Time::ZERO };
        (task.deadline, task.offset, task.criticality) = (us(deadline), us(offset), criticality);
        (task.bcet, task.acet) = (Time(task.wcet.0 / 4), Some(Time(task.wcet.0 / 2)));
        task.execution = match model {
            0 => ExecutionModel::Uniform,
            1 => ExecutionModel::Normal { deviation: us(wcet) },
            2 => ExecutionModel::Weibull { exceed: 0.01 },
            3 => ExecutionModel::Pareto { shape: 1.5 },
            _ => ExecutionModel::Wcet,
        };
        if model == 5 {
            task.wcet_high = Some(us(2 * wcet));
            task.execution = ExecutionModel::Overrun { probability: 0.3, below: Box::new(task.execution) };
        }
        task
    })
}

fn any_set() -> impl Strategy<Value = TaskSet> {
    let costs = (0u64..300, 0u64..300, 0u64..100);
    let edges = prop::collection::vec(0usize..6, 8);
    let parts = (prop::collection::vec(any_task(), 1..8), 1usize..=5, any::<bool>(), costs, any::<bool>(), edges);
    parts.prop_map(|(mut tasks, cores, aborts, costs, modes, edges)| {
        // Some tasks come after the first one, and after each other.
        let is_source = !matches!(tasks[0].arrival, Arrival::Burst { .. });
        for index in 0..tasks.len() {
            tasks[index].name = format!("t{index}");
            let before = edges[index];
            let is_joined = |before: usize| before == 0 || (before < index && !tasks[before].after.is_empty());
            if is_source && index > 0 && is_joined(before) {
                tasks[index].after = if before > 0 && edges[0] > 2 {
                    vec![TaskId(0), TaskId::new(before)]
                } else {
                    vec![TaskId::new(before)]
                };
            }
        }
        let mut set = TaskSet::new("random", tasks, cores);
        set.system.set_on_miss(if aborts { OnMiss::Abort } else { OnMiss::Continue });
        set.system.set_costs(Costs { context_switch: Time::from_us(costs.0), ..*set.costs() });
        set.system.set_costs(Costs { migration: Time::from_us(costs.1), ..*set.costs() });
        set.system.set_costs(Costs { decision: Time::from_us(costs.2), ..*set.costs() });
        if modes {
            let mode = |at, work, rate| Mode::new("m", Time::from_ms(at)).with_work(work).with_rate(rate);
            let only = |mode: Mode| mode.with_only(&[TaskId(0)], set.tasks().len());
            set.set_modes(vec![mode(50, 1.7, 0.8), only(mode(120, 0.5, 1.5))]);
        }
        set.system.follow_sources().unwrap();
        set
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_run_is_physically_possible(set in any_set(), seed in 0u64..1000) {
        let mut truth = HashMap::new();
        let mut workload = Workload::new(&set, seed);
        // Jitter can delay a release beyond the horizon although the deadline is within it. Such a job counts.
        while workload.next_time() < HORIZON + Time::from_ms(8) {
            let Some(release) = workload.pop() else { break };
            if release.time < HORIZON || release.deadline <= HORIZON {
                truth.insert((release.task, release.number), release);
            }
        }
        for entry in temponet_sched::catalog::all() {
            let mut scheduler = temponet_sched::build(&entry.name).unwrap();
            let mut recorder = Recorder::until(Time::NEVER);
            let Ok(metrics) = simulate(&set, seed, HORIZON, &mut *scheduler, &mut recorder) else {
                let is_for_graphs = entry.needs.iter().any(|need| matches!(need, Need::Precedence));
                let is_for_one = entry.needs.iter().any(|need| matches!(need, Need::OneCore));
                prop_assert!(is_for_one && set.cores() > 1 || is_for_graphs && !set.has_precedence());
                continue;
            };
            // Neither the slices of a core nor the slices of a job overlap.
            let mut by_core: HashMap<CoreId, Time> = HashMap::new();
            let mut by_job: HashMap<(TaskId, u64), Time> = HashMap::new();
            let mut worked: HashMap<(TaskId, u64), u64> = HashMap::new();
            let mut slices = recorder.slices.clone();
            slices.sort_by_key(|slice| (slice.start, slice.end));
            for slice in &slices {
                let job = (slice.task, slice.number);
                let free = by_core.insert(slice.core, slice.end).unwrap_or_default();
                let idle = by_job.insert(job, slice.end).unwrap_or_default();
                prop_assert!(free <= slice.start && idle <= slice.start && slice.end <= HORIZON, "{}", entry.name);
                *worked.entry(job).or_default() += (slice.end - slice.start).0;
            }
            // No job starts before the jobs that it comes after have completed.
            let done: HashMap<(TaskId, u64), Time> =
                recorder.jobs.iter().filter_map(|job| Some(((job.task, job.number), job.completion()?))).collect();
            for (job, start) in recorder.jobs.iter().filter_map(|job| Some((job, job.start?))) {
                let before = set.tasks()[job.task].after.iter();
                let mut ends = before.map(|before| done.get(&(*before, job.number)));
                prop_assert!(ends.all(|end| end.is_some_and(|end| *end <= start)), "{}", entry.name);
            }
            // Every released job leaves exactly once, and its slices cover the work it did.
            prop_assert_eq!(recorder.jobs.len(), truth.len(), "{}", entry.name);
            let without_costs = *set.costs() == Default::default();
            for job in &recorder.jobs {
                let release = &truth[&(job.task, job.number)];
                let time = worked.get(&(job.task, job.number)).copied().unwrap_or(0);
                prop_assert!(job.executed <= release.execution && time >= job.executed.0);
                prop_assert!(!without_costs || time == job.executed.0);
                prop_assert!(job.end != End::Completed || job.executed == release.execution);
                prop_assert!(job.start.is_none_or(|start| start >= release.time));
                if set.on_miss() == OnMiss::Abort {
                    // A job that waits for others is not there, and so it is not removed.
                    let waits = job.end == End::Unreleased || job.end == End::Unfinished && job.start.is_none();
                    prop_assert!(waits || job.left <= job.deadline.max(job.release));
                }
            }
            // The metrics agree with the recorded jobs.
            let counted: Vec<_> = recorder.jobs.iter().filter(|job| job.deadline <= HORIZON).collect();
            prop_assert_eq!(metrics.jobs.released, counted.len() as u64);
            prop_assert_eq!(metrics.jobs.met, counted.iter().filter(|job| job.met()).count() as u64);
            let busy: u64 = worked.values().sum();
            prop_assert_eq!(metrics.idle_ns + u128::from(busy), u128::from(HORIZON.0) * set.cores() as u128);
            prop_assert_eq!(metrics.lateness.count(), metrics.jobs.released);
            prop_assert_eq!(metrics.tasks.iter().map(|task| task.jobs.met).sum::<u64>(), metrics.jobs.met);
        }
    }

    #[test]
    fn work_conserving_schedulers_never_idle_beside_a_ready_job(set in any_set(), seed in 0u64..1000) {
        for name in WORK_CONSERVING {
            let mut scheduler = temponet_sched::build(name).unwrap();
            let mut engine = Engine::new(&set, seed, HORIZON);
            scheduler.start(engine.system()).unwrap();
            let mut assignment = Assignment::default();
            let mut last = Time::ZERO;
            while engine.advance(&mut Unobserved) {
                prop_assert!(engine.now() >= last);
                last = engine.now();
                assignment.reset(set.cores());
                scheduler.decide(&engine.view(), &mut assignment);
                let busy = assignment.cores().iter().flatten().count();
                prop_assert_eq!(busy, set.cores().min(engine.view().active.len()), "{}", name);
                engine.apply(&assignment, &mut Unobserved).unwrap();
            }
        }
    }

    #[test]
    fn same_seed_same_run(set in any_set(), seed in 0u64..1000) {
        for name in ["edf", "llf", "mh-edf"] {
            let run = || {
                let mut scheduler = temponet_sched::build(name).unwrap();
                simulate(&set, seed, HORIZON, &mut *scheduler, &mut Unobserved).unwrap()
            };
            prop_assert_eq!(run(), run());
        }
    }
}
