//! Experiments and what people look at: comparisons over repeated runs, statistics, pictures and the HTML report.

pub mod arena;
pub mod clairvoyant;
pub mod comparison;
pub mod explain;
pub mod gantt;
pub mod horizon;
pub mod measure;
pub mod overload;
pub mod progress;
pub mod roster;
pub mod stats;
pub mod sweep;
pub mod training;
