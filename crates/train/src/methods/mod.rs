//! Methods of learning, one file each: its settings, its limits, and what it does in a phase.

mod cloning;
mod dqn;
mod logits_to_returns;
mod matching;
mod offline;
mod ppo;
mod rollouts;
mod speeds;
mod stay;

pub use cloning::{Cloning, CloningSettings};
pub use dqn::{Dqn, DqnSettings, DqnVariant};
pub use matching::MatchingSettings;
pub use offline::{OfflineAlgorithm, OfflineSettings, log_runs};
pub use ppo::{Ppo, PpoRound, PpoSettings, gumbel};
pub use rollouts::RolloutSettings;
pub use speeds::NeededRuns;
pub use stay::StaySettings;
