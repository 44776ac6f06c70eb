//! All integration tests of the crate in one program.

mod command;
mod folder;
