//! Line charts: panels arranged in rows that share one legend and its colors.

use super::svg::{Svg, circle, fill, line, polyline, text};

/// One line chart, with one curve per name of the legend, in the same order.
pub struct Panel {
    /// Title above the chart.
    pub title: String,
    /// Label below the x axis.
    pub x_label: &'static str,
    /// Points `(x, y)` of each curve, by ascending x; an empty curve is not drawn.
    pub curves: Vec<Vec<(f64, f64)>>,
    /// Range and kind of the y axis.
    pub y: Span,
    /// Vertical lines, as x and the word above the line.
    pub marks: Vec<(f64, String)>,
    /// Whether the axes are logarithmic: both, or only the x axis if y is a share. All values must then be positive.
    pub is_log: bool,
}

/// Range of a y axis, from the lowest to the highest value, and how its values are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Span {
    /// Shares, 0 to 1, written as percentages.
    Shares(f64, f64),
    /// Plain numbers.
    Numbers(f64, f64),
}

impl Span {
    fn ends(self) -> (f64, f64) {
        match self {
            Span::Shares(low, high) | Span::Numbers(low, high) => (low, high),
        }
    }

    fn label(self, value: f64) -> String {
        match self {
            Span::Shares(..) => format!("{:.0}%", 100.0 * value),
            Span::Numbers(low, high) if high - low >= 100.0 => format!("{value:.0}"),
            Span::Numbers(low, high) if high - low >= 10.0 => format!("{value:.1}"),
            Span::Numbers(..) => format!("{value:.3}"),
        }
    }
}

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 52.0;
const TOP: f64 = 46.0;
const RIGHT: f64 = 24.0;
const BOTTOM: f64 = 44.0;

/// Draws the panels, `in_row` to a row, with the legend below. `names` are the names of the curves; the legend has
/// those that have a point.
pub fn picture(panels: &[Panel], in_row: usize, names: &[String]) -> Svg {
    let width = WIDTH * in_row.min(panels.len().max(1)) as f64;
    let is_drawn = |curve: usize| panels.iter().any(|panel| panel.curves.get(curve).is_some_and(|own| !own.is_empty()));
    let legend: Vec<(usize, &String)> = names.iter().enumerate().filter(|(curve, _)| is_drawn(*curve)).collect();
    let longest = legend.iter().map(|(_, name)| name.chars().count()).max().unwrap_or(0) as f64;
    let columns = (((width - LEFT) / (44.0 + 7.0 * longest)) as usize).clamp(1, 6);
    let legend_top = HEIGHT * panels.len().div_ceil(in_row) as f64;
    let height = legend_top + 22.0 * legend.len().div_ceil(columns) as f64 + 16.0;
    let words: Vec<String> = panels.iter().map(|panel| panel.in_words(names)).collect();
    let mut out = Svg::new(width, height, &words.join(" "));
    for (index, panel) in panels.iter().enumerate() {
        let (x, y) = (WIDTH * (index % in_row) as f64, HEIGHT * (index / in_row) as f64);
        out.moved(x, y, |out| draw(out, panel, names));
    }
    for (place, (curve, name)) in legend.into_iter().enumerate() {
        let (x, y) = (
            LEFT + (width - LEFT) / columns as f64 * (place % columns) as f64,
            legend_top + 22.0 * (place / columns) as f64 + 8.0,
        );
        out.add(line((x, y), (x + 22.0, y)).series(curve));
        out.add(text(x + 28.0, y + 4.0, name));
    }
    out
}

/// Draws the panels like [`picture`], for use inside a page.
pub fn svg(panels: &[Panel], in_row: usize, names: &[String]) -> String {
    picture(panels, in_row, names).inline()
}

/// Greatest number of curves that the description in words covers one by one.
const MOST_SAID: usize = 10;

/// Greatest number of points of a curve that are marked.
const MOST_MARKERS: usize = 40;

impl Panel {
    /// Describes the curves by their ends, for screen readers.
    fn in_words(&self, names: &[String]) -> String {
        let curve = |(name, points): (&String, &Vec<(f64, f64)>)| {
            let ((from, a), (to, b)) = (points.first()?, points.last()?);
            Some(format!("{name} {} at {from}, {} at {to}", self.y.label(*a), self.y.label(*b)))
        };
        let curves: Vec<String> = names.iter().zip(&self.curves).filter_map(curve).collect();
        match curves.len() {
            ..=MOST_SAID => format!("{} over {}: {}.", self.title, self.x_label, curves.join("; ")),
            count => format!("{} over {}, {count} curves.", self.title, self.x_label),
        }
    }
}

