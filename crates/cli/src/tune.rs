//! `temponet tune`: which scheduler to follow on a task set, found by simulating it.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;
use temponet::stages::Learned;
use temponet::tuning::{Candidate, CandidateScore, Choice, Settings, TunedModel, Why, choose_with_modes};
use temponet_lab::advice::Decider;
use temponet_lab::guarantee::breaking_modes;
use temponet_lab::stats::percent;
use temponet_sched::shield::Role;
use temponet_sim::statistics::margin;
use temponet_task::{Scheduler, TaskSet};
use temponet_wording::counted;

use crate::convert::written;
use crate::paths::{Kind, Output, Replace};
use crate::setup::{ModelArgs, SetupArgs, cores};
use crate::{output, table};

/// Find by simulation which scheduler to follow on a task set: the network or a simple one
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet tune robot\n  temponet tune mytasks.toml -o tuned.safetensors\n\n\
    The learned scheduler does the same when it starts on a set; a tuned model saves it the time. With --horizon, each candidate\n\
    is simulated that long; --seed draws other jobs. By default both are constants. docs/tuning.md says how.")]
pub struct Args {
    /// Task-set file (.toml, .csv, .json, rt-app's .json, SimSo's .xml) or a built-in set's name
    #[arg(value_name = "FILE|NAME")]
    set: String,
    #[command(flatten)]
    setup: SetupArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// Write the model with the choice for this set
    #[arg(short, long, value_name = "FILE.safetensors")]
    output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

/// JSON report: the set, who decides, the choice of this tuning and what speaks for it.
#[derive(Serialize)]
struct JsonChoice<'a> {
    task_set: &'a str,
    cores: usize,
    verdict: String,
    /// Who decides in `temponet` with this model: the followed candidate, or the shield's stand-in.
    decider: &'a Decider,
    #[serde(flatten)]
    choice: &'a Choice,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a PathBuf>,
}

pub fn run(args: Args) -> Result<()> {
    let (set, ..) = args.setup.prepare(Some(&args.set))?;
    // The output is claimed first, so that a path that cannot be written is noticed at once.
    let claim = |path: &PathBuf| Output::claim(path, Kind::Model, Replace::nothing_or(args.force));
    let file = args.output.as_ref().map(claim).transpose()?;
    let roster = args.model.roster()?;
    let model = roster.model.context("there is no model")?;
    let mut fresh = (*model).clone();
    fresh.forget_tuned();
    let system = set.system.clone();
    let choice = &chosen(&set, Learned::new(model.clone(), roster.options)?, &args.setup)?;
    // A verdict of the training on this set rests on more jobs, and is what the scheduler follows.
    let weights = fresh.weights.checksum();
    let is_verdict =
        |tuned: &TunedModel| tuned.choice.why == Why::Judged && tuned.weights == weights && tuned.is_for(&system);
    let judged = model.tuned().filter(is_verdict).map(|tuned| tuned.choice);
    let followed = judged.as_ref().unwrap_or(choice);
    let decider = &Decider::of(followed, Some(&Role::on(&system))).on(&set, followed);
    if let Some(file) = file {
        fresh.set_tuned(&set.name, &system, followed.clone())?;
        file.write(fresh.to_bytes().context("cannot write the model")?)?;
    }
    let verdict = match judged {
        Some(_) if choice.name != followed.name => {
            format!("{}. By this tuning alone, {choice}", decider.sentence)
        }
        _ => decider.sentence.clone(),
    };
    if args.json {
        let output = args.output.as_ref();
        let report = JsonChoice { task_set: &set.name, cores: set.cores(), verdict, decider, choice, output };
        return output::print_json(&report);
    }
    output::print(&text(&set, choice, &verdict))?;
    args.output.as_deref().map_or(Ok(()), |path| written(path, false))
}

/// Simulates the system like the learned scheduler at its start, for as long and with the seed that the options say.
fn chosen(set: &TaskSet, mut network: Learned, setup: &SetupArgs) -> Result<Choice> {
    let system = &set.system;
    // What the network cannot read is refused, whoever would be followed.
    network.start(system)?;
    let default = Settings::SHIELDED;
    let settings = Settings { horizon: setup.horizon, seed: setup.seed.unwrap_or(default.seed), ..default };
    let candidates: Vec<Candidate> =
        [Candidate::Network(Box::new(network))].into_iter().chain(Candidate::classical(system)).collect();
    Ok(choose_with_modes(system, breaking_modes(set), &candidates, settings))
}

fn text(set: &TaskSet, choice: &Choice, verdict: &str) -> String {
    let mut out = format!(
        "{}: {} on {}, {} simulated\n\n",
        set.name,
        counted(set.task_count(), "task"),
        cores(set),
        jobs(choice)
    );
    if !choice.candidates.is_empty() {
        let mut header: Vec<&str> = vec!["candidate"];
        header.extend(choice.measures.iter().map(String::as_str));
        header.extend(["less the best simple", "±95%", "blocks"]);
        let mut rows: Vec<&CandidateScore> = choice.candidates.iter().collect();
        rows.sort_by_key(|row| row.name != choice.name);
        out += &table::render(&header, &rows.iter().map(|row| cells(row, &choice.measures)).collect::<Vec<_>>());
        out += "\n";
    }
    out + &format!("{verdict}.\n")
}

fn jobs(choice: &Choice) -> String {
    if choice.jobs == 0 { "none of its jobs".into() } else { format!("{} jobs", table::count(choice.jobs)) }
}

/// Cells of a candidate: its score in each measure, and its difference in the first measure in which it differs beyond
/// its standard error, else in which it differs.
fn cells(row: &CandidateScore, measures: &[String]) -> Vec<String> {
    let pairs = || row.differences.iter().zip(&row.difference_errors).zip(measures);
    let ((difference, error), measure) = pairs()
        .find(|((difference, error), _)| difference.abs() > **error)
        .or_else(|| pairs().find(|((difference, _), _)| **difference != 0.0))
        .unwrap_or(((&0.0, &0.0), &measures[0]));
    // With one measure it is clear which one is meant.
    let of = if measures.len() > 1 && *difference != 0.0 { format!(" {measure}") } else { String::new() };
    let half = if *error > 0.0 { margin(row.blocks, 0.025) * error } else { 0.0 };
    let mut cells = vec![row.name.clone()];
    cells.extend((0..measures.len()).map(|place| row.scores.get(place).map_or("–".into(), |score| percent(*score))));
    cells.extend([format!("{:+.2}{of}", 100.0 * difference), format!("{:.2}", 100.0 * half), row.blocks.to_string()]);
    cells
}
