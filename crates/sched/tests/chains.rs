//! Contract: what is proved about tasks that come after each other, and the bounds on reaction times and data ages of
//! chains, are never refuted by a simulation. Every scheduler of the catalog runs such sets, or says why not.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_analysis::{
    Impossible, NotAnalyzable, Outcome, PriorityRule, WorstCase, chain_bounds, dependent_outcome,
    dependent_response_times, refutations,
};
use temponet_sched::catalog::all;
use temponet_sched::shield::{Role, Shield};
use temponet_sched::{build, proofs};
use temponet_sim::{End, Recorder, Unobserved, simulate};
use temponet_task::{
    Arrival, Attribute, Chain, Communication, ExecutionModel, Gap, OnMiss, Task, TaskId, TaskSet, Time,
};

fn ms(n: u64) -> Time {
    Time::from_ms(n)
}

/// A random set of two graphs and a single task with chains through them, at about this load.
fn drawn(rng: &mut Pcg64, cores: usize, load: f64) -> TaskSet {
    let mut tasks: Vec<Task> = Vec::new();
    let mut chains: Vec<Chain> = Vec::new();
    let graphs = 2;
    for graph in 0..graphs {
        let (first, count) = (tasks.len(), rng.random_range(2..5));
        let period = [8, 10, 16, 20, 40][rng.random_range(0..5)];
        for index in 0..count {
            let share = load * cores as f64 / (graphs * count + 1) as f64;
            let wcet = Time(((share * period as f64 * 1e6 * rng.random_range(0.5..1.5)) as u64).max(1));
            let mut task = Task::periodic(format!("g{graph}t{index}"), ms(period), wcet);
            task.after = (first..first + index).map(TaskId::new).filter(|_| rng.random_bool(0.6)).collect();
            if rng.random_bool(0.5) {
                (task.bcet, task.execution) = (Time(wcet.0.div_ceil(4)), ExecutionModel::Uniform);
            }
            if task.after.is_empty() {
                task.offset = ms(rng.random_range(0..6));
                task.jitter = if rng.random_bool(0.2) { ms(1) } else { Time::ZERO };
            }
            task.extra.set(Attribute::Priority, Some(rng.random_range(0..100)));
            tasks.push(task);
        }
    }
    let period = [5, 10, 25][rng.random_range(0..3)];
    let mut single = Task::periodic("single", ms(period), Time(((0.1 * load * period as f64 * 1e6) as u64).max(1)));
    single.reads = vec![TaskId(0)];
    single.extra.set(Attribute::Priority, Some(50));
    tasks.push(single);
    // From the first graph's source by way of the single task to a task of the second graph.
    let (last, end) = (tasks.len() - 1, tasks.len() - 2);
    tasks[end].reads = vec![TaskId::new(last)];
    let communication = if rng.random_bool(0.5) { Communication::Implicit } else { Communication::Let };
    let deadline = Some(ms(60));
    chains.push(Chain {
        name: "reads".into(),
        tasks: vec![TaskId(0), TaskId::new(last), TaskId::new(end)],
        deadline,
        communication,
    });
    if let Some((index, before)) =
        tasks.iter().enumerate().find_map(|(index, task)| Some((index, *task.after.first()?)))
    {
        chains.push(Chain { name: "after".into(), tasks: vec![before, TaskId::new(index)], deadline, communication });
    }
    let mut set = TaskSet::new("drawn", tasks, cores);
    set.system.set_chains(chains);
    if set.system.follow_sources().is_err() {
        // Sources of a join with different jitters are fine; different patterns are not.
        set.system.tasks_mut().iter_mut().for_each(|task| task.after.clear());
    }
    set.system.set_on_miss(if rng.random_bool(0.5) { OnMiss::Abort } else { OnMiss::Continue });
    assert_eq!(set.system.validate(), Ok(()));
    set
}

#[test]
fn a_simulation_never_refutes_what_is_proved_of_dependent_tasks() {
    let mut rng = Pcg64::seed_from_u64(11);
    let mut proved = std::collections::BTreeMap::new();
    for case in 0..400 {
        let load = 0.3 + 0.7 * (case % 20) as f64 / 20.0;
        let set = drawn(&mut rng, 1 + usize::from(case % 10 == 9), load);
        if !set.has_precedence() {
            continue;
        }
        assert_eq!(WorstCase::of(&set).unwrap_err(), NotAnalyzable::Precedence);
        for proof in proofs(&set) {
            *proved.entry(proof.scheduler).or_insert(0) += 1;
            for seed in 0..3 {
                let mut scheduler = build(proof.scheduler).unwrap();
                let metrics = simulate(&set, seed, ms(800), &mut *scheduler, &mut Unobserved).unwrap();
                assert_eq!(metrics.jobs.met, metrics.jobs.released, "{} by {}: {set:?}", proof.scheduler, proof.by);
            }
        }
    }
    for scheduler in ["rm", "dm", "fp", "edf-chain", "egs"] {
        assert!(proved.get(scheduler).is_some_and(|count| *count > 40), "{proved:?}");
    }
}

