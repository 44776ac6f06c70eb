//! The Urgency Tokenizer: what the network sees of a job.
//!
//! A job's token is its slack bin and, optionally, a few more discrete features. Slack can also be left continuous.
//! Times are measured in units of the task set's median wcet, so one model serves task sets in microseconds and in
//! seconds. Training, simulation and deployment share this code, so a token means the same in all of them.
//!
//! A job that others follow has the slack to the date by which it has to complete so that they can be in time
//! ([`temponet_task::DueDates`]).

use serde::{Deserialize, Serialize};
use temponet_infer::{RealInput, SLOT, Vocabulary};
use temponet_task::{Arrival, Job, JobId, OnMiss, System, SystemView, Task, Time};

use crate::TokenizerError;
use crate::advice::JobAdvice;
use crate::feature::{Feature, IdleFeature, RowKind, TASK_NUMBERS};
use crate::number::Number;
use crate::prediction::Prediction;
use crate::scale::{Scale, chance_bin, log_bin};
use crate::stages::{Binning, Continuous};

/// How jobs become tokens. It is part of a model, and is stored in the model file as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokenizer {
    /// Number of slack bins, the paper's Q; 1 to 4096.
    pub bins: usize,
    /// How slack is divided into bins.
    pub binning: Binning,
    /// Whether every negative slack is clipped to bin 0, as in the paper. Otherwise, *late by wcet* and *impossible*
    /// have bins of their own.
    pub clip: bool,
    /// The paper's long-slack reserve: added to the attention logits of jobs in the last slack bin, so that they are
    /// not ignored. Zero switches it off.
    pub long_slack_reserve: f32,
    /// Further features of a token, after the slack bin.
    pub features: Vec<Feature>,
    /// Features of the idle row. Without a list, as in older files: cores and load.
    #[serde(default = "IdleFeature::first", skip_serializing_if = "is_first")]
    pub idle: Vec<IdleFeature>,
    /// Slack and remaining wcet as real numbers that replace the slack bin; none by default. The bins then only tell
    /// which jobs are urgent or have long slack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuous: Option<Continuous>,
    /// Number of task slots of a feed-forward network; a token then ends with the index of the job's task. None, the
    /// default, is a network that takes any number of tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<usize>,
    /// Whether attention is the paper's sparse one, with a row for every job in deadline order; `false` by default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sparse: bool,
    /// Numbers of a row in place of its slack bin; none by default. Rows with different numbers are not one row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<Number>,
    /// Whether the next job of each task that comes before the last deadline of the ready ones has a row. Such rows are
    /// seen by the others and are never chosen. `false` by default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub coming: bool,
    /// Whether jobs that are impossible are never chosen while others wait, and the network is asked only where more
    /// others are ready than there are cores. `false` by default: the network judges them like all others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skips_impossible: bool,
    /// About how many rows a decision has at most, two thirds of them for ready jobs; none, the default, is no limit.
    /// Where there are more jobs, those that are due first and those with the most worth for their remaining time have
    /// rows, and the others come after them. It needs numbers, whose sums are over all jobs, and that impossible jobs
    /// are skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_rows: Option<usize>,
}

/// Job that becomes a row.
pub(crate) struct RowJob<'a> {
    pub job: &'a Job,
    /// When it can begin: now, or its release if it is coming.
    pub at: Time,
    pub kind: RowKind,
    pub advice: JobAdvice,
    pub prediction: Prediction,
}

/// Whether idle features need not be written to a file.
fn is_first(idle: &[IdleFeature]) -> bool {
    idle == IdleFeature::first()
}

impl Tokenizer {
    /// The paper's tokenizer: 128 bins of equal width, every negative slack in the first bin, and no further features.
    /// The idle token is one learned vector for each rule for late jobs.
    pub fn paper() -> Tokenizer {
        let binning = Binning::Uniform { width: 0.25 };
        Tokenizer {
            bins: 128,
            binning,
            clip: true,
            long_slack_reserve: 0.0,
            features: Vec::new(),
            idle: vec![IdleFeature::Misses],
            continuous: None,
            slots: None,
            sparse: false,
            numbers: Vec::new(),
            coming: false,
            skips_impossible: false,
            most_rows: None,
        }
    }

