//! `temponet new` and `temponet convert`: task-set files.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use temponet_task::files::{self, Format};

use crate::{output, setup};

/// Write a commented task-set file to start from
#[derive(clap::Args)]
#[command(after_help = "Example:\n  temponet new mytasks.toml && temponet compare mytasks.toml")]
pub struct NewArgs {
    /// The file to write; its name ends in .toml
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn new(args: NewArgs) -> Result<()> {
    if Format::of(&args.file) != Some(Format::Toml) {
        return Err(anyhow!("{}: the template is TOML; the name must end in .toml", args.file.display()));
    }
    output::refuse_existing(&args.file, args.force)?;
    output::write_file(&args.file, files::TEMPLATE)?;
    written(&args.file, args.json)
}

/// Convert a task set between TOML, JSON and CSV
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  temponet convert mytasks.csv mytasks.toml\n  temponet convert gap-avionics gap.json"
)]
pub struct Args {
    /// Task-set file or a built-in set's name
    #[arg(value_name = "FILE|NAME")]
    pub from: String,
    /// The file to write; its ending says the format
    #[arg(value_name = "FILE")]
    pub to: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: Args) -> Result<()> {
    let set = setup::load(&args.from)?;
    let format = Format::of(&args.to)
        .with_context(|| format!("{}: the name must end in .toml, .csv or .json", args.to.display()))?;
    output::refuse_existing(&args.to, args.force)?;
    output::write_file(&args.to, &files::write(&set, format)?)?;
    written(&args.to, args.json)
}

/// Says which file was written.
pub fn written(path: &std::path::Path, json: bool) -> Result<()> {
    match json {
        true => output::print_json(&serde_json::json!({ "written": path.display().to_string() })),
        false => output::print(&format!("written: {}\n", path.display())),
    }
}
