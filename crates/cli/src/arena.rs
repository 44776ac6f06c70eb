//! `temponet arena`: schedulers on fixed scenarios, beside the clairvoyant optimum.

use std::path::PathBuf;

use anyhow::Result;
use temponet_lab::arena::json::{JsonArena, JsonListed};
use temponet_lab::arena::scenario::{all, find, of_version};
use temponet_lab::arena::{ArenaPlan, ArenaResults, ArenaRow, Scenario, ScenarioResult, page, run as run_plan};
use temponet_lab::stats::{percent, points};
use temponet_sched::Kind as SchedulerKind;

use crate::compare::chosen;
use crate::hints::with_flags;
use crate::output;
use crate::paths::{Kind, Output};
use crate::setup::ModelArgs;
use crate::table;

/// Run schedulers on fixed scenarios, beside the clairvoyant optimum
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  temponet arena --quick\n  temponet arena --model weights.safetensors --report arena.html\n  \
    temponet arena --scenario one-core-overload values --schedulers edf,mh-edf --json\n  \
    temponet arena --version 2 --list\n\n\
    A full run takes minutes. docs/arena.md describes the scenarios."
)]
pub struct Args {
    /// Scenarios to run, separated by commas or spaces [default: all of the version]
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',', conflicts_with = "arena")]
    scenario: Vec<String>,
    /// Version of the arena: 1, 2 or all
    #[arg(long = "version", value_name = "V", default_value = "all", value_parser = ["1", "2", "all"])]
    arena: String,
    /// List the scenarios instead of running them
    #[arg(long)]
    list: bool,
    /// Schedulers to run, separated by commas, or all
    #[arg(long, value_name = "LIST", default_value = "all")]
    schedulers: String,
    #[command(flatten)]
    model: ModelArgs,
    /// Run only a few sets of each scenario
    #[arg(long)]
    quick: bool,
    /// Run planners on this many sets of each scenario only, evenly spread [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    planner_sets: Option<u32>,
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
        true => match args.arena.as_str() {
            "1" => of_version(1)?,
            "2" => of_version(2)?,
            _ => all()?,
        },
        false => args.scenario.iter().map(|name| find(name)).collect::<Result<_, _>>()?,
    };
    if args.list {
        return match args.json {
            true => output::print_json(&scenarios.iter().map(JsonListed::of).collect::<Vec<JsonListed>>()),
            false => output::print(&listing(&scenarios, args.markdown)),
        };
    }
    let roster = args.model.roster()?;
    let schedulers = chosen(&args.schedulers, &roster)?;
    // The output is claimed first, so that a path that cannot be written does not waste a long run.
    let report_file = Output::wanted(args.report.as_deref(), Kind::Page, args.force)?;
    let planner_sets = args.planner_sets.map(|sets| sets as usize);
    let plan = ArenaPlan { scenarios, schedulers, roster, quick: args.quick, planner_sets };
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

/// Returns the list of the scenarios: name, version of the arena, whether training draws such sets, score, number of
/// sets.
fn listing(scenarios: &[Scenario], as_markdown: bool) -> String {
    let row = |scenario: &Scenario| -> [String; 6] {
        let kind = if scenario.held_out { "held out" } else { "" };
        let description = scenario.description.trim_start_matches("held out: ").to_string();
        let [version, sets] = [u64::from(scenario.arena), scenario.seeds.clone().count() as u64].map(|n| n.to_string());
        [scenario.name.clone(), version, kind.into(), scenario.goal.name().into(), sets, description]
    };
    if as_markdown {
        let rows: Vec<Vec<String>> = scenarios.iter().map(|scenario| row(scenario).to_vec()).collect();
        return table::markdown(&["scenario", "version", "kind", "score", "sets", "description"], &rows);
    }
    // Descriptions are long, so they stand at the end of a line, flush left.
    let line = |scenario: &Scenario| {
        let [name, version, kind, score, sets, description] = row(scenario);
        format!("{name:<22} version {version}  {kind:<8}  {score:<8}  {sets:>3} sets  {description}\n")
    };
    scenarios.iter().map(line).collect()
}

fn text(arena: &ArenaResults) -> String {
    let mut out: String = arena.scenarios.iter().map(scenario_text).collect();
    if arena.scenarios.len() > 1 {
        let (header, rows) = overview(arena);
        out += &(table::render_fitting(&header, &rows, 1) + "\n");
    }
    out + &arena.verdict().map_or(String::new(), |verdict| verdict + "\n")
}

