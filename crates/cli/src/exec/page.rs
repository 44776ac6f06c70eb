//! The page of `exec`: that of a comparison, with what was measured beside what the simulator says, and the latencies
//! of the machine.

use temponet_lab::comparison::report::{self, Section};
use temponet_lab::stats::{percent, points};
use temponet_page::{HtmlCell, HtmlTable};

use super::outcome::ExecResult;
use crate::table;

/// Returns the page.
pub fn html(result: &ExecResult) -> String {
    report::html_with(&result.comparison, &[against_simulation(result), latencies(result)])
}

/// What was met on real threads and in the simulator, which charges the median costs that were measured.
fn against_simulation(result: &ExecResult) -> Section {
    let header = ["scheduler", "met on real threads", "met in simulation", "difference", "switch", "decision"];
    let mut table = HtmlTable::sortable().columns(&header);
    for (row, measured) in result.comparison.rows.iter().zip(&result.measured) {
        let (met, simulated) = (row.metrics.jobs.compliance(), measured.simulated_share());
        let difference = simulated.map(|simulated| met - simulated);
        let cost = |ns: u64| HtmlCell::figure(table::time(ns as f64), Some(ns as f64));
        table.row(
            "",
            &[
                HtmlCell::text(&row.scheduler),
                HtmlCell::figure(percent(met), Some(met)),
                HtmlCell::figure(simulated.map_or("–".into(), percent), simulated),
                HtmlCell::figure(difference.map_or("–".into(), points), difference),
                cost(measured.costs.context_switch.0),
                cost(measured.costs.decision.0),
            ],
        );
    }
    Section {
        heading: "Simulated against real".into(),
        hint: "The same jobs in the simulator, which charges the median costs measured here: what a switch and a decision \
            took. The difference is in percentage points; a large one says that this machine does what the model does \
            not know."
            .into(),
        html: table.finish(),
    }
}

/// The latencies of each scheduler as quantiles.
fn latencies(result: &ExecResult) -> Section {
    let mut table =
        HtmlTable::sortable().columns(&["scheduler", "latency", "count", "median", "p99", "p99.9", "longest"]);
    for (row, measured) in result.comparison.rows.iter().zip(&result.measured) {
        let kinds = measured.latencies.kinds();
        for (kind, histogram) in kinds.into_iter().filter(|(_, histogram)| histogram.count() > 0) {
            let count = histogram.count();
            let mut cells = vec![HtmlCell::text(&row.scheduler), HtmlCell::text(kind).class("words")];
            cells.push(HtmlCell::figure(table::count(count), Some(count as f64)));
            cells.extend([0.5, 0.99, 0.999, 1.0].map(|at| {
                let ns = histogram.quantile(at).map(|ns| ns as f64);
                HtmlCell::figure(ns.map_or("–".into(), table::time), ns)
            }));
            table.row("", &cells);
        }
    }
    Section {
        heading: "Latencies".into(),
        hint: "Release to start: of jobs that were put on a core at once. Switch: of jobs that took the core from another \
            one."
            .into(),
        html: table.finish(),
    }
}
