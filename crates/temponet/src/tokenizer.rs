//! The Urgency Tokenizer: what the network sees of a job.
//!
//! A job's token is its slack bin and, optionally, a few more discrete features. Slack can also be left continuous. Times are measured in units of the
//! task set's median wcet, so one model serves task sets in microseconds and in seconds. Training, simulation and deployment share this code, so a
//! token means the same in all of them.

use serde::{Deserialize, Serialize};
use temponet_infer::{RealInput, SLOT, Vocabulary};
use temponet_task::{Arrival, Job, OnMiss, System, Task, Time};

use crate::TokenizerError;
use crate::advice::{ADVICE_VALUES, JobAdvice, PLAN_VALUES};
use crate::bins::Bins;
use crate::stages::{Binning, Continuous};

/// How jobs become tokens. It is part of a model, and is stored in the model file as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokenizer {
    /// Number of slack bins, the paper's Q; 1 to 4096.
    pub bins: usize,
    /// How slack is divided into bins.
    pub binning: Binning,
    /// Whether every negative slack is clipped to bin 0, as in the paper. Otherwise, *late by wcet* and *impossible* have bins of their own.
    pub clip: bool,
    /// The paper's long-slack reserve: added to the attention logits of jobs in the last slack bin, so that they are not ignored. Zero switches it off.
    pub long_slack_reserve: f32,
    /// Further features of a token, after the slack bin.
    pub features: Vec<Feature>,
    /// Slack and remaining wcet as real numbers that replace the slack bin; none by default. The bins then only tell which jobs are urgent or have
    /// long slack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuous: Option<Continuous>,
    /// Number of task slots of a feed-forward network; a token then ends with the index of the job's task. None, the default, is a network that takes
    /// any number of tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<usize>,
}

/// A further feature of a job's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// Remaining wcet, in 16 logarithmic bins around the task set's median wcet.
    Remaining,
    /// Criticality: 0, 1, 2, or 3 and above.
    Criticality,
    /// Value relative to the mean value of the task set's tasks, in 8 logarithmic bins.
    Value,
    /// Dispatch state: has not run yet (0), has run but lost its core (1), or is running (2).
    Core,
    /// Least remaining work (by the bcet) as a share of the remaining wcet, in 8 bins.
    Uncertainty,
    /// Time to the deadline, in the slack bins.
    Due,
    /// The subset of the five advisors, which are classical schedulers, that would run the job now.
    Advice,
    /// The subset of the three planners, which look ahead to coming jobs, that would run the job now.
    Plan,
    /// Work due by the job's deadline, coming jobs included, as a share of what the cores can do until then: 16 bins, the last from 1.875 on.
    Pressure,
    /// Utilization per core of all tasks whose mean execution time per value is no greater than that of the job's task: 16 bins, the last from 1.5 on.
    Rank,
}

impl Feature {
    /// Name and number of values of the feature, where slack has `bins` bins.
    fn vocabulary(self, bins: usize) -> Vocabulary {
        let (name, size) = match self {
            Feature::Remaining => ("remaining", 16),
            Feature::Criticality => ("criticality", 4),
            Feature::Value => ("value", 8),
            Feature::Core => ("core", 3),
            Feature::Uncertainty => ("uncertainty", 8),
            Feature::Due => ("due", bins),
            Feature::Advice => ("advice", ADVICE_VALUES),
            Feature::Plan => ("plan", PLAN_VALUES),
            Feature::Pressure => ("pressure", 16),
            Feature::Rank => ("rank", 16),
        };
        Vocabulary { name: name.into(), size }
    }
}

/// Number of bins for the number of cores in the idle token.
const CORE_BINS: usize = 8;
/// Number of bins for the utilization per core in the idle token.
const LOAD_BINS: usize = 16;

/// Properties of a whole task set that tokens are relative to, computed once when a scheduler starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scale {
    /// Unit of time: the median wcet, in nanoseconds; at least 1.
    pub unit: f64,
    /// Mean value of the tasks; positive.
    pub value: f64,
    /// Token of the idle row: bin of the number of cores, and bin of the utilization per core.
    pub idle: [u16; 2],
    /// Slack bins, with edges in nanoseconds.
    bins: Bins,
    /// Whether tasks differ in value or criticality.
    pub(crate) differs: bool,
    /// [`Feature::Rank`] of the jobs of each task.
    ranks: Vec<u16>,
}

impl Scale {
    /// Computes the scale of a system for a tokenizer.
    pub fn of(tokenizer: &Tokenizer, system: &System) -> Scale {
        let mut wcets: Vec<u64> = system.tasks.iter().map(|task| task.wcet.0).collect();
        wcets.sort_unstable();
        let unit = wcets.get(wcets.len() / 2).copied().unwrap_or(1).max(1) as f64;
        let total: f64 = system.tasks.iter().map(|task| task.value).sum();
        let value = (total / system.tasks.len().max(1) as f64).max(f64::MIN_POSITIVE);
        let loads = system.mean_utilizations();
        let load = loads.iter().sum::<f64>() / system.cores as f64;
        let cores = (usize::BITS - (system.cores - 1).leading_zeros()) as usize;
        let idle = [cores.min(CORE_BINS - 1) as u16, ((load * 8.0) as usize).min(LOAD_BINS - 1) as u16];
        let edges = tokenizer.binning.edges(tokenizer.bins).iter().map(|edge| edge * unit).collect();
        let importance = |task: &Task| (task.value, task.criticality);
        let differs = system.tasks.windows(2).any(|pair| importance(&pair[0]) != importance(&pair[1]));
        Scale { unit, value, idle, bins: Bins::new(edges), differs, ranks: ranks(system, &loads) }
    }
}