    /// This project's tokenizer: 64 logarithmic bins, separate bins for jobs that are late by wcet or impossible, and
    /// all features.
    pub fn full() -> Tokenizer {
        let binning = Binning::Log { first: 0.05, last: 200.0 };
        Tokenizer {
            bins: 64,
            binning,
            clip: false,
            long_slack_reserve: 0.0,
            features: Feature::ALL.to_vec(),
            idle: IdleFeature::ALL.to_vec(),
            ..Tokenizer::paper()
        }
    }

    /// The tokenizer that sees what is coming: numbers in place of bins, a row for each coming job, and no advice of
    /// simple schedulers.
    pub fn ahead() -> Tokenizer {
        Tokenizer {
            features: vec![Feature::Kind],
            numbers: Number::ALL.to_vec(),
            coming: true,
            skips_impossible: true,
            most_rows: Some(96),
            ..Tokenizer::full()
        }
    }

    /// The tokenizer of the paper's ablation: slack and remaining wcet as real numbers, and no slack bin.
    pub fn continuous(how: Continuous) -> Tokenizer {
        Tokenizer { continuous: Some(how), ..Tokenizer::paper() }
    }

    /// Vocabularies of the features of a job row.
    pub fn job_vocabularies(&self) -> Vec<Vocabulary> {
        let size = self.bins + if self.clip { 0 } else { 2 };
        let slack = self.has_slack_bin().then(|| Vocabulary { name: "slack".into(), size });
        let features = self.features.iter().map(|feature| feature.vocabulary(self.bins));
        let slot = self.slots.map(|size| Vocabulary { name: SLOT.into(), size });
        slack.into_iter().chain(features).chain(slot).collect()
    }

    /// Whether a token is a slack bin and nothing else.
    pub(crate) fn is_slack_alone(&self) -> bool {
        let is_bin = self.features.is_empty() && self.continuous.is_none() && self.slots.is_none();
        is_bin && self.numbers.is_empty() && !self.coming && !self.skips_impossible
    }

    /// Whether a token is the kind of the row and nothing else.
    pub(crate) fn is_kind_alone(&self) -> bool {
        self.features == [Feature::Kind] && self.slots.is_none() && self.continuous.is_none() && !self.has_slack_bin()
    }

    /// Number of values of a token.
    pub(crate) fn width(&self) -> usize {
        usize::from(self.has_slack_bin()) + self.features.len() + usize::from(self.slots.is_some())
    }

    /// Whether a token begins with a slack bin.
    fn has_slack_bin(&self) -> bool {
        self.continuous.is_none() && self.numbers.is_empty()
    }

    /// Real inputs of a job row; none unless slack is continuous or there are numbers beside the token.
    pub fn real_input(&self) -> Option<RealInput> {
        let numbers = || RealInput { inputs: self.numbers.len(), hidden: 0 };
        let numbers = (!self.numbers.is_empty()).then(numbers);
        self.continuous.as_ref().map(Continuous::input).or(numbers)
    }

    /// Returns the number of ready jobs that may be chosen. If there are no more than cores, all of them run, and
    /// `jobs` receives them and as many of the others as there are further cores.
    pub fn choosable(&self, view: &SystemView<'_>, jobs: &mut Vec<JobId>) -> usize {
        jobs.clear();
        let is_skipped = |job: &Job| self.skips_impossible && job.is_impossible(view.now);
        jobs.extend(view.ready().filter(|(_, job)| !is_skipped(job)).map(|(id, _)| id));
        let choosable = jobs.len();
        if choosable < view.cores().min(view.active.len()) {
            jobs.extend(view.ready().filter(|(_, job)| is_skipped(job)).map(|(id, _)| id));
            jobs.truncate(view.cores());
        }
        choosable
    }

    /// Whether some ready jobs have no rows, or jobs have rows that are not ready. Attention is dense then.
    pub fn leaves_out(&self) -> bool {
        self.coming || self.skips_impossible || self.most_rows.is_some()
    }

