//! A training as a file: what to learn on, with which network, in which stages.

use serde::{Deserialize, Serialize};
use temponet::Tokenizer;
use temponet_grad::{AdamSettings, Schedule};
use temponet_infer::Architecture;

use crate::cloning::CloningSettings;
use crate::dqn::DqnSettings;
use crate::offline::OfflineSettings;
use crate::ppo::PpoSettings;
use crate::reward::Reward;
use crate::rollouts::RolloutSettings;
use crate::stay::StaySettings;
use crate::task_set_source::WorkloadRanges;

/// Everything that decides what a training comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recipe {
    /// All randomness comes from it.
    pub seed: u64,
    /// What a token says.
    pub tokens: Tokens,
    /// The network's shape.
    pub network: NetworkShape,
    /// What an episode is.
    pub episode: EpisodeSettings,
    /// How parameters move.
    pub optimizer: OptimizerSettings,
    /// How progress is judged.
    pub validation: ValidationSettings,
    /// Sets to learn on, where the user gives none of his own.
    pub workload: WorkloadRanges,
    /// What is done, one after the other; each stage goes on with the weights of the one before.
    pub stage: Vec<Stage>,
}

/// What a token says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tokens {
    /// The paper's: only slack, in 128 equal bins.
    Paper,
    /// Slack in logarithmic bins, and all further features.
    #[default]
    Full,
    /// As written out.
    Custom(Box<Tokenizer>),
}

impl Tokens {
    /// The tokenizer.
    pub fn tokenizer(&self) -> Tokenizer {
        match self {
            Tokens::Paper => Tokenizer::paper(),
            Tokens::Full => Tokenizer::full(),
            Tokens::Custom(tokenizer) => (**tokenizer).clone(),
        }
    }
}

/// The network's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkShape {
    /// Width of a row, d.
    pub width: usize,
    /// Blocks, L, or hidden layers.
    pub layers: usize,
    /// Attention heads, H.
    pub heads: usize,
    /// Width inside the feed-forward part, or of the hidden layers.
    pub feed_forward: usize,
    /// A feed-forward network with places for so many tasks in the place of the Transformer: the paper's FF-DQN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<usize>,
}

impl Default for NetworkShape {
    fn default() -> Self {
        NetworkShape { width: 64, layers: 2, heads: 4, feed_forward: 128, slots: None }
    }
}

impl NetworkShape {
    /// The architecture for a tokenizer.
    pub fn architecture(self, tokenizer: &Tokenizer) -> Architecture {
        let NetworkShape { width, layers, heads, feed_forward, slots } = self;
        let (job, idle) = (tokenizer.job_vocabularies(), tokenizer.idle_vocabularies());
        let real = tokenizer.real_input();
        Architecture { width, layers, heads, feed_forward, job, idle, real, slots }
    }
}

/// What an episode is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EpisodeSettings {
    /// Its length, in median wcets.
    pub length: f64,
    /// The paper's tick, in median wcets; without it only events are decision points.
    pub tick: Option<f64>,
    /// Discount per median wcet of time.
    pub gamma: f64,
    /// What is earned.
    pub reward: Reward,
}

impl Default for EpisodeSettings {
    fn default() -> Self {
        EpisodeSettings { length: 200.0, tick: None, gamma: 0.97, reward: Reward::default() }
    }
}

/// How parameters move.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerSettings {
    /// The learning rate.
    pub rate: f64,
    /// How it changes over a stage.
    pub schedule: Schedule,
    /// Updates of a stage during which it rises.
    pub warm_up: u64,
    /// Gradients are scaled down to this norm.
    pub clip: f64,
    /// Adam's constants.
    pub adam: AdamSettings,
}

impl Default for OptimizerSettings {
    fn default() -> Self {
        let (schedule, adam) = (Schedule::Linear, AdamSettings::default());
        OptimizerSettings { rate: 5e-4, schedule, warm_up: 20, clip: 1.0, adam }
    }
}

