//! All integration tests of the crate in one program: it is linked once, and the slow ones run beside each other.

mod advice;
mod advise;
mod analyze;
mod arena;
mod bounds;
mod bulk;
#[cfg(target_os = "linux")]
mod closed_loop;
#[cfg(target_os = "linux")]
mod closed_loop_tools;
mod command;
mod conversion;
mod docs;
mod files;
mod folder;
mod goals;
mod guarantee;
mod import;
mod lab;
mod learned;
mod other_program;
mod parts;
mod random_sets;
mod record;
mod shown;
mod training;
mod tune;

/// The program whose calls are tested.
const PROGRAM: &str = env!("CARGO_BIN_EXE_temponet");
