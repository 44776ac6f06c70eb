//! `temponet-paper check`: which published figures would this program print differently?

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use temponet_cli::setup::ModelArgs;
use temponet_cli::{ExtraCommand, Failed, output, paths, table};
use temponet_wording::counted;

use crate::{Cache, DeviceTrainer, Findings, Mode, page};

/// Say which published figures of the paper's experiments this program would print differently
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet-paper check\n  temponet-paper check E4 E18 --json\n  \
    temponet-paper check --published reproduction.md\n\n\
    Runs the quick form of the experiments anew, without what is cached, and ends with 1 if a figure differs. Figures of the\n\
    clock are left out. The network's\n\
    figures are rounded by the processor's kernel, so that those of another processor may differ.")]
pub struct Check {
    /// Experiments to run [default: ten quick ones]
    #[arg(value_name = "ID")]
    experiments: Vec<String>,
    /// Tables to compare with, as `reproduce --quick --markdown` prints them
    #[arg(long, value_name = "FILE", default_value = "docs/results/reproduction.md")]
    published: PathBuf,
    #[command(flatten)]
    model: ModelArgs,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

/// Experiments that take seconds, or a few minutes.
const DEFAULT: [&str; 10] =
    ["E4", "E8", "E9", "E18", "actor-critic", "multicore", "offline", "counterexample", "bound", "theory"];

/// Ends of figures that are of the clock or of the machine, and are not compared.
const OF_THE_MACHINE: [&str; 3] = [" s", " µs", " MB"];

fn is_compared((_, shown): &(String, String)) -> bool {
    !OF_THE_MACHINE.iter().any(|unit| shown.ends_with(unit))
}

/// A figure that is not as published.
#[derive(Serialize)]
struct Difference {
    experiment: String,
    figure: String,
    /// As the table has it; null: it is not in the table.
    published: Option<String>,
    /// As this program prints it; null: it prints none of that name.
    today: Option<String>,
}

impl ExtraCommand for Check {
    const NAME: &'static str = "check";

    fn run(self) -> Result<()> {
        paths::reads(&self.published)?;
        let text = std::fs::read_to_string(&self.published).with_context(|| self.published.display().to_string())?;
        let named: Vec<&str> = match self.experiments.is_empty() {
            true => DEFAULT.into(),
            false => self.experiments.iter().map(String::as_str).collect(),
        };
        let chosen = named.into_iter().map(crate::find).collect::<Result<Vec<_>, _>>()?;
        let published = chosen.iter().map(|experiment| published(&text, experiment.id));
        let published = published.collect::<Option<Vec<_>>>();
        let Some(published) = published else {
            let missing = chosen.iter().find(|one| published_section(&text, one.id).is_none()).map_or("", |one| one.id);
            bail!("{}: there is no table of {missing}", self.published.display());
        };
        let roster = self.model.roster()?;
        // What is cached may be of an earlier program.
        let folder = tempfile::tempdir().context("a folder for what is trained")?;
        let cache = Cache::open(folder.path())?;
        let mut all = Vec::new();
        let mut count = 0;
        for (experiment, published) in chosen.into_iter().zip(published) {
            let findings = crate::run(experiment, Mode::Quick, &roster, &cache, &DeviceTrainer::cpu())?;
            let today = figures(&findings);
            count += today.len();
            let found = differences(experiment.id, &published, &today);
            output::say(&format!(
                "{}: {} of {} differ, {:.1} s",
                experiment.id,
                found.len(),
                counted(today.len(), "figure"),
                findings.seconds
            ));
            all.extend(found);
        }
        print(&self.published, &all, count, self.json)
    }
}

/// The figures of an experiment, as they are printed, by name.
fn figures(findings: &Findings) -> BTreeMap<String, String> {
    let (_, rows) = page::figures(findings);
    let named = rows.into_iter().filter_map(|row| row.get(..2).map(|row| (row[0].clone(), row[1].clone())));
    named.filter(is_compared).collect()
}

/// The text of an experiment in the published tables.
fn published_section<'a>(text: &'a str, id: &str) -> Option<&'a str> {
    let begin = format!("\n## {id} ");
    let at = text.find(&begin)? + begin.len();
    let rest = &text[at..];
    Some(&rest[..rest.find("\n## ").unwrap_or(rest.len())])
}

/// The published figures of an experiment, by name.
fn published(text: &str, id: &str) -> Option<BTreeMap<String, String>> {
    let lines = published_section(text, id)?.lines().skip_while(|line| !line.starts_with("| figure | ours |"));
    let rows = lines.skip(2).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| {
        let mut cells = line.split(" | ").map(|cell| cell.trim_matches([' ', '|']).to_string());
        Some((cells.next()?, cells.next()?))
    };
    Some(rows.filter_map(cells).filter(is_compared).collect())
}

fn differences(id: &str, published: &BTreeMap<String, String>, today: &BTreeMap<String, String>) -> Vec<Difference> {
    let names: std::collections::BTreeSet<&String> = published.keys().chain(today.keys()).collect();
    let differ = names.into_iter().filter(|name| published.get(*name) != today.get(*name));
    let difference = |name: &String| Difference {
        experiment: id.into(),
        figure: name.clone(),
        published: published.get(name).cloned(),
        today: today.get(name).cloned(),
    };
    differ.map(difference).collect()
}

fn print(file: &Path, all: &[Difference], count: usize, json: bool) -> Result<()> {
    if json {
        let file = file.display().to_string();
        output::print_json(&serde_json::json!({ "published": file, "figures": count, "differences": all }))?;
    } else if all.is_empty() {
        output::print(&format!(
            "{} of {} are as this program prints them\n",
            counted(count, "figure"),
            file.display()
        ))?;
    } else {
        let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "–".into());
        let row =
            |of: &Difference| vec![of.experiment.clone(), of.figure.clone(), shown(&of.published), shown(&of.today)];
        let rows: Vec<Vec<String>> = all.iter().map(row).collect();
        output::print(&table::render_with(&["experiment", "figure", "published", "today"], &rows, 2))?;
    }
    match all.len() {
        0 => Ok(()),
        differing => {
            Err(Failed(format!("{} of {} differ from {}", differing, counted(count, "figure"), file.display())).into())
        }
    }
}
