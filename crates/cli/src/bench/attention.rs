//! Table of dense and sparse attention.

use temponet_lab::measure::attention::AttentionFigures;

use crate::table;

/// Numbers of jobs that are measured.
pub const JOBS: [usize; 3] = [64, 200, 600];

/// Renders the figures as a table.
pub fn text(figures: &[AttentionFigures]) -> String {
    let header = ["jobs", "dense", "sparse", "dense kept", "sparse kept", "other jobs chosen", "control ns"];
    let row = |figures: &AttentionFigures| {
        let micro = |ns: f64| format!("{:.1} µs", ns / 1e3);
        let mega = |bytes: usize| format!("{:.2} MB", bytes as f64 / 1e6);
        vec![
            figures.jobs.to_string(),
            micro(figures.dense_ns_p50),
            micro(figures.sparse_ns_p50),
            mega(figures.dense_bytes),
            mega(figures.sparse_bytes),
            format!("{} of {}", figures.differing, figures.decisions),
            format!("{:.3}", figures.control_ns),
        ]
    };
    table::render(&header, &figures.iter().map(row).collect::<Vec<_>>())
}
