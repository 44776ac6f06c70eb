//! All integration tests of the crate in one program: it is linked once, and the slow ones run beside each other.

mod budget;
mod continuous;
mod embedding;
mod guarantee;
mod planner;
mod scheduler;
mod staying;
mod tuning;
mod two_worlds;
