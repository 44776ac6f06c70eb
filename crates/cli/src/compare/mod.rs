//! `temponet compare`: every scheduler on the same jobs.

mod fail_if;
mod json;
mod text;

use std::path::PathBuf;

use anyhow::{Result, bail};
use temponet_lab::comparison::report;
use temponet_lab::comparison::{ComparisonPlan, compare, picture_window};
use temponet_lab::progress::Progress;
use temponet_lab::roster::{Roster, SHIELDED};
use temponet_task::{Aim, Time};

use self::fail_if::Condition;
use self::json::JsonReport;
pub use self::json::JsonRow;
use crate::output;
use crate::paths::{Kind, Output};
use crate::setup::{ModelArgs, SetupArgs, aim, shield_role};
use crate::shape::positive_number;

/// Run every scheduler on the same jobs: which one meets the most deadlines?
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  temponet compare\n  temponet compare mytasks.toml --cores 4 --report out.html\n  \
    temponet compare gap-avionics --schedulers edf,rm,llf:quantum=500us --runs 20 --json\n  \
    temponet compare robot --schedulers temponet --fail-if 'critical<100%'"
)]
pub struct Args {
    /// Task-set file (.toml, .csv, .json, rt-app's .json, SimSo's .xml) or a built-in set's name [default: robot]
    #[arg(value_name = "FILE|NAME")]
    pub set: Option<String>,
    #[command(flatten)]
    pub setup: SetupArgs,
    #[command(flatten)]
    pub model: ModelArgs,
    /// Schedulers, separated by commas, or all
    #[arg(long, value_name = "LIST", default_value = "all")]
    pub schedulers: String,
    /// Show every scheduler: no ties folded, nobody left out
    #[arg(long)]
    pub all: bool,
    /// Rank by these first, separated by commas: met, critical, value, worst-task, mk [default: the set's goal]
    #[arg(long, value_name = "AIMS", value_parser = aim, value_delimiter = ',')]
    pub rank_by: Vec<Aim>,
    /// End with exit code 1 if this holds of the best scheduler, or of the one named: [SCHEDULER:]MEASURE<SHARE, with the measures of
    /// --rank-by and <, <=, > or >=; may be given several times
    #[arg(long, value_name = "CONDITION", value_parser = fail_if::parse)]
    pub fail_if: Vec<Condition>,
    /// Number of runs, each with the next seed [default: 10 if anything in the set is random, else 1]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub runs: Option<u64>,
    /// Write one self-contained HTML page with table, schedules and distributions
    #[arg(long, value_name = "OUT.html")]
    pub report: Option<PathBuf>,
    /// Replace existing files, whatever is in them
    #[arg(long)]
    pub force: bool,
    /// Measure how long the schedulers' own decisions take
    #[arg(long)]
    pub latency: bool,
    /// Charge every scheduler the median of its own decisions' latency, measured here, for each decision
    #[arg(long, requires = "latency")]
    pub charge_latency: bool,
    /// Leave the clairvoyant optimum out
    #[arg(long)]
    pub no_oracle: bool,
    /// How long finding the clairvoyant optimum may take, about, in seconds of one core; beyond it, bounds are given. It bounds the memory too:
    /// a run of more than 200 000 jobs and 400 000 more per second, shared among the runs, is not looked at
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = positive_number, conflicts_with = "no_oracle")]
    pub oracle_budget: f64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs when something is random and the user does not say how many.
const RUNS: u64 = 10;

pub fn run(args: Args) -> Result<()> {
    let (set, horizon, notes) = args.setup.prepare(args.set.as_deref())?;
    let runs = args.runs.unwrap_or(if set.is_random() { RUNS } else { 1 });
    let record_until = match args.report {
        Some(_) => picture_window(&set, horizon, report::MOST_JOBS),
        None => Time::ZERO,
    };
    let roster = args.model.roster()?;
    let mut schedulers: Vec<String> = Vec::new();
    for name in chosen(&args.schedulers, &roster)? {
        let name = args.model.scheduler(&name);
        if !schedulers.iter().any(|known| known == name) {
            schedulers.push(name.into());
        }
    }
    fail_if::refuse_unknown(&args.fail_if, &schedulers)?;
    if args.rank_by.contains(&Aim::Critical) && set.levels().is_empty() {
        bail!("--rank-by critical: no task is critical");
    }
    if args.rank_by.contains(&Aim::Mk) && set.tasks.iter().all(|task| task.mk.is_none()) {
        bail!("--rank-by mk: no task has an (m,k) constraint");
    }
    // Claimed first: a path that cannot be written should not cost a long run.
    let report_file = Output::wanted(args.report.as_deref(), Kind::Page, args.force)?;
    let progress = Progress::new(runs * schedulers.len() as u64, horizon);
    let oracle = (!args.no_oracle).then_some(args.oracle_budget);
    let (seed, latency) = (args.setup.seed(), args.latency);
    let goal = set.goal_led_by(&args.rank_by);
    let shield = schedulers.iter().any(|name| name == SHIELDED).then(|| shield_role(&set));
    let plan = ComparisonPlan {
        set,
        goal,
        horizon,
        seed,
        runs,
        schedulers,
        roster,
        latency,
        charge_latency: args.charge_latency,
        record_until,
        oracle,
    };
    let comparison = compare(plan, &progress)?;
    if let Some(file) = report_file {
        file.write(report::html(&comparison))?;
    }
    if args.json {
        output::print_json(&JsonReport::of(&comparison, &notes, shield.as_deref()))?;
    } else {
        let is_whole = args.all || args.schedulers != "all";
        output::print(&text::text(&comparison, is_whole, shield.as_deref()))?;
    }
    if let Some(path) = &args.report {
        output::say(&format!("report: {}", path.display()));
    }
    fail_if::check(&args.fail_if, &comparison)
}

/// `all`, or the names of a list without doubles.
pub fn chosen(list: &str, roster: &Roster) -> Result<Vec<String>> {
    if list == "all" {
        return Ok(roster.names());
    }
    let mut names: Vec<String> = Vec::new();
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_string());
        }
    }
    if names.is_empty() {
        bail!("--schedulers {list:?} names no scheduler; `temponet schedulers` lists them");
    }
    Ok(names)
}
