//! CSV text to nodes: one task per row, with columns named like the keys of TOML.
//!
//! The name of a time column may carry the unit (`period_us`). Cells are separated by commas or, as spreadsheets of
//! many countries write them, by semicolons or tabs. Lines that begin with `#` are comments. Empty cells are absent
//! keys.

use crate::keys::{JOB, Kind, NAME, Need, Spec, Specs, TASK};
use crate::node::{Node, Table, Value, cut, hint};
use crate::{Lines, Problem, one_line};

/// Returns the separator of cells: the one that is most frequent in the header, the first line that is not a comment.
pub(super) fn delimiter(text: &str) -> u8 {
    let header = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')).unwrap_or_default();
    let count = |delimiter: &u8| header.bytes().filter(|byte| byte == delimiter).count();
    // `max_by_key` returns the last of several maxima, so the comma wins a tie.
    [b'\t', b';', b','].into_iter().max_by_key(count).unwrap_or(b',')
}

/// Parses a CSV text into a root table with the list `task`.
pub(super) fn parse(text: &str) -> Result<Node, Problem> {
    let mut rows = Rows::of(text)?.only(&TASK)?;
    let mut tasks = Vec::new();
    while let Some(row) = rows.next_row()? {
        tasks.push(row);
    }
    if tasks.is_empty() {
        return Err(Problem::whole_file("has no tasks: write at least one row below the header"));
    }
    let tasks = Node { line: 1, value: Value::List(tasks) };
    Ok(Node { line: 1, value: Value::Table(Table { entries: vec![(TASK.what.into(), tasks)] }) })
}

/// Reader of CSV rows. Each row becomes a table of its non-empty cells by column.
pub(super) struct Rows<'a> {
    text: &'a str,
    lines: Lines,
    reader: ::csv::Reader<&'a [u8]>,
    columns: Vec<Column>,
    record: ::csv::StringRecord,
    delimiter: u8,
    /// Line of the header.
    header_line: usize,
    /// Whether a column without a name must be empty.
    is_strict: bool,
}

/// A column of a CSV.
struct Column {
    /// Name in the header.
    header: String,
    /// Name without the unit.
    key: String,
    /// Unit of bare numbers, if the header names one.
    unit: Option<&'static str>,
}

/// Returns whether a column holds times, so that its name may carry their unit. Files with measured times may have a
/// column `time`.
fn holds_times(column: &str) -> bool {
    let mut specs = TASK.specs().into_iter().chain(JOB.specs());
    let is_time = |spec: &Spec| spec.name == column && matches!(spec.kind, Kind::Time | Kind::PositiveTime);
    column == "time" || specs.any(is_time)
}

