//! What a file of another tool says and a task set cannot: named line by line, never dropped silently.

use std::collections::HashSet;
use std::path::PathBuf;

use temponet_task::TaskSet;

use crate::Problem;

/// A set with what its author should know about it.
pub(super) struct Imported {
    pub set: TaskSet,
    pub warnings: Vec<Problem>,
    pub notes: Notes,
    /// The files that the set refers to.
    pub files: Vec<PathBuf>,
}

impl From<(TaskSet, Vec<Problem>)> for Imported {
    fn from((set, warnings): (TaskSet, Vec<Problem>)) -> Imported {
        Imported { set, warnings, notes: Notes::default(), files: Vec::new() }
    }
}

/// The notes so far. What has been said once is not said again.
#[derive(Default)]
pub(super) struct Notes {
    lines: Vec<Problem>,
    said: HashSet<String>,
}

impl Notes {
    /// Something at a line.
    pub fn add(&mut self, line: usize, message: impl Into<String>) {
        self.push(Some(line), message.into());
    }

    /// Something about the whole file.
    pub fn whole_file(&mut self, message: impl Into<String>) {
        self.push(None, message.into());
    }

    /// Something about one task.
    pub fn task(&mut self, line: usize, task: &str, message: impl std::fmt::Display) {
        self.add(line, format!("task {task:?}: {message}"));
    }

    fn push(&mut self, line: Option<usize>, message: String) {
        if self.said.insert(message.clone()) {
            self.lines.push(Problem { file: None, line, message });
        }
    }

    /// Adds those of others.
    pub fn extend(&mut self, others: Notes) {
        for note in others.lines {
            self.push(note.line, note.message);
        }
    }

    /// All of them, in the order of the file; what concerns the whole file last.
    pub fn into_lines(mut self) -> Vec<Problem> {
        self.lines.sort_by_key(|problem| problem.line.unwrap_or(usize::MAX));
        self.lines
    }
}
