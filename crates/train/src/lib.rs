//! Training: the simulator as many environments, the network on the tape, and the ways to learn.

mod base_scheduler;
mod calibration;
mod check;
mod checkpoint;
mod cloning;
mod distinct_rows;
mod dqn;
mod environment;
mod exploration;
mod feed_forward;
mod fleet;
mod job_trace;
mod learner;
mod offline;
mod ppo;
mod problem;
mod recipe;
mod replay_buffer;
mod reward;
mod ring_buffer;
mod rollouts;
mod run;
mod sample;
mod tape_network;
mod task_set_source;
mod teacher;
mod tensorboard;

pub use base_scheduler::best_base_scheduler;
pub use check::check_environment;
pub use cloning::{CloningSettings, DemonstrationBuffer};
pub use dqn::{Dqn, DqnSettings};
pub use environment::{Ending, Environment, Step};
pub use exploration::{ExplorationBonus, VisitCounter};
pub use fleet::{ChoiceOutcome, Episodes, Fleet, FleetError, Slot, trial_seed};
pub use job_trace::{JobTrace, MIN_TRACE_JOBS, TRACE_SHARES, TraceSplit};
pub use learner::{Learner, Outputs, PendingUpdate, SampleLoss, SelectedRows, ShardOutput, UpdateFigures};
pub use offline::{Critic, OfflineAlgorithm, OfflineSettings, log_runs};
pub use ppo::{PpoSettings, rounds as ppo_rounds};
pub use recipe::{
    EpisodeSettings, Method, NetworkShape, OptimizerSettings, Recipe, Stage, StaySettings, Tokens, ValidationSettings,
};
pub use replay_buffer::{ReplayBatch, ReplayBuffer, Transition};
pub use reward::{Reward, RewardAccumulator, RewardShape};
pub use ring_buffer::RingBuffer;
pub use rollouts::{Comparison, ComparisonBuffer, RolloutSettings};
pub use run::{NoObserver, PhaseFigures, TrainError, TrainingObserver, TrainingRun, ValidationScores};
pub use sample::{Batch, Sample};
pub use tape_network::{OutputMap, OutputRows, TapeNetwork, TapeOutput};
pub use task_set_source::{ExecutionKind, TaskSetSource, WorkloadRanges};
pub use teacher::{OPTIMUM, cannot_teach, teacher};
pub use tensorboard::EventFile;
