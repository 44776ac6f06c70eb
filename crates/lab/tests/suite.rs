//! All integration tests of the crate in one program: it is linked once, and the slow ones run beside each other.

mod coverage;
mod diagnostics;
mod everything;
mod held_cores;
mod linux_settings;
mod parts;
mod precedence;
mod shared_resources;
mod unlike_cores;
mod wrappers;

// Other tests use the rest of it.
#[allow(dead_code)]
#[path = "../../analysis/tests/task_sets/mod.rs"]
mod task_sets;
