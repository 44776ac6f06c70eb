//! Contract of growing: a model with more features decides as before, and training can go on from it.

use std::sync::Arc;

use temponet::Model;
use temponet::stages::{Feature, IdleFeature, Observation, Scale, Tokenizer};
use temponet_grad::Cpu;
use temponet_infer::{Network, NetworkOptions, Precision, Rows};
use temponet_sched::build;
use temponet_sim::{Engine, Unobserved};
use temponet_task::{Assignment, Scheduler, Time};
use temponet_train::{
    NetworkShape, NoObserver, PpoSettings, Recipe, RolloutSettings, Stage, TaskSetSource, Tokens, TrainingRun,
    WorkloadRanges,
};

/// A model that was made with fewer features than there are today.
fn old_model() -> Model {
    let features = Tokenizer::full().features[..9].to_vec();
    Model::random(Tokenizer { features, ..Tokenizer::full() }, 5)
}

#[test]
fn a_grown_model_has_the_q_values_of_the_old_one_bit_for_bit() {
    let features = vec![Feature::Remaining, Feature::Core, Feature::Due];
    let random = Model::random(Tokenizer { features, idle: vec![IdleFeature::Cores], ..Tokenizer::full() }, 7);
    let order = [Feature::Remaining, Feature::Core, Feature::Due, Feature::Worth, Feature::Chance, Feature::Cost];
    let longer = Tokenizer { features: order.to_vec(), ..Tokenizer::full() };
    for (old, tokenizer) in [(random, longer), (old_model(), Tokenizer::full())] {
        let grown = old.grown(&tokenizer).unwrap();
        let grown = Model::from_bytes(&grown.to_bytes().unwrap()).unwrap();
        assert_eq!(grown.never_idles(), old.never_idles());
        let options = NetworkOptions { precision: Precision::F32, ..NetworkOptions::default() };
        let mut networks = [&old, &grown].map(|model| Network::new(&model.weights, options).unwrap());
        let mut compared = 0;
        for seed in 0..6 {
            let set = TaskSetSource::Drawn(Box::<WorkloadRanges>::default()).set(seed).unwrap();
            let system = set.system.clone();
            let mut engine = Engine::new(&*set, seed, Time::from_ms(60));
            let mut edf = build("edf").unwrap();
            edf.start(&system).unwrap();
            let mut assignment = Assignment::default();
            while engine.advance(&mut Unobserved) {
                let view = engine.view();
                let mut outputs = [Vec::new(), Vec::new()];
                for ((model, network), q) in [&old, &grown].into_iter().zip(&mut networks).zip(&mut outputs) {
                    let (mut observation, scale) = (Observation::default(), Scale::of(&model.tokenizer, &system));
                    observation.start(&system);
                    // A row for each job, because more features tell more jobs apart.
                    observation.read(&model.tokenizer, &scale, &view, true);
                    network.forward(&Rows { sparsity: None, ..observation.rows() }, q);
                }
                assert_eq!(outputs[0], outputs[1]);
                compared += outputs[0].len();
                assignment.reset(view.cores());
                edf.decide(&view, &mut assignment);
                engine.apply(&assignment, &mut Unobserved).unwrap();
            }
        }
        assert!(compared > 300, "{compared}");
    }
}

#[test]
fn only_more_features_after_the_old_ones_can_be_grown() {
    let old = old_model();
    let full = Tokenizer::full();
    let refused = |tokenizer: Tokenizer| old.grown(&tokenizer).unwrap_err().to_string();
    let mut features = full.features.clone();
    features.swap(0, 1);
    assert!(refused(Tokenizer { features, ..full.clone() }).contains("job features [\"remaining\", \"criticality\""));
    let idle = vec![IdleFeature::Demand];
    assert!(refused(Tokenizer { idle, ..full.clone() }).contains("idle features [\"cores\", \"load\""));
    assert!(refused(Tokenizer { bins: 65, ..full.clone() }).contains("the slack bins of the model"));
    assert!(refused(Tokenizer { slots: Some(4), ..full }).contains("the slots of the model"));
    assert_eq!(old.grown(&old.tokenizer).unwrap().weights, old.weights);
}

/// One tiny phase of each method from the grown built-in model: there is a finite gradient to follow, and the model is
/// not ruined.
#[test]
fn training_goes_on_from_the_built_in_model() {
    let grown = Model::built_in().unwrap().grown(&Tokenizer::ahead()).unwrap();
    let shape = &grown.weights.architecture;
    let network = NetworkShape {
        width: shape.width,
        layers: shape.layers,
        heads: shape.heads,
        feed_forward: shape.feed_forward,
        ..NetworkShape::default()
    };
    let bias = grown.weights.tensor("head.idle.bias");
    assert!(bias[0].abs() < 1_000.0, "the idle head can learn: {bias:?}");
    let ppo = PpoSettings { environments: 8, length: 16, rounds: 1, epochs: 2, batch: 64, ..PpoSettings::default() };
    let rollouts = RolloutSettings {
        environments: 4,
        states: 16,
        updates: 4,
        batch: 16,
        length: 10.0,
        ..RolloutSettings::default()
    };
    for method in [ppo.into(), rollouts.into()] {
        let stage = Stage { phases: 1, method, rate: Some(1e-5), workload: None, reward: None };
        let mut recipe = Recipe { network, tokens: Tokens::Ahead, stage: vec![stage], ..Recipe::default() };
        recipe.validation.runs = 8;
        recipe.workload.cores = vec![1, 2];
        let mut run = TrainingRun::new(Cpu::default(), recipe, None, Some(&grown.weights));
        let before = run.validate(&Arc::new(grown.clone())).unwrap().score;
        run.train(&mut NoObserver).unwrap();
        let figures = run.figures()[0].clone();
        assert!(figures.loss.is_finite() && figures.norm > 0.0, "{figures:?}");
        assert!((figures.score - before).abs() < 0.05, "{before} before: {figures:?}");
    }
}

#[test]
fn sets_with_forty_tasks_a_core_can_be_learned_from() {
    let ppo = PpoSettings { environments: 2, length: 3, rounds: 2, epochs: 1, batch: 6, ..PpoSettings::default() };
    let stage = Stage::new(1, ppo);
    let network = NetworkShape { width: 16, layers: 2, heads: 2, feed_forward: 32, ..NetworkShape::default() };
    let mut recipe = Recipe { network, tokens: Tokens::Full, stage: vec![stage], ..Recipe::default() };
    (recipe.validation.runs, recipe.validation.length, recipe.episode.length) = (2, 4.0, 4.0);
    (recipe.workload.cores, recipe.workload.tasks_per_core) = (vec![4, 16], (40.0, 40.0));
    let mut run = TrainingRun::new(Cpu::default(), recipe, None, None);
    run.train(&mut NoObserver).unwrap();
    assert!(run.figures().iter().all(|figures| figures.loss.is_finite() && figures.norm > 0.0), "{:?}", run.figures());
}
