//! Notes on what a file of another tool states and a task set cannot represent. Nothing is dropped silently.

use std::collections::HashSet;
use std::path::PathBuf;

use temponet_task::TaskSet;

use crate::Problem;

/// A task set that was read, with warnings and notes for its author.
pub(super) struct Imported {
    pub set: TaskSet,
    pub warnings: Vec<Problem>,
    pub notes: Notes,
    /// Files that the set refers to.
    pub files: Vec<PathBuf>,
}

/// Collection of notes without repetitions.
#[derive(Default)]
pub(super) struct Notes {
    lines: Vec<Problem>,
    /// Messages so far.
    said: HashSet<String>,
}

impl Notes {
    /// Adds a note on a line.
    pub fn add(&mut self, line: usize, message: impl Into<String>) {
        self.push(Some(line), message.into());
    }

    /// Adds a note on the whole file.
    pub fn whole_file(&mut self, message: impl Into<String>) {
        self.push(None, message.into());
    }

    /// Adds a note on a task.
    pub fn task(&mut self, line: usize, task: &str, message: impl std::fmt::Display) {
        self.add(line, format!("task {task:?}: {message}"));
    }

    fn push(&mut self, line: Option<usize>, message: String) {
        if self.said.insert(message.clone()) {
            self.lines.push(Problem { file: None, line, message });
        }
    }

    /// Adds the notes of another collection.
    pub fn extend(&mut self, others: Notes) {
        for note in others.lines {
            self.push(note.line, note.message);
        }
    }

    /// Returns all notes in the order of the file. Notes on the whole file come last.
    pub fn into_lines(mut self) -> Vec<Problem> {
        self.lines.sort_by_key(|problem| problem.line.unwrap_or(usize::MAX));
        self.lines
    }
}
