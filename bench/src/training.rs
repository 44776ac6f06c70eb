//! Speed of training: learning steps, decisions of the environment, and both together.

use std::time::Instant;

use serde::Serialize;
use temponet_train::{TrainError, TrainingDevice};

use crate::rounds::{self, ENVIRONMENTS, Round};
use crate::{MeasureError, control};
use temponet_lab::progress::Progress;

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
    /// Choices per second in many environments that are read for the network, without a network.
    pub observed_choices_per_s: f64,
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

/// Tokens and network width of the cases of policy optimization, which only a GPU runs.
#[cfg(feature = "cuda")]
const POLICY_CASES: [(usize, usize); 6] = [(7, 64), (15, 64), (33, 64), (7, 128), (15, 128), (33, 128)];

/// Measures training on a device: the median of this many rounds. The CPU is measured on one thread.
pub fn measure(device: &TrainingDevice, rounds: u32) -> Result<TrainingFigures, MeasureError> {
    match device {
        TrainingDevice::Cpu(_) => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
            pool.install(|| measure_cases(device, rounds, &[]))
        }
        #[cfg(feature = "cuda")]
        TrainingDevice::Cuda(_) => measure_cases(device, rounds, &POLICY_CASES),
    }
}

fn measure_cases(
    device: &TrainingDevice,
    rounds: u32,
    policy: &[(usize, usize)],
) -> Result<TrainingFigures, MeasureError> {
    let before = control();
    let progress = Progress::steps((CASES.len() + 3 + policy.len()) as u64);
    let rate = |round: Round| -> Result<f64, TrainError> {
        let rate = median_rate(rounds, round);
        progress.step();
        rate
    };
    progress.say("learning");
    let mut cases = Vec::new();
    for (batch, tokens, merged) in CASES {
        let steps_per_s = rate(rounds::learning(device, batch, tokens, merged))?;
        cases.push(LearningCase { batch, tokens, merged, steps_per_s });
    }
    progress.say("environments");
    let env_decisions_per_s = rate(rounds::environment()?)?;
    let observed_choices_per_s = rate(rounds::observing()?)?;
    let loop_steps_per_s = rate(rounds::acting(device)?)?;
    let mut policy_cases = Vec::new();
    for (tokens, width) in policy.iter().copied() {
        let samples_per_s = rate(rounds::policy(device, tokens, width)?)?;
        policy_cases.push(PolicyCase { environments: ENVIRONMENTS, tokens, width, samples_per_s });
    }
    if let Some(failure) = rounds::failure(device) {
        return Err(MeasureError::Device(failure));
    }
    progress.finish();
    let control_ns = (before + control()) / 2.0;
    Ok(TrainingFigures {
        cases,
        env_decisions_per_s,
        observed_choices_per_s,
        loop_steps_per_s,
        policy: policy_cases,
        control_ns,
    })
}

/// Returns the median rate of several rounds after a warm-up round.
fn median_rate(rounds: u32, mut round: Round) -> Result<f64, TrainError> {
    round()?;
    let mut rates = Vec::new();
    for _ in 0..rounds {
        let begin = Instant::now();
        let done = round()?;
        rates.push(done / begin.elapsed().as_secs_f64());
    }
    rates.sort_by(f64::total_cmp);
    Ok(rates[rates.len() / 2])
}
