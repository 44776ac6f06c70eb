//! Methods of the rivals: each is a `temponet_train::Method` in a file of its own, and a recipe names it like those of
//! `temponet-train`.

mod a2c;
mod distribution;
mod hierarchical;
mod noisy_heads;
mod priorities;
mod priority_critics;
mod rainbow;
mod sac;
mod soft_choice;

pub use a2c::A2cSettings;
pub use hierarchical::HierarchicalSettings;
pub use priorities::{PriorityAlgorithm, PrioritySettings};
pub use rainbow::RainbowSettings;
pub use sac::{SacSettings, Temperature};
