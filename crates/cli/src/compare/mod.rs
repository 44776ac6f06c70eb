//! `temponet compare`: all schedulers on the same jobs.

mod fail_if;
mod text;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use temponet_lab::comparison::json::JsonReport;
use temponet_lab::comparison::report;
use temponet_lab::comparison::{ComparisonPlan, compare, picture_window};
use temponet_lab::horizon::default_horizon;
use temponet_lab::progress::Progress;
use temponet_lab::roster::{PLANNER, Roster, kind};
use temponet_sched::Kind as SchedulerKind;
use temponet_task::{Aim, Time};

use self::fail_if::Condition;
pub use self::fail_if::{refuse_unknown_task, refuse_unmeasurable};
use crate::bulk::{self, Wanted};
use crate::output;
use crate::paths::{Kind, Output};
use crate::setup::{ModelArgs, SetupArgs, aim};
use crate::shape::positive_number;

/// Run every scheduler on the same jobs and rank them
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  temponet compare\n  temponet compare mytasks.toml --cores 4 --report out.html\n  \
    temponet compare gap-avionics --schedulers edf,rm,llf:quantum=500us --runs 20 --json\n  \
    temponet compare robot --schedulers temponet --fail-if 'critical<100%'\n  \
    temponet compare sets/ extra.toml --csv results.csv --plot results.svg"
)]
pub struct Args {
    /// Task-set file (.toml, .csv, .json, rt-app's .json, SimSo's .xml), trace (see `temponet import`) or a built-in
    /// set's name [default: robot]. Several of them, or a folder of files, give one table over all sets
    #[arg(value_name = "FILE|NAME")]
    pub sets: Vec<String>,
    #[command(flatten)]
    pub setup: SetupArgs,
    #[command(flatten)]
    pub model: ModelArgs,
    /// Schedulers to run, separated by commas, or all
    #[arg(long, value_name = "LIST", default_value = "all")]
    pub schedulers: String,
    /// Run the rollout planner as well: the online reference, which tries out its decisions on drawn futures and takes
    /// milliseconds for each
    #[arg(long)]
    pub planner: bool,
    /// Show a row for every scheduler, without folding ties
    #[arg(long)]
    pub all: bool,
    /// Measures to rank by first, separated by commas: met, critical, value, worst-task, mk, chains [default: the goal
    /// of the set]
    #[arg(long, value_name = "AIMS", value_parser = aim, value_delimiter = ',')]
    pub rank_by: Vec<Aim>,
    /// Exit with code 1 if this holds for the best scheduler, or for the one named: [SCHEDULER:]MEASURE<SHARE, with the
    /// measures of --rank-by, critical.LEVEL or task.NAME, and <, <=, > or >=, such as 'critical<100%'; may be repeated,
    /// and all that hold are named
    #[arg(long, value_name = "CONDITION", value_parser = fail_if::parse)]
    pub fail_if: Vec<Condition>,
    /// Number of runs, with consecutive seeds [default: 10 if anything in the set is random, else 1]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub runs: Option<u64>,
    /// Write a self-contained HTML page with table, schedules and distributions
    #[arg(long, value_name = "OUT.html")]
    pub report: Option<PathBuf>,
    /// With several sets: write the results as a CSV file, a row for each scheduler on each set
    #[arg(long, value_name = "OUT.csv")]
    pub csv: Option<PathBuf>,
    /// With several sets: write an SVG picture of the deadlines met over the load of the sets
    #[arg(long, value_name = "OUT.svg")]
    pub plot: Option<PathBuf>,
    /// Replace existing files of any kind
    #[arg(long)]
    pub force: bool,
    /// Measure the latency of the schedulers' decisions on this machine
    #[arg(long)]
    pub latency: bool,
    /// Add each scheduler's median decision latency, as measured here, to the simulated time of each of its decisions
    #[arg(long, requires = "latency")]
    pub charge_latency: bool,
    /// Do not compute the clairvoyant optimum
    #[arg(long)]
    pub no_oracle: bool,
    /// Approximate time limit for the clairvoyant optimum over all runs, in seconds of one core; beyond it, bounds are
    /// shown. The limit also bounds memory: the optimum is not computed if a run has more than 200 000 jobs plus 400
    /// 000 per second, which the runs share
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = positive_number, conflicts_with = "no_oracle")]
    pub oracle_budget: f64,
    /// Print the results as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Default number of runs if anything in the set is random.
