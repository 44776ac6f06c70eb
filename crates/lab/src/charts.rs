//! Pictures that are no curves: grids of shaded cells, and bars in groups.

use std::fmt::Write;

use crate::gantt::{PALETTE, escape};

const LABELS: f64 = 96.0;
const CELL: (f64, f64) = (62.0, 30.0);
const TOP: f64 = 10.0;
const SHADE: &str = "#0b6e4f";

/// A table of numbers as shaded cells, the greatest darkest.
pub struct Grid {
    /// What the columns are.
    pub x_label: String,
    /// What the rows are.
    pub y_label: String,
    /// The columns, from the left.
    pub columns: Vec<String>,
    /// The rows, from the top.
    pub rows: Vec<String>,
    /// Row after row; none where nothing is known.
    pub cells: Vec<Vec<Option<f64>>>,
    /// What a cell says; none: it is only shaded.
    pub label: Option<fn(f64) -> String>,
    /// Width and height of a cell; none: wide enough for a label.
    pub cell: Option<(f64, f64)>,
}

impl Grid {
    /// The picture.
    pub fn svg(&self) -> String {
        let (wide, tall) = self.cell.unwrap_or(CELL);
        let known = self.cells.iter().flatten().flatten().copied();
        let (low, high) = known.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let (bottom, right) = (TOP + tall * self.rows.len() as f64, LABELS + wide * self.columns.len() as f64);
        let (width, height) = (right.max(LABELS + 7.0 * self.x_label.chars().count() as f64) + 16.0, bottom + 44.0);
        let mut out = begin(width, height);
        for (row, cells) in self.cells.iter().enumerate() {
            let y = TOP + tall * row as f64;
            for (column, value) in cells.iter().enumerate() {
                let x = LABELS + wide * column as f64;
                let Some(value) = value else { continue };
                let share = if high > low { (value - low) / (high - low) } else { 1.0 };
                let _ = write!(
                    out,
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{tall:.1}\" fill=\"{SHADE}\" fill-opacity=\"{:.3}\" \
                     stroke=\"#dfe5ea\" stroke-width=\"0.5\"/>",
                    0.04 + 0.9 * share
                );
                if let Some(label) = self.label {
                    let colour = if share > 0.55 { "white" } else { "#1c2733" };
                    let (x, y) = (x + wide / 2.0, y + tall / 2.0 + 4.0);
                    let text = escape(&label(*value));
                    let _ = write!(
                        out,
                        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"{colour}\">{text}</text>"
                    );
                }
            }
        }
        for (row, name) in self.rows.iter().enumerate() {
            let y = TOP + tall * (row as f64 + 0.5) + 4.0;
            let _ =
                write!(out, "<text x=\"{}\" y=\"{y:.1}\" text-anchor=\"end\">{}</text>", LABELS - 6.0, escape(name));
        }
        for (column, name) in self.columns.iter().enumerate() {
            let x = LABELS + wide * (column as f64 + 0.5);
            let _ = write!(
                out,
                "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 15.0,
                escape(name)
            );
        }
        let _ = write!(
            out,
            "<text x=\"{LABELS}\" y=\"{}\" fill=\"#5c6b7a\">{}</text>",
            bottom + 36.0,
            escape(&self.x_label)
        );
        let middle = (TOP + bottom) / 2.0;
        let _ = write!(
            out,
            "<text x=\"14\" y=\"{middle:.1}\" fill=\"#5c6b7a\" text-anchor=\"middle\" transform=\"rotate(-90 14 {middle:.1})\">{}</text>",
            escape(&self.y_label)
        );
        out + "</svg>\n"
    }
}

fn begin(width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    )
}

/// Bars beside each other: for each group one of every series, from zero to `top`. `label` says what a bar shows.
pub fn bars(groups: &[String], series: &[(String, Vec<f64>)], top: f64, label: fn(f64) -> String) -> String {
    let (tall, above) = (190.0, 44.0);
    let bar = (560.0 / (groups.len() * (series.len() + 1)).max(1) as f64).clamp(18.0, 46.0);
    let step = bar * (series.len() + 1) as f64;
    let width = 60.0 + (step * groups.len() as f64).max(legend_width(series));
    let mut out = begin(width, above + tall + 30.0);
    let mut left = 20.0;
    for (index, (name, _)) in series.iter().enumerate() {
        let colour = PALETTE[index % PALETTE.len()];
        let _ = write!(
            out,
            "<rect x=\"{left:.1}\" y=\"8\" width=\"12\" height=\"12\" fill=\"{colour}\"/><text x=\"{:.1}\" y=\"18\">{}</text>",
            left + 17.0,
            escape(name)
        );
        left += entry_width(name);
    }
    for (place, group) in groups.iter().enumerate() {
        let start = 20.0 + step * place as f64;
        for (index, (name, values)) in series.iter().enumerate() {
            let Some(value) = values.get(place).filter(|value| value.is_finite()) else { continue };
            let (x, long) = (start + bar * index as f64, tall * (value / top).clamp(0.0, 1.0));
            let y = above + tall - long;
            let shown = label(*value);
            let _ = write!(
                out,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{long:.1}\" fill=\"{}\"><title>{}: {shown}</title></rect>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"10\">{shown}</text>",
                bar - 3.0,
                PALETTE[index % PALETTE.len()],
                escape(name),
                x + bar / 2.0 - 1.5,
                y - 4.0
            );
        }
        let middle = start + bar * series.len() as f64 / 2.0;
        let _ = write!(
            out,
            "<text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            above + tall + 18.0,
            escape(group)
        );
    }
    let floor = above + tall;
    let _ = write!(out, "<line x1=\"16\" x2=\"{:.0}\" y1=\"{floor}\" y2=\"{floor}\" stroke=\"#999\"/>", width - 16.0);
    out + "</svg>\n"
}

fn entry_width(name: &str) -> f64 {
    36.0 + 6.8 * name.chars().count() as f64
}

fn legend_width(series: &[(String, Vec<f64>)]) -> f64 {
    series.iter().map(|(name, _)| entry_width(name)).sum()
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
        };
        let picture = grid.svg();
        assert_eq!(picture.matches("<rect").count(), 4, "three cells and the ground");
        assert!(picture.contains("bin &lt; 2") && picture.contains(">0.90<") && !picture.contains("NaN"));
        assert!(picture.contains("fill-opacity=\"0.940\"") && picture.contains("fill-opacity=\"0.040\""));
    }

    #[test]
    fn a_bar_for_each_series_in_each_group() {
        let series = [("edf".to_string(), vec![0.5, 1.0]), ("rm".to_string(), vec![0.25, f64::NAN])];
        let picture = bars(&["x".into(), "y".into()], &series, 1.0, |value| format!("{value:.2}"));
        assert_eq!(picture.matches("<title>").count(), 3, "what is no number has no bar");
        assert!(!picture.contains("NaN") && picture.contains("height=\"190.0\""));
    }
}