/// Computes the [`Feature::Rank`] of each task, where `loads` are the tasks' mean utilizations.
fn ranks(system: &System, loads: &[f64]) -> Vec<u16> {
    let price = |place: &usize| system.tasks[*place].mean_execution() / system.tasks[*place].value;
    let mut order: Vec<usize> = (0..system.tasks.len()).collect();
    order.sort_by(|a, b| price(a).total_cmp(&price(b)));
    let mut ranks = vec![0; order.len()];
    let mut load = 0.0;
    for same in order.chunk_by(|a, b| price(a) == price(b)) {
        let more: f64 = same.iter().map(|place| loads[*place]).sum();
        load += more / system.cores as f64;
        same.iter().for_each(|place| ranks[*place] = ((load * 10.0) as u16).min(15));
    }
    ranks
}

/// Returns the logarithmic bin of a positive number, two bins per doubling: ⌊2·log₂ ratio⌋ + `bins` / 2, clamped to the bins. It is read off the bits of
/// the floating-point representation, which is faster than a logarithm.
fn log_bin(ratio: f64, bins: usize) -> u16 {
    let exponent = (ratio.to_bits() >> 52) as i64 - 1023;
    let is_upper_half = ratio.to_bits() << 12 >= std::f64::consts::SQRT_2.to_bits() << 12;
    let place = 2 * exponent + i64::from(is_upper_half) + bins as i64 / 2;
    place.clamp(0, bins as i64 - 1) as u16
}

impl Tokenizer {
    /// The paper's tokenizer: 128 bins of equal width, every negative slack in the first bin, and no further features.
    pub fn paper() -> Tokenizer {
        let binning = Binning::Uniform { width: 0.25 };
        Tokenizer {
            bins: 128,
            binning,
            clip: true,
            long_slack_reserve: 0.0,
            features: Vec::new(),
            continuous: None,
            slots: None,
        }
    }

    /// This project's tokenizer: 64 logarithmic bins, separate bins for jobs that are late by wcet or impossible, and all features.
    pub fn full() -> Tokenizer {
        let binning = Binning::Log { first: 0.05, last: 200.0 };
        let features = vec![
            Feature::Remaining,
            Feature::Criticality,
            Feature::Value,
            Feature::Core,
            Feature::Uncertainty,
            Feature::Due,
            Feature::Advice,
            Feature::Plan,
            Feature::Pressure,
            Feature::Rank,
        ];
        Tokenizer { bins: 64, binning, clip: false, long_slack_reserve: 0.0, features, continuous: None, slots: None }
    }

    /// The tokenizer of the paper's ablation: slack and remaining wcet as real numbers, and no slack bin.
    pub fn continuous(how: Continuous) -> Tokenizer {
        Tokenizer { continuous: Some(how), ..Tokenizer::paper() }
    }

    /// Vocabularies of the features of a job row.
    pub fn job_vocabularies(&self) -> Vec<Vocabulary> {
        let size = self.bins + if self.clip { 0 } else { 2 };
        let slack = self.continuous.is_none().then(|| Vocabulary { name: "slack".into(), size });
        let features = self.features.iter().map(|feature| feature.vocabulary(self.bins));
        let slot = self.slots.map(|size| Vocabulary { name: SLOT.into(), size });
        slack.into_iter().chain(features).chain(slot).collect()
    }

    /// Whether a token is a slack bin and nothing else.
    pub(crate) fn is_slack_alone(&self) -> bool {
        self.features.is_empty() && self.continuous.is_none() && self.slots.is_none()
    }

    /// Number of values of a token.
    pub(crate) fn width(&self) -> usize {
        usize::from(self.continuous.is_none()) + self.features.len() + usize::from(self.slots.is_some())
    }

    /// Real inputs of a job row; none unless slack is continuous.
    pub fn real_input(&self) -> Option<RealInput> {
        self.continuous.as_ref().map(Continuous::input)
    }

    /// Vocabularies of the features of the idle row.
    pub fn idle_vocabularies(&self) -> Vec<Vocabulary> {
        let vocabulary = |(name, size): (&str, usize)| Vocabulary { name: name.into(), size };
        [("cores", CORE_BINS), ("load", LOAD_BINS)].map(vocabulary).to_vec()
    }

