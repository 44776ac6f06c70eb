//! CSV text to nodes: one task a row, the columns named as the keys of TOML. A time column may carry its unit in its
//! name (`period_us`). Lines that begin with `#` are comments, empty cells are absent keys.

use super::node::{Node, Table, Value};
use super::{Problem, one_line};

pub(super) fn parse(text: &str) -> Result<Node, Problem> {
    let mut reader = reader(text);
    let columns = columns(&mut reader)?;
    let mut tasks = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| broken(&error))?;
        let line = line_of_record(&record);
        let mut entries = Vec::new();
        for (column, cell) in columns.iter().zip(&record) {
            if !cell.is_empty() {
                entries.push((column.key.clone(), Node { line, value: Value::Cell(column.with_unit(cell)) }));
            }
        }
        tasks.push(Node { line, value: Value::Table(Table { entries }) });
    }
    let tasks = Node { line: 1, value: Value::List(tasks) };
    Ok(Node { line: 1, value: Value::Table(Table { entries: vec![("task".into(), tasks)] }) })
}

/// A column: its key, and the unit of its bare numbers if the header names one.
pub(super) struct Column {
    pub key: String,
    unit: Option<&'static str>,
}

impl Column {
    /// The cell with the column's unit after it, unless it has one of its own.
    pub fn with_unit(&self, cell: &str) -> String {
        match self.unit {
            Some(unit) if !cell.ends_with('s') => format!("{cell}{unit}"),
            _ => cell.to_string(),
        }
    }
}

pub(super) fn reader(text: &str) -> ::csv::Reader<&[u8]> {
    ::csv::ReaderBuilder::new().comment(Some(b'#')).trim(::csv::Trim::All).from_reader(text.as_bytes())
}

pub(super) fn columns(reader: &mut ::csv::Reader<&[u8]>) -> Result<Vec<Column>, Problem> {
    let headers = reader.headers().map_err(|error| broken(&error))?;
    if headers.is_empty() {
        return Err(Problem::whole_file("is empty: a header such as name,period,wcet is expected"));
    }
    let mut columns: Vec<Column> = Vec::new();
    for header in headers {
        let units = [("_ns", "ns"), ("_us", "us"), ("_ms", "ms"), ("_s", "s")];
        let unit = units.iter().find_map(|(ending, unit)| Some((header.strip_suffix(ending)?, *unit)));
        let (key, unit) = unit.map_or((header, None), |(key, unit)| (key, Some(unit)));
        if columns.iter().any(|column| column.key == key) {
            return Err(Problem::at(line_of_record(headers), format!("column {key:?} stands twice")));
        }
        columns.push(Column { key: key.to_string(), unit });
    }
    Ok(columns)
}

pub(super) fn line_of_record(record: &::csv::StringRecord) -> usize {
    record.position().map_or(1, |position| position.line() as usize)
}

pub(super) fn broken(error: &::csv::Error) -> Problem {
    let line = error.position().map(|position| position.line() as usize);
    let message = match error.kind() {
        ::csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} cells where the header has {expected_len}")
        }
        _ => one_line(&error.to_string()),
    };
    Problem { file: None, line, message }
}
