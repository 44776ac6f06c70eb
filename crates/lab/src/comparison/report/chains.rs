//! Chains by schedulers: share in time, reaction times and data ages, as a table that can be sorted.

use temponet_page::{HtmlCell, HtmlTable};

use super::ranked_table::time;
use crate::chain_table::{COLUMNS, ChainFigures};
use crate::comparison::Comparison;
use crate::stats::percent;

/// Greatest number of rows of the table.
const MOST_ROWS: usize = 400;

pub(super) const HINT: &str = "Reaction time: from the arrival of a source job to the first output with its data or newer data; in a chain of after alone, \
    to the output of its own instance, which is lost if one of its jobs does not complete. Data age: from the arrival of the \
    source job whose data an output carries. Schedulers from the best on. A header sorts.";

pub(super) fn html(comparison: &Comparison) -> String {
    let set = &comparison.plan.set;
    let mut table = HtmlTable::sortable().id("chains");
    table.column("scheduler", "", "");
    COLUMNS.iter().for_each(|column| table.column(column, "", ""));
    let rows = comparison.rows.iter().flat_map(|row| ChainFigures::of(set, row).map(move |figures| (row, figures)));
    for (row, figures) in rows.take(MOST_ROWS) {
        let times = figures.times();
        let share = figures.metrics.on_time();
        let mut cells = vec![HtmlCell::text(row.scheduler.clone()), HtmlCell::text(figures.label())];
        cells.push(HtmlCell::figure(share.map_or("–".into(), percent), share));
        let counts = [figures.metrics.instances.released, figures.metrics.lost];
        cells.extend(counts.map(|count| HtmlCell::figure(count.to_string(), Some(count as f64))));
        cells.extend(times.map(|ns| HtmlCell::figure(time(ns), ns)));
        table.row("", &cells);
    }
    table.finish()
}
