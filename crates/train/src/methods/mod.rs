//! Methods of learning, one file each.

pub(crate) mod cloning;
pub(crate) mod distribution;
pub(crate) mod dqn;
pub(crate) mod logits_to_returns;
pub(crate) mod matching;
pub(crate) mod noisy_heads;
pub(crate) mod offline;
pub(crate) mod ppo;
pub(crate) mod rollouts;
pub(crate) mod speeds;
pub(crate) mod stay;