    /// Returns why the tokenizer is invalid; none if it is valid.
    pub fn problem(&self) -> Option<TokenizerError> {
        if !(1..=4096).contains(&self.bins) {
            return Some(TokenizerError::SlackBins { bins: self.bins });
        }
        if !self.long_slack_reserve.is_finite() {
            return Some(TokenizerError::LongSlackReserve { reserve: self.long_slack_reserve });
        }
        self.binning.problem(self.bins).or_else(|| self.continuous.as_ref()?.problem())
    }

    /// Returns why the tokenizer cannot read jobs of this system; none if it can.
    ///
    /// Only a feed-forward network has limits: it has a slot for each task, and each slot takes a single job.
    pub fn not_applicable(&self, system: &System) -> Option<TokenizerError> {
        let slots = self.slots?;
        let tasks = system.tasks.len();
        if tasks > slots {
            return Some(TokenizerError::TooManyTasks { slots, tasks });
        }
        if system.on_miss == OnMiss::Continue {
            return Some(TokenizerError::LateJobsContinue);
        }
        let is_single = |task: &Task| match task.arrival {
            Arrival::Periodic { period: gap } | Arrival::Sporadic { minimum: gap, .. } => task.deadline <= gap,
            Arrival::Burst { .. } | Arrival::Listed(_) => false,
        };
        let task = system.tasks.iter().find(|task| !is_single(task))?;
        Some(TokenizerError::SeveralJobs { task: task.name.clone() })
    }

    /// Appends a job's token to `out` and, where slack is continuous, its real numbers to `real`. `advice` is the simple schedulers' advice about the job.
    pub fn token(
        &self,
        job: &Job,
        now: Time,
        scale: &Scale,
        advice: JobAdvice,
        out: &mut Vec<u16>,
        real: &mut Vec<f32>,
    ) {
        match &self.continuous {
            None => out.push(self.slack_token(job, now, scale)),
            Some(how) => {
                real.extend(how.numbers([job.slack(now) as f64 / scale.unit, job.remaining().0 as f64 / scale.unit]));
            }
        }
        for feature in &self.features {
            out.push(match feature {
                Feature::Remaining => log_bin(job.remaining().0 as f64 / scale.unit, 16),
                Feature::Criticality => u16::from(job.criticality.min(3)),
                Feature::Value => log_bin(job.value / scale.value, 8),
                Feature::Core => match (job.running, job.last_core) {
                    (true, _) => 2,
                    (false, Some(_)) => 1,
                    (false, None) => 0,
                },
                Feature::Uncertainty => {
                    let share = job.least_remaining().0 as f64 / job.remaining().0.max(1) as f64;
                    ((share * 8.0) as u16).min(7)
                }
                Feature::Due => scale.bins.of(job.deadline.saturating_sub(now).0 as f64),
                Feature::Advice => advice.advisors,
                Feature::Plan => advice.planners,
                Feature::Pressure => ((advice.pressure * 8.0) as u16).min(15),
                Feature::Rank => scale.ranks.get(job.task as usize).copied().unwrap_or(0),
            });
        }
        if self.slots.is_some() {
            out.push(job.task as u16);
        }
    }

    /// Returns the slack bin of a job. Unless negative slack is clipped, bin `bins` is *late by wcet* and bin `bins + 1` is *impossible*.
    #[inline]
    pub fn slack_token(&self, job: &Job, now: Time, scale: &Scale) -> u16 {
        if !self.clip && job.is_impossible(now) {
            return self.bins as u16 + 1;
        }
        self.slack_bin(job.slack(now) as f64, scale)
    }

    /// Returns the bin of a slack in nanoseconds.
    fn slack_bin(&self, slack: f64, scale: &Scale) -> u16 {
        match slack < 0.0 {
            true if self.clip => 0,
            true => self.bins as u16,
            false => scale.bins.of(slack),
        }
    }

    /// Returns the slack bin of a row with the given token and real numbers.
    pub fn bin(&self, token: &[u16], real: &[f32], scale: &Scale) -> u16 {
        match &self.continuous {
            None => token[0],
            Some(how) => self.slack_bin(how.slack(real[0]) * scale.unit, scale),
        }
    }

    /// Whether a bin is the long-slack bin, the last one of non-negative slack.
    pub fn is_long(&self, bin: u16) -> bool {
        usize::from(bin) == self.bins - 1
    }

    /// Whether a bin is urgent: the first bin, or a bin of negative slack. The overload detector counts urgent jobs.
    pub fn is_urgent(&self, bin: u16) -> bool {
        bin == 0 || usize::from(bin) >= self.bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_bins_to_a_doubling() {
        let ratios = [1e-12, 0.24, 0.25, 0.5, 0.7, 0.71, 1.0, 1.41, 1.42, 2.0, 3.0, 1e12];
        let expected = [0, 3, 4, 6, 6, 7, 8, 8, 9, 10, 11, 15];
        assert_eq!(ratios.map(|ratio| log_bin(ratio, 16)), expected);
        let plain = |ratio: f64| ((ratio.log2() * 2.0).floor() + 8.0).clamp(0.0, 15.0) as u16;
        assert!((1..4_000).map(|k| f64::from(k) * 0.00317).all(|ratio| log_bin(ratio, 16) == plain(ratio)));
    }
}
