use super::*;
use crate::generate::{Spec, generate};
use temponet_task::{Arrival, Costs, ExecutionModel, Gap, OnMiss, Time};

fn plain(tasks: usize, cores: usize, seed: u64) -> TaskSet {
    generate(&Spec::new(tasks, cores, 0.9 * cores as f64), seed).unwrap()
}

fn varied(variety: &Variety, seed: u64) -> TaskSet {
    assert_eq!(variety.problem(), None);
    let mut set = plain(10, 2, seed);
    variety.apply(&mut set, seed);
    set
}

fn always(low: f64, high: f64) -> Ranged {
    Ranged::new(1.0, low, high)
}

fn both_gaps() -> Variety {
    Variety { gaps: vec![GapKind::Uniform, GapKind::Exponential], ..Variety::default() }
}

fn with_times(kinds: &[Times]) -> Variety {
    Variety { execution: kinds.to_vec(), spread: (0.1, 0.5), ..Variety::default() }
}

#[test]
fn without_any_chance_nothing_changes() {
    for seed in 0..20 {
        assert_eq!(varied(&Variety::default(), seed), plain(10, 2, seed));
    }
}

#[test]
fn every_dimension_keeps_the_mean_load_of_every_task() {
    let wide = Variety { lists: Ranged::default(), ..Variety::wide() };
    for seed in 0..300 {
        let (before, after) = (plain(10, 2, seed), varied(&wide, seed));
        assert_eq!(after.system.validate(), Ok(()));
        for (old, new) in before.tasks().iter().zip(after.tasks()) {
            let ratio = new.mean_utilization() / old.mean_utilization();
            assert!((ratio - 1.0).abs() < 2e-3, "seed {seed}: {ratio} {new:?}");
            assert!(new.wcet <= new.deadline && new.bcet <= new.wcet, "{new:?}");
        }
    }
}

#[test]
fn drawn_times_have_the_mean_that_the_load_counts() {
    for kind in Times::ALL {
        let set = varied(&with_times(&[kind]), 3);
        let jobs = crate::Workload::counted(&set, 1, Time::from_secs(60));
        let work: f64 = jobs.iter().map(|job| job.execution.0 as f64).sum();
        let load = work / 60e9;
        assert!((load / set.mean_utilization() - 1.0).abs() < 0.03, "{kind:?}: {load}");
    }
}

#[test]
fn one_dimension_does_not_change_another() {
    let both = Variety { jitter: always(0.1, 0.2), firm: always(2.0, 4.0), ..Variety::default() };
    let one = Variety { firm: Ranged::default(), ..both.clone() };
    for seed in 0..10 {
        let (both, one) = (varied(&both, seed), varied(&one, seed));
        assert!(both.tasks().iter().zip(one.tasks()).all(|(a, b)| a.jitter == b.jitter));
        assert!(both.tasks().iter().any(|task| task.mk.is_some()) && one.tasks().iter().all(|task| task.mk.is_none()));
    }
}

#[test]
fn arrivals_and_deadlines_are_within_their_ranges() {
    let variety = Variety { sporadic: always(2.0, 4.0), deadlines: always(0.4, 3.0), ..both_gaps() };
    let (mut uniform, mut exponential) = (0, 0);
    for seed in 0..50 {
        for (task, plain) in varied(&variety, seed).tasks().iter().zip(plain(10, 2, seed).tasks()) {
            let mean = plain.period().unwrap().0 as f64;
            let factor = task.deadline.0 as f64 / mean;
            assert!(factor <= 3.0001 && (factor >= 0.3999 || task.deadline == task.wcet), "{factor}");
            let Arrival::Sporadic { minimum, gap } = task.arrival else { continue };
            assert!((1.999..4.001).contains(&(mean / minimum.0 as f64)));
            match gap {
                Gap::Uniform { max } => {
                    assert_eq!((minimum + max).0, 2 * mean as u64);
                    uniform += 1;
                }
                Gap::Exponential { mean: gap } => {
                    assert_eq!(gap.0, mean as u64);
                    exponential += 1;
                }
            }
        }
    }
    assert!(uniform > 50 && exponential > 50, "{uniform} {exponential}");
}

#[test]
fn told_wcets_are_beyond_every_execution_time() {
    let variety = Variety { told: always(4.0, 4.0), deadlines: always(3.0, 3.0), ..with_times(&[Times::Uniform]) };
    let set = (0..20)
        .map(|seed| varied(&variety, seed))
        .find(|set| set.tasks().iter().all(|task| matches!(task.execution, ExecutionModel::Empirical { .. })));
    for task in set.unwrap().tasks() {
        let ExecutionModel::Empirical { samples } = &task.execution else { panic!("{task:?}") };
        let longest = samples.iter().max().unwrap().0 as f64;
        let told = task.wcet.0 as f64 / longest;
        let is_capped = task.wcet.0 as f64 > 0.9 * task.deadline.0 as f64;
        assert!(told > 3.5 || is_capped, "{told}: {task:?}");
    }
}

