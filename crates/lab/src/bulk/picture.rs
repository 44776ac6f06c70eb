//! The share of deadlines met on each set, over its load: one marker for each scheduler and set.

use temponet_page::plot::{self, Panel, Span};
use temponet_page::svg::Svg;

use super::{Bulk, Simulated};

/// Name of the curve of the clairvoyant optimum's upper bound.
const OPTIMUM: &str = "clairvoyant-upper";

/// Draws the share of deadlines met over the load of the sets.
pub fn picture(bulk: &Bulk) -> Svg {
    let loads = || bulk.plan.sets.iter().map(|of| of.load());
    let curve = |shares: Vec<Option<f64>>| {
        let mut points: Vec<(f64, f64)> =
            loads().zip(shares).filter_map(|(load, share)| Some((load, share?))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        points
    };
    let of_scheduler =
        |index: usize| bulk.rows.iter().map(|row| row.results[index].as_ref().map(Simulated::share)).collect();
    let mut names = bulk.plan.schedulers.clone();
    let mut curves: Vec<Vec<(f64, f64)>> = (0..names.len()).map(|index| curve(of_scheduler(index))).collect();
    if bulk.plan.oracle.is_some() {
        names.push(OPTIMUM.into());
        curves.push(curve(bulk.rows.iter().map(|row| row.optimum.map(|(_, upper)| upper)).collect()));
    }
    let panel = Panel {
        title: "Deadlines met · one marker for each set".into(),
        x_label: "utilization at the wcet, as a share of the cores",
        curves,
        y: Span::Shares(0.0, 1.0),
        marks: Vec::new(),
        is_log: false,
    };
    plot::picture(&[panel], 1, &names)
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_set_is_a_marker_of_each_scheduler() {
        let bulk = super::super::tests::small();
        let svg = super::picture(&bulk).file();
        // d-over runs on both, as do rm, edf and the optimum.
        assert_eq!(svg.matches("<circle").count(), 8, "{svg}");
        assert!(svg.contains("clairvoyant-upper"), "{svg}");
    }
}
