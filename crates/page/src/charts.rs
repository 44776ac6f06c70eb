//! Charts other than line charts: grids of shaded cells, grouped bars, and histograms.
//!
//! Line charts are in [`plot`](super::plot). Each chart also says in words what it shows, for screen readers.

use super::colours::{ink_on, shade};
use super::svg::{Svg, fill, line, rect, text};

const CELL: (f64, f64) = (62.0, 30.0);
const TOP: f64 = 10.0;
/// Approximate width of a letter, as a fraction of the font size.
const LETTER: f64 = 0.58;

/// A table of numbers drawn as shaded cells, the greatest brightest, with a color scale beside it.
pub struct Grid {
    /// Label of the column axis.
    pub x_label: String,
    /// Label of the row axis.
    pub y_label: String,
    /// Names of the columns, from the left; an empty name leaves a column unlabeled.
    pub columns: Vec<String>,
    /// Names of the rows, from the top.
    pub rows: Vec<String>,
    /// Values, row by row; `None` where there is no value.
    pub cells: Vec<Vec<Option<f64>>>,
    /// Formats the value inside a cell; `None` draws the shade alone.
    pub label: Option<fn(f64) -> String>,
    /// Width and height of a cell, in pixels; `None` makes it wide enough for a label.
    pub cell: Option<(f64, f64)>,
    /// Values at the two ends of the scale; `None` takes the least and the greatest value.
    pub span: Option<(f64, f64)>,
}

impl Grid {
    /// Draws the grid for use inside a page.
    pub fn svg(&self) -> String {
        self.picture(|_, _| None).inline()
    }

    /// Draws the grid; `says` returns the tooltip of the cell in a given row and column.
    pub fn picture(&self, says: impl Fn(usize, usize) -> Option<String>) -> Svg {
        let (wide, tall) = self.cell.unwrap_or(CELL);
        let known = || self.cells.iter().flatten().flatten().copied().filter(|value| value.is_finite());
        let ends = known().fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = self.span.unwrap_or(ends);
        let font = (tall * 0.9).clamp(7.0, 12.0);
        let longest = |names: &[String]| names.iter().map(|name| name.chars().count()).max().unwrap_or(0) as f64;
        let left = (32.0 + LETTER * font * longest(&self.rows)).max(60.0);
        // Names that are wider than their column are turned upright.
        let is_upright = longest(&self.columns) * LETTER * font > wide;
        let below = if is_upright { 12.0 + LETTER * font * longest(&self.columns) } else { 18.0 };
        let (bottom, right) =
            (TOP + tall * self.rows.len() as f64, left + wide * self.cells.first().map_or(0, Vec::len) as f64);
        let width = right.max(left + 7.0 * self.x_label.chars().count() as f64) + 84.0;
        let words =
            format!("{} by {}; the figures are in the text or the table beside it.", self.y_label, self.x_label);
        let mut out = Svg::new(width, (bottom + below + 26.0).max(TOP + 100.0), &words).font(font);
        for (row, cells) in self.cells.iter().enumerate() {
            let y = TOP + tall * row as f64;
            for (column, value) in cells.iter().enumerate() {
                let x = left + wide * column as f64;
                let Some(value) = value else { continue };
                let share = if high > low { (value - low) / (high - low) } else { 1.0 };
                let cell = rect(x, y, wide, tall).shade(&shade(share)).class("ring").width(0.5);
                out.add(match says(row, column) {
                    Some(words) => cell.title(&words),
                    None => cell,
                });
                if let Some(label) = self.label {
                    let (x, y) = (x + wide / 2.0, y + tall / 2.0 + 4.0);
                    out.add(text(x, y, &label(*value)).middle().set("style", &format!("fill:{}", ink_on(share))));
                }
            }
        }
        // Leave names out where they would overlap.
        let each = |step: f64| (font / step).ceil().max(1.0) as usize;
        for (row, name) in self.rows.iter().enumerate().step_by(each(tall)) {
            out.add(text(left - 6.0, TOP + tall * (row as f64 + 0.5) + 0.35 * font, name).end());
        }
        for (column, name) in self.columns.iter().enumerate().step_by(if is_upright { each(wide) } else { 1 }) {
            let x = left + wide * (column as f64 + 0.5);
            out.add(match is_upright {
                true => {
                    let (x, y) = (x + 0.35 * font, bottom + 6.0);
                    text(x, y, name).end().turned(-90.0, x, y)
                }
                false => text(x, bottom + 15.0, name).middle(),
            });
        }
        out.add(text(left, bottom + below + 16.0, &self.x_label).class("soft"));
        let middle = (TOP + bottom) / 2.0;
        out.add(text(14.0, middle, &self.y_label).class("soft").middle().turned(-90.0, 14.0, middle));
        if high > low {
            scale(&mut out, right + 16.0, (low, high), self.label);
        }
        out
    }
}

