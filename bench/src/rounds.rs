//! Fixed amounts of training, for [`crate::training`] to time. Nothing here reads a clock.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet::Model;
use temponet::stages::{Scale, Tokenizer};
use temponet_grad::{AdamSettings, Device as _, LearningLosses};
use temponet_infer::Weights;
use temponet_sim::generate::{Spec, generate};
use temponet_task::{Assignment, CoreId, TaskSet, Time};

use temponet_train::{
    Dqn, DqnSettings, Environment, EnvironmentSettings, EpisodeSettings, Episodes, ExecutionKind, Fleet, FleetError,
    Learner, NetworkShape, NoObserver, Ppo, PpoSettings, ReplaySettings, Reward, Sample, Samples, StepSize,
    TaskSetSource, TrainError, TrainingDevice, Transition, UpdatePlan, Updates, WorkloadRanges, gumbel,
};

/// Number of environments in policy optimization.
pub const ENVIRONMENTS: usize = 4096;

/// Work that can be repeated. Each call does one round and returns the number of updates or decisions in it.
pub type Round = Box<dyn FnMut() -> Result<f64, TrainError>>;

/// Q-learning with the paper's network on random samples of `tokens` rows, in batches of `batch`. If `merged`, equal
/// tokens are one row with a count.
pub fn learning(device: &TrainingDevice, batch: usize, tokens: usize, merged: bool) -> Round {
    match device.another() {
        TrainingDevice::Cpu(device) => learning_on(device, batch, tokens, merged),
        #[cfg(feature = "cuda")]
        TrainingDevice::Cuda(device) => learning_on(*device, batch, tokens, merged),
    }
}

/// Acting and learning together, with five tasks on one core and an update every four decisions.
pub fn acting(device: &TrainingDevice) -> Result<Round, TrainError> {
    match device.another() {
        TrainingDevice::Cpu(device) => acting_on(device),
        #[cfg(feature = "cuda")]
        TrainingDevice::Cuda(device) => acting_on(*device),
    }
}

/// Policy optimization in [`ENVIRONMENTS`] environments, learning included, with a network of this width.
pub fn policy(device: &TrainingDevice, tokens: usize, width: usize) -> Result<Round, TrainError> {
    match device.another() {
        TrainingDevice::Cpu(device) => policy_on(device, tokens, width),
        #[cfg(feature = "cuda")]
        TrainingDevice::Cuda(device) => policy_on(*device, tokens, width),
    }
}

/// Returns the reason why the device has failed, if it has.
pub fn failure(device: &TrainingDevice) -> Option<String> {
    match device {
        TrainingDevice::Cpu(device) => device.failure(),
        #[cfg(feature = "cuda")]
        TrainingDevice::Cuda(device) => device.failure(),
    }
}

fn learner<D: LearningLosses>(device: D) -> Learner<D> {
    let model = Model::random(Tokenizer::paper(), 1);
    Learner::new(device, &model.weights, AdamSettings::default())
}

fn learning_on<D: LearningLosses + 'static>(device: D, batch: usize, tokens: usize, merged: bool) -> Round {
    let mut learner = learner(device);
    let mut dqn = Dqn::new(
        DqnSettings {
            replay: ReplaySettings { batch, ..ReplaySettings::default() },
            double: false,
            ..DqnSettings::default()
        },
        &mut learner,
    );
    let mut rng = Pcg64::seed_from_u64(1);
    for _ in 0..200 {
        let (state, next) = (sample(tokens, merged, &mut rng), sample(tokens, merged, &mut rng));
        dqn.replay.push(Transition { state, chosen: vec![1], speeds: vec![], reward: 1.0, discount: 0.9, next });
    }
    let updates = if tokens > 100 && !merged { 1 } else { 2_000 / (batch * tokens / 64).max(20) };
    Box::new(move || {
        let queued =
            (0..updates).map(|_| dqn.update(&mut learner, &mut rng, StepSize { rate: 1e-4, clip: 10.0 })).last();
        if let Some(queued) = queued {
            learner.figures(&queued);
        }
        Ok(updates as f64)
    })
}

/// Returns a random sample.
fn sample(tokens: usize, merged: bool, rng: &mut Pcg64) -> Arc<Sample> {
    let mut drawn: Vec<u16> = (1..tokens).map(|_| rng.random_range(0..128)).collect();
    let mut counts = vec![1u32; drawn.len()];
    if merged {
        let mut of_bin = [0u32; 128];
        drawn.iter().for_each(|bin| of_bin[usize::from(*bin)] += 1);
        drawn = (0..128).filter(|bin| of_bin[usize::from(*bin)] > 0).collect();
        counts = drawn.iter().map(|bin| of_bin[usize::from(*bin)]).collect();
    }
    let bias = std::iter::once(0.0).chain(counts.iter().map(|count| (*count as f32).ln())).collect();
    Arc::new(Sample { idle: vec![0, 8], tokens: drawn, real: Vec::new(), counts, bias, cores: 1, past: None })
}

