//! Training that starts from a model must not lose what the model can do.

use temponet::Model;
use temponet::stages::Tokenizer;
use temponet_formats::builtin;
use temponet_grad::{AdamSettings, Cpu};
use temponet_task::TaskSet;
use temponet_train::{DqnSettings, Learner, Method, NoObserver, PpoSettings, Recipe, Sample, Stage, TrainingRun};

type Device = Cpu<f32>;

fn stage(phases: u64, method: Method) -> Stage {
    Stage { phases, method, rate: None, workload: None, reward: None }
}

fn standard() -> TaskSet {
    builtin::Builtin::find("standard-125").unwrap().load().unwrap().set
}

#[test]
fn q_learning_does_not_destroy_the_model_it_begins_with() {
    let model = Model::built_in().unwrap().grown(&Tokenizer::full()).unwrap();
    let dqn = DqnSettings { steps: 600, learn_from: 200, ..DqnSettings::default() };
    let mut recipe = Recipe { stage: vec![stage(2, Method::Dqn(dqn))], ..Recipe::default() };
    assert_eq!(recipe.network.architecture(&recipe.tokenizer()), model.weights.architecture);
    (recipe.validation.runs, recipe.validation.length) = (1, 300.0);
    let mut run = TrainingRun::new(Device::default(), recipe, Some(standard()), Some(&model.weights));
    run.train(&mut NoObserver).unwrap();
    for figures in run.figures() {
        assert!(figures.score >= 0.8 && figures.loss < 2.0, "{figures:?}");
    }
    assert!(run.model().never_idles() && run.model().provenance().unwrap().contains("recipes/default"));
}

#[test]
fn what_is_worse_than_the_model_it_began_with_is_not_kept() {
    let model = Model::built_in().unwrap().grown(&Tokenizer::full()).unwrap();
    let dqn = DqnSettings { steps: 64, learn_from: 16, ..DqnSettings::default() };
    let mut recipe = Recipe { stage: vec![stage(1, Method::Dqn(dqn))], ..Recipe::default() };
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
    let mut recipe = Recipe { stage: vec![stage(1, Method::Ppo(ppo))], ..Recipe::default() };
    recipe.network.width = 16;
    (recipe.validation.runs, recipe.validation.length) = (1, 50.0);
    let mut run = TrainingRun::new(Device::default(), recipe.clone(), Some(standard()), None);
    run.train(&mut NoObserver).unwrap();
    let read = Model::from_bytes(&run.model().to_bytes().unwrap()).unwrap();
    assert!(read.weights.tensor("head.value.weight").iter().any(|weight| *weight != 0.0));
    let [idle, jobs] = [read.tokenizer.idle_vocabularies(), read.tokenizer.job_vocabularies()].map(|list| list.len());
    let (idle, tokens) = (vec![1; idle], vec![0; jobs]);
    let state = Sample { idle, tokens, real: vec![], counts: vec![1], bias: vec![0.0; 2], cores: 1 };
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
