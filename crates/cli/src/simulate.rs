//! `temponet simulate`: one scheduler, one run, with its jobs, trace and picture as files.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;
use temponet_lab::comparison::{CompareError, ComparisonPlan, ComparisonRow, picture_window};
use temponet_lab::gantt;
use temponet_lab::measure::latency::Timed;
use temponet_lab::progress::Progress;
use temponet_lab::stats::percent;
use temponet_sim::{ChromeTrace, JobsCsv, Recorder, simulate};
use temponet_task::Time;
use temponet_task::wording::counted;

use crate::compare::JsonRow;
use crate::output::{self, NewFile};
use crate::paths::{Kind, Output};
use crate::setup::{ModelArgs, SetupArgs, heading, positive_time};
use crate::table;

/// Run one scheduler once: its jobs, its trace, its picture
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet simulate standard-125 --scheduler mh-edf --gantt schedule.svg\n  \
    temponet simulate mytasks.toml --scheduler edf --jobs jobs.csv --trace trace.json")]
pub struct Args {
    /// Task-set file (.toml, .csv, .json, rt-app's .json, SimSo's .xml) or a built-in set's name
    #[arg(value_name = "FILE|NAME")]
    pub set: String,
    /// The scheduler, with options if any, such as llf:quantum=500us
    #[arg(long, value_name = "NAME")]
    pub scheduler: String,
    #[command(flatten)]
    pub setup: SetupArgs,
    #[command(flatten)]
    pub model: ModelArgs,
    /// Write one CSV row per job
    #[arg(long, value_name = "OUT.csv")]
    pub jobs: Option<PathBuf>,
    /// Write a Chrome trace, which ui.perfetto.dev opens
    #[arg(long, value_name = "OUT.json")]
    pub trace: Option<PathBuf>,
    /// Draw the beginning of the schedule
    #[arg(long, value_name = "OUT.svg")]
    pub gantt: Option<PathBuf>,
    /// Draw this much of it, such as 200ms [default: about 40 jobs]
    #[arg(long, value_name = "TIME", requires = "gantt", value_parser = positive_time)]
    pub gantt_until: Option<Time>,
    /// Replace existing files, whatever is in them
    #[arg(long)]
    pub force: bool,
    /// Measure how long the scheduler's own decisions take
    #[arg(long)]
    pub latency: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// What was run, and the figures as in a comparison.
#[derive(Serialize)]
struct JsonRun<'a> {
    task_set: &'a str,
    cores: usize,
    horizon_ns: u64,
    on_miss: &'static str,
    seed: u64,
    /// What the file of another tool says and the set does not.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
    #[serde(flatten)]
    row: JsonRow<'a>,
}

/// Tasks that the table for people lists.
const MOST_ROWS: usize = 100;
/// Jobs that a picture shows well.
const PICTURE_JOBS: f64 = 40.0;

pub fn run(args: Args) -> Result<()> {
    let (set, horizon, notes) = args.setup.prepare(Some(&args.set))?;
    let roster = args.model.roster()?;
    let name = args.model.scheduler(&args.scheduler);
    let mut scheduler = roster.build(name)?;
    let window = match args.gantt_until {
        Some(until) => until.min(horizon),
        None => picture_window(&set, horizon, PICTURE_JOBS),
    };
    let recorder = args.gantt.is_some().then(|| Recorder::until(window));
    // Claimed first: a path that cannot be written should not cost a long run.
    let jobs_output = Output::wanted(args.jobs.as_deref(), Kind::Jobs, args.force)?;
    let trace_output = Output::wanted(args.trace.as_deref(), Kind::Trace, args.force)?;
    let gantt_output = Output::wanted(args.gantt.as_deref(), Kind::Picture, args.force)?;
    let mut jobs_file = jobs_output.as_ref().map(Output::open).transpose()?;
    let mut trace_file = trace_output.as_ref().map(Output::open).transpose()?;
    let jobs = jobs_file.as_mut().map(|file| JobsCsv::new(&set, horizon, &mut file.out)).transpose()?;
    let trace = trace_file.as_mut().map(|file| ChromeTrace::new(&set, horizon, &mut file.out)).transpose()?;
    let progress = Progress::new(1, horizon);
    progress.say(name);
    let mut watched = progress.watch((recorder, (jobs, trace)));
    let seed = args.setup.seed();
    let (metrics, latency) = if args.latency {
        let mut timed = Timed::new(&mut *scheduler);
        let metrics = simulate(&set, seed, horizon, &mut timed, &mut watched);
        (metrics, Some(timed.latencies))
    } else {
        (simulate(&set, seed, horizon, &mut *scheduler, &mut watched), None)
    };
    let metrics = metrics.map_err(|error| CompareError::Run(name.into(), error))?;
    let (recording, (jobs, trace)) = watched.done(horizon);
    progress.finish();
    if let (Some(jobs), Some(output)) = (jobs, &jobs_output) {
        jobs.finish().with_context(|| format!("cannot write {}", output.path().display()))?;
    }
    jobs_file.map(NewFile::finish).transpose()?;
    if let (Some(trace), Some(output)) = (trace, &trace_output) {
        trace.finish().with_context(|| format!("cannot write {}", output.path().display()))?;
    }
    trace_file.map(NewFile::finish).transpose()?;
    let recording = recording.unwrap_or_else(|| Recorder::until(Time::ZERO));
    if let Some(file) = gantt_output {
        file.write(gantt::svg(&set, name, &recording, window))?;
    }
    let compliance = vec![metrics.jobs.compliance()];
    let (scheduler, counters) = (roster.label(name), scheduler.counters());
    let (goal, scores) = (set.goal(), vec![metrics.scores(&set.goal())]);
    let row = ComparisonRow { scheduler, metrics, compliance, scores, latency, recording, counters };
    let (schedulers, latency) = (vec![name.into()], args.latency);
    let plan = ComparisonPlan {
        set,
        goal,
        horizon,
        seed,
        runs: 1,
        schedulers,
        roster,
        latency,
        charge_latency: false,
        record_until: window,
        oracle: None,
    };
    match args.json {
        true => output::print_json(&JsonRun {
            task_set: &plan.set.name,
            cores: plan.set.cores,
            horizon_ns: plan.horizon.0,
            on_miss: plan.set.on_miss.name(),
            seed: plan.seed,
            notes: &notes,
            row: JsonRow::of(&row, &plan, None),
        }),
        false => output::print(&text(&row, &plan)),
    }
}

