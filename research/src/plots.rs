//! The plots of the experiments: panels of curves over a common axis, and bars of shares.

use super::Findings;
use temponet_page::charts::bars;
use temponet_page::plot::{Panel, Span, svg};

/// Points of one curve: x and y.
pub type Curve = Vec<(f64, f64)>;

/// A panel of curves on linear axes.
pub fn panel(title: &str, x_label: &'static str, curves: Vec<Curve>, y: Span) -> Panel {
    Panel { title: title.into(), x_label, curves, y, marks: Vec::new(), is_log: false }
}

/// A panel of shares, whose y axis spans just the shares that occur.
pub fn share_panel(title: &str, x_label: &'static str, curves: Vec<Curve>) -> Panel {
    let y = share_span(curves.iter().flatten().map(|(_, share)| *share));
    panel(title, x_label, curves, y)
}

/// A panel on logarithmic axes, where a power law is a straight line. All values must be positive.
pub fn log_panel(title: &str, x_label: &'static str, curves: Vec<Curve>) -> Panel {
    let (least, greatest) = range(curves.iter().flatten().map(|(_, y)| *y));
    Panel { is_log: true, ..panel(title, x_label, curves, Span::Numbers(least * 0.8, greatest * 1.2)) }
}

/// Returns the axis that holds all shares, rounded outwards to whole steps of 4%.
pub fn share_span(shares: impl Iterator<Item = f64>) -> Span {
    let (low, high) = share_range(shares);
    let (low, high) = ((low * 25.0).floor() / 25.0, (high * 25.0).ceil() / 25.0);
    if low < high { Span::Shares(low, high) } else { Span::Shares(0.0, 1.0) }
}

/// Returns the least and the greatest share; (1, 0) if there is none.
pub fn share_range(shares: impl Iterator<Item = f64>) -> (f64, f64) {
    shares.fold((1.0, 0.0), |(low, high), share| (f64::min(low, share), f64::max(high, share)))
}

/// Returns the least and the greatest value.
pub fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
}

impl Findings {
    /// Adds a plot of one panel; `names` are the legend of its curves.
    pub fn plot(&mut self, title: &str, caption: &str, panel: Panel, names: &[String]) {
        self.picture(title, caption, svg(&[panel], 1, names));
    }

    /// Adds bars of shares, labeled in whole percent: one group of bars for each name in `groups`, one bar in it for
    /// each series.
    pub fn share_bars(&mut self, title: &str, caption: &str, groups: &[String], series: &[(String, Vec<f64>)]) {
        self.picture(title, caption, bars(groups, series, 1.0, |share| format!("{:.0}", 100.0 * share)));
    }
}
