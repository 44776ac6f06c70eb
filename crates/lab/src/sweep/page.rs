//! The page of a sweep: curves, and tables with the figures behind them.

use temponet_page::fragment::scrolling;
use temponet_page::{HtmlCell, HtmlTable, Page};

use super::{PointSummary, SweepPlan, SweepRow};
use crate::stats::percent;

/// Returns the page: the curves, and the figures behind them.
pub fn page(plan: &SweepPlan, rows: &[SweepRow]) -> String {
    let summary = plan.summary(rows);
    let facts = format!(
        "{} sets at each of {} points, about {} jobs each, seed {}. Bold: the best scheduler of its row.",
        plan.sets,
        plan.points.len(),
        plan.jobs,
        plan.seed,
    );
    let curves = scrolling(&plan.picture(rows).inline());
    let mut page = Page::new("Schedulers over random task sets").kind("sweep").facts(&facts).section("", "", &curves);
    for (title, value) in PointSummary::KINDS {
        let mut table = HtmlTable::sortable().columns(&["load", "cores", "tasks"]);
        plan.names().iter().for_each(|name| table.column(name, "", ""));
        for (index, point) in plan.points.iter().enumerate() {
            let tasks = point.spec.tasks;
            let mut cells = vec![
                HtmlCell::figure(point.load.to_string(), Some(point.load)),
                HtmlCell::figure(point.spec.cores.to_string(), Some(point.spec.cores as f64)),
                HtmlCell::figure(tasks.map_or("–".into(), |tasks| tasks.to_string()), tasks.map(|tasks| tasks as f64)),
            ];
            let shares: Vec<Option<f64>> =
                summary.iter().map(|of| Some(of[index]).filter(|at| at.sets > 0).map(|at| value(&at))).collect();
            let best = shares[..plan.schedulers.len()].iter().flatten().copied().fold(f64::MIN, f64::max);
            cells.extend(shares.into_iter().enumerate().map(|(at, share)| {
                let cell = HtmlCell::figure(share.map_or("–".into(), percent), share);
                if at < plan.schedulers.len() && share == Some(best) { cell.class("best") } else { cell }
            }));
            table.row("", &cells);
        }
        page = page.section(title, "", &table.finish());
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::tests::small_sweep;

    #[test]
    fn the_page_shows_every_point_and_curve() {
        let (plan, rows) = small_sweep();
        let page = page(&plan, &rows);
        assert!(page.contains(">1.25</td>") && page.matches("<polyline").count() == 8 && page.contains(">rm</button>"));
    }
}
