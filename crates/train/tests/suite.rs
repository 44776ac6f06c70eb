//! All integration tests of the crate in one program: it is linked once, and the slow ones run beside each other.

mod cuda;
mod equal_rows;
mod fine_tuning;
mod growth;
mod learning;
mod migrations;
mod recipes;
mod speeds;
mod wide_sets;
