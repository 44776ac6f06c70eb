//! Contract: on cores that differ in speed and that some tasks may not use, the engine with the real schedulers produces, job by
//! job, the schedule of a naive simulator. That one advances nanosecond by nanosecond, counts work in thousandths, sorts all
//! ready jobs by the textbook rule, and finds their cores by trying every assignment.

use proptest::prelude::*;
use temponet_sim::{End, JobRecord, Recorder, Workload, simulate};
use temponet_task::{Core, CoreSet, ExecutionModel, OnMiss, Speed, Task, TaskSet, Time};

const HORIZON: u64 = 90;

/// Job of the naive simulator. Times are in nanoseconds, work is in thousandths.
#[derive(Clone, Debug)]
struct NaiveJob {
    task: usize,
    number: u64,
    release: u64,
    deadline: u64,
    wcet: u64,
    execution: u64,
    done: u64,
    start: Option<u64>,
    core: Option<usize>,
    last_core: Option<usize>,
}

impl NaiveJob {
    /// Time that the remaining wcet takes on the fastest core that the job may use, by whole nanoseconds of work.
    fn to_finish(&self, fastest: u64) -> u64 {
        ((self.wcet - self.done / 1000).max(1) * 1000).div_ceil(fastest)
    }
}

/// Key of a job: the least runs first. It gets the time and the speed of the fastest core that the job may use.
type Key = fn(&NaiveJob, &Task, u64, u64) -> (i64, i64);

/// Schedulers with their keys, and whether the key decides anew in every nanosecond and not only when something happens.
const RULES: [(&str, Key, bool); 7] = [
    ("fcfs", |_, _, _, _| (0, 0), false),
    ("edf", |job, _, _, _| (job.deadline as i64, 0), false),
    ("rm", |_, task, _, _| (task.period().unwrap().0 as i64, 0), false),
    ("dm", |_, task, _, _| (task.deadline.0 as i64, 0), false),
    ("srpt", |job, _, _, fastest| (job.to_finish(fastest) as i64, 0), false),
    (
        "edf-skip",
        |job, _, now, fastest| (i64::from(now + job.to_finish(fastest) > job.deadline), job.deadline as i64),
        false,
    ),
    (
        "llf:quantum=1ns",
        |job, _, now, fastest| (job.deadline as i64 - now as i64 - job.to_finish(fastest) as i64, 0),
        true,
    ),
];

/// Quality of an assignment, the greater the better, and the assignment.
type Found = ((Vec<bool>, Vec<u32>, Vec<bool>, Vec<i64>), Vec<Option<usize>>);

fn try_all(
    set: &TaskSet,
    jobs: &[NaiveJob],
    order: &[usize],
    cores: &mut Vec<Option<usize>>,
    best: &mut Option<Found>,
) {
    // Which jobs run comes first in the quality.
    let runs: Vec<bool> = cores.iter().map(Option::is_some).collect();
    if best.as_ref().is_some_and(|(known, _)| runs[..] < known.0[..runs.len()]) {
        return;
    }
    if cores.len() == order.len() {
        let stays = |(job, core): (&usize, &Option<usize>)| core.map(|core| jobs[*job].core == Some(core));
        let quality = (
            cores.iter().map(Option::is_some).collect(),
            cores.iter().flatten().map(|core| set.machine().speed(*core).0).collect(),
            order.iter().zip(cores.iter()).filter_map(stays).collect(),
            cores.iter().flatten().map(|core| -(*core as i64)).collect(),
        );
        if best.as_ref().is_none_or(|(known, _)| quality > *known) {
            *best = Some((quality, cores.clone()));
        }
        return;
    }
    let task = &set.tasks()[jobs[order[cores.len()]].task];
    for core in (0..set.cores()).filter(|core| task.cores.contains(*core)) {
        if !cores.contains(&Some(core)) {
            cores.push(Some(core));
            try_all(set, jobs, order, cores, best);
            cores.pop();
        }
    }
    cores.push(None);
    try_all(set, jobs, order, cores, best);
    cores.pop();
}

