//! All integration tests of the crate in one program: it is linked once, and the slow ones run beside each other.

mod chains;
mod engine;
mod invariants;
mod naive_simulator;
mod outlook;
mod parts;
mod preemption;
mod support;
