//! `temponet arena`: schedulers on fixed scenarios, beside the clairvoyant optimum.

use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;
use temponet_lab::arena::scenario::{all, find};
use temponet_lab::arena::{ArenaPlan, ArenaResults, ArenaRow, ScenarioResult, page, run as run_plan};
use temponet_lab::roster::{SHIELDED, UNSHIELDED};
use temponet_lab::stats::{percent, points};

use crate::compare::chosen;
use crate::output;
use crate::paths::{Kind, Output};
use crate::setup::ModelArgs;
use crate::table;

/// Run schedulers on fixed scenarios, beside the clairvoyant optimum
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  temponet arena --quick\n  temponet arena --model weights.safetensors --report arena.html\n  \
    temponet arena --scenario one-core-overload values --schedulers edf,mh-edf --json\n\n\
    A full run takes minutes. docs/arena.md describes the scenarios."
)]
pub struct Args {
    /// Scenarios to run, separated by commas or spaces [default: all]
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    scenario: Vec<String>,
    /// Schedulers to run, separated by commas, or all
    #[arg(long, value_name = "LIST", default_value = "all")]
    schedulers: String,
    #[command(flatten)]
    model: ModelArgs,
    /// Run only a few sets of each scenario
    #[arg(long)]
    quick: bool,
    /// Write a self-contained HTML page with a plot over the scenarios and their tables
    #[arg(long, value_name = "OUT.html")]
    report: Option<PathBuf>,
    /// Replace existing files of any kind
    #[arg(long)]
    force: bool,
    /// Print the results as one JSON object
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print Markdown tables
    #[arg(long)]
    markdown: bool,
}

pub fn run(args: Args) -> Result<()> {
    let scenarios = match args.scenario.is_empty() {
        true => all()?,
        false => args.scenario.iter().map(|name| find(name)).collect::<Result<_, _>>()?,
    };
    let roster = args.model.roster()?;
    let schedulers = chosen(&args.schedulers, &roster)?;
    // The output is claimed first, so that a path that cannot be written does not waste a long run.
    let report_file = Output::wanted(args.report.as_deref(), Kind::Page, args.force)?;
    let plan = ArenaPlan { scenarios, schedulers, roster, quick: args.quick };
    let arena = run_plan(&plan, &plan.progress())?;
    if let Some(file) = report_file {
        file.write(page::html(&arena))?;
    }
    if args.json {
        return output::print_json(&JsonArena::of(&arena));
    }
    output::print(&if args.markdown { markdown(&arena) } else { text(&arena) })?;
    if let Some(path) = &args.report {
        output::say(&format!("report: {}", path.display()));
    }
    Ok(())
}

fn text(arena: &ArenaResults) -> String {
    let mut out: String = arena.scenarios.iter().map(scenario_text).collect();
    if arena.scenarios.len() > 1 {
        let (header, rows) = overview(arena);
        out += &(table::render(&header, &rows) + "\n");
    }
    out + &arena.verdict().map_or(String::new(), |verdict| verdict + "\n")
}

fn scenario_text(outcome: &ScenarioResult) -> String {
    let header = ["scheduler", "score", "±95%", "jobs in time", "less best classical", "±95%"];
    let optimum = outcome.possible;
    let bound = format!("{}{}", optimum.sign(), percent(optimum.upper));
    let mut rows = vec![vec![optimum.name().to_string(), bound]];
    rows[0].resize(header.len(), String::new());
    rows.extend(outcome.rows.iter().map(|row| {
        let (difference, interval) = outcome.against_best(row).unwrap_or_default();
        let cell = |value: Option<f64>| value.map_or("–".into(), points);
        vec![
            row.label.clone(),
            percent(row.score()),
            cell(row.ci95()),
            percent(row.compliance()),
            cell(Some(difference)),
            cell(interval),
        ]
    }));
    let mut out = format!("{}: {}\n{}\n\n", outcome.scenario.name, outcome.scenario.description, outcome.facts());
    out += &table::render(&header, &rows);
    for (name, why) in &outcome.skipped {
        out += &format!("not run: {name} ({why})\n");
    }
    out + "\n"
}

/// Returns a table with one row for each scenario: EDF, the best classical scheduler, the learned one if it ran, and the optimum.
fn overview(arena: &ArenaResults) -> (Vec<&str>, Vec<Vec<String>>) {
    let row_of = |name: &str| arena.scenarios.iter().find_map(|outcome| outcome.row(name));
    let has = |name: &str| row_of(name).is_some();
    let learned: Vec<&str> = [SHIELDED, UNSHIELDED].into_iter().filter(|name| has(name)).collect();
    let mut header = vec!["scenario", "edf", "best classical", "score"];
    header.extend(learned.iter().filter_map(|name| row_of(name)).map(|row| row.label.as_str()));
    header.extend(has(SHIELDED).then_some(["less best", "±95%", "standing"]).into_iter().flatten());
    header.push("optimum");
    let score = |row: Option<&ArenaRow>| row.map_or("–".into(), |row| percent(row.score()));
    let line = |outcome: &ScenarioResult| {
        let best = outcome.best_classical();
        let name = best.map_or("–", |row| &row.label);
        let mut cells = vec![outcome.scenario.name.clone(), score(outcome.row("edf")), name.into(), score(best)];
        cells.extend(learned.iter().map(|name| score(outcome.row(name))));
        if has(SHIELDED) {
            let delta = outcome.paired_delta();
            cells.push(delta.map_or("–".into(), |(mean, _)| points(mean)));
            cells.push(delta.and_then(|(_, interval)| interval).map_or("–".into(), points));
            cells.push(outcome.standing().map_or("–", |standing| standing.name()).into());
        }
        cells.push(format!("{}{}", outcome.possible.sign(), percent(outcome.possible.upper)));
        cells
    };
    (header, arena.scenarios.iter().map(line).collect())
}

