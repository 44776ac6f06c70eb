//! Networks that choose the speed of a core: what they compute, what they learn, and what the shield makes of them.
//! Also where the paper's slack-sensitive reward vanishes.

use std::sync::Arc;

use temponet::stages::{Learned, Observation, Scale, Tokenizer, best_speed};
use temponet::{Model, Options, Temponet};
use temponet_grad::{AdamSettings, Cpu, Tape, Tensors};
use temponet_infer::{Body, Rows, Weights, reference};
use temponet_sim::{Metrics, Unobserved, simulate};
use temponet_task::{Assignment, Scheduler, Speed, Task, TaskSet, Time};
use temponet_train::{
    Batch, DqnSettings, Environment, EnvironmentSettings, EpisodeSettings, Episodes, Fleet, Learner, NetworkShape,
    NoObserver, OutputRows, PpoSettings, Recipe, ReplaySettings, Reward, RewardShape, Sample, Stage, TapeNetwork,
    TaskSetSource, TrainingRun, WorkloadRanges,
};

type Device = Cpu;

fn shape() -> NetworkShape {
    NetworkShape { width: 16, layers: 2, heads: 2, feed_forward: 24, body: Body::transformer(None, 2) }
}

fn samples(count: usize) -> Vec<Sample> {
    let episodes = Episodes {
        speeds: 2,
        ..Episodes::new(
            TaskSetSource::Drawn(Box::default()),
            Tokenizer::full(),
            EpisodeSettings { length: 100.0, ..EpisodeSettings::default() },
        )
    };
    Fleet::new(episodes, count, 5).unwrap().members.iter().map(|member| member.sample()).collect()
}

#[test]
fn training_and_deployment_compute_the_same_speeds_and_actors() {
    for network in [shape(), NetworkShape { body: Body::transformer(Some(6), 2), ..shape() }] {
        let weights = Weights::random(network.architecture(&Tokenizer::full()), 3);
        let mut learner = Learner::new(Device::default(), &weights, AdamSettings::default());
        let samples = samples(20);
        let outputs = learner.outputs(None, &samples.iter().collect::<Vec<_>>());
        for (place, sample) in samples.iter().enumerate() {
            let Sample { idle, tokens, real, bias, counts, .. } = sample;
            let expected = reference(&weights, &Rows { idle, jobs: tokens, real, bias, sparsity: None }).q;
            let (q, gains) = expected.split_at(1 + counts.len());
            let error = outputs.q(place).iter().zip(q).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(error < 2e-5, "{error}");
            assert_eq!(outputs.critic(place).is_empty(), network.body.keys().actor.is_none());
            for row in 1..=counts.len() {
                let (speed, gain) = outputs.best_speed(place, row as u32);
                let best = best_speed(gains[row - 1..].iter().step_by(counts.len()).copied());
                assert!((gain - best.1).abs() < 2e-5 && (speed == best.0 || gain < 4e-5), "{speed} {gain} {best:?}");
            }
        }
    }
}

/// Small enough to stay on one side of most kinks, large enough for single precision.
const STEP: f32 = 2e-4;

#[test]
fn the_gradients_of_speeds_and_actors_are_those_of_small_steps() {
    let network = NetworkShape { body: Body::transformer(Some(6), 2), ..shape() };
    let weights = Weights::random(network.architecture(&Tokenizer::full()), 8);
    let samples = samples(8);
    let batch = Batch::of(&samples.iter().collect::<Vec<_>>());
    let mut device = Device::default();
    let (network, mut tensors) = TapeNetwork::new(&mut device, &weights);
    // The first row at every speed, the last one at the second speed.
    let rows: Vec<Vec<u32>> = samples.iter().map(|sample| vec![1, 1, 1, sample.counts.len() as u32]).collect();
    let focus = OutputRows::of(&batch, rows.iter().map(Vec::as_slice));
    let focus = focus.at_speeds(samples.iter().map(|_| &[0, 1, 2, 2][..]));
    let slopes: Vec<f32> = (0..focus.rows.len()).map(|row| 0.1 * (row % 7) as f32 - 0.3).collect();
    let loss = |device: &mut Device, tensors: &Tensors<Device>| -> f64 {
        let mut tape = Tape::new(device, tensors);
        let output = network.forward(&mut tape, &batch, &focus);
        let critic = tape.values(output.critic.unwrap());
        let both = tape.values(output.q).into_iter().zip(critic).map(|(q, critic)| q + 2.0 * critic);
        both.zip(&slopes).map(|(q, slope)| f64::from(q * slope)).sum()
    };
    let mut gradients = tensors.zeros_like(&mut device);
    {
        let mut tape = Tape::new(&mut device, &tensors);
        let output = network.forward(&mut tape, &batch, &focus);
        let twice: Vec<f32> = slopes.iter().map(|slope| 2.0 * slope).collect();
        let losses = [tape.loss(output.q, 0.0, &slopes), tape.loss(output.critic.unwrap(), 0.0, &twice)];
        tape.backward(losses, &mut gradients);
    }
    let mut heads = 0;
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
        let (is_flat, name) = (norm < 1e-5, tensors.name(id));
        let is_close = (expected - f64::from(norm)).abs() < 0.03 * f64::from(norm);
        assert!(is_flat || is_close, "{name}: {expected} {norm}");
        heads += u32::from(!is_flat && (name.contains("speed") || name.contains("actor")));
    }
    assert_eq!(heads, 2 * 2 + 4, "the heads of both speeds and both layers of the actor have gradients");
}

/// One task on one core with full and half speed.
fn one_task(wcet: u64) -> TaskSet {
    let mut set = TaskSet::new("one", vec![Task::periodic("t", Time::from_ms(10), Time::from_ms(wcet))], 1);
    set.system.set_speeds(vec![Speed(500), Speed::FULL]);
    set
}

