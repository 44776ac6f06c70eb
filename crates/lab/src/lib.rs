//! The lab: experiments with schedulers, and the pages and pictures that show their results.
//!
//! The experiments:
//! - [`comparison`]: all schedulers on one task set, over repeated runs, with a verdict and a page;
//! - [`arena`]: schedulers on fixed scenarios of many task sets;
//! - [`sweep`]: schedulers on random task sets over load, cores and tasks;
//! - [`analysis`]: what can be proved about one task set;
//! - [`what_if`]: what to change in a set so that every deadline is met, and what room it has;
//! - [`overload`]: the greatest overload that each scheduler survives;
//! - [`linux`]: what the policies of Linux can do for a task set, and with which settings;
//! - [`explain`]: why the learned scheduler decided as it did;
//! - [`latency`]: how long the decisions of a run take on this machine.
//!
//! What follows from them is said by [`advice`], and nowhere else.
//!
//! They share the schedulers by name ([`roster`]), the length of runs ([`horizon`]), the clairvoyant optimum
//! ([`clairvoyant`]), statistics ([`stats`]), the picture of a schedule ([`gantt`]) and the progress bar
//! ([`progress`]). All pages and pictures are written with the crate `temponet-page`.

pub mod advice;
pub mod analysis;
pub mod arena;
pub mod bulk;
pub mod chain_table;
pub mod clairvoyant;
pub mod comparison;
pub mod drawing;
pub mod explain;
pub mod gantt;
pub mod guarantee;
pub mod horizon;
pub mod latency;
pub mod linux;
pub mod models;
pub mod overload;
pub mod progress;
pub mod roster;
pub mod stats;
pub mod sweep;
pub mod what_if;

/// The examples of the README, which are run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
