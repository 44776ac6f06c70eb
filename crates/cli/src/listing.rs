//! `temponet sets` and `temponet schedulers`: lists of the built-in task sets and of the schedulers.

use anyhow::{Context, Result};
use serde::Serialize;
use temponet_formats::Format;
use temponet_formats::builtin::{self, Builtin};
use temponet_lab::roster;
use temponet_sched::catalog::SHIELD_PREFIX;

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
            tasks: set.task_count(),
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

pub fn schedulers(args: SchedulersArgs) -> Result<()> {
    let all = roster::all();
    let (name, summary, purpose) = SHIELD_PREFIX;
    if args.json {
        let rows = all.iter().map(|entry| {
            let options = entry.options.iter().map(
                |(name, default, meaning)| serde_json::json!({ "name": name, "default": default, "meaning": meaning }),
            );
            serde_json::json!({
                "name": entry.name, "kind": entry.kind.name(), "summary": entry.summary, "purpose": entry.purpose,
                "options": options.collect::<Vec<_>>(),
            })
        });
        let wrapper = serde_json::json!({ "name": name, "summary": summary, "purpose": purpose });
        return output::print_json(
            &serde_json::json!({ "schedulers": rows.collect::<Vec<_>>(), "wrappers": [wrapper] }),
        );
    }
    let width = all.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let lines = |name: &str, summary: &str, purpose: &str| {
        format!("{name:<width$}  {summary}\n{:width$}  for: {purpose}\n", "")
    };
    let mut out = String::new();
    for entry in all {
        out += &lines(&entry.name, &entry.summary, &entry.purpose);
        for (option, default, meaning) in entry.options {
            out += &format!("{:width$}  {option}={default}: {meaning}\n", "");
        }
    }
    output::print(&(out + &lines(name, summary, purpose)))
}
