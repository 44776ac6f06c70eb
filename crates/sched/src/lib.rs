//! The schedulers, the catalog that names them, the proofs about them, and the shield.
//!
//! - [`build`] makes a scheduler from its name; the [`catalog`] lists them all, and takes those of others.
//! - [`proofs`] tells which schedulers are proved to meet every deadline of a set, and [`scalings`] how much execution
//!   times may grow.
//! - [`what_if`](what_if::what_if) tells what to change in a set so that every deadline is met, and what room it has.
//! - [`shield`] overrules any scheduler whose choice could cost a guaranteed deadline.
//! - [`advice`] asks several simple schedulers at once, for the learned scheduler.
//!
//! The schedulability tests behind the proofs are in `temponet_analysis`.

pub mod advice;
pub mod catalog;
mod proofs;
mod schedulers;
mod sensitivity;
mod shared;
pub mod shield;
pub mod what_if;

pub use advice::{Panel, advisors, fallback, planners};
pub use catalog::{Entry, Kind, SpecError, build, global_edf};
pub use proofs::{Facts, Proof, proofs};
pub use schedulers::look_ahead::LookAhead;
pub use sensitivity::{LARGEST_SCALING, Scaling, scalings};

/// The examples of the README, which are run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
