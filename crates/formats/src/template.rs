//! The file that `temponet new` writes.

/// A task set to start from, with every key explained.
pub const TEMPLATE: &str = include_str!("template.toml");
