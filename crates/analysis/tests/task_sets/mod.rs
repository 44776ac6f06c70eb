//! Task sets for the tests of the analysis and of the proofs: hand-made ones in whole milliseconds, and random ones.

use rand::RngExt;
use rand_pcg::Pcg64;
use temponet_analysis::WorstCase;
use temponet_task::{Arrival, Attribute, Costs, ExecutionModel, Gap, ListedJob, Mode, Task, TaskSet, Time};

pub fn ms(n: u64) -> Time {
    Time::from_ms(n)
}

/// Periodic tasks, given as (wcet, deadline, period) in ms.
pub fn set(tasks: &[(u64, u64, u64)], cores: usize) -> TaskSet {
    let task = |(index, (wcet, deadline, period)): (usize, &(u64, u64, u64))| {
        Task::periodic(format!("t{index}"), ms(*period), ms(*wcet)).with_deadline(ms(*deadline))
    };
    TaskSet::new("test", tasks.iter().enumerate().map(task).collect(), cores)
}

/// The worst case of a set that can be analyzed.
pub fn model(set: &TaskSet) -> WorstCase {
    WorstCase::of(set).unwrap()
}

/// Features of a random set.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// Synchronous and strictly periodic; every job takes its wcet.
    Plain,
    /// Also offsets, jitter, sporadic arrivals, bursts, random execution times and overruns.
    Wild,
}

/// A random set with a utilization of about 0.3 to 1.1 per core.
pub fn drawn(rng: &mut Pcg64, cores: usize, kind: Kind) -> TaskSet {
    let count = rng.random_range(1..=3 + 2 * cores);
    let load = cores as f64 * rng.random_range(0.3..1.1) / count as f64;
    // Whole milliseconds, quarters of them, or a few nanoseconds, where rounding errors would show.
    let (unit, step) = [(1_000_000, 1_000_000), (1_000_000, 250_000), (1_000, 1), (1, 1)][rng.random_range(0..4)];
    let deadlines = rng.random_range(0..4);
    let mut tasks: Vec<Task> = Vec::new();
    for index in 0..count {
        let period = [4, 5, 6, 8, 10, 12, 15, 20, 24, 30][rng.random_range(0..10)] * unit;
        let share = (load * rng.random_range(0.2..1.8)).min(1.0);
        let wcet = ((period as f64 * share) as u64 / step * step).max(step);
        let deadline = match deadlines {
            0 | 1 => period,
            2 => rng.random_range(wcet..=period.max(wcet)) / step * step,
            _ => rng.random_range(wcet..=3 * period.max(wcet)) / step * step,
        };
        let mut task = Task::periodic(format!("t{index}"), Time(period), Time(wcet));
        task.deadline = Time(deadline.max(wcet));
        if rng.random_bool(0.3) {
            task.extra.set(Attribute::Priority, Some(rng.random_range(0..5)));
        }
        if kind == Kind::Wild {
            make_wild(rng, &mut task, unit);
        }
        tasks.push(task);
    }
    TaskSet::new("drawn", tasks, cores)
}

/// Adds random features to a periodic task.
fn make_wild(rng: &mut Pcg64, task: &mut Task, unit: u64) {
    let Some(Time(period)) = task.period() else { return };
    if rng.random_bool(0.3) {
        task.offset = Time(rng.random_range(0..20) * unit / 2);
    }
    if rng.random_bool(0.25) {
        task.jitter = Time(rng.random_range(0..period / 4));
    }
    if rng.random_bool(0.04) {
        task.jitter = Time(rng.random_range(0..3 * period));
    }
    match rng.random_range(0..10) {
        0..=2 => {
            let gap = match rng.random_bool(0.5) {
                true => Gap::Uniform { max: Time(period + rng.random_range(0..period)) },
                false => Gap::Exponential { mean: Time(period + period / 10) },
            };
            task.arrival = Arrival::Sporadic { minimum: Time(period), gap };
        }
        3 => {
            let jobs = rng.random_range(1..=3);
            let until = if rng.random_bool(0.5) { Time::NEVER } else { Time(10 * period) };
            task.arrival = Arrival::Burst { jobs, every: Time(period), until };
        }
        _ => {}
    }
    if rng.random_bool(0.3) {
        (task.bcet, task.execution) = (Time((task.wcet.0 / 3).max(1)), ExecutionModel::Uniform);
    }
    if rng.random_bool(0.05) {
        task.wcet_high = Some(Time(task.wcet.0 + rng.random_range(1..=task.wcet.0)));
        task.criticality = u8::from(rng.random_bool(0.7));
        let below = Box::new(ExecutionModel::Wcet);
        task.execution = ExecutionModel::Overrun { probability: 0.2, below };
    }
}

/// A small set that the tests cover, and the same with mode switches, with costs of deciding, and with listed jobs,
/// which they do not.
pub fn uncovered_sets() -> (TaskSet, [TaskSet; 3]) {
    let plain = set(&[(1, 10, 10), (2, 20, 20)], 1);
    let mut moded = plain.clone();
    moded.push_mode(Mode::new("hot", ms(5)).with_work(9.0));
    let mut deciding = plain.clone();
    deciding.system.set_costs(Costs { decision: Time(1), ..*deciding.costs() });
    let job = ListedJob::new(ms(0), ms(5), ms(1));
    let mut listed = plain.clone();
    listed.system.tasks_mut()[0].arrival = Arrival::Listed([job].into());
    (plain, [moded, deciding, listed])
}