/// How progress is judged, after each phase, on sets and jobs that training never sees.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValidationSettings {
    /// Runs.
    pub runs: usize,
    /// Their length, in median wcets.
    pub length: f64,
    /// A stage ends early after so many phases without a better score; none: it never does.
    pub patience: Option<u64>,
}

impl Default for ValidationSettings {
    fn default() -> Self {
        ValidationSettings { runs: 24, length: 400.0, patience: None }
    }
}

/// One way to learn, for a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Phases; after each, progress is judged and a checkpoint written.
    pub phases: u64,
    /// How it learns.
    pub method: Method,
    /// The learning rate, if another.
    #[serde(default)]
    pub rate: Option<f64>,
    /// The sets, if others: a curriculum.
    #[serde(default)]
    pub workload: Option<WorkloadRanges>,
    /// The reward, if another.
    #[serde(default)]
    pub reward: Option<Reward>,
}

/// A way to learn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// From a teacher.
    Cloning(CloningSettings),
    /// From what would have come of other choices.
    Rollouts(RolloutSettings),
    /// Q-learning.
    Dqn(DqnSettings),
    /// Policy optimisation.
    Ppo(PpoSettings),
    /// From logged runs alone.
    Offline(OfflineSettings),
    /// By trying what it is worth at most that a running job keeps its core, where moving jobs costs something.
    Stay(StaySettings),
}

impl Method {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Method::Cloning(_) => "cloning",
            Method::Rollouts(_) => "rollouts",
            Method::Dqn(_) => "dqn",
            Method::Ppo(_) => "ppo",
            Method::Offline(_) => "offline",
            Method::Stay(_) => "stay",
        }
    }

    /// Whom it learns from: schedulers' names, or `optimum`.
    pub fn teachers(&self) -> &[String] {
        match self {
            Method::Cloning(settings) => std::slice::from_ref(&settings.teacher),
            Method::Offline(settings) => &settings.teachers,
            Method::Rollouts(_) | Method::Dqn(_) | Method::Ppo(_) | Method::Stay(_) => &[],
        }
    }

    /// Updates in a phase.
    pub fn updates(&self) -> u64 {
        match self {
            Method::Cloning(settings) => settings.updates,
            Method::Rollouts(settings) => settings.updates,
            Method::Dqn(settings) => settings.steps / settings.update_every.max(1),
            Method::Ppo(settings) => {
                let choices = (settings.environments as u64).saturating_mul(settings.length as u64);
                let updates = choices.div_ceil(settings.batch.max(1) as u64);
                settings.rounds.saturating_mul(settings.epochs as u64).saturating_mul(updates)
            }
            Method::Offline(settings) => settings.updates,
            Method::Stay(_) => 0,
        }
    }
}

impl Recipe {
    /// What makes tokens of jobs, for the network that this recipe names.
    pub fn tokenizer(&self) -> Tokenizer {
        Tokenizer { slots: self.network.slots, ..self.tokens.tokenizer() }
    }

    /// All ranges that sets are drawn from.
    pub fn workloads(&self) -> impl Iterator<Item = &WorkloadRanges> {
        self.stage.iter().map(|stage| stage.workload.as_ref().unwrap_or(&self.workload))
    }
}

impl Default for Recipe {
    /// What the best simple scheduler does first, then when to differ from it.
    fn default() -> Self {
        let cloning = RolloutSettings {
            states: 6_000,
            alternatives: 0,
            cloning: 1.0,
            updates: 250,
            ..RolloutSettings::default()
        };
        let differing = RolloutSettings {
            states: 4_000,
            updates: 200,
            batch: 256,
            cloning: 0.05,
            own_share: 0.7,
            length: 40.0,
            ..RolloutSettings::default()
        };
        let stage = |phases, method| Stage { phases, method, rate: None, workload: None, reward: None };
        Recipe {
            seed: 1,
            tokens: Tokens::default(),
            network: NetworkShape::default(),
            episode: EpisodeSettings::default(),
            optimizer: OptimizerSettings::default(),
            validation: ValidationSettings::default(),
            workload: WorkloadRanges::default(),
            stage: vec![stage(1, Method::Rollouts(cloning)), stage(8, Method::Rollouts(differing))],
        }
    }
}