/// Draws the color scale of a grid, from bottom to top, with a value at each end.
fn scale(out: &mut Svg, x: f64, (low, high): (f64, f64), label: Option<fn(f64) -> String>) {
    let (steps, tall) = (16, 5.0);
    for step in 0..steps {
        let y = TOP + tall * f64::from(steps - 1 - step);
        out.add(rect(x, y, 12.0, tall + 0.3).shade(&shade(f64::from(step) / f64::from(steps - 1))));
    }
    let words = |value: f64| label.map_or_else(|| format!("{value:.2}"), |label| label(value));
    for (value, y) in [(high, TOP + 9.0), (low, TOP + tall * f64::from(steps))] {
        out.add(text(x + 16.0, y, &words(value)).class("soft").size(10.0));
    }
}

/// Draws grouped bars: in each group one bar per series, from zero to `top`. `label` formats the value of a bar. Values
/// that are not finite have no bar.
pub fn bars(groups: &[String], series: &[(String, Vec<f64>)], top: f64, label: fn(f64) -> String) -> String {
    let (tall, above) = (190.0, 44.0);
    let bar = (560.0 / (groups.len() * (series.len() + 1)).max(1) as f64).clamp(18.0, 46.0);
    let step = bar * (series.len() + 1) as f64;
    let width = 60.0 + (step * groups.len() as f64).max(legend_width(series));
    let mut words = String::new();
    for (place, group) in groups.iter().enumerate() {
        let of = |(name, values): &(String, Vec<f64>)| {
            let value = values.get(place).filter(|value| value.is_finite())?;
            Some(format!("{name} {}", label(*value)))
        };
        words += &format!("{group}: {}. ", series.iter().filter_map(of).collect::<Vec<_>>().join(", "));
    }
    let mut out = Svg::new(width, above + tall + 30.0, &words);
    let mut left = 20.0;
    for (index, (name, _)) in series.iter().enumerate() {
        out.add(rect(left, 8.0, 12.0, 12.0).class(&fill(index)));
        out.add(text(left + 17.0, 18.0, name));
        left += entry_width(name);
    }
    for (place, group) in groups.iter().enumerate() {
        let start = 20.0 + step * place as f64;
        for (index, (name, values)) in series.iter().enumerate() {
            let Some(value) = values.get(place).filter(|value| value.is_finite()) else { continue };
            let (x, long) = (start + bar * index as f64, tall * (value / top).clamp(0.0, 1.0));
            let y = above + tall - long;
            let shown = label(*value);
            out.add(rect(x, y, bar - 3.0, long).class(&fill(index)).title(&format!("{name}: {shown}")));
            out.add(text(x + bar / 2.0 - 1.5, y - 4.0, &shown).middle().size(10.0));
        }
        let middle = start + bar * series.len() as f64 / 2.0;
        out.add(text(middle, above + tall + 18.0, group).middle());
    }
    let floor = above + tall;
    out.add(line((16.0, floor), (width - 16.0, floor)).class("axis"));
    out.inline()
}

fn entry_width(name: &str) -> f64 {
    36.0 + 6.8 * name.chars().count() as f64
}

fn legend_width(series: &[(String, Vec<f64>)]) -> f64 {
    series.iter().map(|(name, _)| entry_width(name)).sum()
}

