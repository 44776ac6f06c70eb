//! Contract of the guarantee with a network inside: whatever the weights are, guaranteed jobs are on time; where
//! everything fits the network still chooses.

use std::sync::Arc;
use temponet_task::TaskId;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet::stages::Tokenizer;
use temponet::{Costs, Model, Options, Role, TaskSet, Temponet, Time, Tuning};
use temponet_formats::builtin;
use temponet_sim::generate::{Spec, generate};
use temponet_sim::{Unobserved, simulate};

/// The built-in model, and two models with random weights.
fn models() -> [Arc<Model>; 3] {
    let random = |seed: u64| Arc::new(Model::random(Tokenizer::full(), seed));
    [Model::built_in().unwrap().into(), random(1), random(2)]
}

fn drawn(rng: &mut Pcg64, load: f64) -> TaskSet {
    let cores = rng.random_range(1..=4);
    let mut spec = Spec::new(rng.random_range(3..=6) * cores, cores, load * cores as f64);
    (spec.critical.share, spec.bcet) = (0.3, 0.5);
    let mut set = generate(&spec, rng.random()).unwrap();
    for task in set.system.tasks_mut().iter_mut() {
        task.criticality *= rng.random_range(1..=3);
    }
    if rng.random_bool(0.5) {
        let mut cost = || Time(rng.random_range(0..100_000));
        set.system.set_costs(Costs { context_switch: cost(), migration: cost(), ..Costs::default() });
    }
    set
}

/// Options with which the network is followed on every set.
fn network() -> Options {
    Options { tuning: Tuning::Off, ..Options::default() }
}

#[test]
fn critical_jobs_are_on_time_in_overload_whatever_the_weights_are() {
    let mut rng = Pcg64::seed_from_u64(1);
    let (mut jobs, mut bare_missed) = (0, 0);
    for round in 0..60 {
        let load = rng.random_range(1.1..2.5);
        let set = drawn(&mut rng, load);
        let Role::StealsSlack(guarantee) = Role::on(&set.system) else { continue };
        for model in models() {
            let mut scheduler = Temponet::new(model.clone(), network()).unwrap();
            let metrics = simulate(&set, round, Time::from_secs(2), &mut scheduler, &mut Unobserved).unwrap();
            let mut bare = temponet::stages::Learned::new(model, Options::default()).unwrap();
            let without = simulate(&set, round, Time::from_secs(2), &mut bare, &mut Unobserved).unwrap();
            for task in (0..set.tasks().len()).filter(|task| guarantee.core_of(TaskId::new(*task)).is_some()) {
                let missed =
                    |metrics: &temponet_sim::Metrics| metrics.tasks[task].jobs.released - metrics.tasks[task].jobs.met;
                assert_eq!(missed(&metrics), 0, "{} in {round}: {set:?}", set.tasks()[task].name);
                jobs += metrics.tasks[task].jobs.released;
                bare_missed += missed(&without);
            }
        }
    }
    println!("{jobs} guaranteed jobs, {bare_missed} missed without the shield");
    assert!(jobs > 2_000 && bare_missed * 10 > jobs, "{jobs} {bare_missed}");
}

#[test]
fn where_everything_fits_nothing_is_missed_and_the_network_chooses() {
    let mut rng = Pcg64::seed_from_u64(2);
    let (mut decisions, mut deviations) = (0, 0);
    for round in 0..40 {
        let set = drawn(&mut rng, 0.8);
        if !matches!(Role::on(&set.system), Role::StealsSlack(guarantee) if guarantee.is_for_all()) {
            continue;
        }
        for model in models() {
            let mut scheduler = Temponet::new(model, network()).unwrap();
            let metrics = simulate(&set, round, Time::from_secs(2), &mut scheduler, &mut Unobserved).unwrap();
            assert_eq!(metrics.missed(), 0, "{round}: {set:?}");
            let counters = scheduler.shield_counters();
            (decisions, deviations) = (decisions + counters.decisions, deviations + counters.deviations);
        }
    }
    println!("{deviations} of {decisions} decisions let a core run something else than EDF would");
    assert!(decisions > 1_000 && deviations * 20 > decisions, "{deviations} of {decisions}");
}

#[test]
fn on_several_cores_jobs_respond_as_soon_as_under_global_edf() {
    let mut checked = 0;
    for builtin in builtin::ALL {
        // As few cores, from two on, as everything fits on.
        let given = builtin.load().unwrap().set;
        let on = |cores: usize| given.clone().with_cores(cores);
        let fits =
            |set: &TaskSet| matches!(Role::on(&set.system), Role::StealsSlack(guarantee) if guarantee.is_for_all());
        let Some(set) = (2..8).map(on).find(fits) else { continue };
        let horizon = Time::from_secs(2);
        let mut scheduler = Temponet::built_in().unwrap();
        let armed = simulate(&set, 1, horizon, &mut scheduler, &mut Unobserved).unwrap();
        let edf = simulate(&set, 1, horizon, &mut *temponet_sched::build("edf").unwrap(), &mut Unobserved).unwrap();
        let (Some(armed_mean), Some(edf_mean)) = (armed.art_completed(), edf.art_completed()) else { continue };
        println!(
            "{} on {} cores: {:.3} of EDF's mean response, {} missed",
            set.name,
            set.cores(),
            armed_mean / edf_mean,
            armed.missed()
        );
        assert!(armed_mean <= 1.1 * edf_mean, "{}", set.name);
        checked += 1;
    }
    assert!(checked >= 5, "{checked}");
}
