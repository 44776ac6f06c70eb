//! Task sets from traces: what a real system did, as something that can be analyzed, simulated and compared.
//!
//! ```text
//!   files ──► sources ──► events in the order of time ──► jobs ──► tasks ──► task set
//!             kernel_text, babeltrace_text,     source      threads,   job_log,   set, text
//!             chrome, ctf                                   collect    arrivals,
//!                                                                      ros, edges
//! ```
//!
//! Everything before the tasks is a stream: memory grows with the number of threads, not with the length of the trace. What a
//! trace says and a task set does not represent is a note; what cannot be read is an error with file and place.

mod arrivals;
mod babeltrace_text;
mod chrome;
mod collect;
mod ctf;
mod edges;
mod error;
mod event;
mod files;
mod import;
mod job_log;
mod jobs_csv;
mod json;
mod kernel_text;
mod lines;
mod named;
mod notes;
mod number;
mod open;
mod ros;
mod set;
mod source;
mod text;
mod threads;

pub use error::{Place, TraceError};
pub use files::{About, Content, Disk, Files};
pub use import::{Import, import, import_from};
pub use open::{TraceFormat, is_trace, is_trace_in};
pub use set::{Found, Kind};

use temponet_task::Time;

/// What a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskBy {
    /// A thread; its jobs go from a wake-up to the next sleep.
    Thread,
    /// A callback of ROS 2; its jobs go from `callback_start` to `callback_end`.
    Callback,
    /// A marker of the program; its jobs go from its beginning to its end. Slices of Chrome's JSON are such markers.
    Marker,
}

impl TaskBy {
    /// All of them, in the order of the documentation.
    pub const ALL: [TaskBy; 3] = [TaskBy::Thread, TaskBy::Callback, TaskBy::Marker];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            TaskBy::Thread => "thread",
            TaskBy::Callback => "callback",
            TaskBy::Marker => "marker",
        }
    }

    /// Returns what has this name.
    pub fn from_name(name: &str) -> Option<TaskBy> {
        TaskBy::ALL.into_iter().find(|by| by.name() == name)
    }
}

/// Regular expression for the names of tasks.
#[derive(Clone, Debug)]
pub struct NamePattern(regex_lite::Regex);

impl NamePattern {
    /// Reads a regular expression. It matches anywhere in a name, unless it says `^` or `$`.
    pub fn new(text: &str) -> Result<NamePattern, String> {
        regex_lite::Regex::new(text).map(NamePattern).map_err(|error| format!("is no regular expression: {error}"))
    }

    /// Whether a name matches.
    pub fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

/// What to import.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Names of the tasks to import: of threads, of callbacks or of markers.
    pub threads: Option<NamePattern>,
    /// What a task is; `None` if the trace decides: callbacks where there are some, slices of Chrome's JSON, else threads.
    pub task_by: Option<TaskBy>,
    /// Time after the first event before which no job is released that counts.
    pub from: Option<Time>,
    /// Time after the first event by which jobs that count are complete.
    pub to: Option<Time>,
    /// Number of cores of the set, which all tasks may use; `None` for the processors of the trace, of which each task gets those
    /// that it was seen on.
    pub cores: Option<u16>,
}

/// The examples of the README, which are run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