#[test]
fn values_follow_the_wcet_as_their_relation_says() {
    let correlation = |relation: Relation| {
        let variety = Variety { values: always(4.0, 4.0), relations: vec![relation], ..Variety::default() };
        let set = varied(&variety, 5);
        let rises = |a: &Task, b: &Task| ((a.wcet > b.wcet) == (a.value > b.value)) || a.value == b.value;
        let pairs =
            set.tasks().iter().flat_map(|a| set.tasks().iter().map(move |b| (a, b))).filter(|(a, b)| a.wcet > b.wcet);
        let (all, rising) = pairs.fold((0, 0), |(all, rising), (a, b)| (all + 1, rising + i32::from(rises(a, b))));
        (f64::from(rising) / f64::from(all), set)
    };
    assert_eq!(correlation(Relation::Growing).0, 1.0);
    assert!(correlation(Relation::Inverse).0 < 0.05);
    assert!((0.2..0.8).contains(&correlation(Relation::Independent).0));
    let densities: Vec<f64> =
        correlation(Relation::ConstantDensity).1.tasks().iter().map(|task| task.value / task.wcet.0 as f64).collect();
    assert!(densities.iter().all(|density| (density / densities[0] - 1.0).abs() < 0.01), "{densities:?}");
    let dear = correlation(Relation::OneDear).1;
    assert_eq!(dear.tasks().iter().filter(|task| task.value == 1.0).count(), 9);
    assert_eq!(dear.tasks().iter().filter(|task| (task.value - 1e4).abs() < 1.0).count(), 1);
}

#[test]
fn levels_have_as_many_labels_as_drawn() {
    let variety = Variety { criticality: always(3.0, 3.0), ..Variety::default() };
    let mut labels = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let set = varied(&variety, seed);
        assert_eq!(set.levels().len(), 3);
        assert!(set.tasks().iter().any(|task| task.criticality == 0));
        labels.extend(set.levels());
    }
    assert_eq!(labels.len(), 9, "{labels:?}");
}

#[test]
fn costs_misses_and_modes() {
    let variety =
        Variety { costs: always(0.5, 0.5), keep_late: always(0.0, 1.3), modes: always(0.5, 2.0), ..Variety::default() };
    for seed in 0..30 {
        let set = varied(&variety, seed);
        assert!(*set.costs() != Costs::default() && set.on_miss() == OnMiss::Continue);
        assert!((2..=6).contains(&set.modes().len()) && set.modes().is_sorted_by(|a, b| a.at < b.at));
    }
    let calm = Variety { keep_late: always(0.0, 0.5), ..variety };
    assert_eq!(varied(&calm, 1).on_miss(), OnMiss::Abort, "the load is 0.9");
}

#[test]
fn a_list_has_the_jobs_of_its_tasks() {
    let variety = Variety { lists: always(300.0, 300.0), ..with_times(&[Times::Uniform]) };
    let set = varied(&variety, 7);
    let count: usize = set
        .tasks()
        .iter()
        .map(|task| match &task.arrival {
            Arrival::Listed(jobs) => jobs.len(),
            other => panic!("{other:?}"),
        })
        .sum();
    assert!((450..650).contains(&count), "{count}");
    assert!((set.mean_utilization() / 1.8 - 1.0).abs() < 0.15, "{}", set.mean_utilization());
    let known = varied(&Variety { lists: always(300.0, 300.0), ..Variety::default() }, 7);
    assert!(
        known.tasks().iter().all(|task| task.bcet == task.wcet) && set.tasks().iter().all(|task| task.bcet == Time(1))
    );
}

#[test]
fn every_dimension_can_be_asked_for_by_its_name() {
    for name in Variety::DIMENSIONS {
        let variety = Variety::certain([name].into_iter()).unwrap();
        assert_eq!(variety.problem(), None);
        let is_different = (0..10).any(|seed| varied(&variety, seed) != plain(10, 2, seed));
        assert!(is_different, "{name}");
    }
    assert!(Variety::certain(["jiter"].into_iter()).unwrap_err().starts_with("\"jiter\" is none of sporadic, bursts"));
}

#[test]
fn what_is_wrong_is_said() {
    let chance = Variety { offsets: 1.5, ..Variety::default() };
    assert_eq!(chance.problem().unwrap(), "offsets: 1.5 is no probability from 0 to 1");
    let range = Variety { told: always(0.5, 2.0), ..Variety::default() };
    assert_eq!(range.problem().unwrap(), "told: [0.5, 2] is no range from 1 to 1000");
    let relation = Variety { values: always(1.0, 2.0), ..Variety::default() };
    assert!(relation.problem().unwrap().contains("at least one relation"));
    assert_eq!(Variety::wide().problem(), None);
}