#[test]
fn response_times_and_chains_stay_within_their_bounds() {
    let mut rng = Pcg64::seed_from_u64(5);
    let (mut bounded, mut exact, mut tighter) = (0, 0, 0);
    for case in 0..400 {
        let set = drawn(&mut rng, 1, 0.3 + 0.6 * (case % 10) as f64 / 10.0);
        let rules = [PriorityRule::RateMonotonic, PriorityRule::DeadlineMonotonic, PriorityRule::Given];
        let deadlines: Vec<Option<Time>> = set.tasks().iter().map(|task| Some(task.deadline)).collect();
        for rule in rules {
            let found = dependent_response_times(&set, rule).unwrap();
            let is_met = dependent_outcome(&set, rule) == Ok(Outcome::Schedulable);
            assert_eq!(is_met, found.outcome == Outcome::Schedulable, "{set:?}");
            let mut recorder = Recorder::until(Time::NEVER);
            let mut scheduler = build(rule.scheduler()).unwrap();
            let metrics = simulate(&set, case, ms(1000), &mut *scheduler, &mut recorder).unwrap();
            if found.outcome != Outcome::Schedulable {
                continue;
            }
            for job in recorder.jobs.iter().filter(|job| job.end == End::Completed) {
                let arrival = job.deadline - set.tasks()[job.task].deadline;
                assert!(Some(job.left - arrival) <= found.bounds[job.task], "{set:?}");
            }
            for (chain, figures) in set.chains().iter().zip(&metrics.chains) {
                let under = chain_bounds(&set, chain, &found.bounds, Some(rule));
                let anyhow = chain_bounds(&set, chain, &deadlines, None);
                for bound in under.iter().chain(&anyhow) {
                    let (reaction, age) = (bound.reaction.unwrap(), bound.age.unwrap());
                    assert!(figures.reaction.max() <= Some(reaction.0 as i64), "{bound:?} {chain:?} {set:?}");
                    assert!(figures.age.max() <= Some(age.0 as i64), "{bound:?} {chain:?} {set:?}");
                    bounded += 1;
                    if bound.by == "LET, exact" && figures.age.count() > 0 {
                        assert_eq!(figures.reaction.max(), Some(reaction.0 as i64), "{chain:?} {set:?}");
                        assert_eq!(figures.age.max(), Some(age.0 as i64), "{chain:?} {set:?}");
                        exact += 1;
                    }
                }
                if let [davare, durr] = under[..] {
                    assert!(durr.reaction <= davare.reaction && durr.age <= davare.age);
                    tighter += usize::from(durr.reaction < davare.reaction);
                }
            }
        }
    }
    assert!(bounded > 500 && exact > 50 && tighter > 50, "{bounded} {exact} {tighter}");
}

#[test]
fn a_task_whose_bound_is_within_its_deadline_misses_none_even_where_others_do() {
    let mut rng = Pcg64::seed_from_u64(6);
    let (mut bounded, mut unbounded, mut missed) = (0, 0, 0);
    for case in 0..120 {
        let mut set = drawn(&mut rng, 1, 0.7 + (case % 10) as f64 / 10.0);
        let before: Vec<TaskId> = set.tasks().iter().flat_map(|task| task.after.clone()).collect();
        for index in before {
            // A job that is aborted early leaves its successors time, but they are never released.
            let task = &mut set.system.tasks_mut()[index];
            task.deadline = Time(rng.random_range(task.wcet.0..=task.deadline.0.max(task.wcet.0)));
        }
        for rule in [PriorityRule::RateMonotonic, PriorityRule::DeadlineMonotonic, PriorityRule::Given] {
            let found = dependent_response_times(&set, rule).unwrap();
            let mut scheduler = build(rule.scheduler()).unwrap();
            let metrics = simulate(&set, case, ms(1000), &mut *scheduler, &mut Unobserved).unwrap();
            for (index, (task, figures)) in set.tasks().iter().zip(&metrics.tasks).enumerate() {
                let late = figures.jobs.released - figures.jobs.met;
                match found.bounds[index] {
                    Some(bound) if bound <= task.deadline => {
                        assert_eq!(late, 0, "{} of {set:?}", task.name);
                        bounded += 1;
                    }
                    Some(_) => missed += late,
                    None => (unbounded, missed) = (unbounded + 1, missed + late),
                }
            }
        }
    }
    assert!(bounded > 200 && unbounded > 50 && missed > 1_000, "{bounded} {unbounded} {missed}");
}

