//! Task-set files: TOML (the documented default), JSON with the same keys, and CSV.
//!
//! Reading is strict and goes one way for all formats: a front end (`toml.rs`, `json.rs`, `csv.rs`) turns the text
//! into a tree of [`node::Node`]s that know their lines, and `read.rs` turns that tree into a [`TaskSet`],
//! refusing what it does not understand. Lists of single jobs (`jobs.rs`) are CSV only.
//!
//! Files of other tools are imported: rt-app workloads (`rt_app/`) and SimSo simulations (`simso/`). They say things
//! that a task set cannot; those are [`notes`], never dropped silently.

pub mod builtin;
mod csv;
mod input;
mod jobs;
mod json;
mod node;
mod notes;
mod read;
mod rt_app;
mod simso;
mod template;
mod toml;
mod write;

use std::path::{Path, PathBuf};

use node::Node;
use notes::Imported;
use temponet_task::TaskSet;
use temponet_task::wording::visible;

pub use input::{is_pipe, read_bytes};
pub use rt_app::{Exported, to_rt_app};
pub use template::TEMPLATE;
pub use write::{NotRepresentable, write};

/// The file formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `.toml`
    Toml,
    /// `.json`: our own keys or, where there is a top-level object `tasks`, a workload of rt-app.
    Json,
    /// `.csv`
    Csv,
    /// `.xml`: a simulation of SimSo, which is only read.
    SimSo,
}

impl Format {
    /// The format that a file's ending names.
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

/// A file that cannot be used: where and why, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// The file, as the user named it.
    pub file: String,
    /// Counted from 1.
    pub line: Option<usize>,
    /// What is wrong, with the value.
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

/// A set, and what its author should know about it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The set.
    pub set: TaskSet,
    /// One line each, with file and line.
    pub warnings: Vec<String>,
    /// What a file of another tool says and the set does not, one line each, with file and line.
    pub notes: Vec<String>,
    /// The files that it refers to, such as measured times.
    pub files: Vec<PathBuf>,
}

/// Reads a file; its ending says the format.
pub fn load(path: &Path) -> Result<Loaded, LoadError> {
    let fail = |message: String| LoadError { file: path.display().to_string(), line: None, message };
    let format = Format::of(path)
        .ok_or_else(|| fail("unknown kind of file: the name must end in .toml, .csv, .json or .xml".into()))?;
    let bytes = read_bytes(path).map_err(|error| fail(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        LoadError { line: Some(line), ..fail("is not UTF-8 text".into()) }
    })?;
    parse(&text, format, path)
}

/// Reads a text. `origin` names it in messages; files it refers to are looked for beside it.
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
        (None, Format::Csv) if jobs::is_job_list(text) => jobs::parse(text, name).map(Imported::from),
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

/// Something wrong at a line; the file is this one unless said otherwise.
#[derive(Debug)]
struct Problem {
    file: Option<String>,
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

/// Where the lines of a text begin, so that a byte's line is found by bisection.
struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    fn of(text: &str) -> Lines {
        let after_breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Lines { starts: std::iter::once(0).chain(after_breaks).collect() }
    }

    /// The line, counted from 1, of a byte.
    fn at(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte)
    }
}

/// A message without line breaks, since every error is one line.
fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
