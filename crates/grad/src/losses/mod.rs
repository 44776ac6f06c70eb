//! Losses of reinforcement learning: imitation, policy optimization and Q-learning over rows that are selected without replacement.

pub(crate) mod imitation;
pub(crate) mod policy;
pub(crate) mod q_values;
pub(crate) mod selection;

pub use imitation::{Exchange, Imitation};
pub use policy::{Choices, Made, PolicyWeights};
pub use q_values::{Ahead, Values, Way, value_of};
pub use selection::{Likelihood, Picks, best_rows, likelihood};