/// Number of scenarios side by side in one Markdown table.
const IN_TABLE: usize = 7;

/// Renders the overview, and the score of every scheduler on every scenario with its confidence interval.
fn markdown(arena: &ArenaResults) -> String {
    let (header, rows) = overview(arena);
    let mut out = table::markdown(&header, &rows);
    for outcomes in arena.scenarios.chunks(IN_TABLE) {
        let mut header = vec!["score ±95%"];
        header.extend(outcomes.iter().map(|outcome| outcome.scenario.name.as_str()));
        let optimum = outcomes.iter().map(|of| format!("{}{}", of.possible.sign(), percent(of.possible.upper)));
        let mut rows: Vec<Vec<String>> = vec![["clairvoyant".into()].into_iter().chain(optimum).collect()];
        let mut names: Vec<&str> = Vec::new();
        for row in outcomes.iter().flat_map(|outcome| &outcome.rows) {
            if !names.contains(&row.spec.as_str()) {
                names.push(&row.spec);
            }
        }
        for name in names {
            let mut label = name;
            let mut cells = Vec::new();
            for outcome in outcomes {
                let row = outcome.row(name);
                label = row.map_or(label, |row| &row.label);
                cells.push(row.map_or("–".into(), |row| {
                    format!("{} ±{}", percent(row.score()), row.ci95().map_or("–".into(), points))
                }));
            }
            rows.push([label.to_string()].into_iter().chain(cells).collect());
        }
        out += &("\n".to_string() + &table::markdown(&header, &rows));
    }
    out + &arena.verdict().map_or(String::new(), |verdict| format!("\n{verdict}\n"))
}

/// JSON report. All shares are fractions; `ci95` is half the width of the confidence interval, null for one set.
#[derive(Serialize)]
struct JsonArena<'a> {
    quick: bool,
    scenarios: Vec<JsonScenario<'a>>,
    /// Standings over all scenarios; null without a model.
    summary: Option<JsonSummary>,
}

#[derive(Serialize)]
struct JsonScenario<'a> {
    name: &'a str,
    version: u32,
    description: &'a str,
    goal: &'static str,
    sets: usize,
    /// Schedulers, the best one first.
    schedulers: Vec<JsonRow<'a>>,
    best_classical: Option<&'a str>,
    /// Score of the learned scheduler minus that of the best classical one, paired by set; null without a model.
    paired_delta: Option<JsonDelta>,
    /// `below`, `level`, `undecided` or `above`; null without a model.
    standing: Option<&'static str>,
    clairvoyant: JsonOptimum,
    skipped: Vec<JsonSkipped<'a>>,
}

#[derive(Serialize)]
struct JsonRow<'a> {
    name: &'a str,
    score: f64,
    compliance: f64,
    ci95: Option<f64>,
}

#[derive(Serialize)]
struct JsonDelta {
    mean: f64,
    ci95: Option<f64>,
}

/// Clairvoyant optimum. `exact` tells whether `upper` is the optimum rather than a bound.
#[derive(Serialize)]
struct JsonOptimum {
    exact: bool,
    upper: f64,
    lower: f64,
}

#[derive(Serialize)]
struct JsonSkipped<'a> {
    scheduler: &'a str,
    reason: &'a str,
}

#[derive(Serialize)]
struct JsonSummary {
    below: usize,
    level: usize,
    undecided: usize,
    above: usize,
    /// Closed share of all gaps between the best classical scheduler and the optimum; null if there is no gap.
    gap_closed: Option<f64>,
    verdict: String,
}

impl<'a> JsonArena<'a> {
    fn of(arena: &'a ArenaResults) -> JsonArena<'a> {
        let summary = arena.summary().zip(arena.verdict()).map(|(summary, verdict)| {
            let [below, level, undecided, above] = summary.standings;
            JsonSummary { below, level, undecided, above, gap_closed: summary.gap_closed, verdict }
        });
        JsonArena { quick: arena.quick, scenarios: arena.scenarios.iter().map(JsonScenario::of).collect(), summary }
    }
}

impl<'a> JsonScenario<'a> {
    fn of(outcome: &'a ScenarioResult) -> JsonScenario<'a> {
        let row = |row: &'a ArenaRow| JsonRow {
            name: &row.label,
            score: row.score(),
            compliance: row.compliance(),
            ci95: row.ci95(),
        };
        let optimum = outcome.possible;
        JsonScenario {
            name: &outcome.scenario.name,
            version: outcome.scenario.version,
            description: &outcome.scenario.description,
            goal: outcome.scenario.goal.name(),
            sets: outcome.sets,
            schedulers: outcome.rows.iter().map(row).collect(),
            best_classical: outcome.best_classical().map(|row| row.label.as_str()),
            paired_delta: outcome.paired_delta().map(|(mean, ci95)| JsonDelta { mean, ci95 }),
            standing: outcome.standing().map(|standing| standing.name()),
            clairvoyant: JsonOptimum { exact: optimum.is_exact, upper: optimum.upper, lower: optimum.lower },
            skipped: outcome.skipped.iter().map(|(scheduler, reason)| JsonSkipped { scheduler, reason }).collect(),
        }
    }
}
