//! Template file that `temponet new` writes: an example, and from the rows of `keys/` what each key means and which
//! others there are.

use crate::keys::{Kind, SET, Spec, Specs};

/// The example. `#+` stands for the keys of the table that it does not have.
const EXAMPLE: &str = include_str!("template.toml");
/// Column at which meanings begin.
const MEANINGS: usize = 26;
/// Longest line.
const LONGEST: usize = 110;

/// Returns the text of a task-set file to start from, with the meaning of every key.
pub fn template() -> String {
    let lines: Vec<(&str, Line)> = parsed();
    let mut said: Vec<(&str, &str)> = Vec::new();
    let mut out = String::new();
    for (table, line) in &lines {
        match line {
            Line::Key(text, spec) if said.contains(&(table, spec.name)) => out += &format!("{text}\n"),
            Line::Key(text, spec) => {
                said.push((table, spec.name));
                out += &with_meaning(text, spec);
            }
            Line::Others => {
                let has = |spec: &&Spec| lines.iter().any(|(of, line)| of == table && line.is_of(spec));
                for spec in specs(table).into_iter().filter(|spec| !spec.example.is_empty() && !has(spec)) {
                    out += &with_meaning(&format!("# {} = {}", spec.name, spec.example), spec);
                }
            }
            Line::Other(text) => out += &format!("{text}\n"),
        }
    }
    out
}

/// A line of the example.
enum Line {
    /// An entry, which may be commented out, with its key.
    Key(&'static str, &'static Spec),
    /// The place of the other keys of the table.
    Others,
    Other(&'static str),
}

impl Line {
    fn is_of(&self, spec: &Spec) -> bool {
        matches!(self, Line::Key(_, key) if key.name == spec.name)
    }
}

/// Returns the lines of the example with the names of their tables.
fn parsed() -> Vec<(&'static str, Line)> {
    let mut table = "";
    let parse = |line: &'static str| {
        let entry = line.strip_prefix("# ").unwrap_or(line);
        table = entry.strip_prefix("[[").and_then(|name| name.strip_suffix("]]")).unwrap_or(table);
        let spec = entry.split_once(" = ").and_then(|(key, _)| specs(table).into_iter().find(|spec| spec.name == key));
        match spec {
            Some(spec) => (table, Line::Key(line, spec)),
            None if line == "#+" => (table, Line::Others),
            None => (table, Line::Other(line)),
        }
    };
    EXAMPLE.lines().map(parse).collect()
}

/// Returns the keys of the tables of a list; without a name, those of the file.
fn specs(list: &str) -> Vec<&'static Spec> {
    let tables = SET.specs().into_iter().find(|spec| spec.name == list);
    match tables.map(|spec| spec.kind) {
        Some(Kind::List(Kind::Table(table), ..)) => table.specs(),
        _ => SET.specs(),
    }
}

/// Returns an entry with the meaning of its key beside it.
fn with_meaning(entry: &str, spec: &Spec) -> String {
    let is_said = |words: &fn() -> Vec<&'static str>| words().iter().all(|word| spec.doc.contains(word));
    let words = match &spec.kind {
        Kind::Word(words) | Kind::Either([Kind::Word(words), ..]) if !is_said(words) => {
            format!(": {}", spec.kind.described().replace('`', ""))
        }
        _ => String::new(),
    };
    let meaning = spec.plain_doc() + &words;
    let mut out = format!("{entry:<MEANINGS$}");
    let mut column = out.chars().count();
    if !out.ends_with(' ') {
        out.push_str("  ");
        column += 2;
    }
    out.push('#');
    let mut length = column + 1;
    for word in meaning.split_whitespace() {
        if length + 1 + word.chars().count() > LONGEST.max(column + 40) {
            out += &format!("\n{:column$}#", "");
            length = column + 1;
        }
        out += &format!(" {word}");
        length += 1 + word.chars().count();
    }
    out + "\n"
}
