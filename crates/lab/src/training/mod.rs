//! What a training run shows to people: its curves, and whether the learned scheduler is worth using.

pub mod curves;
pub mod preparation;
pub mod recipe_file;
pub mod verdict;
