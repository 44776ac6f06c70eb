//! Table of dense attention, sparse attention and its rivals.

use crate::attention::{AttentionFigures, Method, MethodFigures};

use temponet_cli::table;

/// Numbers of jobs that are measured.
pub const JOBS: [usize; 4] = [64, 200, 600, 2_000];

/// Renders the figures as a table.
pub fn text(figures: &[AttentionFigures]) -> String {
    let header = [
        "jobs",
        "attention",
        "network",
        "time/dense",
        "keys/query",
        "scored/query",
        "read",
        "other jobs chosen",
        "control ns",
    ];
    let row = |(all, figures): (&AttentionFigures, &MethodFigures)| {
        let dense = all.of(Method::Dense).map_or(f64::NAN, |dense| dense.ns_p50);
        vec![
            all.jobs.to_string(),
            figures.method.name().replace('_', "-"),
            format!("{:.1} µs", figures.ns_p50 / 1e3),
            format!("{:.2}", figures.ns_p50 / dense),
            format!("{:.0}", figures.keys),
            format!("{:.0}", figures.scored),
            format!("{:.2} MB", figures.bytes as f64 / 1e6),
            format!("{} of {}", figures.differing, figures.decisions),
            format!("{:.3}", all.control_ns),
        ]
    };
    let rows = figures.iter().flat_map(|all| all.methods.iter().map(move |figures| (all, figures))).map(row);
    table::render(&header, &rows.collect::<Vec<_>>())
}
