//! Contract of the feed-forward network in training: it computes what the deployed one computes, its gradients are
//! right, and it learns.

use temponet::Model;
use temponet::stages::{Continuous, Tokenizer};
use temponet_grad::{AdamSettings, Cpu, Tape, Tensors};
use temponet_infer::{Rows, Weights};
use temponet_paper::networks;
use temponet_sim::{Unobserved, simulate};
use temponet_task::{OnMiss, Task, TaskSet, Time};
use temponet_train::{
    Batch, DqnSettings, EpisodeSettings, Episodes, Fleet, Learner, NetworkShape, NoObserver, OutputRows, Recipe,
    ReplaySettings, Sample, Stage, TapeNetwork, TaskSetSource, Tokens, TrainingRun, WorkloadRanges,
};

use super::reference;

type Device = Cpu;

fn small() -> NetworkShape {
    NetworkShape { width: 16, layers: 1, heads: 2, feed_forward: 32, ..NetworkShape::default() }
}

fn recipe(stages: Vec<Stage>) -> Recipe {
    let mut recipe = Recipe { network: small(), stage: stages, ..Recipe::default() };
    recipe.optimizer.rate = 3e-3;
    recipe.validation.runs = 8;
    recipe
}

fn set(tasks: &[(u64, u64)], cores: usize) -> TaskSet {
    let task = |(place, (period, wcet)): (usize, &(u64, u64))| {
        Task::periodic(format!("t{place}"), Time::from_ms(*period), Time::from_ms(*wcet))
    };
    TaskSet::new("test", tasks.iter().enumerate().map(task).collect(), cores)
}

/// A short job, and a long one with an earlier deadline: shortest remaining time first misses, least laxity first does
/// not.
fn counterexample() -> TaskSet {
    let mut set = set(&[(10, 2), (10, 7)], 1);
    set.system.tasks_mut()[1].deadline = Time::from_ms(8);
    set
}

fn compliance(model: Model, set: &TaskSet) -> f64 {
    let mut scheduler = temponet::stages::Learned::new(model.into(), temponet::Options::default()).unwrap();
    simulate(set, 1_000, Time::from_secs(3), &mut scheduler, &mut Unobserved).unwrap().jobs.compliance()
}

/// Samples of random sets of at most as many tasks as there are slots.
fn samples(count: usize, tokenizer: &Tokenizer) -> Vec<Sample> {
    let tasks_per_core = (2.0, tokenizer.slots.unwrap() as f64);
    let ranges = WorkloadRanges { cores: vec![1], tasks_per_core, ..WorkloadRanges::default() };
    let source = TaskSetSource::Drawn(Box::new(ranges));
    let settings = EpisodeSettings { length: 100.0, ..EpisodeSettings::default() };
    let episodes = Episodes { teacher: Some("edf".into()), ..Episodes::new(source, tokenizer.clone(), settings) };
    let mut fleet = Fleet::new(episodes, count, 5).unwrap();
    for member in &mut fleet.members {
        for _ in 0..5 {
            let jobs = member.teacher_jobs();
            if member.act(&fleet.episodes, &jobs).unwrap().ending.is_some() {
                member.restart(&fleet.episodes).unwrap();
            }
        }
    }
    fleet.members.iter().map(|member| member.sample()).collect()
}

#[test]
fn training_and_deployment_compute_the_same() {
    temponet_paper::register();
    let continuous = [Continuous::Raw, Continuous::Mlp { hidden: 24 }].map(Tokenizer::continuous);
    for tokenizer in [Tokenizer::full(), Tokenizer::paper()].into_iter().chain(continuous) {
        let tokenizer = Tokenizer { slots: Some(6), ..tokenizer };
        let shape = NetworkShape { body: networks::feed_forward(6), ..NetworkShape::default() };
        let weights = Weights::random(shape.architecture(&tokenizer), 3);
        let mut learner = Learner::new(Device::default(), &weights, AdamSettings::default());
        let samples = samples(40, &tokenizer);
        let outputs = learner.outputs(None, &samples.iter().collect::<Vec<_>>());
        for (place, sample) in samples.iter().enumerate() {
            let q = outputs.q(place);
            let Sample { idle, tokens, real, bias, .. } = sample;
            let rows = Rows { idle, jobs: tokens, real, bias, sparsity: None };
            let expected = reference::feed_forward(&weights, &rows);
            assert_eq!(q.len(), expected.len());
            let error = q.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(error < 2e-5, "{error}");
        }
        for (name, ..) in weights.architecture.tensors() {
            assert_eq!(learner.weights().tensor(&name), weights.tensor(&name), "{name}");
        }
    }
}

/// Small enough to stay on one side of most kinks, large enough for single precision.
const STEP: f32 = 2e-4;

