//! The simulator: an event-driven [`engine`](Engine), the [`Workload`] that it runs, execution-time models, generators
//! of random task sets, metrics and traces, and the order of schedulers by their metrics ([`ranking`]). [`Outlook`]
//! draws futures from what an online scheduler knows.
//!
//! The same task set and the same seed always give the same run: nothing in this crate reads a clock.

mod chains;
mod core_history;
mod deadline_queue;
mod engine;
mod execution;
mod export;
pub mod generate;
mod histogram;
pub mod labels;
mod metrics;
mod outlook;
pub mod ranking;
mod seeds;
pub mod statistics;
mod survival;
mod trace;
mod whole_jobs;
mod windows;
mod workload;

pub use chains::{ChainMeter, ChainMetrics, is_read_at_start};
pub use engine::{Engine, MOST_READY, SimError, Waiting, jobs_unless_missed, simulate};
pub use execution::draw_estimated;
pub use export::{ChromeTrace, JobsCsv, quoted};
pub use histogram::Histogram;
pub use metrics::{Count, End, Metrics, TaskMetrics};
pub use outlook::Outlook;
pub use seeds::{EVALUATION_SEEDS, is_for_evaluation, mixed_seed};
pub use survival::Survival;
pub use trace::{JobRecord, Miss, Observer, Recorder, Slice, Stretch, Unobserved};
pub use windows::{WindowCounter, Windows};
pub use workload::{ReleasedJob, Workload};

/// The examples of the README, which are run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