    /// Whether simple schedulers are asked for advice about each job. They know the system that an observation was
    /// started with, and no other.
    pub fn asks_for_advice(&self) -> bool {
        self.asks_advisors() || self.asks_planners()
    }

    /// Whether advisors are asked.
    pub(crate) fn asks_advisors(&self) -> bool {
        self.features.contains(&Feature::Advice)
    }

    /// Whether planners are asked.
    pub(crate) fn asks_planners(&self) -> bool {
        self.features.iter().any(|name| matches!(name, Feature::Plan | Feature::Pressure))
    }

    /// Whether any value is a slack bin.
    pub(crate) fn has_bins(&self) -> bool {
        let is_binned = |feature: &Feature| matches!(feature, Feature::Due | Feature::Expected);
        self.numbers.is_empty() || self.features.iter().any(is_binned)
    }

    /// Whether what surrounds a row is needed.
    pub(crate) fn needs_outlook(&self) -> bool {
        self.coming || !self.numbers.is_empty()
    }

    /// Vocabularies of the features of the idle row.
    pub fn idle_vocabularies(&self) -> Vec<Vocabulary> {
        self.idle.iter().map(|feature| feature.vocabulary()).collect()
    }

    /// Place of the advisor that a hierarchical model follows among the features of the idle row; none for other
    /// models.
    pub fn advisor_place(&self) -> Option<usize> {
        self.idle.iter().position(|feature| *feature == IdleFeature::Advisor)
    }

    /// Returns why the tokenizer is invalid; none if it is valid.
    pub fn problem(&self) -> Option<TokenizerError> {
        if !(1..=4096).contains(&self.bins) {
            return Some(TokenizerError::SlackBins { bins: self.bins });
        }
        if !self.long_slack_reserve.is_finite() {
            return Some(TokenizerError::LongSlackReserve { reserve: self.long_slack_reserve });
        }
        if self.continuous.is_some() && !self.numbers.is_empty() {
            return Some(TokenizerError::TwoKindsOfNumbers);
        }
        if !self.numbers.is_empty() && self.long_slack_reserve != 0.0 {
            return Some(TokenizerError::LongSlackReserve { reserve: self.long_slack_reserve });
        }
        // Jobs that may be chosen and rows that may not must differ in their tokens.
        if (self.coming || self.skips_impossible) && (!self.features.contains(&Feature::Kind) || self.sparse) {
            return Some(TokenizerError::NoKind);
        }
        if self.most_rows.is_some() && (self.numbers.is_empty() || !self.skips_impossible) {
            return Some(TokenizerError::LimitWithoutNumbers);
        }
        self.binning.problem(self.bins).or_else(|| self.continuous.as_ref()?.problem())
    }

    /// Returns why the tokenizer cannot read jobs of this system; none if it can.
    ///
    /// Only a feed-forward network has limits: it has a slot for each task, and each slot takes a single job.
    pub fn not_applicable(&self, system: &System) -> Option<TokenizerError> {
        let slots = self.slots?;
        let tasks = system.tasks().len();
        if tasks > slots {
            return Some(TokenizerError::TooManyTasks { slots, tasks });
        }
        if system.on_miss() == OnMiss::Continue {
            return Some(TokenizerError::LateJobsContinue);
        }
        let is_single = |task: &Task| match task.arrival {
            // A job that holds its core can outlast its deadline, and so the next release.
            _ if task.preemption.is_limited() => false,
            // A job that waits for others does not count, and the one before it may not have been released yet.
            _ if !task.after.is_empty() => false,
            Arrival::Periodic { period: gap } | Arrival::Sporadic { minimum: gap, .. } => task.deadline <= gap,
            _ => false,
        };
        let task = system.tasks().iter().find(|task| !is_single(task))?;
        Some(TokenizerError::SeveralJobs { task: task.name.clone() })
    }

