//! All integration tests of the crate in one program: it is linked once, and the slow ones run beside each other.

mod coverage;
mod diagnostics;
mod everything;
mod held_cores;
mod parts;
mod precedence;
mod shared_resources;
mod unlike_cores;
mod wrappers;
