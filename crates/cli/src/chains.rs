//! The table of chains below the results of schedulers.

use temponet_lab::chain_table::{COLUMNS, ChainFigures};
use temponet_lab::comparison::ComparisonRow;
use temponet_lab::stats::percent;
use temponet_task::TaskSet;
use temponet_wording::counted;

use crate::table;

/// Greatest number of rows of the table.
const MOST_ROWS: usize = 40;
/// Greatest number of schedulers in a table that is not shown whole.
const MOST_SCHEDULERS: usize = 4;

/// Renders the chains of a set under schedulers, after an empty line; an empty string without chains. Unless the table
/// `is_whole`, it has the first schedulers only, and says so.
pub fn table<'a>(
    set: &TaskSet,
    rows: impl Iterator<Item = &'a ComparisonRow>,
    names_schedulers: bool,
    is_whole: bool,
) -> String {
    if set.chains().is_empty() {
        return String::new();
    }
    let mut header = COLUMNS.to_vec();
    if names_schedulers {
        header.insert(1, "scheduler");
    }
    let mut shown: Vec<&ComparisonRow> = rows.collect();
    let most = if is_whole { shown.len() } else { MOST_SCHEDULERS };
    let hidden = shown.split_off(most.min(shown.len())).len();
    let mut cells = Vec::new();
    for index in 0..set.chains().len() {
        for row in &shown {
            let Some(figures) = ChainFigures::of(set, row).nth(index) else { continue };
            let mut line = vec![figures.label()];
            line.extend(names_schedulers.then(|| row.scheduler.clone()));
            line.push(figures.metrics.on_time().map_or("–".into(), percent));
            line.push(table::count(figures.metrics.instances.released));
            line.push(table::count(figures.metrics.lost));
            line.extend(figures.times().map(|time| time.map_or("–".into(), table::time)));
            cells.push(line);
        }
    }
    let left = cells.len().saturating_sub(MOST_ROWS);
    cells.truncate(MOST_ROWS);
    let words = 1 + usize::from(names_schedulers);
    let mut more =
        if left > 0 { format!("… and {}, all in --json\n", counted(left, "more row")) } else { String::new() };
    if hidden > 0 {
        more += &format!("left out: the chains under {}; --all shows every one\n", counted(hidden, "more scheduler"));
    }
    format!("\n{}{more}", table::render_fitting(&header, &cells, words))
}
