//! All integration tests of the crate in one program: it is linked once, and the slow ones run beside each other.

mod csv;
mod documented;
mod estimates;
mod imports;
mod input;
mod machine;
mod parts;
mod precedence;
mod round_trip;
mod schema;
mod sections;
mod texts;

use std::path::Path;

use temponet_formats::{Format, Loaded, parse};

fn read(text: &str, format: Format) -> Result<Loaded, String> {
    let file = match format {
        Format::Toml => "set.toml",
        Format::Json => "set.json",
        Format::Csv => "set.csv",
        Format::SimSo => "set.xml",
    };
    parse(text, format, Path::new(file)).map_err(|error| error.to_string())
}

fn toml_error(text: &str) -> String {
    read(text, Format::Toml).expect_err("must be refused")
}

/// Returns a TOML text with one task, in which `line` is the fourth line.
fn with_line(line: &str) -> String {
    format!("[[task]]\nname = \"a\"\nperiod = 10\n{line}\n")
}
