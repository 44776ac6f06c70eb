//! Contract of the intervals: they contain the truth in 95% of all repetitions, within two points, for every kind of
//! set, and of two schedulers that are equal in truth a difference is claimed in at most 5%. Where few misses are
//! expected, counts are so coarse that no interval can be exact; it contains the truth at least as often.
//!
//! `TEMPONET_REPETITIONS=2000 cargo test -p temponet-lab --test suite coverage -- --nocapture` prints the table of
//! docs/metrics.md. Without the variable there are fewer repetitions, which find what is far off.

use rayon::prelude::*;
use temponet_sched::build;
use temponet_sim::statistics::{FEW, mean, paired_interval, share_interval};
use temponet_sim::{Metrics, Unobserved, ranking, simulate};
use temponet_task::{Arrival, Core, ExecutionModel, Gap, OnMiss, ResourceId, Section, Speed, Task, TaskSet, Time};

/// A kind of set, and how it is run.
struct Kind {
    name: &'static str,
    set: TaskSet,
    horizon: Time,
    runs: usize,
}

/// Schedulers that are compared: both are judged, and so is their difference.
const SCHEDULERS: [&str; 2] = ["edf", "srpt"];

/// Other repetitions that each one is compared with, to find out how often a scheduler is told from itself.
const OTHERS: usize = 10;

fn ms(time: u64) -> Time {
    Time::from_ms(time)
}

/// A task whose jobs take between a tenth of the wcet and the wcet.
fn task(name: &str, period: u64, wcet: u64) -> Task {
    let task = Task::periodic(name, ms(period), ms(wcet));
    task.with_bcet(Time(ms(wcet).0 / 10)).with_execution(ExecutionModel::Uniform)
}

/// Four tasks on one core; `more` milliseconds make them miss more.
fn four(more: u64) -> Vec<Task> {
    vec![task("a", 10, 4 + more), task("b", 17, 6 + more), task("c", 29, 9 + more), task("d", 41, 12 + more)]
}

fn kinds() -> Vec<Kind> {
    let kind = |name, tasks: Vec<Task>, cores, horizon, runs| Kind {
        name,
        set: TaskSet::new("s", tasks, cores),
        horizon: ms(horizon),
        runs,
    };
    let mut late = kind("a backlog that continues", four(3), 1, 2_000, 10);
    late.set.system.set_on_miss(OnMiss::Continue);
    let mut critical = four(1);
    (critical[1].criticality, critical[3].criticality) = (2, 1);
    let mut valued = four(3);
    (valued[0].value, valued[2].value) = (5.0, 0.5);
    let sporadic = four(2).into_iter().map(|task| {
        let minimum = Time(task.deadline.0 / 2);
        let mean = task.deadline;
        task.with_arrival(Arrival::Sporadic { minimum, gap: Gap::Exponential { mean } })
    });
    let two_cores = four(3).into_iter().chain([task("e", 13, 7), task("f", 23, 11)]).collect();
    vec![
        kind("overload, one core", four(5), 1, 1_000, 10),
        kind("overload, two cores", two_cores, 2, 1_000, 10),
        kind("sporadic arrivals", sporadic.collect(), 1, 1_000, 10),
        late,
        kind("values", valued, 1, 1_000, 10),
        kind("levels of criticality", critical, 1, 600, 10),
        kind("few misses", four(1), 1, 600, 10),
        kind("rare misses, short runs", four(0), 1, 600, 10),
        kind("three runs", four(3), 1, 1_000, 3),
        kind("forty runs, few misses", four(0), 1, 1_000, 40),
    ]
}

/// Kinds of other features. They were looked at when the formulas were chosen, too.
fn more_kinds() -> Vec<Kind> {
    let kind = |name, tasks: Vec<Task>, cores| Kind {
        name,
        set: TaskSet::new("s", tasks, cores),
        horizon: ms(1_000),
        runs: 10,
    };
    let burst = Arrival::Burst { jobs: 6, every: ms(150), until: Time::NEVER };
    let bursts = four(0).into_iter().chain([task("e", 50, 11).with_arrival(burst)]).collect();
    let two_levels = four(3).into_iter().map(|task| {
        let levels = [Time(task.wcet.0 / 5), Time(task.wcet.0 * 9 / 10)];
        task.with_execution(ExecutionModel::Bimodal { levels, probability: 0.2, spread: 0.1 })
    });
    let six = four(2).into_iter().chain([task("e", 13, 7), task("f", 23, 11)]).collect();
    let mut unequal = kind("unequal cores", six, 2);
    let core = |name: &str, speed| Core::new(name.to_string(), Speed(speed));
    unequal.set.system.set_machine(vec![core("fast", 1_000), core("slow", 400)]);
    let shared = four(1).into_iter().map(|task| {
        let section = Section { resource: ResourceId(0), at: Time(task.wcet.0 / 10), length: Time(task.wcet.0 / 2) };
        task.with_sections(vec![section])
    });
    let mut locks = kind("locks", shared.collect(), 1);
    locks.set.system.set_resources(vec!["bus".into()]);
    // A job takes a fifth of its wcet on average, so that the core is busy for nine tenths of the time.
    let heavy = [task("a", 10, 14), task("b", 17, 22), task("c", 29, 36), task("d", 41, 50)].map(|task| {
        let least = Time(task.wcet.0 / 20);
        task.with_bcet(least).with_execution(ExecutionModel::Pareto { shape: 0.8 })
    });
    let mut heavy = kind("heavy tails", heavy.to_vec(), 1);
    heavy.set.system.set_on_miss(OnMiss::Continue);
    vec![kind("bursts", bursts, 1), kind("two levels", two_levels.collect(), 1), unequal, locks, heavy]
}

