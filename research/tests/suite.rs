//! All integration tests of the crate in one program.

mod actor_critics;
mod baselines;
mod command;
mod experiments;
#[path = "../../crates/cli/tests/folder/mod.rs"]
mod folder;
mod networks;
mod search;
mod trained_rivals;

/// The program whose calls are tested.
const PROGRAM: &str = env!("CARGO_BIN_EXE_temponet-paper");
