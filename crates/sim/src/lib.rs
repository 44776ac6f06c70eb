//! The simulator: an event-driven [`engine`](Engine), the [`Workload`] it runs, execution-time models, metrics and
//! traces. Same set, same seed, same run, always: nothing here reads a clock.

mod deadline_queue;
mod engine;
mod execution;
mod export;
pub mod generate;
mod histogram;
mod holders;
mod metrics;
mod seeds;
mod trace;
mod windows;
mod workload;

pub use engine::{Engine, MOST_READY, SimError, simulate};
pub use export::{ChromeTrace, JobsCsv};
pub use histogram::Histogram;
pub use metrics::{Count, End, Metrics, TaskMetrics};
pub use seeds::{EVALUATION_SEEDS, is_for_evaluation};
pub use trace::{JobRecord, Observer, Recorder, Slice, Unobserved};
pub use windows::Windows;
pub use workload::{Release, Workload};