fn scenario_text(outcome: &ScenarioResult) -> String {
    let mut header = vec!["scheduler", "score", "±95%", "jobs in time", "less best classical", "±95%"];
    let has_levels = outcome.rows.iter().any(|row| row.levels().len() > 1);
    header.extend(has_levels.then_some("levels from the highest"));
    let optimum = outcome.possible;
    let bound = format!("{}{}", optimum.sign(), percent(optimum.upper));
    let mut rows = vec![vec![optimum.name().to_string(), bound]];
    rows[0].resize(header.len(), String::new());
    rows.extend(outcome.rows.iter().map(|row| {
        let difference = outcome.against_best(row);
        let cell = |value: Option<f64>| value.map_or("–".into(), points);
        let mut cells = vec![
            row.name(outcome.sets),
            percent(row.score()),
            cell(row.ci95()),
            percent(row.compliance()),
            cell(difference.map(|of| of.mean)),
            cell(difference.and_then(|of| of.ci95)),
        ];
        if has_levels {
            cells.push(row.levels().into_iter().map(percent).collect::<Vec<String>>().join(" "));
        }
        cells
    }));
    let mut out = format!("{}: {}\n{}\n\n", outcome.scenario.name, outcome.scenario.description, outcome.facts());
    out += &table::render_fitting(&header, &rows, 1);
    for (name, why) in &outcome.skipped {
        out += &format!("not run: {name} ({})\n", with_flags(why));
    }
    if let Some(sets) = outcome.sets_with_fewer_critical() {
        out += &format!(
            "fewer critical jobs in time than with the best classical scheduler: in {sets} of {} sets\n",
            outcome.sets
        );
    }
    out + "\n"
}

/// Returns a table with one row for each scenario: EDF, the best classical scheduler and the best of all others, each
/// chosen with hindsight, then the tuned, the planning and the learned scheduler as far as they ran, and the optimum.
fn overview(arena: &ArenaResults) -> (Vec<&str>, Vec<Vec<String>>) {
    let row_of = |kind: SchedulerKind| arena.scenarios.iter().find_map(|outcome| outcome.of_kind(kind));
    let has = |kind: SchedulerKind| row_of(kind).is_some();
    let (has_planner, has_learned) = (has(SchedulerKind::Planning), has(SchedulerKind::Learned));
    let has_gain = has_planner && has_learned && has(SchedulerKind::Tuned);
    let learned: Vec<SchedulerKind> = [SchedulerKind::Tuned, SchedulerKind::Learned, SchedulerKind::Network]
        .into_iter()
        .filter(|kind| has(*kind))
        .collect();
    let mut header = vec!["scenario", "edf", "best classical", "score", "best other", "score"];
    header.extend(has_planner.then_some("planner"));
    header.extend(learned.iter().filter_map(|kind| row_of(*kind)).map(|row| row.label.as_str()));
    header.extend(has_learned.then_some(["less best other", "±95%", "standing", "gap closed"]).into_iter().flatten());
    header.extend(has_gain.then_some("planner's gain"));
    header.push("optimum");
    let score = |row: Option<&ArenaRow>| row.map_or("–".into(), |row| percent(row.score()));
    let share = |value: Option<f64>| match value {
        None => "–".into(),
        // The gap is small where the loss is many times as large.
        Some(loss) if loss < -1.0 => "<-100%".into(),
        Some(value) => format!("{:.0}%", 100.0 * value),
    };
    let line = |outcome: &ScenarioResult| {
        let name = |row: Option<&ArenaRow>| row.map_or("–".into(), |row| row.label.clone());
        let (best, rival) = (outcome.best_classical(), outcome.best_rival());
        let mut cells = vec![outcome.scenario.name.clone(), score(outcome.row("edf"))];
        cells.extend([name(best), score(best), name(rival), score(rival)]);
        if has_planner {
            cells.push(outcome.planner().map_or("–".into(), |row| match row.runs.len() {
                all if all == outcome.sets => percent(row.score()),
                some => format!("{} ({some} sets)", percent(row.score())),
            }));
        }
        cells.extend(learned.iter().map(|kind| score(outcome.of_kind(*kind))));
        if has_learned {
            let delta = outcome.against_best_rival();
            cells.push(delta.map_or("–".into(), |of| points(of.mean)));
            cells.push(delta.and_then(|of| of.ci95).map_or("–".into(), points));
            cells.push(outcome.standing().map_or("–", |standing| standing.name()).into());
            cells.push(share(outcome.gap_closed()));
        }
        if has_gain {
            cells.push(share(outcome.planner_gain_reached()));
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
