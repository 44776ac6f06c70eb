//! Contract of the guarantee for a part of the set: whatever chooses, however much the other tasks ask for, and whatever
//! switches, migrations and decisions cost, no job of a guaranteed task is late.

mod bad;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_sched::shield::{Guarantee, Role, Shield, ShieldCounters, WhyNot};
use temponet_sched::{ALL, build};
use temponet_sim::{Metrics, Unobserved, simulate};
use temponet_task::{Arrival, Costs, ExecutionModel, ListedJob, Mode, OnMiss, Scheduler, System, Task, TaskSet, Time};

use bad::{BAD, bare, drawn, inner, shielded, vary};

/// A random set on 1 to 8 cores with a load of up to 3 per core, in which some tasks are critical or ask for a
/// guarantee.
fn overloaded(rng: &mut Pcg64) -> TaskSet {
    let cores = [1, 1, 2, 3, 4, 8][rng.random_range(0..6)];
    let load = cores as f64 * rng.random_range(0.8..3.0);
    let mut set = drawn(rng, load, cores);
    if rng.random_bool(0.7) {
        vary(rng, &mut set);
    }
    let (share, levels, asks) = (rng.random_range(0.1..0.6), rng.random_range(1..4), rng.random_bool(0.3));
    for task in &mut set.tasks {
        let is_chosen = rng.random_bool(share);
        task.guarantee = asks && is_chosen;
        task.criticality = if is_chosen || asks { rng.random_range(0..=levels) } else { 0 };
    }
    if rng.random_bool(0.3) {
        set.on_miss = OnMiss::Continue;
    }
    if rng.random_bool(0.2) {
        let job = |release: u64| ListedJob {
            release: Time::from_ms(release),
            deadline: Time::from_ms(release + 2),
            execution: Time::from_ms(1),
            wcet: Time::from_ms(1),
            bcet: Time::from_ms(1),
            criticality: 0,
            value: 1.0,
        };
        let arrival = Arrival::Listed((0..50).map(job).collect());
        set.tasks.push(Task { arrival, ..Task::periodic("log", Time::from_ms(1), Time::from_ms(1)) });
    }
    set
}

fn guarantee(set: &TaskSet) -> Option<Guarantee> {
    Role::on(&set.system()).guarantee().cloned()
}

/// A horizon of some two hundred jobs.
fn span(set: &TaskSet) -> Time {
    let rate: f64 = set.tasks.iter().filter_map(Task::period).map(|period| 1.0 / period.0 as f64).sum();
    Time((200.0 / rate) as u64)
}

fn missed(metrics: &Metrics, guarantee: &Guarantee) -> u64 {
    let of_task = |(index, task): (usize, &temponet_sim::TaskMetrics)| {
        guarantee.core_of(index).map_or(0, |_| task.jobs.released - task.jobs.met)
    };
    metrics.tasks.iter().enumerate().map(of_task).sum()
}

/// Runs bad and classical schedulers on random sets. Returns the guaranteed jobs, those missed by bare schedulers, and
/// the counters.
fn defy(seed: u64, rounds: u64, costs: fn(&mut Pcg64) -> Costs) -> (u64, u64, ShieldCounters) {
    let mut rng = Pcg64::seed_from_u64(seed);
    let (mut jobs, mut bare_missed, mut total) = (0, 0, ShieldCounters::default());
    for round in 0..rounds {
        let mut set = overloaded(&mut rng);
        set.costs = costs(&mut rng);
        let Some(guarantee) = guarantee(&set).filter(|guarantee| !guarantee.is_for_all()) else { continue };
        for choice in [round as usize % BAD.len(), rng.random_range(0..BAD.len() + ALL.len())] {
            let (name, mut scheduler) = inner(choice, round);
            if scheduler.start(&set.system()).is_err() {
                continue;
            }
            let (metrics, counters) = shielded(scheduler, &set, round, span(&set));
            if counters.decisions > 50_000 {
                println!(
                    "{round} {name} {:?} cores {} tasks {} span {} {counters:?}",
                    set.costs,
                    set.cores,
                    set.tasks.len(),
                    span(&set)
                );
            }
            assert_eq!(
                (missed(&metrics, &guarantee), counters.lapses),
                (0, 0),
                "{name}, {round}: {set:?}\n{guarantee:?}"
            );
            let covered = metrics.tasks.iter().enumerate().filter(|(index, _)| guarantee.core_of(*index).is_some());
            jobs += covered.map(|(_, task)| task.jobs.released).sum::<u64>();
            bare_missed += missed(&bare(inner(choice, round).1, &set, round, span(&set)), &guarantee);
            total.decisions += counters.decisions;
            total.deviations += counters.deviations;
            total.overrides += counters.overrides;
            total.unasked += counters.unasked;
            total.kept += counters.kept;
            total.unknown += counters.unknown;
        }
    }
    println!("{jobs} guaranteed jobs, {bare_missed} missed when bare: {total:?}");
    (jobs, bare_missed, total)
}

#[test]
fn guaranteed_jobs_are_never_late_in_overload() {
    let (jobs, bare_missed, total) = defy(1, 1_200, |_| Costs::default());
    assert!(jobs > 50_000 && bare_missed * 5 > jobs, "{jobs} {bare_missed}");
    assert!(total.deviations * 5 > total.decisions, "{total:?}");
    assert!(total.kept > 100 && total.unasked > 100 && total.unknown * 200 < total.decisions, "{total:?}");
}

#[test]
fn guaranteed_jobs_are_never_late_whatever_dispatching_costs() {
    let (jobs, bare_missed, total) = defy(2, 1_600, |rng| {
        let mut cost = |share: f64| match rng.random_bool(share) {
            true => Time(rng.random_range(0..30_000)),
            false => Time(u64::from(rng.random_bool(0.2))),
        };
        Costs { context_switch: cost(0.7), migration: cost(0.7), decision: cost(0.3) }
    });
    assert!(jobs > 50_000 && bare_missed * 5 > jobs, "{jobs} {bare_missed}");
    assert!(total.deviations * 5 > total.decisions, "{total:?}");
}