fn naive(set: &TaskSet, seed: u64, key: Key, always: bool) -> (Vec<JobRecord>, u64) {
    let mut workload = Workload::new(set, seed);
    let mut jobs: Vec<NaiveJob> = Vec::new();
    let (mut records, mut migrations) = (Vec::new(), 0);
    for now in 0..=HORIZON {
        let mut happened = false;
        jobs.retain(|job| {
            let end = match job.done >= 1000 * job.execution {
                true => Some(End::Completed),
                false => (job.deadline == now && set.on_miss() == OnMiss::Abort).then_some(End::Aborted),
            };
            happened |= end.is_some() || job.deadline == now;
            records.extend(end.map(|end| JobRecord {
                task: job.task as u32,
                number: job.number,
                release: Time(job.release),
                deadline: Time(job.deadline),
                start: job.start.map(Time),
                left: Time(now),
                end,
                executed: Time((job.done / 1000).min(job.execution)),
            }));
            end.is_none()
        });
        if now == HORIZON {
            break;
        }
        while workload.next_time() == Time(now) {
            let release = workload.pop().unwrap();
            happened = true;
            jobs.push(NaiveJob {
                task: release.task as usize,
                number: release.number,
                release: now,
                deadline: release.deadline.0,
                wcet: release.wcet.0,
                execution: release.execution.0,
                done: 0,
                start: None,
                core: None,
                last_core: None,
            });
        }
        if happened || always {
            let fastest = |job: &NaiveJob| u64::from(set.fastest(&set.tasks()[job.task]).0);
            let mut order: Vec<usize> = (0..jobs.len()).collect();
            order.sort_by_key(|index| {
                let job = &jobs[*index];
                (key(job, &set.tasks()[job.task], now, fastest(job)), job.release, job.task, job.number)
            });
            let mut best = None;
            try_all(set, &jobs, &order, &mut Vec::new(), &mut best);
            for (index, core) in order.iter().zip(best.unwrap().1) {
                let job = &mut jobs[*index];
                migrations += u64::from(core.is_some() && job.last_core.is_some() && job.last_core != core);
                (job.core, job.last_core) = (core, core.or(job.last_core));
            }
        }
        for job in &mut jobs {
            if let Some(core) = job.core {
                job.start = job.start.or(Some(now));
                job.done += u64::from(set.machine().speed(core).0);
            }
        }
    }
    records.extend(jobs.iter().map(|job| JobRecord {
        task: job.task as u32,
        number: job.number,
        release: Time(job.release),
        deadline: Time(job.deadline),
        start: job.start.map(Time),
        left: Time(HORIZON),
        end: End::Unfinished,
        executed: Time(job.done / 1000),
    }));
    (records, migrations)
}

fn any_set() -> impl Strategy<Value = TaskSet> {
    let task = (3u64..=20, 1u64..=9, 3u64..=20, 0u64..8, any::<bool>(), 0usize..16);
    let speed = prop::sample::select(vec![370u32, 500, 1000, 1000, 1600, 3000]);
    let cores = prop::collection::vec(speed, 1..=3);
    (prop::collection::vec(task, 1..=5), cores, any::<bool>()).prop_map(|(tasks, speeds, aborts)| {
        let count = speeds.len();
        let task =
            |(index, (period, wcet, deadline, offset, known, cores)): (usize, (u64, u64, u64, u64, bool, usize))| {
                let mut task = Task::periodic(format!("t{index}"), Time(period), Time(wcet));
                (task.deadline, task.offset) = (Time(deadline), Time(offset));
                let own: Vec<usize> = (0..count).filter(|core| cores >> core & 1 == 1).collect();
                task.cores = CoreSet::of(own);
                if !known {
                    task.bcet = Time(1);
                    task.execution = ExecutionModel::Empirical { samples: (1..=wcet).map(Time).collect() };
                }
                task
            };
        let mut set = TaskSet::new("random", tasks.into_iter().enumerate().map(task).collect(), count);
        set.system
            .set_machine(speeds.into_iter().map(|speed| Core { name: "c".into(), speed: Speed(speed) }).collect());
        set.system.set_on_miss(if aborts { OnMiss::Abort } else { OnMiss::Continue });
        set
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_scheduler_agrees_with_its_naive_form(set in any_set(), seed in 0u64..1000) {
        for (name, key, always) in RULES {
            let (mut expected, migrations) = naive(&set, seed, key, always);
            let mut recorder = Recorder::until(Time::NEVER);
            let mut scheduler = temponet_sched::build(name).unwrap();
            let metrics = simulate(&set, seed, Time(HORIZON), &mut *scheduler, &mut recorder).unwrap();
            let order = |job: &JobRecord| (job.task, job.number);
            expected.sort_by_key(order);
            recorder.jobs.sort_by_key(order);
            for (job, expected) in recorder.jobs.iter().zip(&expected) {
                prop_assert_eq!(job, expected, "{}", name);
            }
            prop_assert_eq!(recorder.jobs.len(), expected.len(), "{}", name);
            prop_assert_eq!(metrics.migrations, migrations, "{}", name);
        }
    }
}
