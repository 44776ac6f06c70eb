//! Task-set files: TOML (the documented default), JSON with the same keys, and CSV.
//!
//! One table says which keys there are, what their values mean, and how they are read and written (`keys/`). The JSON
//! schema ([`schema`]), the template ([`template`]) and the tables of the documentation ([`key_tables`]) follow from
//! it.
//!
//! Reading is strict and works the same way for all formats. A front end (`toml.rs`, `json.rs`, `csv.rs`) turns the
//! text into a tree of nodes (`node.rs`) that know their lines. `read.rs` turns that tree into a [`TaskSet`] and
//! refuses what it does not understand. Lists of individual jobs (`jobs.rs`) are CSV only. `write.rs` is the way back.
//!
//! Files of other tools can be imported: rt-app workloads (`rt_app/`) and SimSo simulations (`simso/`). What such a
//! file states and a task set cannot represent becomes a note (`notes.rs`, [`Loaded::notes`]); nothing is dropped
//! silently.

pub mod builtin;
mod csv;
mod input;
mod jobs;
mod json;
mod key_tables;
mod keys;
mod node;
mod notes;
mod out;
mod read;
mod rt_app;
mod schema;
mod settings;
mod simso;
mod template;
mod toml;
mod write;

use std::io::Read;
use std::path::{Path, PathBuf};

use node::Node;
use notes::Imported;
use temponet_task::TaskSet;
use temponet_wording::visible;

pub use input::{is_pipe, read_bytes};
pub use key_tables::key_tables;
pub use rt_app::{Exported, ThreadPolicy, to_rt_app, to_rt_app_with};
pub use schema::schema;
pub use settings::{SettingsError, line_of, read_settings};
pub use template::template;
pub use write::{NotRepresentable, write};

/// File format of a task set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `.toml`: TOML, the documented default.
    Toml,
    /// `.json`: JSON with the keys of TOML, or an rt-app workload if it has a top-level object `tasks`.
    Json,
    /// `.csv`: one task per row, or one job per row if there is a column `release`.
    Csv,
    /// `.xml`: a SimSo simulation. It can be read but not written.
    SimSo,
}

impl Format {
    /// Returns the format that belongs to the extension of a file name.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "toml" => Some(Format::Toml),
            "json" => Some(Format::Json),
            "csv" => Some(Format::Csv),
            "xml" => Some(Format::SimSo),
            _ => None,
        }
    }
}

/// Reason why a file cannot be used. Its message is one line with file, line and cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// File name, as the user gave it.
    pub file: String,
    /// Line number, from 1; `None` if the error concerns the whole file.
    pub line: Option<usize>,
    /// What is wrong, with the offending value.
    pub message: String,
}

impl std::error::Error for LoadError {}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

/// A task set that was read, with warnings and notes for its author.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Task set.
    pub set: TaskSet,
    /// Warnings, one line each, with file and line.
    pub warnings: Vec<String>,
    /// Statements of another tool's file that the set does not represent, one line each, with file and line.
    pub notes: Vec<String>,
    /// Files that the set refers to, such as measured times.
    pub files: Vec<PathBuf>,
}

/// Reads a file. Its extension selects the format.
pub fn load(path: &Path) -> Result<Loaded, LoadError> {
    load_bytes(path, || read_bytes(path))
}

/// Reads an ordinary file of `length` bytes that does not lie on a disk of this machine. The extension of `path` selects the
/// format.
pub fn load_from<R: Read>(
    path: &Path,
    length: u64,
    open: impl FnOnce() -> std::io::Result<R>,
) -> Result<Loaded, LoadError> {
    load_bytes(path, || input::read_ordinary(length, open))
}

fn load_bytes(path: &Path, read: impl FnOnce() -> std::io::Result<Vec<u8>>) -> Result<Loaded, LoadError> {
    let fail = |message: String| LoadError { file: path.display().to_string(), line: None, message };
    let format = Format::of(path)
        .ok_or_else(|| fail("unknown kind of file: the name must end in .toml, .csv, .json or .xml".into()))?;
    let bytes = read().map_err(|error| fail(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        LoadError { line: Some(line), ..fail("is not UTF-8 text".into()) }
    })?;
    parse(&text, format, path)
}

/// Reads a text. Messages name it `origin`, and files that it refers to are looked up in the directory of `origin`.
pub fn parse(text: &str, format: Format, origin: &Path) -> Result<Loaded, LoadError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let name =
        origin.file_stem().map_or_else(|| "unnamed".into(), |stem| visible(&stem.to_string_lossy()).into_owned());
    let own = |root: Node| read::task_set(&root, name.clone(), origin);
    let imported = match format {
        Format::Json => rt_app::read(text, &name),
        Format::SimSo => Some(simso::read(text, &name)),
        _ => None,
    };
    let result = match (imported, format) {
        (Some(imported), _) => imported,
        (None, Format::Toml) => toml::parse(text).and_then(own),
        (None, Format::Csv) if jobs::is_job_list(text) => jobs::parse(text, name),
        (None, Format::Csv) => csv::parse(text).and_then(own),
        (None, Format::Json | Format::SimSo) => json::parse(text).and_then(own),
    };
    let in_file =
        |line: Option<usize>, message: String| LoadError { file: origin.display().to_string(), line, message };
    match result {
        Ok(Imported { set, warnings, notes, files }) => {
            let lines = |problems: Vec<Problem>| {
                problems.into_iter().map(|problem| in_file(problem.line, problem.message).to_string()).collect()
            };
            Ok(Loaded { set, warnings: lines(warnings), notes: lines(notes.into_lines()), files })
        }
        Err(problem) => Err(LoadError {
            file: problem.file.unwrap_or_else(|| origin.display().to_string()),
            line: problem.line,
            message: problem.message,
        }),
    }
}

/// An error or a note with its line.
#[derive(Debug)]
struct Problem {
    /// File name; `None` means the file that is being read.
    file: Option<String>,
    /// Line number, from 1; `None` means the whole file.
    line: Option<usize>,
    message: String,
}

impl Problem {
    fn at(line: usize, message: impl Into<String>) -> Problem {
        Problem { file: None, line: Some(line), message: message.into() }
    }

    fn whole_file(message: impl Into<String>) -> Problem {
        Problem { file: None, line: None, message: message.into() }
    }
}

/// Byte offsets of the lines of a text, for finding the line of a byte by bisection.
struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    fn of(text: &str) -> Lines {
        let after_breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Lines { starts: std::iter::once(0).chain(after_breaks).collect() }
    }

    /// Returns the line number, from 1, of a byte.
    fn at(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte)
    }
}

/// Replaces line breaks by spaces, because every error is one line.
fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The examples of the README, which are run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
