//! TOML text to nodes. Numbers keep the text they were written as, so that times are exact.

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};

use crate::node::{Node, Table, Value};
use crate::{Lines, Problem, one_line};

/// Parses a TOML text.
pub(super) fn parse(text: &str) -> Result<Node, Problem> {
    let lines = Lines::of(text);
    let root = DeTable::parse(text).map_err(|error| Problem {
        file: None,
        line: error.span().map(|span| lines.at(span.start)),
        message: one_line(&message(text, &error)),
    })?;
    Ok(Node { line: 1, value: Value::Table(table(&lines, root.get_ref())) })
}

/// Returns what is wrong with a text that is not TOML. A key that stands twice is named.
pub(super) fn message(text: &str, error: &::toml::de::Error) -> String {
    match error.span().and_then(|span| text.get(span)) {
        Some(key) if error.message() == "duplicate key" => {
            format!("key {:?} stands twice", key.trim_matches(['"', '\'']))
        }
        _ => error.message().into(),
    }
}

fn table(lines: &Lines, entries: &DeTable<'_>) -> Table {
    let entries = entries.iter().map(|(key, value)| (key.get_ref().to_string(), node(lines, value)));
    Table { entries: entries.collect() }
}

/// Converts a value into a node with its line.
fn node(lines: &Lines, spanned: &Spanned<DeValue<'_>>) -> Node {
    let value = match spanned.get_ref() {
        DeValue::String(content) => Value::Text(content.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Value::Number(number.as_str().to_string()),
        DeValue::Integer(number) => match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(value) => Value::Number(value.to_string()),
            Err(_) => Value::Number("overflow".into()),
        },
        DeValue::Float(number) => Value::Number(number.as_str().to_string()),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(items) => Value::List(items.iter().map(|item| node(lines, item)).collect()),
        DeValue::Table(entries) => Value::Table(table(lines, entries)),
    };
    Node { line: lines.at(spanned.span().start), value }
}
