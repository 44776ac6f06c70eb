//! `temponet lab`: the lab in a browser.
//!
//! The page is one file, which `web/build` makes beside the program. A set travels in a copy of the page, because a link
//! to a file on disk may lose what follows its `#` on the way to a browser.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use temponet_formats::Format;

use crate::paths::{Kind, Output};
use crate::{output, setup};

/// Open the lab in a browser: edit a set, drag its times, and watch the schedules follow
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  temponet lab\n  temponet lab mytasks.toml\n  temponet lab robot --output robot.html\n\n\
    The page is one file that works without a network. `web/build` makes it."
)]
pub struct Args {
    /// Task-set file (.toml, .csv, .json, rt-app's .json, SimSo's .xml), trace (see `temponet import`) or a built-in
    /// set's name, to begin with [default: robot]
    #[arg(value_name = "FILE|NAME")]
    set: Option<String>,
    /// Write a copy of the page with the set in it, and open nothing
    #[arg(long, short, value_name = "OUT.html")]
    output: Option<PathBuf>,
    /// Replace existing files of any kind
    #[arg(long)]
    force: bool,
}

/// Name of the page.
const PAGE: &str = "temponet-lab.html";
/// What the scripts of the page begin with; the set is put before the first of them.
const SCRIPT: &str = "<script";

pub fn run(args: Args) -> Result<()> {
    let page = beside()?;
    if args.set.is_none() && args.output.is_none() {
        return open(&page);
    }
    let text = std::fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
    let text = match &args.set {
        Some(name) => with_set(&text, name).with_context(|| format!("{} is no page of the lab", page.display()))??,
        None => text,
    };
    if let Some(file) = Output::wanted(args.output.as_deref(), Kind::Page, args.force)? {
        return file.write(text);
    }
    let mut copy = tempfile::Builder::new().prefix("temponet-lab-").suffix(".html").tempfile()?;
    std::io::Write::write_all(&mut copy, text.as_bytes())?;
    let (_, path) = copy.keep()?;
    open(&path)
}

/// Returns the path of the page in the folder of the running program.
fn beside() -> Result<PathBuf> {
    let page = std::env::current_exe().context("cannot find this program's folder")?.with_file_name(PAGE);
    if !page.is_file() {
        bail!("the lab in a browser is not there: `web/build {}` makes it", page.display());
    }
    Ok(page)
}

/// Returns the page with a set in it; `None` if the page has no script.
fn with_set(page: &str, name: &str) -> Option<Result<String>> {
    let place = page.find(SCRIPT)?;
    let text = || -> Result<String> {
        let set = setup::load(name)?.set;
        let text = temponet_formats::write(&set, Format::Toml)?;
        let given = serde_json::json!({ "name": format!("{}.toml", set.name), "text": text });
        // A `<` inside a JSON string could end the element.
        let given = given.to_string().replace('<', "\\u003c");
        let (before, after) = page.split_at(place);
        Ok(format!("{before}<script id=\"given\" type=\"application/json\">{given}</script>\n{after}"))
    };
    Some(text())
}

/// Opens a file with the program that the system has for pages.
fn open(page: &Path) -> Result<()> {
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    output::print(&format!("{}\n", page.display()))?;
    let mut call = Command::new(program);
    call.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let why = match call.status() {
        // The explorer says 1 although it has opened the file.
        Ok(status) if status.success() || program == "explorer" => return Ok(()),
        Ok(status) => format!("{program} ended with {status}"),
        Err(error) => format!("{program}: {error}"),
    };
    bail!("no browser was opened ({why}): open {} in one", page.display())
}