/// A sum of values: whole where it is, else with two digits.
fn amount(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.2}") }
}

fn text(row: &ComparisonRow, plan: &ComparisonPlan) -> String {
    let metrics = &row.metrics;
    let optional = |time: Option<f64>| time.map_or("–".into(), table::time);
    let whole = |time: Option<i64>| optional(time.map(|time| time as f64));
    let jobs = metrics.jobs;
    let mut out = heading(&plan.set, plan.horizon) + "\n\n";
    let mut line = |name: &str, value: String| out += &format!("{name:<22} {value}\n");
    let met = format!("{} of {} ({})", table::count(jobs.met), table::count(jobs.released), percent(jobs.compliance()));
    line("deadlines met", met);
    if let Some(pitmd) = metrics.pitmd() {
        line("critical ones met", percent(pitmd));
    }
    line("value", format!("{} of {}", amount(metrics.value), amount(metrics.value_possible)));
    line("response (completed)", optional(metrics.art_completed()));
    line("response (all)", optional(metrics.art_all()));
    let lateness = &metrics.lateness;
    let (p95, p99) = (whole(lateness.quantile(0.95)), whole(lateness.quantile(0.99)));
    line(
        "lateness",
        format!("mean {}, p95 {p95}, p99 {p99}, max {}", optional(lateness.mean()), whole(lateness.max())),
    );
    line("preemptions", table::count(metrics.preemptions));
    line("migrations", table::count(metrics.migrations));
    line("idle", table::time(metrics.idle_ns as f64));
    line("energy", format!("{:.4}", metrics.energy));
    if let Some(latency) = &row.latency {
        let [p50, p99, p999, max] = [0.5, 0.99, 0.999, 1.0].map(|q| whole(latency.quantile(q)));
        line("decision latency", format!("p50 {p50}, p99 {p99}, p99.9 {p999}, max {max}"));
    }
    let header = ["task", "met", "missed", "mean response", "max response"];
    let rows: Vec<Vec<String>> = plan
        .set
        .tasks
        .iter()
        .zip(&metrics.tasks)
        .take(MOST_ROWS)
        .map(|(task, figures)| {
            let mean = (figures.completed > 0).then(|| figures.response_sum as f64 / figures.completed as f64);
            let max = (figures.completed > 0).then_some(figures.response_max.0 as f64);
            let missed = figures.jobs.released - figures.jobs.met;
            vec![
                task.name.clone(),
                if figures.jobs.released > 0 { percent(figures.jobs.compliance()) } else { "–".into() },
                table::count(missed),
                optional(mean),
                optional(max),
            ]
        })
        .collect();
    out += "\n";
    out += &table::render(&header, &rows);
    if plan.set.tasks.len() > MOST_ROWS {
        out += &format!("… and {}, all in --json\n", counted(plan.set.tasks.len() - MOST_ROWS, "more task"));
    }
    out
}
