//! Experiments and what people look at: comparisons over repeated runs, statistics, pictures and the HTML report.

pub mod arena;
pub mod clairvoyant;
pub mod comparison;
mod conclusion;
pub mod curves;
pub mod diagnostics;
pub mod explain;
pub mod explain_run;
pub mod gantt;
pub mod horizon;
pub mod latency;
pub mod measure;
pub mod overload;
pub mod progress;
pub mod ranking;
pub mod report;
pub mod roster;
pub mod stats;
pub mod sweep;
pub mod sweep_files;
pub mod verdict;
