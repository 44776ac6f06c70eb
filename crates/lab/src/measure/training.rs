//! Speed of training: learning steps, decisions of the environment, and both together.

use std::sync::Arc;
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::Serialize;
use temponet::{Model, Scale, Tokenizer};
use temponet_grad::{AdamSettings, LearningLosses};
use temponet_infer::Weights;
use temponet_sim::generate::{Spec, generate};
use temponet_task::{Assignment, Time};
use temponet_train::{
    Dqn, DqnSettings, Environment, EnvironmentSettings, Episodes, Fleet, Learner, NetworkShape, NoObserver, Ppo,
    PpoSettings, Reward, Sample, StepSize, TaskSetSource, TrainingDevice, Transition, UpdatePlan, Updates,
};

use super::{MeasureError, control};
use crate::progress::Progress;

/// Figures of Q-learning with one batch size and number of tokens.
#[derive(Serialize)]
pub struct LearningCase {
    /// Number of samples in a batch.
    pub batch: usize,
    /// Number of rows of a sample, including the idle row, if every job has its own.
    pub tokens: usize,
    /// Whether equal tokens are merged into one row with a count.
    pub merged: bool,
    /// Updates per second.
    pub steps_per_s: f64,
}

/// Figures of training on one device.
#[derive(Serialize)]
pub struct TrainingFigures {
    /// Q-learning by batch size and tokens.
    pub cases: Vec<LearningCase>,
    /// Decisions per second of the environment with a trivial scheduler.
    pub env_decisions_per_s: f64,
    /// Decisions per second of acting and learning together.
    pub loop_steps_per_s: f64,
    /// Policy optimization in many environments at once, on a GPU only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policy: Vec<PolicyCase>,
    /// Time of one step of a fixed loop, in nanoseconds.
    pub control_ns: f64,
}

/// Figures of policy optimization: acting in many environments and three epochs of learning.
#[derive(Serialize)]
pub struct PolicyCase {
    /// Number of environments.
    pub environments: usize,
    /// Number of tasks plus one for the idle row.
    pub tokens: usize,
    /// Width of the network.
    pub width: usize,
    /// Decisions per second.
    pub samples_per_s: f64,
}

/// Batch size, tokens and merging of the cases of Q-learning.
const CASES: [(usize, usize, bool); 5] =
    [(64, 6, false), (64, 33, false), (16, 601, false), (64, 33, true), (16, 601, true)];

/// Measures training on a device: the median of this many rounds. The CPU is measured on one thread.
pub fn measure(device: &TrainingDevice, rounds: u32) -> Result<TrainingFigures, MeasureError> {
    match device {
        TrainingDevice::Cpu(device) => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
            pool.install(|| measure_on(device, rounds, &[]))
        }
        #[cfg(feature = "cuda")]
        TrainingDevice::Cuda(device) => measure_on(&**device, rounds, &POLICY_CASES),
    }
}

fn measure_on<D: LearningLosses<Real = f32>>(
    device: &D,
    rounds: u32,
    policy: &[(usize, usize)],
) -> Result<TrainingFigures, MeasureError> {
    let before = control();
    let progress = Progress::steps((CASES.len() + 2 + policy.len()) as u64);
    progress.say("learning");
    let case = |(batch, tokens, merged)| {
        let steps_per_s = learning(device.another(), batch, tokens, merged, rounds);
        progress.step();
        LearningCase { batch, tokens, merged, steps_per_s }
    };
    let cases = CASES.into_iter().map(case).collect();
    progress.say("environments");
    let env_decisions_per_s = environment(rounds)?;
    progress.step();
    let loop_steps_per_s = acting(device.another(), rounds)?;
    progress.step();
    let mut policy_cases = Vec::new();
    for (tokens, width) in policy {
        let samples_per_s = optimizing(device.another(), *tokens, *width, rounds)?;
        progress.step();
        policy_cases.push(PolicyCase { environments: ENVIRONMENTS, tokens: *tokens, width: *width, samples_per_s });
    }
    if let Some(failure) = device.failure() {
        return Err(MeasureError::Device(failure));
    }
    progress.finish();
    let control_ns = (before + control()) / 2.0;
    Ok(TrainingFigures { cases, env_decisions_per_s, loop_steps_per_s, policy: policy_cases, control_ns })
}

/// Tokens and network width of the cases of policy optimization.
#[cfg(feature = "cuda")]
const POLICY_CASES: [(usize, usize); 6] = [(7, 64), (15, 64), (33, 64), (7, 128), (15, 128), (33, 128)];
/// Number of environments in policy optimization.
const ENVIRONMENTS: usize = 4096;

