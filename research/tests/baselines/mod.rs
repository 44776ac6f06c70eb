//! Contract of the recipes in `research/recipes` that learn by `dqn`, `rainbow` or `ppo`, with the smallest sizes: each
//! goes on bit for bit after an interruption, and its model computes in deployment what it computes in training.

mod memory;
mod rainbow;

use temponet::Model;
use temponet_grad::{AdamSettings, Cpu};
use temponet_infer::{Kernel, Network, NetworkOptions, Rows};
use temponet_paper::methods::RainbowSettings;
use temponet_paper::networks;
use temponet_sim::{Unobserved, simulate};
use temponet_task::{Task, TaskSet, Time};
use temponet_train::{
    DqnSettings, EpisodeSettings, Episodes, Fleet, Learner, NetworkShape, NoObserver, PpoSettings, Recipe,
    ReplaySettings, Sample, Stage, StageMethod, TaskSetSource, Tokens, TrainingRun, check_resumption,
};

type Device = Cpu;

/// The recipes of Q-learning and of PPO by name, each as small as it can be.
fn recipes() -> Vec<(String, Recipe)> {
    temponet_paper::register();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/recipes");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let recipe: Recipe = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(recipe.problem(), None, "{}", path.display());
        (path.file_stem().unwrap().to_string_lossy().into_owned(), recipe)
    };
    let is_learned_here = |(_, recipe): &(String, Recipe)| {
        recipe.stage.iter().all(|stage| matches!(stage.method.name(), "dqn" | "ppo" | "rainbow"))
    };
    let recipes = files.iter().map(read).filter(is_learned_here);
    let recipes: Vec<_> = recipes.map(|(name, recipe)| (name, smallest(recipe))).collect();
    assert!(recipes.len() >= 7, "{}", recipes.len());
    recipes
}

fn smallest(mut recipe: Recipe) -> Recipe {
    let network = recipe.network;
    recipe.network = NetworkShape { width: 16, layers: network.layers.min(2), heads: 2, feed_forward: 24, ..network };
    recipe.episode.length = 60.0;
    recipe.validation.runs = 2;
    recipe.validation.length = 40.0;
    if network.body.keys().slots.is_none() {
        (recipe.workload.cores, recipe.workload.tasks_per_core) = (vec![1, 2], (3.0, 6.0));
    }
    for stage in &mut recipe.stage {
        stage.phases = 3;
        let few = |replay: &mut ReplaySettings| {
            (replay.steps, replay.environments, replay.learn_from, replay.batch) = (120, 4, 40, 8);
        };
        if let Some(settings) = stage.method.settings_mut::<DqnSettings>() {
            few(&mut settings.replay);
        }
        if let Some(settings) = stage.method.settings_mut::<RainbowSettings>() {
            few(&mut settings.dqn.replay);
        }
        if let Some(settings) = stage.method.settings_mut::<PpoSettings>() {
            (settings.environments, settings.length, settings.rounds, settings.batch) = (4, 12, 2, 16);
        }
    }
    assert_eq!(recipe.problem(), None);
    recipe
}

#[test]
fn every_baseline_goes_on_bit_for_bit_after_an_interruption() {
    for (name, recipe) in recipes() {
        let (_, figures) = check_resumption(&recipe).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(figures.iter().any(|figures| figures.loss != 0.0), "{name} learns nothing");
    }
}

#[test]
fn every_baseline_is_deployed_as_it_was_trained() {
    for (name, recipe) in recipes() {
        let mut run = TrainingRun::new(Device::default(), recipe.clone(), None, None);
        run.train(&mut NoObserver).unwrap();
        let model = Model::from_bytes(&run.model().to_bytes().unwrap()).unwrap();
        assert!(!model.is_untrained(), "{name}");
        let episodes = Episodes::new(
            TaskSetSource::Drawn(Box::new(recipe.workload.clone())),
            model.tokenizer.clone(),
            EpisodeSettings { length: 60.0, tick: None, gamma: 0.97, ..recipe.episode },
        );
        let fleet = Fleet::new(episodes, 12, 5).unwrap();
        let samples: Vec<Sample> = fleet.members.iter().map(|member| member.sample()).collect();
        let mut learner = Learner::new(Device::default(), &model.weights, AdamSettings::default());
        let outputs = learner.outputs(None, &samples.iter().collect::<Vec<_>>());
        let mut network = Network::new(&model.weights, NetworkOptions::of(Kernel::Scalar)).unwrap();
        for (place, sample) in samples.iter().enumerate() {
            let Sample { idle, tokens, real, bias, .. } = sample;
            let mut q = Vec::new();
            // Every sample is the first of its run.
            network.reset();
            network.forward(&Rows { idle, jobs: tokens, real, bias, sparsity: None }, &mut q);
            let gap = q.iter().zip(outputs.q(place)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(q.len() == outputs.q(place).len() && gap < 1e-4, "{name}: {gap}");
        }
    }
}

/// Two tasks of which the one with more work has to run first.
fn counterexample() -> TaskSet {
    let task = |name: &str, wcet: u64, deadline: u64| {
        Task::periodic(name, Time::from_ms(10), Time::from_ms(wcet)).with_deadline(Time::from_ms(deadline))
    };
    TaskSet::new("test", vec![task("short", 2, 10), task("long", 7, 8)], 1)
}

/// Share of the deadlines that a network meets on a set after some phases of learning.
fn trained(network: NetworkShape, method: StageMethod, phases: u64, set: &TaskSet) -> f64 {
    met_by(Recipe { network, tokens: Tokens::Full, stage: vec![Stage::new(phases, method)], ..Recipe::default() }, set)
}

/// Share of the deadlines that the model of a recipe meets on the set that it learns on.
fn met_by(mut recipe: Recipe, set: &TaskSet) -> f64 {
    recipe.optimizer.rate = 3e-3;
    recipe.validation.runs = 2;
    assert_eq!(recipe.problem(), None);
    let mut run = TrainingRun::new(Device::default(), recipe, Some(set.clone()), None);
    run.train(&mut NoObserver).unwrap();
    let saved = Model::from_bytes(&run.model().to_bytes().unwrap()).unwrap();
    let mut scheduler = temponet::stages::Learned::new(saved.into(), temponet::Options::default()).unwrap();
    simulate(set, 1, Time::from_secs(1), &mut scheduler, &mut Unobserved).unwrap().jobs.compliance()
}

#[test]
fn every_network_learns_by_values_and_by_policies() {
    temponet_paper::register();
    let small = NetworkShape { width: 16, layers: 1, heads: 2, feed_forward: 32, ..NetworkShape::default() };
    let set = counterexample();
    for network in [networks::graph(), networks::feed_forward(2)].map(|body| NetworkShape { body, ..small }) {
        let dqn = DqnSettings {
            replay: ReplaySettings { steps: 1_200, learn_from: 200, environments: 8, ..ReplaySettings::default() },
            ..DqnSettings::default()
        };
        assert_eq!(trained(network, dqn.into(), 4, &set), 1.0, "{network:?}");
        let ppo = PpoSettings { environments: 16, length: 16, rounds: 5, batch: 128, ..PpoSettings::default() };
        assert_eq!(trained(network, ppo.into(), 6, &set), 1.0, "{network:?}");
    }
}
