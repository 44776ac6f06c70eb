//! All integration tests of the crate in one program.

mod command;
#[path = "../../crates/cli/tests/folder/mod.rs"]
mod folder;

/// The program whose calls are tested.
const PROGRAM: &str = env!("CARGO_BIN_EXE_temponet-bench");