/// What policy optimization does without a network: on drawn sets for two cores each environment is read as the built-in
/// model reads it, kept for learning, and makes a random choice.
pub fn observing() -> Result<Round, TrainError> {
    const MEMBERS: usize = 64;
    const CHOICES: usize = 32;
    let ranges = WorkloadRanges {
        cores: vec![2],
        tasks_per_core: (4.0, 8.0),
        execution: vec![ExecutionKind::Uniform],
        ..WorkloadRanges::default()
    };
    let settings = EpisodeSettings { length: 120.0, horizon: Some(3.0), deadlines: 8.0, ..EpisodeSettings::default() };
    let episodes = Episodes::new(TaskSetSource::Drawn(Box::new(ranges)), Tokenizer::ahead(), settings);
    let mut fleet = Fleet::new(episodes, MEMBERS, 1)?;
    let (mut rng, mut kept) = (Pcg64::seed_from_u64(1), Samples::default());
    Ok(Box::new(move || {
        let Fleet { episodes, members } = &mut fleet;
        for member in members {
            kept.clear();
            for _ in 0..CHOICES {
                member.add_sample(&mut kept);
                let jobs = member.top_jobs(|_, _| gumbel(&mut rng));
                if member.act(episodes, &jobs)?.ending.is_some() {
                    member.restart(episodes)?;
                }
            }
        }
        Ok((MEMBERS * CHOICES) as f64)
    }))
}

/// One environment with five tasks on one core, whose scheduler runs the first active job.
pub fn environment() -> Result<Round, TrainError> {
    let set = Arc::new(set(5, 0.9)?);
    let scale = Scale::of(&Tokenizer::paper(), &set.system);
    let horizon = Time::from_secs(2_000);
    Ok(Box::new(move || {
        let (scale, reward) = (scale.clone(), Reward::default());
        let settings = EnvironmentSettings { scale, seed: 1, horizon, reward, tick: None };
        let mut environment = Environment::new(set.clone(), settings);
        let (mut assignment, mut decisions) = (Assignment::default(), 0u64);
        while environment.ending().is_none() {
            let view = environment.view();
            assignment.reset(1);
            if let Some(job) = view.active.first() {
                assignment.run(CoreId(0), *job);
            }
            environment.act(&mut assignment)?;
            decisions += 1;
        }
        Ok(decisions as f64)
    }))
}

fn set(tasks: usize, load: f64) -> Result<TaskSet, TrainError> {
    Ok(generate(&Spec::new(tasks, 1, load), 1).map_err(FleetError::from)?)
}

/// Returns episodes on one overloaded core.
fn episodes(tasks: usize) -> Result<Episodes, TrainError> {
    Ok(Episodes::new(
        TaskSetSource::Fixed(Arc::new(set(tasks, 1.3)?)),
        Tokenizer::paper(),
        EpisodeSettings { length: 500.0, ..EpisodeSettings::default() },
    ))
}

fn acting_on<D: LearningLosses + 'static>(device: D) -> Result<Round, TrainError> {
    const STEPS: u64 = 200;
    let settings = ReplaySettings { steps: STEPS, environments: 1, learn_from: 64, ..ReplaySettings::default() };
    let settings = DqnSettings { replay: settings, double: false, ..DqnSettings::default() };
    let mut learner = learner(device);
    let mut dqn = Dqn::new(settings, &mut learner);
    let mut fleet = Fleet::new(episodes(5)?, 1, 1)?;
    let mut rng = Pcg64::seed_from_u64(1);
    Ok(Box::new(move || {
        let (plan, mut observer) = (UpdatePlan::constant(StepSize { rate: 1e-4, clip: 10.0 }), NoObserver);
        let mut updates = Updates::new(plan, &mut observer);
        dqn.act_and_learn(&mut learner, &mut fleet, &mut rng, |_| 0.1, &mut updates)?;
        Ok(STEPS as f64)
    }))
}

fn policy_on<D: LearningLosses + 'static>(device: D, tokens: usize, width: usize) -> Result<Round, TrainError> {
    let tokenizer = Tokenizer::paper();
    let shape = NetworkShape { width, layers: 2, heads: 4, feed_forward: 4 * width, ..NetworkShape::default() };
    let weights = Weights::random(shape.architecture(&tokenizer), 1);
    let mut learner = Learner::new(device, &weights, AdamSettings::default());
    let settings =
        PpoSettings { environments: ENVIRONMENTS, length: 8, rounds: 8, batch: 16_384, ..PpoSettings::default() };
    let ppo = Ppo::new(settings.clone());
    let mut fleet = Fleet::new(episodes(tokens - 1)?, ENVIRONMENTS, 1)?;
    let mut seed = 0;
    Ok(Box::new(move || {
        seed += 1;
        let (plan, mut observer) = (UpdatePlan::constant(StepSize { rate: 1e-4, clip: 1.0 }), NoObserver);
        ppo.act_and_learn(&mut learner, &mut fleet, seed, &mut Updates::new(plan, &mut observer))?;
        Ok((settings.environments * settings.length) as f64 * settings.rounds as f64)
    }))
}
