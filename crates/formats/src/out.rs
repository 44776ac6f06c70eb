//! Values to write, and their texts in TOML and JSON.
//!
//! The texts are laid out here, because people read and compare these files: JSON has one line per task, and TOML has
//! one line per key, with gaps, execution models and costs as inline tables. `serde_json` puts either every value or
//! the whole file on one line, and `toml` turns inner tables into sections. Quoting and escaping of texts is left to
//! those crates.

use temponet_task::Time;

use crate::keys::Spec;

/// A value to write.
pub(super) enum Out {
    Text(String),
    Number(f64),
    Integer(i64),
    Bool(bool),
    List(Vec<Out>),
    Table(Entries),
    /// A table whose keys are names.
    Named(Vec<(String, Out)>),
}

/// Keys and values of a table, in the order of the file.
pub(super) type Entries = Vec<(&'static Spec, Out)>;

pub(super) fn time(time: Time) -> Out {
    Out::Text(time.to_string())
}

pub(super) fn text(value: impl Into<String>) -> Out {
    Out::Text(value.into())
}

impl Out {
    /// Returns the list of these values.
    pub fn list(values: impl IntoIterator<Item = Out>) -> Out {
        Out::List(values.into_iter().collect())
    }

    /// Returns the value as TOML.
    pub fn toml(&self) -> String {
        match self {
            Out::Text(text) => ::toml::Value::String(text.clone()).to_string(),
            Out::Number(number) => format!("{number:?}"),
            Out::Integer(number) => number.to_string(),
            Out::Bool(value) => value.to_string(),
            Out::List(items) => format!("[{}]", items.iter().map(Out::toml).collect::<Vec<_>>().join(", ")),
            Out::Table(entries) => {
                let entries: Vec<_> = entries.iter().map(|(key, value)| line(key, value)).collect();
                format!("{{ {} }}", entries.join(", "))
            }
            Out::Named(entries) => {
                let entry = |(name, value): &(String, Out)| format!("{} = {}", toml_key(name), value.toml());
                format!("{{ {} }}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// Appends the value as JSON. Line breaks end at one line per task, which is how people read and compare such
    /// files.
    pub fn json(&self, depth: usize, out: &mut String) {
        let (open, close, items): (_, _, Vec<(Option<&str>, &Out)>) = match self {
            Out::Text(text) => return out.push_str(&serde_json::Value::from(text.as_str()).to_string()),
            Out::List(items) => ('[', ']', items.iter().map(|item| (None, item)).collect()),
            Out::Table(entries) => ('{', '}', entries.iter().map(|(key, item)| (Some(key.name), item)).collect()),
            Out::Named(entries) => ('{', '}', entries.iter().map(|(name, item)| (Some(name.as_str()), item)).collect()),
            Out::Number(_) | Out::Integer(_) | Out::Bool(_) => return out.push_str(&self.toml()),
        };
        let holds_tables = items.iter().any(|(_, item)| matches!(item, Out::Table(_)));
        let line_break = if depth == 0 || (depth == 1 && holds_tables) { "\n" } else { " " };
        let indent = |depth| if line_break == "\n" { "  ".repeat(depth) } else { String::new() };
        out.push(open);
        for (at, (key, item)) in items.iter().enumerate() {
            out.push_str(if at > 0 { "," } else { "" });
            out.push_str(line_break);
            out.push_str(&indent(depth + 1));
            if let Some(key) = key {
                out.push_str(&format!("{}: ", serde_json::Value::from(*key)));
            }
            item.json(depth + 1, out);
        }
        out.push_str(line_break);
        out.push_str(&indent(depth));
        out.push(close);
    }
}

/// Returns a name as a key of TOML, in quotes unless it needs none.
fn toml_key(name: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.into(),
        false => format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// Returns an entry as a line of TOML.
pub(super) fn line(key: &Spec, value: &Out) -> String {
    format!("{} = {}", key.name, value.toml())
}