#[test]
fn the_gradient_of_a_feed_forward_network_is_that_of_small_steps() {
    temponet_paper::register();
    let tokenizer = Tokenizer { slots: Some(5), ..Tokenizer::continuous(Continuous::Mlp { hidden: 6 }) };
    let shape = NetworkShape { body: networks::feed_forward(5), ..small() };
    let weights = Weights::random(NetworkShape { layers: 2, ..shape }.architecture(&tokenizer), 8);
    let samples = samples(12, &tokenizer);
    let batch = Batch::of(&samples.iter().collect::<Vec<_>>());
    let mut device = Device::default();
    let (network, mut tensors) = TapeNetwork::new(&mut device, &weights);
    // Half of the rows, because an update needs only the outputs of those that ran.
    let some: Vec<Vec<u32>> = samples.iter().map(|sample| (1..sample.rows() as u32).step_by(2).collect()).collect();
    let focus = OutputRows::of(&batch, some.iter().map(Vec::as_slice));
    let slopes: Vec<f32> = (0..focus.rows.len()).map(|row| 0.1 * (row % 7) as f32 - 0.3).collect();
    let loss = |device: &mut Device, tensors: &Tensors<Device>| -> f64 {
        let mut tape = Tape::new(device, tensors);
        let q = network.forward(&mut tape, &batch, &focus).q;
        tape.values(q).iter().zip(&slopes).map(|(q, slope)| f64::from(q * slope)).sum()
    };
    let mut gradients = tensors.zeros_like(&mut device);
    {
        let mut tape = Tape::new(&mut device, &tensors);
        let output = network.forward(&mut tape, &batch, &focus);
        let loss = tape.loss(output.q, 0.0, &slopes);
        tape.backward([loss], &mut gradients);
    }
    let mut checked = 0;
    for id in tensors.ids().collect::<Vec<_>>() {
        let (values, found) = (tensors.values(&device, id), gradients.values(&device, id));
        let norm = found.iter().map(|slope| slope * slope).sum::<f32>().sqrt();
        let mut moved = |step: f32| {
            let moved: Vec<f32> = values.iter().zip(&found).map(|(value, slope)| value + step * slope / norm).collect();
            tensors.set(&mut device, id, &moved);
            loss(&mut device, &tensors)
        };
        let expected = (moved(STEP) - moved(-STEP)) / f64::from(2.0 * STEP);
        tensors.set(&mut device, id, &values);
        // Where the gradient is zero, only rounding would give a direction.
        let is_flat = norm < 1e-6;
        let is_close = (expected - f64::from(norm)).abs() < 0.02 * f64::from(norm);
        assert!(is_flat || is_close, "{}: {expected} {norm}", tensors.name(id));
        checked += u32::from(!is_flat);
    }
    assert!(checked > 10, "{checked} tensors");
}

#[test]
fn a_feed_forward_network_solves_the_counterexample_and_is_edf_where_edf_is_best() {
    temponet_paper::register();
    let light = set(&[(20, 8), (33, 10), (50, 13)], 1);
    let encodings = [Continuous::Raw, Continuous::fit(&[[0.0, 1.0], [4.0, 0.2]]), Continuous::Mlp { hidden: 16 }];
    for continuous in encodings {
        let learned = |set: &TaskSet, phases: u64| {
            let dqn = DqnSettings {
                replay: ReplaySettings { steps: 2_500, learn_from: 500, ..ReplaySettings::default() },
                ..DqnSettings::default()
            };
            let mut recipe = recipe(vec![Stage::new(phases, dqn)]);
            recipe.network = NetworkShape { layers: 2, body: networks::feed_forward(3), ..small() };
            recipe.tokens = Tokens::Custom(Box::new(Tokenizer::continuous(continuous.clone())));
            recipe.seed = 2;
            let mut run = TrainingRun::new(Device::default(), recipe, Some(set.clone()), None);
            run.train(&mut NoObserver).unwrap();
            let saved = Model::from_bytes(&run.model().to_bytes().unwrap()).unwrap();
            assert_eq!(saved.weights.architecture.body.keys().slots, Some(3));
            compliance(saved, set)
        };
        assert_eq!(learned(&counterexample(), 4), 1.0, "{continuous:?}");
        let light = learned(&light, 6);
        assert!(light > 0.99, "{continuous:?}: {light}");
    }
}

#[test]
fn a_set_that_a_feed_forward_network_has_no_room_for_is_refused() {
    temponet_paper::register();
    let four = set(&[(20, 8), (33, 10), (50, 13), (60, 3)], 1);
    let mut recipe = recipe(vec![Stage::new(1, DqnSettings::default())]);
    recipe.network.body = networks::feed_forward(3);
    let mut run = TrainingRun::new(Device::default(), recipe, Some(four.clone()), None);
    let error = run.train(&mut NoObserver).unwrap_err().to_string();
    assert_eq!(error, "network: the model has 3 slots for tasks, and the set has 4 tasks");
    let mut scheduler = temponet::stages::Learned::new(run.model().into(), temponet::Options::default()).unwrap();
    let error = simulate(&four, 1, Time::from_secs(1), &mut scheduler, &mut Unobserved).unwrap_err().to_string();
    assert!(error.contains("3 slots") && error.contains("4 tasks"), "{error}");
    let mut late = four.clone();
    late.system.tasks_mut().pop();
    late.system.set_on_miss(OnMiss::Continue);
    let error = simulate(&late, 1, Time::from_secs(1), &mut scheduler, &mut Unobserved).unwrap_err().to_string();
    assert!(error.contains("one job of each task"), "{error}");
}

#[test]
fn recipes_of_every_network_read_back_and_have_no_sparse_attention() {
    temponet_paper::register();
    for body in [networks::feed_forward(5), networks::graph(), networks::recurrent(8)] {
        let recipe = Recipe { network: NetworkShape { body, ..small() }, tokens: Tokens::Full, ..Recipe::default() };
        let text = toml::to_string(&recipe).unwrap();
        assert_eq!(toml::from_str::<Recipe>(&text).unwrap(), recipe, "{text}");
        let problem = Recipe { sparse: true, ..recipe }.problem().unwrap();
        assert!(problem.contains("no attention"), "{problem}");
    }
}
