//! `temponet compare`: every scheduler on the same jobs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, bail};
use serde::Serialize;
use temponet_lab::clairvoyant::{Clairvoyant, Range};
use temponet_lab::comparison::{Comparison, Plan, Row, compare, picture_window};
use temponet_lab::progress::Progress;
use temponet_lab::report;
use temponet_lab::roster::Roster;
use temponet_lab::stats::percent;
use temponet_sim::Histogram;
use temponet_task::Time;
use temponet_task::wording::counted;

use crate::output;
use crate::paths::{Kind, Output};
use crate::setup::{ModelArgs, SetupArgs, heading};
use crate::shape::positive_number;
use crate::table;

/// Run every scheduler on the same jobs: which one meets the most deadlines?
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  temponet compare\n  temponet compare mytasks.toml --cores 4 --report out.html\n  \
    temponet compare gap-avionics --schedulers edf,rm,llf:quantum=500us --runs 20 --json"
)]
pub struct Args {
    /// Task-set file (.toml, .csv, .json, rt-app's .json, SimSo's .xml) or a built-in set's name [default: standard-125]
    #[arg(value_name = "FILE|NAME")]
    pub set: Option<String>,
    #[command(flatten)]
    pub setup: SetupArgs,
    #[command(flatten)]
    pub model: ModelArgs,
    /// Schedulers, separated by commas, or all
    #[arg(long, value_name = "LIST", default_value = "all")]
    pub schedulers: String,
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
    /// Leave the clairvoyant optimum out
    #[arg(long)]
    pub no_oracle: bool,
    /// How long finding the clairvoyant optimum may take, about, in seconds of one core; beyond it, bounds are given
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
    // Claimed first: a path that cannot be written should not cost a long run.
    let report_file = Output::wanted(args.report.as_deref(), Kind::Page, args.force)?;
    let progress = Progress::new(runs * schedulers.len() as u64, horizon);
    let oracle = (!args.no_oracle).then_some(args.oracle_budget);
    let (seed, latency) = (args.setup.seed, args.latency);
    let plan = Plan { set, horizon, seed, runs, schedulers, roster, latency, record_until, oracle };
    let comparison = compare(plan, &progress)?;
    if let Some(file) = report_file {
        file.write(report::html(&comparison))?;
    }
    if args.json {
        return output::print_json(&JsonReport::of(&comparison, &notes));
    }
    output::print(&text(&comparison))?;
    if let Some(path) = &args.report {
        output::say(&format!("report: {}", path.display()));
    }
    Ok(())
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

fn text(comparison: &Comparison) -> String {
    let plan = &comparison.plan;
    let critical = plan.set.has_critical_tasks();
    let valued = plan.set.has_values();
    let many_cores = plan.set.cores > 1;
    let mut header = vec!["scheduler", "met", "±95%", "missed"];
    header.extend(comparison.clairvoyant.is_some().then_some("of optimum"));
    header.extend(critical.then_some("critical met"));
    header.extend(valued.then_some("value"));
    header.extend(["response", "of all", "lateness p95", "preempt/job"]);
    header.extend(many_cores.then_some("migr/job"));
    header.extend(plan.latency.then_some(["decision p50", "p99", "p99.9", "max"]).into_iter().flatten());
    let cells = |row: &Row| {
        let metrics = &row.metrics;
        let per_job = |count: u64| format!("{:.2}", count as f64 / metrics.jobs.released.max(1) as f64);
        let optional = |time: Option<f64>| time.map_or("–".into(), table::time);
        let mut cells = vec![
            row.scheduler.clone(),
            if metrics.jobs.released > 0 { percent(metrics.jobs.compliance()) } else { "–".into() },
            row.ci95().map_or("–".into(), percent),
            table::count(metrics.missed()),
        ];
        cells.extend(comparison.clairvoyant.as_ref().map(|optimum| {
            let at_least = if optimum.met.is_exact() { "" } else { "≥" };
            comparison.of_optimum(row).map_or("–".into(), |share| format!("{at_least}{}", percent(share)))
        }));
        cells.extend(critical.then(|| metrics.pitmd().map_or("–".into(), percent)));
        cells.extend(valued.then(|| percent(metrics.value / metrics.value_possible.max(f64::MIN_POSITIVE))));
        cells.extend([
            optional(metrics.art_completed()),
            optional(metrics.art_all()),
            optional(metrics.lateness.quantile(0.95).map(|lateness| lateness as f64)),
            per_job(metrics.preemptions),
        ]);
        cells.extend(many_cores.then(|| per_job(metrics.migrations)));
        if let Some(latency) = &row.latency {
            let quantiles = [0.5, 0.99, 0.999, 1.0].map(|q| latency.quantile(q));
            cells.extend(quantiles.map(|value| optional(value.map(|value| value as f64))));
        }
        cells
    };
    let optimum = comparison.clairvoyant.as_ref().map(|optimum| optimum_cells(comparison, optimum, &header));
    let rows: Vec<Vec<String>> = optimum.into_iter().chain(comparison.rows.iter().map(cells)).collect();
    let mut out = heading(&plan.set, plan.horizon);
    let released = comparison.rows.first().map_or(0, |row| row.metrics.jobs.released);
    let (runs, jobs) = (counted(plan.runs, "run"), counted(released, "job"));
    out += &format!("\n{runs} from seed {}, {jobs} each scheduler\n\n", plan.seed);
    out += &table::render(&header, &rows);
    for (name, why) in &comparison.skipped {
        out += &format!("not run: {name} ({why})\n");
    }
    if let Some(optimum) = comparison.clairvoyant.as_ref().filter(|optimum| !optimum.met.is_exact()) {
        let (lower, upper) = (table::count(optimum.met.lower as u64), table::count(optimum.met.upper as u64));
        out += &format!(
            "the optimum is not known exactly: {lower} to {upper} jobs in time; a larger --oracle-budget may tell\n"
        );
    }
    out + &format!("\n{}\n", comparison.verdict())
}

/// The line of the clairvoyant optimum, or of the bound on it.
fn optimum_cells(comparison: &Comparison, optimum: &Clairvoyant, header: &[&str]) -> Vec<String> {
    let is_exact = optimum.met.is_exact();
    let (at_most, at_least) = if is_exact { ("", "") } else { ("≤", "≥") };
    let bound = |range: Option<Range>, share: Option<f64>| {
        let at_most = if range.is_some_and(|range| range.is_exact()) { "" } else { "≤" };
        share.map_or(String::new(), |share| format!("{at_most}{}", percent(share)))
    };
    let cell = |column: &&str| match *column {
        "scheduler" => if is_exact { "clairvoyant optimum" } else { "clairvoyant bound" }.into(),
        "met" => format!("{at_most}{}", percent(optimum.met.upper / optimum.released as f64)),
        "missed" => format!("{at_least}{}", table::count(optimum.released - optimum.met.upper as u64)),
        "critical met" => bound(optimum.critical, comparison.critical_possible()),
        "value" => bound(optimum.value, comparison.value_possible()),
        _ => String::new(),
    };
    header.iter().map(cell).collect()
}

#[derive(Serialize)]
struct JsonReport<'a> {
    task_set: &'a str,
    cores: usize,
    utilization: f64,
    horizon_ns: u64,
    on_miss: &'static str,
    seed: u64,
    runs: u64,
    verdict: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    clairvoyant: Option<JsonClairvoyant>,
    results: Vec<JsonRow<'a>>,
    skipped: Vec<JsonSkipped<'a>>,
    /// What the file of another tool says and the set does not.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
}

