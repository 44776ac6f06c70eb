//! `temponet sets` and `temponet schedulers`: lists of the built-in task sets and of the schedulers.

use anyhow::{Context, Result};
use serde::Serialize;
use temponet::search;
use temponet_formats::Format;
use temponet_formats::builtin::{self, Builtin};
use temponet_lab::roster::{LISTED, is_classical, is_search};

use crate::{output, table};

/// List the built-in task sets, or print one of them
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet sets\n  temponet sets democar > mytasks.toml\n\n\
    Tasks are independent unless a file says otherwise; most shared resources of the originals are not modeled.")]
pub struct SetsArgs {
    /// Name of a set to print as a task-set file
    pub name: Option<String>,
    /// Print the results as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct SetRow {
    name: &'static str,
    tasks: usize,
    cores: usize,
    /// Total speed of the cores, as a number of cores at full speed.
    capacity: f64,
    utilization: f64,
    mean_utilization: f64,
    description: String,
    source: String,
}

pub fn sets(args: SetsArgs) -> Result<()> {
    if let Some(name) = &args.name {
        let set = Builtin::find(name)
            .with_context(|| format!("there is no built-in set {name:?}; `temponet sets` lists them"))?;
        return match args.json {
            true => output::print(&temponet_formats::write(&set.load()?.set, Format::Json)?),
            false => output::print(set.text),
        };
    }
    let mut rows = Vec::new();
    for builtin in builtin::ALL {
        let set = builtin.load()?.set;
        rows.push(SetRow {
            name: builtin.name,
            tasks: set.tasks().len(),
            cores: set.cores(),
            capacity: set.capacity(),
            utilization: set.utilization(),
            mean_utilization: set.mean_utilization(),
            description: set.description,
            source: builtin.source(),
        });
    }
    if args.json {
        return output::print_json(&serde_json::json!({ "sets": rows }));
    }
    let header = ["set", "tasks", "cores", "load at wcet", "mean load"];
    let load = |utilization: f64, capacity: f64| format!("{:.2}", utilization / capacity);
    let cells = rows.iter().map(|row| {
        let name = if row.name == builtin::DEFAULT { format!("{} (default)", row.name) } else { row.name.into() };
        let loads = [load(row.utilization, row.capacity), load(row.mean_utilization, row.capacity)];
        [vec![name, row.tasks.to_string(), row.cores.to_string()], loads.to_vec()].concat()
    });
    let mut out = table::render(&header, &cells.collect::<Vec<_>>());
    out += "\nLoad is per core, or of the total speed where cores differ. Tasks are independent unless a file says otherwise; most shared resources are not modeled.\n";
    for row in &rows {
        out += &format!("\n{}: {}\n  {}\n", row.name, row.description, row.source);
    }
    output::print(&out)
}

/// List the schedulers, their purposes and their options
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  temponet schedulers\n\nOptions are written after the name: llf:quantum=500us, c-edf:size=4:fit=worst\n\
    Any scheduler can run behind the shield: shield:srpt, shield:llf:quantum=500us"
)]
pub struct SchedulersArgs {
    /// Print the results as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// What the schedulers that search are for.
const SEARCH_PURPOSE: &str = "a search baseline of the paper beside the learned scheduler";

/// Returns the kind of a scheduler: `search`, `classical`, or `own` for this project's.
fn kind(name: &str) -> &'static str {
    match name {
        name if is_search(name) => "search",
        name if is_classical(name) => "classical",
        _ => "own",
    }
}

pub fn schedulers(args: SchedulersArgs) -> Result<()> {
    let classical = temponet_sched::ALL.iter().map(|entry| (entry.name, entry.summary, entry.purpose, entry.options));
    let searching =
        search::ALL.iter().map(|method| (method.name, method.summary, SEARCH_PURPOSE, &search::OPTIONS[..]));
    let all: Vec<_> = LISTED.into_iter().chain(classical).chain(searching).collect();
    let shield = temponet_sched::SHIELD;
    if args.json {
        let rows = all.iter().map(|(name, summary, purpose, options)| {
            let options = options.iter().map(
                |(name, default, meaning)| serde_json::json!({ "name": name, "default": default, "meaning": meaning }),
            );
            serde_json::json!({
                "name": name, "kind": kind(name), "summary": summary, "purpose": purpose,
                "options": options.collect::<Vec<_>>(),
            })
        });
        let wrapper = serde_json::json!({ "name": shield.name, "summary": shield.summary, "purpose": shield.purpose });
        return output::print_json(
            &serde_json::json!({ "schedulers": rows.collect::<Vec<_>>(), "wrappers": [wrapper] }),
        );
    }
    let width = all.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for (name, summary, purpose, options) in
        all.into_iter().chain([(shield.name, shield.summary, shield.purpose, shield.options)])
    {
        out += &format!("{name:<width$}  {summary}\n{:width$}  for: {purpose}\n", "");
        for (option, default, meaning) in options {
            out += &format!("{:width$}  {option}={default}: {meaning}\n", "");
        }
    }
    output::print(&out)
}
