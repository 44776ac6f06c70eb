//! Training that starts from a model must not lose what the model can do.

use temponet::Model;
use temponet::stages::{Learned, Tokenizer};
use temponet_formats::builtin;
use temponet_grad::{AdamSettings, Cpu};
use temponet_infer::Weights;
use temponet_sim::{Unobserved, simulate};
use temponet_task::{Task, TaskSet, Time};
use temponet_train::{
    CloningSettings, DqnSettings, Learner, NetworkShape, NoObserver, PpoSettings, Recipe, ReplaySettings, Sample,
    Stage, StageMethod, Tokens, TrainingRun,
};

type Device = Cpu;

fn standard() -> TaskSet {
    builtin::Builtin::find("standard-125").unwrap().load().unwrap().set
}

#[test]
fn q_learning_does_not_destroy_the_model_it_begins_with() {
    let model = Model::built_in().unwrap().grown(&Tokenizer::ahead()).unwrap();
    let dqn = DqnSettings {
        replay: ReplaySettings { steps: 600, learn_from: 200, ..ReplaySettings::default() },
        ..DqnSettings::default()
    };
    let mut recipe = Recipe { stage: vec![Stage::new(2, dqn)], ..Recipe::default() };
    assert_eq!(recipe.network.architecture(&recipe.tokenizer()), model.weights.architecture);
    (recipe.validation.runs, recipe.validation.length) = (1, 300.0);
    let mut run = TrainingRun::new(Device::default(), recipe, Some(standard()), Some(&model.weights));
    run.train(&mut NoObserver).unwrap();
    for figures in run.figures() {
        assert!(figures.score >= 0.8 && figures.loss < 2.0, "{figures:?}");
    }
    assert!(run.model().never_idles() && run.model().provenance().unwrap().contains("recipes/default"));
}

/// Two jobs every 10 ms, of 2 and of 7 ms, with these deadlines.
fn pair(deadlines: [u64; 2]) -> TaskSet {
    let task = |(wcet, deadline)| {
        Task::periodic("task", Time::from_ms(10), Time::from_ms(wcet)).with_deadline(Time::from_ms(deadline))
    };
    TaskSet::new("pair", [2, 7].into_iter().zip(deadlines).map(task).collect(), 1)
}

fn small(method: StageMethod, phases: u64) -> Recipe {
    let mut recipe = Recipe { stage: vec![Stage::new(phases, method)], seed: 2, ..Recipe::default() };
    recipe.network = NetworkShape { width: 16, layers: 1, heads: 2, feed_forward: 16, ..NetworkShape::default() };
    recipe.optimizer.rate = 2e-3;
    (recipe.validation.runs, recipe.validation.length) = (2, 200.0);
    recipe
}

/// Weights as a deployment alone needs them: idling is worth −10⁶, so that it never wins, and the value head is zero,
/// as one that a file lacks.
fn stripped(weights: &Weights) -> Weights {
    let mut weights = weights.clone();
    let zeros = vec![0.0; weights.tensor("head.idle.weight").len()];
    weights.set_tensor("head.idle.weight", zeros);
    weights.set_tensor("head.idle.bias", vec![-1e6]);
    for name in ["head.value.weight", "head.value.bias"] {
        weights.set_tensor(name, Vec::new());
    }
    weights
}