/// The clairvoyant optimum in jobs, summed over the runs; `met`, `value` and `critical_met` only where they are exact.
#[derive(Serialize)]
struct JsonClairvoyant {
    exact: bool,
    released: u64,
    met: Option<u64>,
    upper: u64,
    lower: u64,
    value: Option<f64>,
    value_upper: Option<f64>,
    value_lower: Option<f64>,
    critical_met: Option<u64>,
    critical_upper: Option<u64>,
    critical_lower: Option<u64>,
    /// All jobs in time when critical ones come first.
    met_critical_first: Option<u64>,
}

impl From<&Clairvoyant> for JsonClairvoyant {
    fn from(optimum: &Clairvoyant) -> JsonClairvoyant {
        let Clairvoyant { released, met, critical, value, met_critical_first, .. } = *optimum;
        let exact = |range: &Range| range.is_exact();
        JsonClairvoyant {
            exact: met.is_exact(),
            released,
            met: met.is_exact().then_some(met.lower as u64),
            upper: met.upper as u64,
            lower: met.lower as u64,
            // Where all jobs are worth one, meeting most is worth most.
            value: value.unwrap_or(met).is_exact().then_some(value.unwrap_or(met).lower),
            value_upper: value.map(|range| range.upper),
            value_lower: value.map(|range| range.lower),
            critical_met: critical.filter(exact).map(|range| range.lower as u64),
            critical_upper: critical.map(|range| range.upper as u64),
            critical_lower: critical.map(|range| range.lower as u64),
            met_critical_first,
        }
    }
}

#[derive(Serialize)]
struct JsonSkipped<'a> {
    scheduler: &'a str,
    reason: &'a str,
}