/// Greatest number of ticks that stand at the values themselves.
const MOST_TICKS: usize = 12;

/// Returns the places and labels of ticks on the x axis: at the values themselves if they are few, else a few whole
/// numbers if all values are whole, else six evenly spaced numbers.
fn ticks(values: &[f64]) -> Vec<(f64, String)> {
    let (Some(low), Some(high)) = (values.first().copied(), values.last().copied()) else { return Vec::new() };
    if values.len() <= MOST_TICKS {
        let label = |value: &f64| {
            let text = format!("{value:.4}");
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        };
        return values.iter().map(|value| (*value, label(value))).collect();
    }
    if values.iter().all(|value| value.fract() == 0.0) {
        let step = ((high - low) / 10.0).ceil().max(1.0);
        let count = ((high - low) / step) as usize;
        return (0..=count).map(|place| low + step * place as f64).map(|value| (value, format!("{value}"))).collect();
    }
    // Enough digits to tell the labels apart.
    let digits = (-((high - low) / 5.0).log10().floor()).clamp(2.0, 9.0) as usize;
    (0..=5)
        .map(|step| low + (high - low) * f64::from(step) / 5.0)
        .map(|value| (value, format!("{value:.digits$}")))
        .collect()
}

/// Removes labels that would overlap with the one before them; the last one stays.
fn legible(ticks: Vec<(f64, String)>, x: impl Fn(f64) -> f64) -> Vec<(f64, String)> {
    let half = |label: &str| 3.6 * label.chars().count() as f64 + 3.0;
    let mut kept: Vec<(f64, String)> = Vec::new();
    let last = ticks.len().saturating_sub(1);
    for (index, (value, label)) in ticks.into_iter().enumerate() {
        let overlaps =
            |before: Option<&(f64, String)>| before.is_some_and(|(at, of)| x(value) - x(*at) < half(of) + half(&label));
        if index == last {
            while kept.len() > 1 && overlaps(kept.last()) {
                kept.pop();
            }
        } else if overlaps(kept.last()) {
            continue;
        }
        kept.push((value, label));
    }
    kept
}

/// Returns one, two and five times the powers of ten between two positive numbers; only the powers themselves over many
/// decades.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let steps: &[f64] = if decades.clone().count() > 4 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all = decades.flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
    all.filter(|value| (low * 0.999..=high * 1.001).contains(value)).collect()
}

