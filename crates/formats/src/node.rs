//! Values with their lines, and strict reading of tables: the common form of all file formats.

use temponet_task::{Time, TimeUnit, without_separators};
use temponet_wording::did_you_mean;

use crate::Problem;
use crate::keys::NAME;

/// A value of a file, with its line.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Line number, from 1.
    pub line: usize,
    pub value: Value,
}

/// A value of a file.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A number as written, which keeps times exact.
    Number(String),
    /// A quoted text.
    Text(String),
    /// A CSV cell, which is read as a number, a text or a boolean depending on its key.
    Cell(String),
    /// A date or a time of day, which no key has.
    Date(String),
    Bool(bool),
    List(Vec<Node>),
    Table(Table),
}

/// Entries of a table in the order of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub entries: Vec<(String, Node)>,
}

/// Shortens a long text for messages.
pub(super) fn cut(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// Returns the end of the message about an unknown key: the known key that was probably meant, or all of them.
pub(super) fn hint(key: &str, known: &[&str]) -> String {
    // The name of a CSV column may carry a unit.
    let without_unit = key.rsplit_once('_').filter(|(_, unit)| TimeUnit::from_name(unit).is_some()).map(|(key, _)| key);
    let mut hints = [Some(key), without_unit].into_iter().flatten().map(|key| did_you_mean(key, known.iter().copied()));
    match hints.find(|hint| !hint.is_empty()).unwrap_or_default() {
        hint if hint.is_empty() => format!("; known are {}", known.join(", ")),
        hint => hint,
    }
}

impl Node {
    /// Creates the error for this value.
    fn is_wrong(&self, message: impl std::fmt::Display) -> Problem {
        Problem::at(self.line, message.to_string())
    }

    /// Returns the value as the user wrote it, for messages: on one line, and shortened if it is long.
    pub fn shown(&self) -> String {
        match &self.value {
            Value::Number(text) | Value::Cell(text) if !text.contains(char::is_control) => cut(text),
            Value::Number(text) | Value::Cell(text) | Value::Text(text) => format!("{:?}", cut(text)),
            Value::Date(date) => date.clone(),
            Value::Bool(value) => value.to_string(),
            Value::List(_) => "a list".into(),
            Value::Table(_) => "a table".into(),
        }
    }

    /// Like [`Node::shown`], with the items of lists and the entries of tables.
    pub fn written(&self) -> String {
        let items = match &self.value {
            Value::List(list) => format!("[{}]", list.iter().map(Node::written).collect::<Vec<_>>().join(", ")),
            Value::Table(table) => {
                let entries = table.entries.iter().map(|(key, node)| format!("{key} = {}", node.written()));
                format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
            }
            _ => return self.shown(),
        };
        cut(&items)
    }

    /// Returns the table. `what` names the value in the error.
    pub fn table(&self, what: &str) -> Result<&Table, Problem> {
        match &self.value {
            Value::Table(table) => Ok(table),
            _ => Err(self.is_wrong(format_args!("{what} must be a table, not {}", self.shown()))),
        }
    }

    /// Returns the entry of a table with this key, if there is one.
    pub fn entry(&self, key: &str) -> Option<&Node> {
        let Value::Table(table) = &self.value else { return None };
        table.entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// Returns the items of the list. `what` names the value in the error.
    pub fn list(&self, what: &str) -> Result<&[Node], Problem> {
        match &self.value {
            Value::List(list) => Ok(list),
            _ => Err(self.is_wrong(format_args!("{what} must be a list, not {}", self.shown()))),
        }
    }

    /// Returns the text. `key` names the value in the error.
    pub fn text(&self, key: &str) -> Result<&str, Problem> {
        match &self.value {
            Value::Text(text) | Value::Cell(text) => Ok(text),
            _ => Err(self.is_wrong(format_args!("{key} must be a text, not {}", self.shown()))),
        }
    }

    /// Returns the time. A bare number is in `unit`s.
    pub fn time(&self, key: &str, unit: TimeUnit) -> Result<Time, Problem> {
        let (Value::Number(text) | Value::Text(text) | Value::Cell(text)) = &self.value else {
            return Err(self.is_wrong(format_args!("{key} must be a time, not {}", self.shown())));
        };
        Time::parse(text, unit).map_err(|error| self.is_wrong(format_args!("{key} = {} {error}", self.written())))
    }

    /// Returns a time greater than zero.
    pub fn positive_time(&self, key: &str, unit: TimeUnit) -> Result<Time, Problem> {
        match self.time(key, unit)? {
            Time::ZERO => Err(self.is_wrong(format_args!("{key} = {} must be greater than zero", self.written()))),
            time => Ok(time),
        }
    }

    /// Returns a finite number from `least` to `most`.
    pub fn number(&self, key: &str, least: f64, most: f64) -> Result<f64, Problem> {
        let parsed = match &self.value {
            Value::Number(text) | Value::Cell(text) => {
                without_separators(text.trim()).and_then(|text| text.parse::<f64>().ok())
            }
            _ => None,
        };
        match parsed {
            Some(number) if number.is_finite() && (least..=most).contains(&number) => Ok(number),
            Some(_) => {
                Err(self.is_wrong(format_args!("{key} = {} must be a number from {least} to {most}", self.written())))
            }
            None => Err(self.is_wrong(format_args!("{key} = {} is not a number", self.written()))),
        }
    }

    /// Returns whether the value is `true`. A CSV cell may be in any case, because spreadsheets write `TRUE`.
    pub fn boolean(&self, key: &str) -> Result<bool, Problem> {
        match &self.value {
            Value::Bool(value) => Ok(*value),
            Value::Cell(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Value::Cell(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            _ => Err(self.is_wrong(format_args!("{key} = {} must be true or false", self.written()))),
        }
    }

    /// Returns a whole number from `least` to `most`. `2.0` is one, as in the schema.
    pub fn integer(&self, key: &str, least: i64, most: i64) -> Result<i64, Problem> {
        let parsed = match &self.value {
            Value::Number(text) | Value::Cell(text) => without_separators(text.trim()).and_then(|text| whole(&text)),
            _ => None,
        };
        parsed.filter(|number| (least..=most).contains(number)).ok_or_else(|| {
            self.is_wrong(format_args!("{key} = {} must be a whole number from {least} to {most}", self.written()))
        })
    }
}

/// Reads a whole number, which may be written with a decimal point or an exponent.
fn whole(text: &str) -> Option<i64> {
    const MOST_EXACT: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;
    let decimal = || text.parse::<f64>().ok().filter(|number| number.fract() == 0.0 && number.abs() <= MOST_EXACT);
    text.parse().ok().or_else(|| decimal().map(|number| number as i64))
}

/// Reader of the entries of a table. Entries are taken one by one; [`Fields::finish`] refuses those that are left.
pub(super) struct Fields<'a> {
    /// Description of the table for messages, with its name if it has one: `task "lidar"`.
    what: String,
    line: usize,
    /// Entries that have not been taken.
    left: Vec<(&'a str, &'a Node)>,
    /// Keys that have been asked for.
    asked: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// Creates a reader for a table, which messages call `what`.
    pub fn of(node: &'a Node, what: &'static str) -> Result<Fields<'a>, Problem> {
        let entries = &node.table(what)?.entries;
        let name = node.entry(NAME.name).and_then(|name| match &name.value {
            Value::Text(name) | Value::Cell(name) if !name.trim().is_empty() => Some(name.trim()),
            _ => None,
        });
        let what = name.map_or(what.into(), |name| format!("{what} {:?}", cut(name)));
        let left = entries.iter().map(|(key, value)| (key.as_str(), value)).collect();
        Ok(Fields { what, line: node.line, left, asked: Vec::new() })
    }

    /// Refuses all keys other than `known`. Called first, it reports a misspelled key before the missing key that
    /// results from it.
    pub fn only(self, known: &[&'static str]) -> Result<Fields<'a>, Problem> {
        let unknown = self.left.iter().filter(|(key, _)| !known.contains(key));
        match unknown.min_by_key(|(key, node)| (node.line, *key)) {
            Some((key, node)) => Err(self.unknown(key, node, known)),
            None => Ok(self),
        }
    }

    /// Creates the error for an unknown key, with the known key that was probably meant.
    fn unknown(&self, key: &str, node: &Node, known: &[&str]) -> Problem {
        Problem::at(node.line, format!("{}: unknown key {:?}{}", self.what, cut(key), hint(key, known)))
    }

    /// Returns the line of the table.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Takes the entry with this key, if there is one.
    pub fn take(&mut self, key: &'static str) -> Option<&'a Node> {
        self.asked.push(key);
        let at = self.left.iter().position(|(name, _)| *name == key)?;
        Some(self.left.remove(at).1)
    }

    /// Takes the entry with this key. A missing entry is an error.
    pub fn need(&mut self, key: &'static str) -> Result<&'a Node, Problem> {
        self.take(key).ok_or_else(|| self.missing(key))
    }

    /// Creates the error for a missing entry.
    pub fn missing(&self, key: &str) -> Problem {
        Problem::at(self.line, format!("{} has no {key}", self.what))
    }

    /// Returns the remaining entries in order, for readers that do not refuse them. A repetition of a key that was
    /// asked for is still an error.
    pub fn rest(self) -> Result<Vec<(&'a str, &'a Node)>, Problem> {
        match self.left.iter().find(|(key, _)| self.asked.contains(key)) {
            Some((key, node)) => Err(Problem::at(node.line, format!("key {key:?} stands twice"))),
            None => Ok(self.left),
        }
    }

    /// Refuses the remaining entries.
    pub fn finish(self) -> Result<(), Problem> {
        let Some((key, node)) = self.left.iter().min_by_key(|(key, node)| (node.line, *key)) else { return Ok(()) };
        Err(self.unknown(key, node, &self.asked))
    }
}
