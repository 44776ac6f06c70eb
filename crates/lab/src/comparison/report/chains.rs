//! Chains: a row for each of them under the recommended scheduler, and the other schedulers folded below.

use temponet_page::fragment::folded;
use temponet_page::{HtmlCell, HtmlTable};

use super::ranked_table::time;
use crate::chain_table::{COLUMNS, ChainFigures};
use crate::comparison::{Comparison, ComparisonRow};
use crate::stats::percent;

/// Greatest number of chains that are shown.
const MOST_CHAINS: usize = 60;

pub(super) const HINT: &str = "Reaction time: from the arrival of a source job to the first output with its data or newer data; in a chain of after alone, \
    to the output of its own instance, which is lost if one of its jobs does not complete. Data age: from the arrival of the \
    source job whose data an output carries.";

pub(super) fn html(comparison: &Comparison) -> String {
    let set = &comparison.plan.set;
    let Some(best) = comparison.rows.first() else { return String::new() };
    let mut table = HtmlTable::sortable().id("chains").caption(&format!("under {}", best.shown()));
    COLUMNS.iter().for_each(|column| table.column(column, "", ""));
    for figures in ChainFigures::of(set, best).take(MOST_CHAINS) {
        table.row("", &cells(HtmlCell::text(figures.label()), &figures));
    }
    let mut html = table.finish();
    for (place, chain) in set.chains().iter().enumerate().take(MOST_CHAINS) {
        let mut table = HtmlTable::sortable();
        table.column("scheduler", "", "");
        COLUMNS[1..].iter().for_each(|column| table.column(column, "", ""));
        for row in &comparison.rows {
            let of = |row: &ComparisonRow| HtmlCell::text(row.shown());
            if let Some(figures) = ChainFigures::of(set, row).nth(place) {
                table.row("", &cells(of(row), &figures));
            }
        }
        html += &folded(&format!("{} under every scheduler", chain.name), &table.finish());
    }
    if set.chains().len() > MOST_CHAINS {
        html += &format!("<p class=\"hint\">and {} more chains</p>\n", set.chains().len() - MOST_CHAINS);
    }
    html
}

/// The cells of a chain under a scheduler, after one that names it.
fn cells(name: HtmlCell, figures: &ChainFigures<'_>) -> Vec<HtmlCell> {
    let share = figures.metrics.on_time();
    let mut cells = vec![name, HtmlCell::figure(share.map_or("–".into(), percent), share)];
    let counts = [figures.metrics.instances.released, figures.metrics.lost];
    cells.extend(counts.map(|count| HtmlCell::figure(count.to_string(), Some(count as f64))));
    cells.extend(figures.times().map(|ns| HtmlCell::figure(time(ns), ns)));
    cells
}
