//! Recipes: everything that decides the result of a training, as a file.

use serde::{Deserialize, Serialize};
use temponet::stages::Tokenizer;
use temponet_grad::{AdamSettings, Schedule};
use temponet_sim::generate::WorkloadRanges;
use temponet_sim::generate::ranges::{read_optional, read_workload};

use crate::method::StageMethod;
use crate::methods::RolloutSettings;
use crate::network_shape::NetworkShape;
use crate::reward::Reward;

/// Everything that decides the result of a training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recipe {
    /// Seed of all randomness; default 1.
    pub seed: u64,
    /// What a token says about a job; default [`Tokens::Ahead`].
    pub tokens: Tokens,
    /// Whether attention is the paper's sparse one, with a row for every job; `false`, the default, is dense attention
    /// over distinct rows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sparse: bool,
    /// Shape of the network.
    pub network: NetworkShape,
    /// Length, discount and reward of episodes.
    pub episode: EpisodeSettings,
    /// Learning rate, its schedule, and the constants of the optimizer.
    pub optimizer: OptimizerSettings,
    /// Validation after each phase.
    pub validation: ValidationSettings,
    /// Random sets to learn on, used if the user gives no set: a table, or the name of a preset.
    #[serde(deserialize_with = "read_workload")]
    pub workload: WorkloadRanges,
    /// Stages, 1 to 1,000, one after the other. Each continues with the weights of the one before.
    pub stage: Vec<Stage>,
}

/// What a token says about a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tokens {
    /// The paper's tokens: only slack, in 128 equal bins.
    Paper,
    /// Slack in logarithmic bins, and all other features.
    Full,
    /// Numbers in place of bins, a row for each coming job, and no advice of simple schedulers.
    #[default]
    Ahead,
    /// A tokenizer that the recipe spells out.
    Custom(Box<Tokenizer>),
}

impl Tokens {
    /// Returns the tokenizer.
    pub fn tokenizer(&self) -> Tokenizer {
        match self {
            Tokens::Paper => Tokenizer::paper(),
            Tokens::Full => Tokenizer::full(),
            Tokens::Ahead => Tokenizer::ahead(),
            Tokens::Custom(tokenizer) => (**tokenizer).clone(),
        }
    }
}

/// Settings of episodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EpisodeSettings {
    /// Length of an episode in median wcets, positive; default 200.
    pub length: f64,
    /// Period of additional decision points, the paper's tick, in median wcets, positive; `None`, the default, leaves
    /// only the simulator's events.
    pub tick: Option<f64>,
    /// Discount per median wcet of time, 0 to 1; default 0.97.
    pub gamma: f64,
    /// Time in which the weight of a reward falls to 1/e, in mean relative deadlines of the set, positive; it replaces
    /// `gamma`. A discount by wcets makes everything worthless that is due in many of them. `None` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizon: Option<f64>,
    /// Mean relative deadlines of the set that an episode lasts at least, 0 or more; default 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub deadlines: f64,
    /// Reward; by default 1 for a job that meets its deadline and −1 for a miss.
    pub reward: Reward,
}

impl Default for EpisodeSettings {
    fn default() -> Self {
        let (horizon, deadlines, reward) = (None, 0.0, Reward::default());
        EpisodeSettings { length: 200.0, tick: None, gamma: 0.97, horizon, deadlines, reward }
    }
}

fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

/// Settings of the optimizer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerSettings {
    /// Learning rate, positive; default 0.0005.
    pub rate: f64,
    /// Schedule of the learning rate over a stage; default linear.
    pub schedule: Schedule,
    /// Updates at the start of a stage during which the learning rate rises linearly; default 20.
    pub warm_up: u64,
    /// Norm to which longer gradients are scaled down, positive; default 1.
    pub clip: f64,
    /// Constants of Adam.
    pub adam: AdamSettings,
}

impl Default for OptimizerSettings {
    fn default() -> Self {
        let (schedule, adam) = (Schedule::Linear, AdamSettings::default());
        OptimizerSettings { rate: 5e-4, schedule, warm_up: 20, clip: 1.0, adam }
    }
}

/// Settings of the validation after each phase, on sets and jobs that training never sees.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValidationSettings {
    /// Number of runs; at least 1, default 24.
    pub runs: usize,
    /// Length of a run in median wcets, positive; default 400.
    pub length: f64,
    /// Number of phases without a better score after which a stage ends early; `None`, the default, never ends one
    /// early.
    pub patience: Option<u64>,
    /// Which weights are kept; default those of the best score.
    pub keep: Keep,
}

/// Which weights a training keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// Those of the phase with the best score.
    #[default]
    Best,
    /// Those of the last phase: where sets differ much, a score over some of them says less than more learning does.
    Last,
}

impl Default for ValidationSettings {
    fn default() -> Self {
        ValidationSettings { runs: 24, length: 400.0, patience: None, keep: Keep::Best }
    }
}

/// A learning algorithm for a number of phases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Number of phases; at least 1. After each of them the model is validated and a checkpoint is written.
    pub phases: u64,
    /// Learning algorithm and its settings.
    pub method: StageMethod,
    /// Learning rate of this stage, positive; `None`, the default, is the optimizer's.
    #[serde(default)]
    pub rate: Option<f64>,
    /// Random sets of this stage; `None`, the default, is the recipe's workload. Stages with harder and harder sets are
    /// a curriculum.
    #[serde(default, deserialize_with = "read_optional")]
    pub workload: Option<WorkloadRanges>,
    /// Reward of this stage; `None`, the default, is that of the episodes.
    #[serde(default)]
    pub reward: Option<Reward>,
}

impl Stage {
    /// Creates a stage whose rate, workload and reward are those of the recipe.
    pub fn new(phases: u64, method: impl Into<StageMethod>) -> Stage {
        Stage { phases, method: method.into(), rate: None, workload: None, reward: None }
    }
}

impl Recipe {
    /// Returns the tokenizer, with the slots and the attention of the network that this recipe describes.
    pub fn tokenizer(&self) -> Tokenizer {
        let tokenizer = self.tokens.tokenizer();
        Tokenizer { slots: self.network.body.keys().slots, sparse: self.sparse || tokenizer.sparse, ..tokenizer }
    }

    /// Returns the workload of each stage.
    pub fn workloads(&self) -> impl Iterator<Item = &WorkloadRanges> {
        self.stage.iter().map(|stage| stage.workload.as_ref().unwrap_or(&self.workload))
    }
}

impl Default for Recipe {
    /// Learning from the planner's labels, for a model that is trained already.
    fn default() -> Self {
        let planner = RolloutSettings {
            states: 2_000,
            alternatives: 6,
            futures: 24,
            length: 20.0,
            batch: 256,
            updates: 150,
            cloning: 0.05,
            own_share: 0.7,
            ..RolloutSettings::default()
        };
        Recipe {
            seed: 1,
            tokens: Tokens::default(),
            sparse: false,
            network: NetworkShape::default(),
            episode: EpisodeSettings::default(),
            optimizer: OptimizerSettings::default(),
            validation: ValidationSettings::default(),
            workload: WorkloadRanges::default(),
            stage: vec![Stage::new(6, planner)],
        }
    }
}
