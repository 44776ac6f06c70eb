//! All integration tests of the crate in one program.

mod actor_critics;
mod baselines;
mod command;
mod experiments;
mod folder;
mod networks;
mod search;
mod trained_rivals;