impl<'a> Rows<'a> {
    /// Creates a reader and reads the header.
    pub fn of(text: &'a str) -> Result<Rows<'a>, Problem> {
        let mut builder = ::csv::ReaderBuilder::new();
        let delimiter = delimiter(text);
        builder.comment(Some(b'#')).trim(::csv::Trim::All).delimiter(delimiter);
        let reader = builder.from_reader(text.as_bytes());
        let record = ::csv::StringRecord::new();
        let (lines, columns) = (Lines::of(text), Vec::new());
        let mut rows = Rows { text, lines, reader, columns, record, delimiter, header_line: 1, is_strict: false };
        let headers = rows.reader.headers().map_err(|error| broken(&error))?.clone();
        if headers.is_empty() {
            return Err(Problem::whole_file("is empty: a header such as name,period,wcet is expected"));
        }
        rows.header_line = rows.line_of(&headers);
        for header in &headers {
            let (stem, unit) = with_unit(header);
            let (key, unit) = if holds_times(stem) { (stem, unit) } else { (header, None) };
            if rows.columns.iter().any(|column| column.key == key) {
                return Err(Problem::at(rows.header_line, format!("column {key:?} stands twice")));
            }
            rows.columns.push(Column { header: header.to_string(), key: key.to_string(), unit });
        }
        Ok(rows)
    }

    /// Gives columns that have another name for a key the name of the key: pairs of both.
    pub fn with_synonyms(mut self, synonyms: &[(&str, &'static str)]) -> Result<Rows<'a>, Problem> {
        for at in 0..self.columns.len() {
            let (stem, unit) = with_unit(&self.columns[at].header);
            let meant = |key: &str| synonyms.iter().find(|(name, _)| *name == key).map(|(_, key)| *key);
            let whole = meant(&self.columns[at].header).map(|key| (key, None));
            let Some((key, unit)) = whole.or_else(|| Some((meant(stem)?, unit))) else { continue };
            if let Some(other) = self.columns.iter().find(|column| column.key == key) {
                let (one, other) = (&self.columns[at].header, &other.header);
                return Err(Problem::at(self.header_line, format!("columns {one:?} and {other:?} mean the same")));
            }
            (self.columns[at].key, self.columns[at].unit) = (key.into(), unit);
        }
        Ok(self)
    }

    /// Returns the line of the header if it has a column with this name, with or without a unit.
    pub fn line_of_column(&self, name: &str) -> Option<usize> {
        let is_meant = |column: &Column| column.header == name || with_unit(&column.header).0 == name;
        self.columns.iter().any(is_meant).then_some(self.header_line)
    }

    /// Refuses columns other than those of `table`, and a header without those that every row needs. A column without a
    /// name, as spreadsheets leave it behind, must be empty.
    pub fn only(mut self, table: &dyn Specs) -> Result<Rows<'a>, Problem> {
        let specs = table.specs();
        let known: Vec<&str> = specs.iter().filter_map(|spec| spec.column()).collect();
        let is_unknown = |column: &&Column| !column.key.is_empty() && !known.contains(&column.key.as_str());
        if let Some(column) = self.columns.iter().find(is_unknown) {
            let (header, hint) = (cut(&column.header), hint(&column.header, &known));
            return Err(Problem::at(self.header_line, format!("unknown column {header:?}{hint}")));
        }
        let has = |name: &str| self.columns.iter().any(|column| column.key == name);
        let is_missing = |spec: &&&Spec| match spec.need {
            Need::Required => !has(spec.name),
            Need::Unless(others) => !has(spec.name) && !others.iter().any(|other| has(other)),
            _ => false,
        };
        if let Some(spec) = specs.iter().find(is_missing) {
            return Err(Problem::at(self.header_line, format!("the header has no column {:?}", spec.name)));
        }
        self.is_strict = true;
        Ok(self)
    }

    /// Reads the next row as a table; `None` at the end.
    pub fn next_row(&mut self) -> Result<Option<Node>, Problem> {
        if !self.reader.read_record(&mut self.record).map_err(|error| self.located(&error))? {
            return Ok(None);
        }
        let line = self.line_of(&self.record);
        let mut entries = Vec::new();
        for (column, cell) in self.columns.iter().zip(&self.record) {
            if self.delimiter != b',' && column.key != NAME.name && has_decimal_comma(cell) {
                let header = &column.header;
                return Err(Problem::at(
                    line,
                    format!("{header} = {cell} has a decimal comma: write a point, {}", cell.replace(',', ".")),
                ));
            }
            if self.is_strict && column.key.is_empty() && !cell.is_empty() {
                return Err(Problem::at(line, format!("the column of {:?} has no name in the header", cut(cell))));
            }
            if !cell.is_empty() {
                entries.push((column.key.clone(), Node { line, value: Value::Cell(column.with_unit(cell)) }));
            }
        }
        Ok(Some(Node { line, value: Value::Table(Table { entries }) }))
    }

    /// Returns the key of the column with this header or key.
    pub fn key_of(&self, wanted: &str) -> Option<String> {
        let column = self.columns.iter().find(|column| column.header == wanted || column.key == wanted);
        column.map(|column| column.key.clone())
    }

    /// Returns the line of a record's first cell. The position that the reader reports may lie before blank lines and
    /// comments that precede the record.
    fn line_of(&self, record: &::csv::StringRecord) -> usize {
        let start = record.position().map_or(0, |position| position.byte() as usize).min(self.text.len());
        let mut at = start;
        for line in self.text[start..].split_inclusive('\n') {
            if !line.trim().is_empty() && !line.starts_with('#') {
                break;
            }
            at += line.len();
        }
        self.lines.at(at)
    }

    /// Converts an error of the reader, with the line of its record.
    fn located(&self, error: &::csv::Error) -> Problem {
        match error.position() {
            Some(position) => {
                let mut record = ::csv::StringRecord::new();
                record.set_position(Some(position.clone()));
                Problem { line: Some(self.line_of(&record)), ..broken(error) }
            }
            None => broken(error),
        }
    }
}

/// Returns the name of a column without the unit at its end, and the unit.
fn with_unit(header: &str) -> (&str, Option<&'static str>) {
    let units = [("_ns", "ns"), ("_us", "us"), ("_ms", "ms"), ("_s", "s")];
    let found = units.iter().find_map(|(ending, unit)| Some((header.strip_suffix(ending)?, Some(*unit))));
    found.unwrap_or((header, None))
}

impl Column {
    /// Appends the unit of the column to a cell, unless the cell has a unit of its own.
    fn with_unit(&self, cell: &str) -> String {
        match self.unit {
            Some(unit) if !cell.ends_with('s') => format!("{cell}{unit}"),
            _ => cell.to_string(),
        }
    }
}

/// Returns whether a cell is a number with a decimal comma, such as `2,5` or `2,5ms`, as spreadsheets of many countries
/// write it.
fn has_decimal_comma(cell: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    cell.split_once(',').is_some_and(|(whole, fraction)| {
        let whole = whole.strip_prefix(['-', '+']).unwrap_or(whole);
        !whole.is_empty() && digits(whole) == whole.len() && digits(fraction) > 0
    })
}

/// Converts an error of the reader.
fn broken(error: &::csv::Error) -> Problem {
    let line = error.position().map(|position| position.line() as usize);
    let message = match error.kind() {
        ::csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} cells where the header has {expected_len}")
        }
        _ => one_line(&error.to_string()),
    };
    Problem { file: None, line, message }
}
