//! Errors of traces: one line with the file, the place in it and the cause.

use std::path::{Path, PathBuf};

/// Place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The whole file.
    Whole,
    /// Number of a line, from 1.
    Line(u64),
    /// Offset in bytes, from 0.
    Offset(u64),
}

/// Reason why a trace cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// File, as the user gave it or as it lies in the folder that the user gave.
    pub file: PathBuf,
    /// Place in the file.
    pub place: Place,
    /// What is wrong, with the offending value.
    pub message: String,
}

impl TraceError {
    /// An error about a whole file.
    pub fn whole(file: &Path, message: impl Into<String>) -> TraceError {
        TraceError { file: file.into(), place: Place::Whole, message: message.into() }
    }

    /// An error in a line.
    pub fn line(file: &Path, line: u64, message: impl Into<String>) -> TraceError {
        TraceError { file: file.into(), place: Place::Line(line), message: message.into() }
    }

    /// An error at an offset.
    pub fn offset(file: &Path, offset: u64, message: impl Into<String>) -> TraceError {
        TraceError { file: file.into(), place: Place::Offset(offset), message: message.into() }
    }
}

impl std::error::Error for TraceError {}

impl std::fmt::Display for TraceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let TraceError { file, place, message } = self;
        match place {
            Place::Whole => write!(f, "{}: {message}", file.display()),
            Place::Line(line) => write!(f, "{}:{line}: {message}", file.display()),
            Place::Offset(offset) => write!(f, "{}: at byte {offset}: {message}", file.display()),
        }
    }
}

/// Returns a stretch of bytes as it can stand in a message: one line, not too long.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 100;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MOST)]);
    let dots = if bytes.len() > MOST { "…" } else { "" };
    format!("{:?}", format!("{}{dots}", text.trim()))
}
