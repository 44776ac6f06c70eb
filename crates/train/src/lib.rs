//! Training of the learned scheduler.
//!
//! - The simulator as environments to act in: [`Environment`], many at once in a [`Fleet`], on sets from a
//!   [`TaskSetSource`].
//! - The network with its gradients: [`TapeNetwork`], trained by a [`Learner`].
//! - The methods of learning, each in a file of its own: `cloning`, `rollouts`, `dqn`, `ppo`, `offline` and `stay`. A
//!   method is a [`Method`] with its [`Algorithm`]; [`register_method`] adds one from another crate.
//! - A whole training: a [`TrainingRun`] follows a [`Recipe`], validates after each phase, and can be resumed from a
//!   checkpoint.
//!
//! The deployed scheduler is the `temponet` crate. Training sees through the same tokenizer and writes the same weights
//! file.

mod base_scheduler;
mod check;
mod checkpoint;
mod critic;
mod distinct_rows;
mod environment;
mod error;
mod exploration;
mod fleet;
mod job_trace;
mod learner;
pub mod limits;
mod method;
mod methods;
mod network_shape;
mod observer;
mod parallel;
mod problem;
mod recipe;
mod registry;
mod replay_buffer;
mod replay_settings;
pub mod returns;
mod reward;
mod ring_buffer;
mod run;
mod sample;
mod settings_tree;
mod tape_body;
mod tape_network;
mod tape_transformer;
mod task_set_source;
mod teacher;
mod tensorboard;
mod training_device;
mod updates;
mod validation;

pub use check::{check_environment, check_resumption, interrupted};
pub use checkpoint::{decode_memory, encode_memory};
pub use critic::Critic;
pub use environment::{Ending, Environment, EnvironmentSettings, Step};
pub use error::TrainError;
pub use exploration::{ExplorationBonus, VisitCounter};
pub use fleet::{ChoiceOutcome, Episodes, Fleet, FleetError, FleetMember, mix as training_seed, trial_seed};
pub use job_trace::{JobTrace, MIN_TRACE_JOBS, TRACE_SHARES, TraceSplit};
pub use learner::{
    Gathering, Learner, NeededRows, NeededRowsOf, Outputs, PendingUpdate, SampleLoss, Shard, ShardOutput, UpdateFigures,
};
pub use method::{Algorithm, Method, MethodDevice, NetworkPart, Phase, StageMethod, TensorVisitor};
pub use methods::{
    Cloning, CloningSettings, Dqn, DqnSettings, DqnVariant, MatchingSettings, NeededRuns, OfflineAlgorithm,
    OfflineSettings, Ppo, PpoRound, PpoSettings, RolloutSettings, StaySettings, gumbel, log_runs,
};
pub use network_shape::NetworkShape;
pub use observer::{NoObserver, PhaseFigures, TrainingObserver};
pub use recipe::{EpisodeSettings, Keep, OptimizerSettings, Recipe, Stage, Tokens, ValidationSettings};
pub use registry::{method_names, register_method};
pub use replay_buffer::{ReplayBatch, ReplayBuffer, Transition};
pub use replay_settings::ReplaySettings;
pub use reward::{Reward, RewardAccumulator, RewardShape};
pub use ring_buffer::RingBuffer;
pub use run::TrainingRun;
pub use sample::{Batch, Past, PastBatch, Sample, SampleView, Samples, owners, places};
pub use tape_body::{BodyInput, BodyOutput, MakeTapeBody, TapeBody, register_tape_body};
pub use tape_network::{OutputMap, OutputRows, TapeNetwork, TapeOutput};
pub use task_set_source::TaskSetSource;
// Recipes name these.
pub use teacher::{OPTIMUM, cannot_teach, teacher};
pub use temponet_sim::generate::{ExecutionKind, WorkloadRanges};
pub use tensorboard::EventFile;
pub use training_device::{TrainingDevice, TrainingSession};
pub use updates::{StepSize, UpdatePlan, Updates};
pub use validation::ValidationScores;

/// The examples of the README, which are run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
