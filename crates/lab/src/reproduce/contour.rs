//! A grid of shares as a filled contour: a cell for each measured value, shaded from the least to the greatest.

use std::fmt::Write;

use crate::stats::percent;

const CELL: (f64, f64) = (96.0, 44.0);
const LEFT: f64 = 60.0;
const TOP: f64 = 30.0;

/// The picture of shares by row width (upwards) and bin width (to the right); `shares` has the bin widths of the first row width first.
pub fn contour(deltas: &[f64], widths: &[usize], shares: &[f64]) -> String {
    let (low, high) = shares.iter().fold((1.0f64, 0.0f64), |(low, high), share| (low.min(*share), high.max(*share)));
    let across = if high > low { high - low } else { 1.0 };
    let (columns, rows) = (deltas.len() as f64, widths.len() as f64);
    let (width, height) = (LEFT + CELL.0 * columns + 20.0, TOP + CELL.1 * rows + 44.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"8\" y=\"18\">d</text>\n"
    );
    for (row, d) in widths.iter().enumerate() {
        let y = TOP + CELL.1 * (rows - 1.0 - row as f64);
        let _ =
            writeln!(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{d}</text>", LEFT - 8.0, y + CELL.1 / 2.0 + 4.0);
        for column in 0..deltas.len() {
            let Some(share) = shares.get(row * deltas.len() + column) else { continue };
            let (x, part) = (LEFT + CELL.0 * column as f64, (share - low) / across);
            // From pale to a full blue; dark cells have pale letters.
            let lightness = 94.0 - 58.0 * part;
            let ink = if part > 0.55 { "white" } else { "#222" };
            let _ = writeln!(
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"hsl(208 70% {lightness:.0}%)\"/>\
                 <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"{ink}\">{}</text>",
                CELL.0,
                CELL.1,
                x + CELL.0 / 2.0,
                y + CELL.1 / 2.0 + 4.0,
                percent(*share)
            );
        }
    }
    let bottom = TOP + CELL.1 * rows;
    for (column, delta) in deltas.iter().enumerate() {
        let x = LEFT + CELL.0 * (column as f64 + 0.5);
        let _ = writeln!(out, "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{delta}</text>", bottom + 18.0);
    }
    let _ = writeln!(out, "<text x=\"{LEFT}\" y=\"{}\">Δ, in median wcets</text>\n</svg>", bottom + 36.0);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_for_each_value_the_best_the_darkest() {
        let picture = contour(&[0.1, 1.0], &[8, 16], &[0.5, 0.6, 0.7, 0.9]);
        assert_eq!(picture.matches("<rect x=").count(), 4);
        assert!(picture.contains("hsl(208 70% 36%)") && picture.contains(">90.00%<"));
        assert!(!contour(&[0.1], &[8], &[0.5]).contains("NaN"));
    }
}