/// Returns the median rate of several rounds after a warm-up round. `round` returns the amount of work that it has done.
fn median_rate(rounds: u32, mut round: impl FnMut() -> f64) -> f64 {
    round();
    let mut rates: Vec<f64> = (0..rounds)
        .map(|_| {
            let begin = Instant::now();
            let done = round();
            done / begin.elapsed().as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn learner<D: LearningLosses<Real = f32>>(device: D) -> Learner<D> {
    let model = Model::random(Tokenizer::paper(), 1);
    Learner::new(device, &model.weights, AdamSettings::default())
}

/// Returns the number of updates per second on random samples.
fn learning<D: LearningLosses<Real = f32>>(device: D, batch: usize, tokens: usize, merged: bool, rounds: u32) -> f64 {
    let mut learner = learner(device);
    let mut dqn = Dqn::new(DqnSettings { batch, double: false, ..DqnSettings::default() }, &mut learner);
    let mut rng = Pcg64::seed_from_u64(1);
    for _ in 0..200 {
        let (state, next) = (sample(tokens, merged, &mut rng), sample(tokens, merged, &mut rng));
        dqn.replay.push(Transition { state, chosen: vec![1], reward: 1.0, discount: 0.9, next });
    }
    let updates = if tokens > 100 && !merged { 1 } else { 2_000 / (batch * tokens / 64).max(20) };
    median_rate(rounds, || {
        let queued =
            (0..updates).map(|_| dqn.update(&mut learner, &mut rng, StepSize { rate: 1e-4, clip: 10.0 })).last();
        if let Some(queued) = queued {
            learner.figures(&queued);
        }
        updates as f64
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
    Arc::new(Sample { idle: vec![0, 8], tokens: drawn, real: Vec::new(), counts, bias, cores: 1 })
}

/// Returns the number of decisions per second of one environment whose scheduler runs the first active job.
fn environment(rounds: u32) -> Result<f64, MeasureError> {
    let set = Arc::new(generate(&Spec::new(5, 1, 0.9), 1)?);
    let scale = Scale::of(&Tokenizer::paper(), &set.system());
    let horizon = Time::from_secs(2_000);
    let mut error = None;
    let rate = median_rate(rounds, || {
        let (scale, reward) = (scale.clone(), Reward::default());
        let settings = EnvironmentSettings { scale, seed: 1, horizon, reward, tick: None };
        let mut environment = Environment::new(set.clone(), settings);
        let (mut assignment, mut decisions) = (Assignment::default(), 0u64);
        while environment.ending().is_none() {
            let view = environment.view();
            assignment.reset(1);
            if let Some(job) = view.active.first() {
                assignment.run(0, *job);
            }
            if let Err(problem) = environment.act(&mut assignment) {
                error = Some(problem);
                break;
            }
            decisions += 1;
        }
        decisions as f64
    });
    error.map_or(Ok(rate), |problem| Err(problem.into()))
}

/// Returns episodes on one overloaded core.
fn episodes(tasks: usize) -> Result<Episodes, MeasureError> {
    let set = generate(&Spec::new(tasks, 1, 1.3), 1)?;
    Ok(Episodes {
        source: TaskSetSource::Fixed(Arc::new(set)),
        tokenizer: Arc::new(Tokenizer::paper()),
        reward: Reward::default(),
        length: 500.0,
        tick: None,
        gamma: 0.97,
        teacher: None,
        with_base_scheduler: false,
    })
}

/// Returns the number of decisions per second of acting and learning together, with five tasks on one core.
fn acting<D: LearningLosses<Real = f32>>(device: D, rounds: u32) -> Result<f64, MeasureError> {
    let settings = DqnSettings { steps: 200, environments: 1, learn_from: 64, double: false, ..DqnSettings::default() };
    let mut learner = learner(device);
    let mut dqn = Dqn::new(settings, &mut learner);
    let mut fleet = Fleet::new(episodes(5)?, 1, 1)?;
    let mut rng = Pcg64::seed_from_u64(1);
    let mut error = None;
    let rate = median_rate(rounds, || {
        let (plan, mut observer) = (UpdatePlan::constant(StepSize { rate: 1e-4, clip: 10.0 }), NoObserver);
        let mut updates = Updates::new(plan, &mut observer);
        let outcome = dqn.act_and_learn(&mut learner, &mut fleet, &mut rng, |_| 0.1, &mut updates);
        error = outcome.err();
        200.0
    });
    error.map_or(Ok(rate), |problem| Err(problem.into()))
}

/// Returns the number of decisions per second of policy optimization in many environments, including learning.
fn optimizing<D: LearningLosses<Real = f32>>(
    device: D,
    tokens: usize,
    width: usize,
    rounds: u32,
) -> Result<f64, MeasureError> {
    let tokenizer = Tokenizer::paper();
    let shape = NetworkShape { width, layers: 2, heads: 4, feed_forward: 4 * width, slots: None };
    let weights = Weights::random(shape.architecture(&tokenizer), 1);
    let mut learner = Learner::new(device, &weights, AdamSettings::default());
    let settings =
        PpoSettings { environments: ENVIRONMENTS, length: 8, rounds: 8, batch: 16_384, ..PpoSettings::default() };
    let ppo = Ppo::new(settings.clone());
    let mut fleet = Fleet::new(episodes(tokens - 1)?, ENVIRONMENTS, 1)?;
    let (mut seed, mut error) = (0, None);
    let rate = median_rate(rounds, || {
        seed += 1;
        let (plan, mut observer) = (UpdatePlan::constant(StepSize { rate: 1e-4, clip: 1.0 }), NoObserver);
        let outcome = ppo.act_and_learn(&mut learner, &mut fleet, seed, &mut Updates::new(plan, &mut observer));
        error = outcome.err();
        (settings.environments * settings.length) as f64 * settings.rounds as f64
    });
    error.map_or(Ok(rate), |problem| Err(problem.into()))
}