fn run(set: &TaskSet, scheduler: &mut dyn Scheduler) -> Metrics {
    simulate(set, 1_000, Time::from_secs(1), scheduler, &mut Unobserved).unwrap()
}

#[test]
fn q_learning_slows_down_where_that_is_free_and_only_there() {
    let learned = |set: &TaskSet, shape: RewardShape| {
        let dqn = DqnSettings {
            replay: ReplaySettings { steps: 1_200, learn_from: 200, environments: 8, ..ReplaySettings::default() },
            ..DqnSettings::default()
        };
        let stage = Stage::new(3, dqn);
        let network = NetworkShape { width: 8, layers: 1, heads: 1, feed_forward: 8, body: Body::transformer(None, 1) };
        let mut recipe = Recipe { network, stage: vec![stage], seed: 3, ..Recipe::default() };
        recipe.optimizer.rate = 3e-3;
        recipe.episode.reward = Reward { shape, ..Reward::default() };
        (recipe.validation.runs, recipe.validation.length) = (2, 100.0);
        let mut training = TrainingRun::new(Device::default(), recipe, Some(set.clone()), None);
        training.train(&mut NoObserver).unwrap();
        Arc::new(Model::from_bytes(&training.model().to_bytes().unwrap()).unwrap())
    };
    let energy = RewardShape::Energy { weight: 0.5 };
    // 4 ms of work take 8 of 10 ms at half speed, and 6 ms of work would take 12.
    let (light, heavy) = (one_task(4), one_task(6));
    let model = learned(&light, energy);
    let slow = run(&light, &mut Learned::new(model.clone(), Options::default()).unwrap());
    let fast = run(&light, &mut temponet_sched::build("edf").unwrap());
    assert_eq!((slow.jobs.compliance(), fast.jobs.compliance()), (1.0, 1.0));
    assert!((slow.energy / fast.energy - 0.25).abs() < 1e-6, "{} {}", slow.energy, fast.energy);
    // The same model behind the shield runs at full speed, which the guarantee is computed for.
    let shielded = run(&light, &mut Temponet::new(model, Options::default()).unwrap());
    assert_eq!(shielded.energy, fast.energy);
    let heavy = run(&heavy, &mut Learned::new(learned(&heavy, energy), Options::default()).unwrap());
    assert_eq!(heavy.jobs.compliance(), 1.0);
    let binary = learned(&light, RewardShape::Binary);
    let binary = run(&light, &mut Learned::new(binary, Options::default()).unwrap());
    assert_eq!(binary.energy, fast.energy, "discounting prefers full speed where energy is free");
}

#[test]
fn methods_that_learn_no_speeds_are_refused() {
    let ppo = Stage::new(1, PpoSettings::default());
    let recipe = Recipe { network: shape(), stage: vec![ppo], ..Recipe::default() };
    assert!(recipe.problem().unwrap().contains("network.speeds"), "{:?}", recipe.problem());
    for speeds in [vec![], vec![0.5], vec![0.0, 1.0], vec![1.0, 0.5]] {
        let workload = WorkloadRanges { speeds, ..WorkloadRanges::default() };
        assert!(workload.problem().unwrap().contains("speeds"));
    }
    let workload = WorkloadRanges { speeds: vec![0.5, 1.0], ..WorkloadRanges::default() };
    assert_eq!(workload.draw(1).unwrap().speeds(), [Speed(500), Speed::FULL]);
}

/// The paper's R3 is η · max(0, −s) of the quantized slack s. Its bins are clip(⌊s/Δ⌋, 0, Q − 1), so s is never
/// negative and the term is zero.
#[test]
fn the_slack_sensitive_reward_vanishes_on_quantized_slack() {
    let ms = Time::from_ms;
    let set = TaskSet::new("s", vec![Task::periodic("a", ms(10), ms(6)), Task::periodic("b", ms(14), ms(9))], 1);
    let tokenizer = Tokenizer::paper();
    let scale = Scale::of(&tokenizer, &set.system);
    let (mut edf, mut observation) = (temponet_sched::build("edf").unwrap(), Observation::default());
    edf.start(&set.system).unwrap();
    observation.start(&set.system);
    let earned = |shape: RewardShape, edf: &mut dyn Scheduler, observation: &mut Observation| {
        let reward = Reward { shape, ..Reward::default() };
        let settings = EnvironmentSettings { scale: scale.clone(), seed: 1, horizon: ms(2_000), reward, tick: None };
        let mut environment = Environment::new(Arc::new(set.clone()), settings);
        let (mut total, mut real, mut quantized, mut assignment) = (0.0, 0.0, 0.0, Assignment::default());
        while environment.ending().is_none() {
            let view = environment.view();
            observation.read(&tokenizer, &scale, &view, false);
            for (id, row) in observation.jobs() {
                let bin = f64::from(observation.token(*row)[0]);
                quantized += f64::max(0.0, -bin);
                real += f64::max(0.0, -(view.job(*id).slack(view.now) as f64));
            }
            assignment.reset(1);
            edf.decide(&view, &mut assignment);
            total += environment.act(&mut assignment).unwrap().reward;
        }
        (total, real, quantized)
    };
    let (binary, real, quantized) = earned(RewardShape::Binary, &mut edf, &mut observation);
    assert!(real > 0.0, "some jobs are late by wcet");
    assert_eq!(quantized, 0.0);
    let (shaped, ..) = earned(RewardShape::Slack { weight: 0.5 }, &mut edf, &mut observation);
    assert!(shaped < binary, "on the slack itself the term is not zero: {shaped} {binary}");
}
