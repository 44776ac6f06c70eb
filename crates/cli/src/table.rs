//! Aligned columns for people.

/// The first column to the left, the others to the right.
pub fn render(header: &[&str], rows: &[Vec<String>]) -> String {
    render_with(header, rows, 1)
}

/// The first `words` columns to the left, the others to the right.
pub fn render_with(header: &[&str], rows: &[Vec<String>], words: usize) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.zip(&widths).enumerate().map(|(column, (cell, width))| match column < words {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
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

/// A Markdown table: the first column to the left, the others to the right.
pub fn markdown(header: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &mut dyn Iterator<Item = &str>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    let rule = format!("|---|{}\n", "--:|".repeat(header.len().saturating_sub(1)));
    let body = rows.iter().map(|row| line(&mut row.iter().map(String::as_str)));
    line(&mut header.iter().copied()) + &rule + &body.collect::<String>()
}

/// A time for people: four significant digits and a fitting unit.
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

/// A number of things: 1 task, 2 tasks.
pub fn counted(number: usize, noun: &str) -> String {
    format!("{} {noun}{}", count(number as u64), if number == 1 { "" } else { "s" })
}

/// 1234567 as 1 234 567.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(count(12), "12");
        assert_eq!((counted(1, "task"), counted(2, "core")), ("1 task".into(), "2 cores".into()));
        assert_eq!(time(12_345_678.0), "12.35ms");
        assert_eq!(time(-999.0), "-999.0ns");
        assert_eq!(time(1.5e9), "1.500s");
        assert_eq!(time(0.0), "0");
    }

    #[test]
    fn columns_align() {
        let rows = vec![vec!["a".into(), "10".into()], vec!["long".into(), "5".into()]];
        assert_eq!(markdown(&["name", "n"], &rows), "| name | n |\n|---|--:|\n| a | 10 |\n| long | 5 |\n");
        assert_eq!(render(&["name", "n"], &rows), "name   n\n────────\na     10\nlong   5\n");
    }
}
