//! JSON text to nodes.
//!
//! `serde_json` reports line numbers only for syntax errors. Each value is therefore kept as a raw slice of the text,
//! and the position of the slice gives its line.

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::node::{Node, Table, Value};
use crate::{Lines, Problem, one_line};

/// Parses a JSON text. A repeated key is an error.
pub(super) fn parse(text: &str) -> Result<Node, Problem> {
    parse_with(text, false)
}

/// Like [`parse`], but accepts a key several times in one object, as some other tools do.
pub(super) fn parse_repeating(text: &str) -> Result<Node, Problem> {
    parse_with(text, true)
}

fn parse_with(text: &str, repeating: bool) -> Result<Node, Problem> {
    let lines = Lines::of(text);
    let root: &RawValue = serde_json::from_str(text).map_err(|error| broken(1, &error))?;
    node(JsonText { text, lines: &lines, repeating }, root, 0)
}

/// Deepest nesting that has a meaning in a task set.
const DEEPEST: usize = 16;

/// The text of which every raw value is a slice.
#[derive(Clone, Copy)]
struct JsonText<'a> {
    text: &'a str,
    lines: &'a Lines,
    /// Whether a key may occur twice in an object.
    repeating: bool,
}

/// Converts a raw value, a slice of `whole`, into a node.
fn node(whole: JsonText<'_>, raw: &RawValue, depth: usize) -> Result<Node, Problem> {
    let source = raw.get();
    let line = whole.lines.at(source.as_ptr() as usize - whole.text.as_ptr() as usize);
    if depth > DEEPEST {
        return Err(Problem::at(line, "nested too deeply"));
    }
    let fail = |error: serde_json::Error| broken(line, &error);
    let value = match source.as_bytes().first() {
        Some(b'{') => {
            let mut deserializer = serde_json::Deserializer::from_str(source);
            let pairs = deserializer.deserialize_map(EntriesVisitor).map_err(fail)?;
            let mut table = Table::default();
            for (key, raw) in pairs {
                let value = node(whole, raw, depth + 1)?;
                if !whole.repeating && table.entries.iter().any(|(known, _)| *known == key) {
                    return Err(Problem::at(value.line, format!("key {key:?} stands twice")));
                }
                table.entries.push((key, value));
            }
            Value::Table(table)
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(source).map_err(fail)?;
            Value::List(items.into_iter().map(|item| node(whole, item, depth + 1)).collect::<Result<_, _>>()?)
        }
        Some(b'"') => Value::Text(serde_json::from_str(source).map_err(fail)?),
        Some(b't') => Value::Bool(true),
        Some(b'f') => Value::Bool(false),
        Some(b'n') => return Err(Problem::at(line, "null has no meaning here: leave the key out")),
        _ => Value::Number(source.to_string()),
    };
    Ok(Node { line, value })
}

/// Converts a syntax error in a value that begins at `line`.
fn broken(line: usize, error: &serde_json::Error) -> Problem {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    Problem::at(line + error.line().saturating_sub(1), one_line(message))
}

/// Visitor that returns the entries of an object in order, repeated keys included.
struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs)
    }
}