fn draw(out: &mut Svg, panel: &Panel, names: &[String]) {
    let xs = panel.curves.iter().flatten().map(|(x, _)| *x);
    let (low, high) = xs.fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)));
    let along = |value: f64| if panel.is_log { value.log10() } else { value };
    let span = if high > low { along(high) - along(low) } else { 1.0 };
    let x = |value: f64| LEFT + (WIDTH - LEFT - RIGHT) * (along(value) - along(low)) / span;
    let (bottom, top) = panel.y.ends();
    let is_y_log = panel.is_log && matches!(panel.y, Span::Numbers(..));
    let upward = |value: f64| if is_y_log { value.log10() } else { value };
    let up = upward(top) - upward(bottom);
    let y = |value: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - (upward(value) - upward(bottom)) / up);
    out.add(text(LEFT, 20.0, &panel.title).size(14.0).bold());
    let even = || [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| bottom + (top - bottom) * share).to_vec();
    for value in if is_y_log { log_ticks(bottom, top) } else { even() } {
        let at = y(value);
        out.add(line((LEFT, at), (WIDTH - RIGHT, at)).class("line"));
        out.add(text(LEFT - 6.0, at + 4.0, &panel.y.label(value)).end().class("soft"));
    }
    let logarithmic = || log_ticks(low, high).into_iter().map(|value| (value, format!("{value}"))).collect();
    let mut values: Vec<f64> = panel.curves.iter().flatten().map(|(x, _)| *x).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    for (value, label) in if panel.is_log { logarithmic() } else { legible(ticks(&values), x) } {
        out.add(line((x(value), HEIGHT - BOTTOM), (x(value), HEIGHT - BOTTOM + 4.0)).class("axis"));
        out.add(text(x(value), HEIGHT - BOTTOM + 17.0, &label).middle().class("soft"));
    }
    for (at, word) in &panel.marks {
        let at = x(*at);
        out.add(line((at, TOP), (at, HEIGHT - BOTTOM)).class("axis").dashed("2 3"));
        out.add(text(at + 2.0, TOP - 5.0, word).class("soft"));
    }
    out.add(text((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10.0, panel.x_label).middle());
    // The first entry of the legend is drawn last, on top of the others.
    for (index, curve) in panel.curves.iter().enumerate().rev().filter(|(_, curve)| !curve.is_empty()) {
        let name = names.get(index).map_or("", String::as_str);
        // A single point makes no line; it is drawn as a circle.
        out.add(match curve[..] {
            [(a, b)] => circle(x(a), y(b), 4.0).class(&fill(index)).title(name),
            _ => polyline(curve.iter().map(|(a, b)| (x(*a), y(*b)))).series(index).title(name),
        });
        // What was measured is told apart from the lines between.
        if (2..=MOST_MARKERS).contains(&curve.len()) {
            curve.iter().for_each(|(a, b)| out.add(circle(x(*a), y(*b), 2.5).class(&fill(index)).title(name)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_per_name_in_every_panel() {
        let curves = vec![vec![(0.5, 1.0), (1.0, 0.2)], vec![(0.5, 0.9), (1.0, 0.1)]];
        let panel = |title: &str| Panel {
            title: title.into(),
            x_label: "load",
            curves: curves.clone(),
            y: Span::Shares(0.0, 1.0),
            marks: vec![],
            is_log: false,
        };
        let picture = svg(&[panel("a < b"), panel("c")], 2, &["edf".into(), "rm".into()]);
        assert_eq!(picture.matches("<polyline").count(), 4);
        assert!(picture.contains("a &lt; b") && !picture.contains("NaN"));
        assert!(picture.contains(">0.5<") && !picture.contains(">0.60<"), "ticks stand where there are points");
        assert!(picture.contains(">25%<"));
    }

    #[test]
    fn labels_of_ticks_do_not_overlap_and_the_last_one_stays() {
        let at: Vec<f64> = (0..12).map(|step| 1.0 + f64::from(step) / 8.0).collect();
        let labels: Vec<String> =
            legible(ticks(&at), |value| 40.0 * value).into_iter().map(|(_, label)| label).collect();
        assert!(labels.len() < 6 && labels.last().is_some_and(|label| label == "2.375"), "{labels:?}");
        assert_eq!(legible(ticks(&at), |value| 1000.0 * value).len(), 12);
        assert_eq!(ticks(&[]), []);
    }

    #[test]
    fn decades_are_as_far_apart_as_decades() {
        let panel = || Panel {
            title: "times".into(),
            x_label: "jobs",
            curves: vec![vec![(10.0, 1.0), (100.0, 10.0), (1000.0, 100.0)]],
            y: Span::Numbers(1.0, 100.0),
            marks: vec![],
            is_log: true,
        };
        let picture = svg(&[panel()], 1, &["a".into()]);
        let middle = format!("{},{}", (LEFT + WIDTH - RIGHT) / 2.0, (TOP + HEIGHT - BOTTOM) / 2.0);
        assert!(picture.contains(&middle), "{picture}");
        let shares = Panel { curves: vec![vec![(10.0, 0.5), (1000.0, 0.7)]], y: Span::Shares(0.5, 0.7), ..panel() };
        let picture = svg(&[shares], 1, &["a".into()]);
        assert!(picture.contains(">55%<") && picture.contains(">20<"), "shares stay evenly spaced: {picture}");
        assert_eq!(log_ticks(10.0, 1000.0), [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]);
        assert_eq!(log_ticks(1.0, 1e6).len(), 7);
    }

    #[test]
    fn one_phase_is_a_point_and_phases_are_whole() {
        let panel = |curve: Vec<(f64, f64)>| Panel {
            title: "loss".into(),
            x_label: "phase",
            curves: vec![Vec::new(), curve],
            y: Span::Numbers(-1.0, 3.0),
            marks: vec![(1.0, "ppo".into())],
            is_log: false,
        };
        let picture = svg(&[panel(vec![(1.0, 2.0)])], 1, &["a".into(), "b".into()]);
        assert!(picture.contains("<circle") && !picture.contains("NaN") && picture.contains(">2.000<"));
        assert!(!picture.contains("points=\"\""), "no empty line");
        let picture = svg(&[panel((1..=25).map(|x| (f64::from(x), 0.0)).collect())], 1, &["a".into(), "b".into()]);
        assert!([">1<", ">4<", ">25<"].iter().all(|label| picture.contains(label)) && !picture.contains(">1.00<"));
    }
}
