//! Reading of recipe files. Every error names the file and the line, including errors that only show when several
//! settings are considered together.

use std::path::Path;

use temponet_formats::{LoadError, line_of, read_bytes, read_settings};
use temponet_train::Recipe;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

const ONE_LOAD: &str = include_str!("one_load.toml");

/// Returns the recipe of whoever names none: it goes on from the built-in model on one load.
pub fn standard() -> Recipe {
    toml::from_str(ONE_LOAD).unwrap_or_default()
}

/// Reads and checks a recipe file.
pub fn read(path: &Path) -> Result<Recipe, LoadError> {
    let fail = |message: String| LoadError { file: path.display().to_string(), line: None, message };
    let bytes = read_bytes(path).map_err(|error| fail(format!("cannot be read: {error}")))?;
    parse(&String::from_utf8(bytes).map_err(|_| fail("is not UTF-8 text".into()))?, path)
}

/// Reads and checks the text of a recipe. Messages name it `origin`.
pub fn parse(text: &str, origin: &Path) -> Result<Recipe, LoadError> {
    let in_line = |at: Option<usize>, message: &str| LoadError {
        file: origin.display().to_string(),
        line: at.map(|at| line_of(text, at)),
        message: message.replace('\n', " "),
    };
    let recipe: Recipe = read_settings(text).map_err(|error| {
        let at = error.at.map(|start| key_in(text, start, &error.message).unwrap_or(start));
        in_line(at, &error.message)
    })?;
    match recipe.problem() {
        Some(problem) => Err(in_line(place_of(text, &problem), &problem)),
        None => Ok(recipe),
    }
}

/// Finds the key that an error in the table at `start` begins with, such as `batch: invalid type`. The settings of a
/// method are read when the table is known as a whole, and so the error has the position of the table.
fn key_in(text: &str, start: usize, message: &str) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let (key, _) = message.split_once(": ")?;
    let mut values: Vec<&Spanned<DeValue<'_>>> = root.get_ref().values().collect();
    while let Some(value) = values.pop() {
        match value.get_ref() {
            DeValue::Table(table) if value.span().start == start => {
                return table.iter().find(|(name, _)| name.get_ref() == key).map(|(name, _)| name.span().start);
            }
            DeValue::Table(table) => values.extend(table.values()),
            DeValue::Array(list) => values.extend(list.iter()),
            _ => {}
        }
    }
    None
}

/// Finds the setting that a problem names, such as `stage 2: workload: load = 0 …`, and returns the position of its
/// key, else of its table. None if the file does not mention it, because a default conflicts with other settings.
fn place_of(text: &str, problem: &str) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let mut at = Found { table: root.get_ref(), start: None };
    let mut parts = problem.split(": ").peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            // The last part states the problem: `epsilon[0] = 2 is not …`.
            let words = part.split(' ').next().unwrap_or_default();
            let words = words.split(['.', '[']).filter(|word| !word.is_empty() && !word.ends_with(']'));
            let mut start = at.start;
            for word in words {
                match at.entry(word) {
                    Some((key, value)) => {
                        start = Some(key);
                        if let DeValue::Table(table) = value.get_ref() {
                            at = Found { table, start };
                        }
                    }
                    None => break,
                }
            }
            return start;
        }
        let next = match part.strip_prefix("stage ").and_then(|number| number.parse::<usize>().ok()) {
            Some(number) => at.table.get("stage").and_then(|stages| match stages.get_ref() {
                DeValue::Array(stages) => stages.get(number.checked_sub(1)?).map(|stage| (stage.span().start, stage)),
                _ => None,
            }),
            None => at.entry(part),
        };
        if let Some((start, value)) = next {
            let table = if let DeValue::Table(table) = value.get_ref() { table } else { at.table };
            at = Found { table, start: Some(start) };
        }
    }
    at.start
}

/// A table of the file and its position; none for the whole file.
struct Found<'a, 'i> {
    table: &'a DeTable<'i>,
    start: Option<usize>,
}

impl<'a, 'i> Found<'a, 'i> {
    /// Finds a key in this table or in nested ones. Returns its position and value.
    fn entry(&self, wanted: &str) -> Option<(usize, &'a Spanned<DeValue<'i>>)> {
        let mut tables = std::collections::VecDeque::from([self.table]);
        while let Some(table) = tables.pop_front() {
            for (key, value) in table {
                if key.get_ref() == wanted {
                    return Some((key.span().start, value));
                }
                if let DeValue::Table(within) = value.get_ref() {
                    tables.push_back(within);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "seed = 1\n[episode]\nlength = -1\n[optimizer]\nadam = { beta1 = 2 }\n[validation]\nlength = 3\n\
        [[stage]]\nphases = 1\nmethod = { cloning = { batch = 0 } }\n[[stage]]\nphases = 0\n[stage.workload]\ncores = []\n\
        [stage.method.dqn]\nepsilon = [2.0, 0.1]\n";

    #[test]
    fn the_standard_recipe_goes_on_from_the_built_in_model() {
        let standard = standard();
        assert_eq!(parse(ONE_LOAD, Path::new("standard")).map_err(|error| error.to_string()), Ok(standard.clone()));
        assert_ne!(standard, Recipe::default(), "it was read");
        crate::preparation::initial_weights(temponet_lab::models::BUILT_IN, &standard).unwrap();
    }

    #[test]
    fn a_problem_is_found_at_the_line_of_its_key() {
        let line = |problem: &str| place_of(TEXT, problem).map(|at| line_of(TEXT, at));
        assert_eq!(line("episode.length = -1 is not positive"), Some(3));
        assert_eq!(line("validation.length = 3 is not positive"), Some(7));
        assert_eq!(line("adam.beta1 = 2 is not from 0 to 1"), Some(5));
        assert_eq!(line("stage 1: batch = 0 is not from 1 to 100000000"), Some(10));
        assert_eq!(line("stage 2: phases = 0 is not from 1 to 100000000"), Some(12));
        assert_eq!(line("stage 2: workload: cores are none"), Some(14));
        assert_eq!(line("stage 2: epsilon: there is no such thing"), Some(16));
        assert_eq!(line("stage 2: epsilon[0] = 2 is not from 0 to 1"), Some(16));
        assert_eq!(line("network: 3 heads do not share a width of 64"), None);
    }
}