    /// Appends the token of a ready job to `out` and, where slack is continuous, its real numbers to `real`. `advice`
    /// is the simple schedulers' advice about the job.
    pub fn token(
        &self,
        job: &Job,
        view: &SystemView<'_>,
        scale: &Scale,
        advice: JobAdvice,
        out: &mut Vec<u16>,
        real: &mut Vec<f32>,
    ) {
        let (at, kind) = (view.now, RowKind::of(job, view.now));
        let prediction = scale.prediction(job, at);
        self.row(&RowJob { job, at, kind, advice, prediction }, view, scale, out, real);
    }

    /// Appends the token of a row to `out` and, where slack is continuous, its real numbers to `real`.
    pub(crate) fn row(
        &self,
        row: &RowJob<'_>,
        view: &SystemView<'_>,
        scale: &Scale,
        out: &mut Vec<u16>,
        real: &mut Vec<f32>,
    ) {
        let RowJob { job, at: now, kind, advice, prediction } = *row;
        match &self.continuous {
            None if self.has_slack_bin() => out.push(self.slack_token(job, now, scale)),
            None => {}
            Some(how) => {
                let times = [scale.slack(job, now) as f64, job.expected_time_to_finish().0 as f64];
                real.extend(how.numbers(times.map(|time| time / scale.unit)));
            }
        }
        // Extending by the whole token checks for room once, not once for each feature.
        out.extend(self.features.iter().map(|feature| match feature {
            Feature::Remaining => log_bin(job.expected_time_to_finish().0 as f64 / scale.unit, 16),
            Feature::Criticality => u16::from(job.criticality.min(3)),
            Feature::Value => log_bin(job.value / scale.value, 8),
            Feature::Core => match (job.running, job.last_core) {
                (true, _) => 2,
                (false, Some(_)) => 1,
                (false, None) => 0,
            },
            Feature::Uncertainty => {
                let [least, most] = match job.estimate {
                    None => [job.least_remaining(), job.remaining()],
                    Some(_) => [job.expected_remaining(), job.likely_remaining()],
                };
                let share = least.0 as f64 / most.0.max(1) as f64;
                ((share * 8.0) as u16).min(7)
            }
            Feature::Due => scale.bins.of(scale.due(job).saturating_sub(now).0 as f64),
            Feature::Advice => advice.advisors,
            Feature::Plan => advice.planners,
            Feature::Pressure => ((advice.pressure * 8.0) as u16).min(15),
            Feature::Rank => ((scale.rank(job.task) * 10.0) as u16).min(15),
            Feature::Worth => scale.worth(job),
            Feature::Level => scale.level(job),
            Feature::Chance => chance_bin(prediction.chance),
            Feature::Expected if prediction.slack < 0.0 => self.bins as u16,
            Feature::Expected => scale.bins.of(prediction.slack),
            Feature::Cost => scale.cost(job, view).1,
            Feature::Kind => kind as u16,
            Feature::Task => (job.task.0 % u32::from(TASK_NUMBERS)) as u16,
        }));
        if self.slots.is_some() {
            out.push(job.task.0 as u16);
        }
    }

    /// Returns the slack bin of a job. Unless negative slack is clipped, bin `bins` is *late by wcet* and bin `bins +
    /// 1` is *impossible*.
    #[inline]
    pub fn slack_token(&self, job: &Job, now: Time, scale: &Scale) -> u16 {
        if !self.clip && job.is_impossible(now) {
            return self.bins as u16 + 1;
        }
        self.slack_bin(scale.slack(job, now) as f64, scale)
    }

    /// Returns the bin of a slack in nanoseconds.
    fn slack_bin(&self, slack: f64, scale: &Scale) -> u16 {
        match slack < 0.0 {
            true if self.clip => 0,
            true => self.bins as u16,
            false => scale.bins.of(slack),
        }
    }

    /// Returns the slack bin of a row with the given token and real numbers. With numbers in place of the bin, it is
    /// one that is neither urgent nor long.
    pub fn bin(&self, token: &[u16], real: &[f32], scale: &Scale) -> u16 {
        match &self.continuous {
            None if self.has_slack_bin() => token[0],
            None => 1,
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
