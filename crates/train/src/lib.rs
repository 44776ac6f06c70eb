//! Training of the learned scheduler.
//!
//! - The simulator as environments to act in: [`Environment`], many at once in a [`Fleet`], on sets from a [`TaskSetSource`].
//! - The network with its gradients: [`TapeNetwork`], trained by a [`Learner`].
//! - The learning algorithms, each in a file of its own: `cloning`, `rollouts`, `dqn`, `ppo`, `a2c`, `sac`, `priorities`, `hierarchical`, `offline` and
//!   `stay`.
//! - A whole training: a [`TrainingRun`] follows a [`Recipe`], validates after each phase, and can be resumed from a checkpoint.
//!
//! The deployed scheduler is the `temponet` crate. Training sees through the same tokenizer and writes the same weights file.

mod a2c;
mod algorithm;
mod base_scheduler;
mod check;
mod checkpoint;
mod critic;
mod distinct_rows;
mod environment;
mod error;
mod exploration;
mod feed_forward;
mod fleet;
mod graph_layers;
mod hierarchical;
mod job_trace;
mod learner;
mod methods;
mod observer;
mod picks;
mod priorities;
mod priority_critics;
mod problem;
mod recipe;
mod recurrent;
mod replay_buffer;
mod reward;
mod ring_buffer;
mod run;
mod sac;
mod sample;
mod tape_network;
mod task_set_source;
mod teacher;
mod tensorboard;
mod training_device;
mod updates;
mod validation;

pub use a2c::A2cSettings;
pub use check::check_environment;
pub use environment::{Ending, Environment, EnvironmentSettings, Step};
pub use error::TrainError;
pub use exploration::{ExplorationBonus, VisitCounter};
pub use fleet::{ChoiceOutcome, Episodes, Fleet, FleetError, FleetMember, mix as training_seed, trial_seed};
pub use hierarchical::HierarchicalSettings;
pub use job_trace::{JobTrace, MIN_TRACE_JOBS, TRACE_SHARES, TraceSplit};
pub use learner::{Learner, NeededRows, NeededRowsOf, Outputs, PendingUpdate, SampleLoss, ShardOutput, UpdateFigures};
pub use methods::cloning::{Cloning, CloningSettings};
pub use methods::dqn::{Dqn, DqnSettings};
pub use methods::matching::MatchingSettings;
pub use methods::offline::{OfflineAlgorithm, OfflineSettings, log_runs};
pub use methods::ppo::{Ppo, PpoSettings};
pub use methods::rollouts::RolloutSettings;
pub use methods::stay::StaySettings;
pub use observer::{NoObserver, PhaseFigures, TrainingObserver};
pub use priorities::{PriorityAlgorithm, PrioritySettings};
pub use recipe::{EpisodeSettings, Method, NetworkShape, OptimizerSettings, Recipe, Stage, Tokens, ValidationSettings};
pub use replay_buffer::{ReplayBatch, ReplayBuffer, Transition};
pub use reward::{Reward, RewardAccumulator, RewardShape};
pub use ring_buffer::RingBuffer;
pub use run::TrainingRun;
pub use sac::{SacSettings, Temperature};
pub use sample::{Batch, Past, PastBatch, Sample};
pub use tape_network::{OutputMap, OutputRows, TapeNetwork, TapeOutput};
pub use task_set_source::TaskSetSource;
// Recipes name these.
pub use teacher::{OPTIMUM, cannot_teach, teacher};
pub use temponet_sim::generate::{ExecutionKind, WorkloadRanges};
pub use tensorboard::EventFile;
pub use training_device::{TrainingDevice, TrainingSession};
pub use updates::{StepSize, UpdatePlan, Updates};
pub use validation::ValidationScores;