#[test]
fn no_scheduler_meets_every_deadline_of_a_set_that_is_refuted() {
    let mut rng = Pcg64::seed_from_u64(8);
    let mut refuted = [0; 4];
    for case in 0..300 {
        let cores = 1 + case as usize % 3;
        let (is_independent, shared) = (case % 2 == 0, rng.random_range(3..=7));
        let load = if is_independent { 0.5 } else { 0.7 } + 0.05 * (case % 10) as f64;
        let mut set = drawn(&mut rng, cores, cores as f64 * load);
        for task in set.system.tasks_mut().iter_mut() {
            // Deadlines that leave little, and execution times that are the wcet.
            let tenths = if is_independent { shared } else { rng.random_range(8..=10) };
            task.deadline = Time(task.deadline.0 * tenths / 10).max(task.wcet);
            if is_independent {
                (task.after, task.offset) = (Vec::new(), Time::ZERO);
            }
            (task.bcet, task.execution) = (task.wcet, ExecutionModel::Wcet);
        }
        let Some(found) = refutations(&set).into_iter().next() else { continue };
        let horizon = match found.why {
            Impossible::Overload { utilization, speed } if utilization < 1.02 * speed => continue,
            _ => ms(2_000),
        };
        refuted[match found.why {
            Impossible::Job { .. } => 0,
            Impossible::Overload { .. } => 1,
            Impossible::Demand { .. } => 2,
            _ => 3,
        }] += 1;
        for name in ["edf", "edf-chain", "egs", "srpt", "llf"] {
            let Ok(metrics) = simulate(&set, case, horizon, &mut *build(name).unwrap(), &mut Unobserved) else {
                continue;
            };
            assert!(metrics.jobs.met < metrics.jobs.released, "{name} refutes {found:?}: {set:?}");
        }
    }
    assert!(refuted[..3].iter().all(|count| *count > 5), "{refuted:?}");
}

#[test]
fn every_scheduler_runs_dependent_tasks_or_says_why_not() {
    let mut rng = Pcg64::seed_from_u64(3);
    for case in 0..24 {
        let mut set = drawn(&mut rng, 1 + case % 3, 0.6 + 0.1 * (case % 8) as f64);
        if case % 4 == 0 && set.tasks()[0].jitter == Time::ZERO {
            let source = |task: &Task| task.after.is_empty();
            let alone: Vec<bool> = set.tasks().iter().map(source).collect();
            if alone.iter().filter(|alone| **alone).count() == set.tasks().len() {
                let minimum = set.tasks()[0].period().unwrap();
                set.system.tasks_mut()[0].arrival =
                    Arrival::Sporadic { minimum, gap: Gap::Exponential { mean: minimum + minimum } };
            }
        }
        for entry in all() {
            let run = simulate(&set, case as u64, ms(400), &mut *build(&entry.name).unwrap(), &mut Unobserved);
            match run {
                Ok(metrics) => assert!(metrics.jobs.met <= metrics.jobs.released),
                Err(error) => assert!(error.is_about_the_set(), "{}: {error}", entry.name),
            }
        }
        let mut shielded = Shield::new(build("srpt").unwrap());
        simulate(&set, case as u64, ms(400), &mut shielded, &mut Unobserved).unwrap();
    }
}

#[test]
fn the_shield_guarantees_sources_and_what_comes_after_them() {
    let mut tasks = vec![Task::periodic("source", ms(10), ms(2)), Task::periodic("next", ms(10), ms(2))];
    tasks[1].after = vec![TaskId(0)];
    let mut set = TaskSet::new("s", tasks, 1);
    set.system.follow_sources().unwrap();
    assert!(Role::on(&set.system).guarantee().is_some_and(|guarantee| guarantee.is_for_all()));
    // A hog that nobody waits for does not cost them a deadline, whatever chooses.
    set.system.tasks_mut().iter_mut().for_each(|task| task.criticality = 1);
    set.system.tasks_mut().push(Task::periodic("hog", ms(50), ms(49)));
    let mut shielded = Shield::new(build("fcfs").unwrap());
    let metrics = simulate(&set, 1, ms(2000), &mut shielded, &mut Unobserved).unwrap();
    for task in &metrics.tasks[..2] {
        assert_eq!((task.jobs.released, task.jobs.met), (200, 200));
    }
    // Without the source, nothing is known of what comes after it.
    set.system.tasks_mut()[0].criticality = 0;
    assert!(Role::on(&set.system).guarantee().is_none());
}

#[test]
fn edf_by_due_dates_meets_what_plain_edf_misses() {
    // Both graphs are due at 20; the long path has to start first.
    let mut tasks = vec![
        Task::periodic("short", ms(20), ms(8)),
        Task::periodic("head", ms(20), ms(2)),
        Task::periodic("tail", ms(20), ms(10)),
    ];
    tasks[0].deadline = ms(19);
    tasks[2].after = vec![TaskId(1)];
    let mut set = TaskSet::new("s", tasks, 1);
    set.system.tasks_mut()[1].deadline = ms(20);
    set.system.follow_sources().unwrap();
    let missed =
        |scheduler| simulate(&set, 0, ms(200), &mut *build(scheduler).unwrap(), &mut Unobserved).unwrap().missed();
    assert_eq!((missed("edf-chain"), missed("egs")), (0, 0));
    let mut two = set.clone();
    two.system.tasks_mut()[0].deadline = ms(20);
    two.system.tasks_mut()[1].deadline = ms(30);
    two.system.tasks_mut()[2].deadline = ms(12);
    let missed =
        |scheduler| simulate(&two, 0, ms(200), &mut *build(scheduler).unwrap(), &mut Unobserved).unwrap().missed();
    assert_eq!(missed("edf-chain"), 0);
    assert!(missed("edf") > 0);
}
