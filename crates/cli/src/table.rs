//! Text tables with aligned columns, and numbers formatted for them.
//!
//! [`render_with`] is drawn by hand. `comfy-table` and `tabled` separate columns by padding cells, so their rule below
//! the header would be wider than the table and lines would end in spaces; cutting both off again takes more code than
//! these 20 lines, and a dependency. Cells are measured in columns of a terminal, of which many characters of East Asia
//! take two.

use unicode_width::UnicodeWidthStr;

/// Renders a table with the first column left-aligned and the others right-aligned.
pub fn render(header: &[&str], rows: &[Vec<String>]) -> String {
    render_with(header, rows, 1)
}

/// Renders a table with the first `words` columns left-aligned and the others right-aligned.
pub fn render_with(header: &[&str], rows: &[Vec<String>], words: usize) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].width());
        cells.chain([header[column].width()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.zip(&widths).enumerate().map(|(column, (cell, width))| {
            let padding = " ".repeat(width - cell.width());
            if column < words { format!("{cell}{padding}") } else { format!("{padding}{cell}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_string() + "\n"
    };
    let mut out = line(&mut header.iter().copied());
    out += &(widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join("──") + "\n");
    for row in rows {
        out += &line(&mut row.iter().map(String::as_str));
    }
    out
}

/// Greatest width of a table, in characters.
const WIDEST: usize = 100;

/// Renders a table as [`render_with`] does. One that is wider than 100 characters loses columns from the right, and a
/// line below it names them; `--json` has them all.
pub fn render_fitting(header: &[&str], rows: &[Vec<String>], words: usize) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].width());
        cells.chain([header[column].width()]).max().unwrap_or(0)
    };
    let mut total = 0;
    let fits = |column: &usize| {
        total += width(*column) + if *column > 0 { 2 } else { 0 };
        total <= WIDEST
    };
    let kept = (0..header.len()).take_while(fits).count().max(2).min(header.len());
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row[..kept].to_vec()).collect();
    let mut out = render_with(&header[..kept], &rows, words);
    if kept < header.len() {
        out += &format!("columns left out: {}; --json has them\n", header[kept..].join(", "));
    }
    out
}

/// Renders a Markdown table with the first column left-aligned and the others right-aligned.
pub fn markdown(header: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &mut dyn Iterator<Item = &str>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    let rule = format!("|---|{}\n", "--:|".repeat(header.len().saturating_sub(1)));
    let body = rows.iter().map(|row| line(&mut row.iter().map(String::as_str)));
    line(&mut header.iter().copied()) + &rule + &body.collect::<String>()
}

/// Formats a time in nanoseconds with four significant digits and a suitable unit.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        0.0 => return "0".into(),
        size if size >= 1e9 => (ns / 1e9, "s"),
        size if size >= 1e6 => (ns / 1e6, "ms"),
        size if size >= 1e3 => (ns / 1e3, "us"),
        _ => (ns, "ns"),
    };
    let digits = 3 - (value.abs().max(1.0).log10().floor() as usize).min(3);
    format!("{value:.digits$}{unit}")
}

pub use temponet_wording::grouped as count;

/// Formats a number with six significant digits, for text and CSV files.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size == 0.0 || (1e-4..1e6).contains(&size) => {
            let digits = 5 - (size.max(1e-4).log10().floor() as i32);
            let text = format!("{value:.*}", digits.clamp(0, 9) as usize);
            if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
        }
        size if size.is_finite() => format!("{value:.5e}"),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(count(12), "12");
        assert_eq!(time(12_345_678.0), "12.35ms");
        assert_eq!(time(-999.0), "-999.0ns");
        assert_eq!(time(1.5e9), "1.500s");
        assert_eq!(time(0.0), "0");
        assert_eq!(number(0.1 + 0.2), "0.3");
        assert_eq!(number(-0.123_456_789), "-0.123457");
        assert_eq!((number(0.0), number(12.0), number(123_456.7)), ("0".into(), "12".into(), "123457".into()));
        assert_eq!((number(1.0 / 3e9), number(2e20 / 3.0)), ("3.33333e-10".into(), "6.66667e19".into()));
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let rows = vec![vec!["日本".into(), "10".into()], vec!["long".into(), "語".into()]];
        assert_eq!(render(&["a", "b"], &rows), "a      b\n────────\n日本  10\nlong  語\n");
    }

    #[test]
    fn a_wide_table_says_what_it_left_out() {
        let header = ["scheduler", "met", "response", "preempt/job"];
        let row = vec!["edf".to_string(), "9".repeat(60), "8".repeat(30), "1.00".into()];
        let text = render_fitting(&header, &[row], 1);
        assert!(text.lines().take(3).all(|line| line.chars().count() <= WIDEST), "{text}");
        assert!(text.ends_with("columns left out: response, preempt/job; --json has them\n"), "{text}");
        let narrow = vec![vec!["a".into(), "10".into()]];
        assert_eq!(render_fitting(&["name", "n"], &narrow, 1), render(&["name", "n"], &narrow));
    }

    #[test]
    fn columns_align() {
        let rows = vec![vec!["a".into(), "10".into()], vec!["long".into(), "5".into()]];
        assert_eq!(markdown(&["name", "n"], &rows), "| name | n |\n|---|--:|\n| a | 10 |\n| long | 5 |\n");
        assert_eq!(render(&["name", "n"], &rows), "name   n\n────────\na     10\nlong   5\n");
    }
}