/// One scheduler's figures; counts are sums over the runs.
#[derive(Serialize)]
pub struct JsonRow<'a> {
    scheduler: &'a str,
    released: u64,
    met: u64,
    missed: u64,
    /// Null where no job counts.
    compliance: Option<f64>,
    /// Half the width of the interval; null for one run.
    compliance_ci95: Option<f64>,
    /// Null where no job is critical.
    pitmd: Option<f64>,
    /// The share of the clairvoyant optimum that was met; at least that share where the optimum is not exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    of_optimum: Option<f64>,
    run_success: f64,
    by_criticality: Vec<JsonLevel>,
    value: f64,
    value_possible: f64,
    art_completed_ns: Option<f64>,
    art_all_ns: Option<f64>,
    lateness_mean_ns: Option<f64>,
    lateness_p95_ns: Option<i64>,
    lateness_p99_ns: Option<i64>,
    lateness_max_ns: Option<i64>,
    preemptions: u64,
    migrations: u64,
    decisions: u64,
    idle_ns: u64,
    energy: f64,
    /// What the scheduler counted about itself, such as `shield_overrides` and `fallbacks`.
    #[serde(flatten)]
    counters: BTreeMap<&'static str, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision_latency_ns: Option<JsonLatency>,
    tasks: Vec<JsonTask<'a>>,
}

#[derive(Serialize)]
struct JsonLevel {
    criticality: usize,
    released: u64,
    met: u64,
}

#[derive(Serialize)]
struct JsonLatency {
    p50: Option<i64>,
    p99: Option<i64>,
    p999: Option<i64>,
    max: Option<i64>,
}

#[derive(Serialize)]
struct JsonTask<'a> {
    task: &'a str,
    released: u64,
    met: u64,
    response_mean_ns: Option<f64>,
    response_max_ns: Option<u64>,
}

impl<'a> JsonReport<'a> {
    fn of(comparison: &'a Comparison, notes: &'a [String]) -> JsonReport<'a> {
        let plan = &comparison.plan;
        JsonReport {
            task_set: &plan.set.name,
            cores: plan.set.cores,
            utilization: plan.set.utilization(),
            horizon_ns: plan.horizon.0,
            on_miss: plan.set.on_miss.name(),
            seed: plan.seed,
            runs: plan.runs,
            verdict: comparison.verdict(),
            clairvoyant: comparison.clairvoyant.as_ref().map(JsonClairvoyant::from),
            results: comparison.rows.iter().map(|row| JsonRow::of(row, plan, comparison.of_optimum(row))).collect(),
            skipped: comparison.skipped.iter().map(|(scheduler, reason)| JsonSkipped { scheduler, reason }).collect(),
            notes,
        }
    }
}

impl<'a> JsonRow<'a> {
    pub fn of(row: &'a Row, plan: &'a Plan, of_optimum: Option<f64>) -> JsonRow<'a> {
        let metrics = &row.metrics;
        let latency = |histogram: &Histogram| JsonLatency {
            p50: histogram.quantile(0.5),
            p99: histogram.quantile(0.99),
            p999: histogram.quantile(0.999),
            max: histogram.max(),
        };
        let levels = metrics.by_criticality.iter().enumerate().filter(|(_, count)| count.released > 0);
        JsonRow {
            scheduler: &row.scheduler,
            released: metrics.jobs.released,
            met: metrics.jobs.met,
            missed: metrics.missed(),
            compliance: (metrics.jobs.released > 0).then(|| metrics.jobs.compliance()),
            compliance_ci95: row.ci95(),
            pitmd: metrics.pitmd(),
            of_optimum,
            run_success: metrics.successful_runs as f64 / metrics.runs.max(1) as f64,
            by_criticality: levels
                .map(|(criticality, count)| JsonLevel { criticality, released: count.released, met: count.met })
                .collect(),
            value: metrics.value,
            value_possible: metrics.value_possible,
            art_completed_ns: metrics.art_completed(),
            art_all_ns: metrics.art_all(),
            lateness_mean_ns: metrics.lateness.mean(),
            lateness_p95_ns: metrics.lateness.quantile(0.95),
            lateness_p99_ns: metrics.lateness.quantile(0.99),
            lateness_max_ns: metrics.lateness.max(),
            preemptions: metrics.preemptions,
            migrations: metrics.migrations,
            decisions: metrics.decisions,
            idle_ns: metrics.idle_ns.try_into().unwrap_or(u64::MAX),
            energy: metrics.energy,
            counters: row.counters.iter().copied().collect(),
            decision_latency_ns: row.latency.as_ref().map(latency),
            tasks: plan
                .set
                .tasks
                .iter()
                .zip(&metrics.tasks)
                .map(|(task, figures)| JsonTask {
                    task: &task.name,
                    released: figures.jobs.released,
                    met: figures.jobs.met,
                    response_mean_ns: (figures.completed > 0)
                        .then(|| figures.response_sum as f64 / figures.completed as f64),
                    response_max_ns: (figures.completed > 0).then_some(figures.response_max.0),
                })
                .collect(),
        }
    }
}
