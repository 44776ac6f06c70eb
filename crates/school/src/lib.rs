//! School: training a scheduler for a task set of one's own, from the recipe file to the verdict.
//!
//! - [`recipe_file`] reads a recipe, with lines in its errors.
//! - [`preparation`] has the weights that a training begins with, checks the recipe on the set, and draws the runs of
//!   the verdict.
//! - [`verdict`] says whether what was learned is worth using, against every other scheduler, on jobs that training
//!   never saw.
//! - [`curves`] draws the course of a training.
//!
//! Learning itself is in `temponet-train`, and everything that needs no training is in `temponet-lab`; this crate is
//! where the two meet.

pub mod curves;
pub mod preparation;
pub mod recipe_file;
pub mod verdict;

/// The examples of the README, which are run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
