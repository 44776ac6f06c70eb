//! All integration tests of the crate in one program: it is linked once, and the slow ones run beside each other.

mod bounds;
mod command;
mod docs;
mod files;
mod folder;
mod goals;
mod guarantee;
mod other_program;
mod shown;
mod training;
mod tune;