/// Draws histograms over each other. Each series has a name and the shares, 0 to 1, of equal steps of `range`.
pub fn histogram(range: (f64, f64), series: &[(&str, &[f64])]) -> String {
    let (left, width, top, height) = (44.0, 520.0, 26.0, 160.0);
    let most = series.iter().flat_map(|(_, bars)| bars.iter()).copied().fold(f64::MIN_POSITIVE, f64::max);
    let names: Vec<&str> = series.iter().map(|(name, _)| *name).collect();
    let words = format!(
        "Histogram of {} from {:.2} to {:.2}; the highest bar is {:.0}%.",
        names.join(" and "),
        range.0,
        range.1,
        100.0 * most
    );
    let mut out = Svg::new(width + 2.0 * left, top + height + 24.0, &words).font(11.0);
    let mut at = left;
    for (index, name) in names.iter().enumerate() {
        out.add(rect(at, 4.0, 12.0, 12.0).class(&fill(index)).set("fill-opacity", "0.6"));
        out.add(text(at + 17.0, 14.0, name));
        at += entry_width(name);
    }
    for (index, (_, bars)) in series.iter().enumerate() {
        let step = width / bars.len().max(1) as f64;
        for (place, share) in bars.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            let tall = height * share / most;
            let bar = rect(left + step * place as f64, top + height - tall, step - 1.0, tall).class(&fill(index));
            out.add(bar.set("fill-opacity", "0.6"));
        }
    }
    out.add(line((left, top + height), (left + width, top + height)).class("axis"));
    out.add(text(left - 6.0, top + 10.0, &format!("{:.0}%", 100.0 * most)).end().class("soft"));
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        let value = range.0 + share * (range.1 - range.0);
        out.add(text(left + width * share, top + height + 16.0, &format!("{value:.2}")).middle().class("soft"));
    }
    out.inline()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_for_everything_that_is_known() {
        let cells = vec![vec![Some(0.5), None], vec![Some(0.9), Some(0.7)]];
        let grid = Grid {
            x_label: "width".into(),
            y_label: "bin < 2".into(),
            columns: vec!["16".into(), "64".into()],
            rows: vec!["a".into(), "b".into()],
            cells,
            label: Some(|value| format!("{value:.2}")),
            cell: None,
            span: None,
        };
        let picture = grid.svg();
        assert_eq!(picture.matches("<rect").count(), 3 + 16, "three cells and the scale");
        assert!(picture.contains("bin &lt; 2") && picture.contains(">0.90<") && !picture.contains("NaN"));
        assert!(picture.contains(&shade(0.0)) && picture.contains(&shade(0.5)) && picture.contains(&shade(1.0)));
    }

    #[test]
    fn a_bar_for_each_series_in_each_group() {
        let series = [("edf".to_string(), vec![0.5, 1.0]), ("rm".to_string(), vec![0.25, f64::NAN])];
        let picture = bars(&["x".into(), "y".into()], &series, 1.0, |value| format!("{value:.2}"));
        assert_eq!(picture.matches("<title>").count(), 3, "what is no number has no bar");
        assert!(!picture.contains("NaN") && picture.contains("height=\"190\""));
    }

    #[test]
    fn long_names_below_a_grid_are_written_upwards() {
        let grid = |column: &str| Grid {
            x_label: "asked".into(),
            y_label: "asks".into(),
            columns: vec![column.into()],
            rows: vec!["idle".into()],
            cells: vec![vec![Some(1.0)]],
            label: None,
            cell: Some((20.0, 20.0)),
            span: Some((0.0, 1.0)),
        };
        assert!(
            grid("Weapon_Release#12").svg().contains("rotate(-90 ") && grid("Weapon_Release#12").svg().contains("#12<")
        );
        assert_eq!(grid("a").svg().matches("rotate(").count(), 1, "the label of the rows only");
    }

    #[test]
    fn a_histogram_has_a_bar_for_each_share_and_names_its_series() {
        let picture = histogram((0.0, 2.0), &[("others", &[0.5, 0.0]), ("chosen", &[0.25, 0.75])]);
        assert_eq!(picture.matches("fill-opacity").count(), 3 + 2);
        assert!(picture.contains(">chosen<") && picture.contains(">75%<") && !picture.contains("NaN"));
    }
}
