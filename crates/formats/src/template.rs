//! Template file that `temponet new` writes.

/// Text of a task-set file to start from, with an explanation of every key.
pub const TEMPLATE: &str = include_str!("template.toml");
