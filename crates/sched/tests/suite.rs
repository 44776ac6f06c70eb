//! All integration tests of the crate in one program: it is linked once, and the slow ones run beside each other.

mod bad;
mod breadth;
mod chains;
mod costs;
mod estimates;
mod extra;
mod guarantee;
mod left_out;
mod limited_preemption;
mod panel;
mod parts;
mod proofs;
mod requests;
mod sections;
mod shield;
mod stretches;
#[path = "../../analysis/tests/task_sets/mod.rs"]
mod task_sets;
mod theory;