/// Q-learning that takes the outputs of a stripped model as they are spends its updates on the constant of a million
/// and learns nothing else.
#[test]
fn a_saved_model_goes_on_learning() {
    // The long job must come first. What the models have learned before is the opposite.
    let (set, opposite) = (pair([10, 8]), pair([3, 10]));
    let dqn = |plain: bool| {
        let dqn = DqnSettings {
            replay: ReplaySettings { steps: 1_200, learn_from: 200, environments: 8, ..ReplaySettings::default() },
            ..DqnSettings::default()
        };
        if plain { DqnSettings { double: false, dueling: false, huber: None, ..dqn } } else { dqn }
    };
    let compliance = |model: &Model| {
        let mut scheduler = Learned::new(model.clone().into(), temponet::Options::default()).unwrap();
        simulate(&set, 1_000, Time::from_secs(3), &mut scheduler, &mut Unobserved).unwrap().jobs.compliance()
    };
    let cloning = CloningSettings { teacher: "srpt".into(), updates: 100, steps: 1_000, ..CloningSettings::default() };
    let before = [(small(cloning.into(), 2), &set), (small(dqn(false).into(), 4), &opposite)];
    for (place, (recipe, learned_on)) in before.into_iter().enumerate() {
        let mut run = TrainingRun::new(Device::default(), recipe, Some(learned_on.clone()), None);
        run.train(&mut NoObserver).unwrap();
        let saved = Model::from_bytes(&run.model().to_bytes().unwrap()).unwrap();
        assert!(saved.never_idles() && compliance(&saved) < 0.99, "{place}: there is something to learn");
        assert!(saved.weights.tensor("head.idle.bias")[0].abs() < 1e3, "{place}: the idle head is a Q-value");
        assert!(!saved.weights.tensor("head.value.weight").is_empty(), "{place}: the value head is saved");
        for (weights, plain) in
            [(saved.weights.clone(), false), (saved.weights.clone(), true), (stripped(&saved.weights), false)]
        {
            let recipe = small(dqn(plain).into(), 4);
            let mut again = TrainingRun::new(Device::default(), recipe, Some(set.clone()), Some(&weights));
            again.train(&mut NoObserver).unwrap();
            assert_eq!(compliance(&again.model()), 1.0, "{place}, plain {plain}: {:?}", again.figures());
        }
    }
}

#[test]
fn what_is_worse_than_the_model_it_began_with_is_not_kept() {
    let model = Model::built_in().unwrap().grown(&Tokenizer::ahead()).unwrap();
    let dqn = DqnSettings {
        replay: ReplaySettings { steps: 64, learn_from: 16, ..ReplaySettings::default() },
        ..DqnSettings::default()
    };
    let mut recipe = Recipe { stage: vec![Stage::new(1, dqn)], ..Recipe::default() };
    // Steps that are far too large.
    recipe.optimizer.rate = 1.0;
    (recipe.validation.runs, recipe.validation.length) = (1, 300.0);
    let mut run = TrainingRun::new(Device::default(), recipe, Some(standard()), Some(&model.weights));
    run.train(&mut NoObserver).unwrap();
    let figures = &run.figures()[0];
    assert!(figures.score < 0.8 && figures.best >= 0.8, "{figures:?}");
    assert_eq!(run.model().weights.checksum(), model.weights.checksum());
}

#[test]
fn policy_optimisation_goes_on_with_its_value_head() {
    let ppo = PpoSettings { environments: 8, length: 8, rounds: 2, batch: 32, ..PpoSettings::default() };
    let mut recipe = Recipe { stage: vec![Stage::new(1, ppo)], tokens: Tokens::Full, ..Recipe::default() };
    recipe.network.width = 16;
    (recipe.validation.runs, recipe.validation.length) = (1, 50.0);
    let mut run = TrainingRun::new(Device::default(), recipe.clone(), Some(standard()), None);
    run.train(&mut NoObserver).unwrap();
    let read = Model::from_bytes(&run.model().to_bytes().unwrap()).unwrap();
    assert!(read.weights.tensor("head.value.weight").iter().any(|weight| *weight != 0.0));
    let [idle, jobs] = [read.tokenizer.idle_vocabularies(), read.tokenizer.job_vocabularies()].map(|list| list.len());
    let (idle, tokens) = (vec![1; idle], vec![0; jobs]);
    let state = Sample { idle, tokens, real: vec![], counts: vec![1], bias: vec![0.0; 2], cores: 1, past: None };
    let value = |model: &Model| {
        Learner::new(Device::default(), &model.weights, AdamSettings::default()).outputs(None, &[&state]).value[0]
    };
    assert!(value(&read) != 0.0 && value(&read) == value(&run.model()));
}

/// Weights that were made for fewer features would be read with tokens of another meaning.
#[test]
#[should_panic(expected = "the model to begin with has the network and tokens of the recipe")]
fn a_model_that_was_not_grown_is_not_trained_with_tokens_it_does_not_know() {
    let features = Tokenizer::full().features[..3].to_vec();
    let old = Model::random(Tokenizer { features, ..Tokenizer::full() }, 1);
    TrainingRun::new(Device::default(), Recipe::default(), None, Some(&old.weights));
}