const RUNS: u64 = 10;

pub fn run(args: Args) -> Result<()> {
    if args.sets.len() > 1 || args.sets.iter().any(|name| bulk::is_folder_of_sets(Path::new(name))) {
        return run_many(&args);
    }
    if args.csv.is_some() || args.plot.is_some() {
        bail!("--csv and --plot are for several sets; --report shows one");
    }
    let (mut set, horizon, notes) = args.setup.prepare(args.sets.first().map(String::as_str))?;
    let runs = args.runs.unwrap_or(if set.is_random() { RUNS } else { 1 });
    let record_until = match args.report {
        Some(_) => picture_window(&set, horizon, report::MOST_JOBS),
        None => Time::ZERO,
    };
    let roster = args.model.roster()?;
    let schedulers = args.chosen(&roster)?;
    fail_if::refuse_unknown(&args.fail_if, &schedulers, &set)?;
    for aim in &args.rank_by {
        fail_if::refuse_unmeasurable(&format!("--rank-by {}", aim.name()), *aim, &set)?;
    }
    // The output is claimed first, so that a path that cannot be written does not waste a long run.
    let report_file = Output::wanted(args.report.as_deref(), Kind::Page, args.force)?;
    let progress = Progress::new(runs * schedulers.len() as u64, horizon);
    let oracle = (!args.no_oracle).then_some(args.oracle_budget);
    let (seed, latency) = (args.setup.seed(), args.latency);
    // The schedulers are told the goal that they are ranked by.
    set.system.set_aims([&args.rank_by, set.aims()].concat());
    let goal = set.goal().clone();
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
        output::print_json(&JsonReport::of(&comparison, &notes))?;
    } else {
        let is_whole = args.all || args.schedulers != "all";
        output::print(&text::text(&comparison, is_whole))?;
    }
    if let Some(path) = &args.report {
        output::say(&format!("report: {}", path.display()));
    }
    fail_if::check(&args.fail_if, &comparison)
}

impl Args {
    /// Returns the schedulers to run.
    fn chosen(&self, roster: &Roster) -> Result<Vec<String>> {
        let mut schedulers: Vec<String> = Vec::new();
        for name in chosen(&self.schedulers, roster)? {
            let name = self.model.scheduler(&name);
            if !schedulers.iter().any(|known| known == name) {
                schedulers.push(name.into());
            }
        }
        if self.planner && !schedulers.iter().any(|name| kind(name) == SchedulerKind::Planning) {
            schedulers.push(PLANNER.into());
        }
        Ok(schedulers)
    }
}

/// Compares the schedulers on several sets.
fn run_many(args: &Args) -> Result<()> {
    let of_one = [
        (args.report.is_some(), "--report"),
        (args.latency, "--latency"),
        (!args.rank_by.is_empty(), "--rank-by"),
        (!args.fail_if.is_empty(), "--fail-if"),
    ];
    if let Some((_, option)) = of_one.into_iter().find(|(is_given, _)| *is_given) {
        bail!("{option} is for one set, and several are named");
    }
    let roster = args.model.roster()?;
    bulk::run(Wanted {
        origins: &args.sets,
        setup: &args.setup,
        horizon: &|set| args.setup.horizon.unwrap_or_else(|| default_horizon(set)),
        runs: args.runs,
        schedulers: args.chosen(&roster)?,
        roster,
        oracle: (!args.no_oracle).then_some(args.oracle_budget),
        csv: args.csv.as_deref(),
        plot: args.plot.as_deref(),
        force: args.force,
        json: args.json,
        all: args.all || args.schedulers != "all",
    })
}

/// Parses a list of scheduler names; see [`Roster::chosen`].
pub fn chosen(list: &str, roster: &Roster) -> Result<Vec<String>> {
    let names = roster.chosen(list.split(','));
    if names.is_empty() {
        bail!("--schedulers {list:?} names no scheduler; `temponet schedulers` lists them");
    }
    Ok(names)
}