/// Kinds that were made after the formulas were chosen, and run with no other formula.
fn unseen_kinds() -> Vec<Kind> {
    let kind = |name, tasks: Vec<Task>, cores, runs| Kind {
        name,
        set: TaskSet::new("s", tasks, cores),
        horizon: ms(1_000),
        runs,
    };
    let sporadic = |more| {
        let apart = |task: Task| {
            let (minimum, max) = (Time(task.deadline.0 / 2), Time(task.deadline.0 * 3 / 2));
            task.with_arrival(Arrival::Sporadic { minimum, gap: Gap::Uniform { max } })
        };
        four(more).into_iter().map(apart).collect::<Vec<Task>>()
    };
    let lognormal = four(6).into_iter().chain([task("e", 13, 11), task("f", 23, 17)]).map(|task| {
        let median = Time(task.wcet.0 / 3);
        task.with_execution(ExecutionModel::Lognormal { median, sigma: 0.8 })
    });
    let mut backlog = kind("sporadic backlog", sporadic(3), 1, 10);
    backlog.set.system.set_on_miss(OnMiss::Continue);
    vec![
        kind("lognormal times, two cores", lognormal.collect(), 2, 10),
        backlog,
        kind("sporadic, five runs", sporadic(2), 1, 5),
    ]
}

/// Shares of the repetitions.
struct Row {
    name: &'static str,
    missed: f64,
    /// Expected number of misses in a repetition, under each scheduler.
    misses: [f64; 2],
    shares: [f64; 2],
    difference: f64,
    claims: f64,
}

fn row(kind: &Kind, repetitions: usize) -> Row {
    let goal = kind.set.goal().clone();
    let run = |name: &str, seed: u64| {
        let mut scheduler = build(name).unwrap();
        simulate(&kind.set, seed, kind.horizon, &mut *scheduler, &mut Unobserved).unwrap()
    };
    let seeds = 1..=(repetitions * kind.runs) as u64;
    let all =
        SCHEDULERS.map(|name| seeds.clone().into_par_iter().map(|seed| run(name, seed)).collect::<Vec<Metrics>>());
    let values = |runs: &[Metrics]| runs.iter().map(|run| run.jobs.compliance()).collect::<Vec<f64>>();
    let units = |runs: &[Metrics]| runs.iter().map(|run| run.jobs.released as f64).sum::<f64>();
    let truths = [values(&all[0]), values(&all[1])].map(|shares| mean(&shares));
    let chunks = |of: usize| all[of].chunks(kind.runs);
    let share = |is_true: &dyn Fn(usize) -> bool| {
        (0..repetitions).filter(|repetition| is_true(*repetition)).count() as f64 / repetitions as f64
    };
    let covers = |of: usize| {
        share(&|repetition| {
            let runs = chunks(of).nth(repetition).unwrap();
            let interval = share_interval(&values(runs), Some(units(runs))).unwrap();
            interval.contains(truths[of])
        })
    };
    let difference = share(&|repetition| {
        let [a, b] = [0, 1].map(|of| chunks(of).nth(repetition).unwrap());
        let (_, interval) = paired_interval(&values(a), &values(b), Some(units(a)), 1);
        interval.unwrap().contains(truths[0] - truths[1])
    });
    let of_goal = |runs: &[Metrics]| {
        let mut all = Metrics::default();
        runs.iter().for_each(|run| all.merge(run));
        (runs.iter().map(|run| run.scores(&goal)).collect::<Vec<_>>(), all.units(&goal))
    };
    let of_goal: Vec<_> = chunks(0).map(of_goal).collect();
    let claims = (1..=OTHERS).map(|apart| {
        share(&|repetition| {
            let ((one, units), (other, _)) = (&of_goal[repetition], &of_goal[(repetition + apart) % of_goal.len()]);
            !ranking::are_level(&goal, one, other, units)
        })
    });
    let claims = claims.sum::<f64>() / OTHERS as f64;
    let misses = [0, 1].map(|of| (1.0 - truths[of]) * units(&all[of]) / repetitions as f64);
    Row { name: kind.name, missed: 1.0 - truths[0], misses, shares: [covers(0), covers(1)], difference, claims }
}

#[test]
fn coverage_is_what_the_intervals_say() {
    let repetitions = std::env::var("TEMPONET_REPETITIONS").ok().and_then(|text| text.parse().ok());
    let (repetitions, is_whole) = (repetitions.unwrap_or(60), repetitions.is_some());
    println!("| kind of set | runs | missed | edf | srpt | difference | false claims |\n|---|--:|--:|--:|--:|--:|--:|");
    let mut wrong = Vec::new();
    for kind in kinds().into_iter().chain(more_kinds()).chain(unseen_kinds()) {
        let Row { name, missed, misses, shares: [edf, srpt], difference, claims } = row(&kind, repetitions);
        let [missed, a, b, c, d] =
            [missed, edf, srpt, difference, claims].map(|share| format!("{:.2}%", 100.0 * share));
        println!("| {name} | {} | {missed} | {a} | {b} | {c} | {d} |", kind.runs);
        let is_rare = misses.iter().any(|misses| *misses < 2.0 * FEW);
        // Repetitions are themselves a sample: two standard errors of a share of 5%.
        let chance = 2.0 * (0.05 * 0.95 / repetitions as f64).sqrt();
        let most = if is_rare || !is_whole { 1.0 } else { 0.97 };
        let least = if is_whole { 0.93 } else { 0.95 - 3.0 * chance };
        let is_covered = [edf, srpt, difference].iter().all(|share| (least..=most).contains(share));
        if !is_covered || claims > 0.05 + chance {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
