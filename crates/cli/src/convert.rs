//! `temponet new`, `temponet convert` and `temponet schema`: writing task-set files, and what they are like.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use temponet_formats::{Format, Loaded};
use temponet_lab::progress::Progress;

use crate::paths::{Kind, Output, Replace};
use crate::{output, setup};

/// Write a commented task-set file to start from
#[derive(clap::Args)]
#[command(after_help = "Example:\n  temponet new mytasks.toml && temponet compare mytasks.toml")]
pub struct NewArgs {
    /// File to write; its name must end in .toml
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn new(args: NewArgs) -> Result<()> {
    if Format::of(&args.file) != Some(Format::Toml) {
        return Err(anyhow!("{}: the template is TOML; the name must end in .toml", args.file.display()));
    }
    Output::claim(&args.file, Kind::TaskSet, Replace::nothing_or(args.force))?.write(temponet_formats::template())?;
    written(&args.file, args.json)
}

/// Print the JSON schema of task-set files, for editors
#[derive(clap::Args)]
#[command(after_help = "Example:\n  temponet schema > temponet.schema.json\n\n\
    A TOML file whose first line is \"#:schema ./temponet.schema.json\" is then checked while you type\n\
    (Even Better TOML in VS Code, and other editors with taplo).")]
pub struct SchemaArgs {}

pub fn schema(_: SchemaArgs) -> Result<()> {
    output::print_json(&temponet_formats::schema())
}

/// Convert a task set between TOML, JSON and CSV, from rt-app and SimSo, or to rt-app
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet convert mytasks.csv mytasks.toml\n  \
    temponet convert gap-avionics gap.json\n  \
    temponet convert workload.json mytasks.toml           # from rt-app\n  \
    temponet convert simulation.xml mytasks.toml          # from SimSo\n  \
    temponet convert mytasks.toml workload.json --to rt-app")]
pub struct Args {
    /// Task-set file (.toml, .csv, .json, rt-app's .json, SimSo's .xml) or a built-in set's name
    #[arg(value_name = "FILE|NAME")]
    pub from: String,
    /// File to write; its extension (.toml, .json or .csv) determines the format
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Write the format of another tool instead
    #[arg(long, value_name = "TOOL")]
    pub to: Option<Tool>,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Tools whose formats can be written.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Tool {
    /// rt-app workload; the name of the file must end in .json
    RtApp,
}

pub fn run(args: Args) -> Result<()> {
    let _progress = Progress::busy("converting");
    let Loaded { set, mut notes, .. } = setup::load(&args.from)?;
    let format = Format::of(&args.file)
        .with_context(|| format!("{}: the name must end in .toml, .csv or .json", args.file.display()))?;
    let file = Output::claim(&args.file, Kind::TaskSet, Replace::nothing_or(args.force))?;
    let text = match args.to {
        None => temponet_formats::write(&set, format)?,
        Some(Tool::RtApp) if format != Format::Json => {
            return Err(anyhow!("{}: the name of a workload of rt-app must end in .json", args.file.display()));
        }
        Some(Tool::RtApp) => {
            let exported = temponet_formats::to_rt_app(&set)?;
            for note in exported.notes {
                let note = format!("{}: {note}", args.file.display());
                output::say(&format!("note: {note}"));
                notes.push(note);
            }
            exported.text
        }
    };
    file.write(&text)?;
    match args.json {
        true => output::print_json(&serde_json::json!({ "written": args.file.display().to_string(), "notes": notes })),
        false => written(&args.file, false),
    }
}

/// Prints which file was written.
pub fn written(path: &std::path::Path, json: bool) -> Result<()> {
    match json {
        true => output::print_json(&serde_json::json!({ "written": path.display().to_string() })),
        false => output::print(&format!("written: {}\n", path.display())),
    }
}
