//! `temponet simulate`: one run of one scheduler, with its jobs, trace and schedule as files.

use std::path::PathBuf;

use anyhow::{Context, Result};
use temponet_lab::comparison::json::JsonRun;
use temponet_lab::comparison::{CompareError, ComparisonPlan, ComparisonRow, picture_window, task_shares};
use temponet_lab::gantt;
use temponet_lab::latency::Timed;
use temponet_lab::progress::Progress;
use temponet_lab::stats::percent;
use temponet_sched::shield::Role;
use temponet_sim::{ChromeTrace, JobsCsv, Recorder, simulate};
use temponet_task::Time;
use temponet_wording::counted;

use crate::chains;
use crate::output::{self, NewFile};
use crate::paths::{Kind, Output};
use crate::setup::{ModelArgs, SetupArgs, heading, positive_time};
use crate::table;

/// Run one scheduler once and write its jobs, trace or schedule
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet simulate standard-125 --scheduler mh-edf --gantt schedule.svg\n  \
    temponet simulate mytasks.toml --scheduler edf --jobs jobs.csv --trace trace.json")]
pub struct Args {
    /// Task-set file (.toml, .csv, .json, rt-app's .json, SimSo's .xml) or a built-in set's name
    #[arg(value_name = "FILE|NAME")]
    pub set: String,
    /// Scheduler to run, with its options, such as llf:quantum=500us
    #[arg(long, value_name = "NAME")]
    pub scheduler: String,
    #[command(flatten)]
    pub setup: SetupArgs,
    #[command(flatten)]
    pub model: ModelArgs,
    /// Write a CSV file with one row per job
    #[arg(long, value_name = "OUT.csv")]
    pub jobs: Option<PathBuf>,
    /// Write a Chrome trace, for ui.perfetto.dev
    #[arg(long, value_name = "OUT.json")]
    pub trace: Option<PathBuf>,
    /// Write an SVG picture of the beginning of the schedule
    #[arg(long, value_name = "OUT.svg")]
    pub gantt: Option<PathBuf>,
    /// Length of the schedule in the picture, such as 200ms [default: about 40 jobs]
    #[arg(long, value_name = "TIME", requires = "gantt", value_parser = positive_time)]
    pub gantt_until: Option<Time>,
    /// Replace existing files of any kind
    #[arg(long)]
    pub force: bool,
    /// Measure the latency of the scheduler's decisions on this machine
    #[arg(long)]
    pub latency: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Counter of the jobs that lost their guarantee.
const LAPSES: &str = "guarantee_lapses";
/// Greatest number of tasks in the table.
const MOST_ROWS: usize = 100;

impl Args {
    /// Returns the run as a comparison of one scheduler, and the notes on an imported file.
    fn plan(&self) -> Result<(ComparisonPlan, Vec<String>)> {
        let (set, horizon, notes) = self.setup.prepare(Some(&self.set))?;
        let window = match self.gantt_until {
            Some(until) => until.min(horizon),
            None => picture_window(&set, horizon, gantt::PICTURE_JOBS),
        };
        let plan = ComparisonPlan {
            goal: set.goal().clone(),
            set,
            horizon,
            seed: self.setup.seed(),
            runs: 1,
            schedulers: vec![self.model.scheduler(&self.scheduler).into()],
            roster: self.model.roster()?,
            latency: self.latency,
            charge_latency: false,
            record_until: window,
            oracle: None,
        };
        Ok((plan, notes))
    }
}

pub fn run(args: Args) -> Result<()> {
    let (plan, notes) = args.plan()?;
    let (set, horizon, seed, name) = (&plan.set, plan.horizon, plan.seed, plan.schedulers[0].as_str());
    plan.roster.foresee(set);
    let mut scheduler = plan.roster.build(name)?;
    // The outputs are claimed first, so that a path that cannot be written does not waste a long run.
    let jobs_output = Output::wanted(args.jobs.as_deref(), Kind::Jobs, args.force)?;
    let trace_output = Output::wanted(args.trace.as_deref(), Kind::Trace, args.force)?;
    let gantt_output = Output::wanted(args.gantt.as_deref(), Kind::Picture, args.force)?;
    let mut jobs_file = jobs_output.as_ref().map(Output::open).transpose()?;
    let mut trace_file = trace_output.as_ref().map(Output::open).transpose()?;
    let recorder = args.gantt.is_some().then(|| Recorder::until(plan.record_until));
    let jobs = jobs_file.as_mut().map(|file| JobsCsv::new(set, horizon, &mut file.out)).transpose()?;
    let trace = trace_file.as_mut().map(|file| ChromeTrace::new(set, horizon, &mut file.out)).transpose()?;
    let progress = Progress::new(1, horizon);
    progress.say(name);
    let mut watched = progress.watch((recorder, (jobs, trace)));
    let (metrics, latency) = if plan.latency {
        let mut timed = Timed::new(&mut *scheduler);
        let metrics = simulate(set, seed, horizon, &mut timed, &mut watched);
        (metrics, Some(timed.latencies))
    } else {
        (simulate(set, seed, horizon, &mut *scheduler, &mut watched), None)
    };
    let metrics = metrics.map_err(|error| CompareError::Run(name.into(), error))?;
    let (recording, (jobs, trace)) = watched.done(horizon);
    progress.finish();
    let cannot_write = |output: &Output| format!("cannot write {}", output.path().display());
    if let (Some(jobs), Some(output)) = (jobs, &jobs_output) {
        jobs.finish().with_context(|| cannot_write(output))?;
    }
    jobs_file.map(NewFile::finish).transpose()?;
    if let (Some(trace), Some(output)) = (trace, &trace_output) {
        trace.finish().with_context(|| cannot_write(output))?;
    }
    trace_file.map(NewFile::finish).transpose()?;
    let recording = recording.unwrap_or_else(|| Recorder::until(Time::ZERO));
    if let Some(file) = gantt_output {
        file.write(gantt::svg(set, name, &recording, plan.record_until))?;
    }
    let (scheduler, counters) = (plan.roster.label(name), scheduler.counters());
    let (compliance, scores) = (vec![metrics.jobs.compliance()], vec![metrics.scores(&plan.goal)]);
    let tasks = vec![task_shares(&metrics)];
    let (spec, decider) = (name.to_string(), plan.roster.decider(name, set));
    let row =
        ComparisonRow { spec, scheduler, metrics, compliance, scores, tasks, latency, recording, counters, decider };
    match args.json {
        true => output::print_json(&JsonRun::of(&row, &plan, &notes)),
        false => output::print(&text(&row, &plan)),
    }
}

/// Formats a sum of values: without decimals if it is whole, else with two.
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
    if let Some(decider) = &row.decider {
        line("decides", decider.sentence.clone());
    }
    let met = match jobs.released {
        0 => "– (no deadline lies within the horizon)".into(),
        all => format!("{} of {} ({})", table::count(jobs.met), table::count(all), percent(jobs.compliance())),
    };
    line("deadlines met", met);
    if let Some(pitmd) = metrics.pitmd() {
        line("critical ones met", percent(pitmd));
    }
    if metrics.unreleased > 0 {
        line("never released", table::count(metrics.unreleased));
    }
    if plan.set.is_server() {
        let wasted = metrics.wasted_share().map_or("–".into(), percent);
        line("shed", format!("{} never began; {wasted} of the work was for late ones", table::count(metrics.shed)));
    }
    if let Some((_, lapses)) = row.counters.iter().find(|(name, lapses)| *name == LAPSES && *lapses > 0) {
        let how = match Role::on(&plan.set.system) {
            Role::StandIn(_) => "times that the shield's stand-in could no longer guarantee anything",
            _ => "jobs of guaranteed tasks, which came or took more than their task says",
        };
        line("guarantee lapses", format!("{}: {how}", table::count(*lapses)));
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
    let mut header = vec!["task", "met", "missed", "mean response", "max response"];
    if plan.set.has_sections() {
        header.extend(["mean blocked", "max blocked"]);
    }
    let rows: Vec<Vec<String>> = plan
        .set
        .tasks()
        .iter()
        .zip(&metrics.tasks)
        .filter(|(task, _)| !task.is_part)
        .take(MOST_ROWS)
        .map(|(task, figures)| {
            let mean = (figures.completed > 0).then(|| figures.response_sum as f64 / figures.completed as f64);
            let max = (figures.completed > 0).then_some(figures.response_max.0 as f64);
            let missed = figures.jobs.released - figures.jobs.met;
            let mut cells = vec![
                task.name.clone(),
                if figures.jobs.released > 0 { percent(figures.jobs.compliance()) } else { "–".into() },
                table::count(missed),
                optional(mean),
                optional(max),
            ];
            if plan.set.has_sections() {
                cells.extend([optional(figures.blocked_mean()), table::time(figures.blocked_max.0 as f64)]);
            }
            cells
        })
        .collect();
    out += "\n";
    out += &table::render_fitting(&header, &rows, 1);
    if plan.set.task_count() > MOST_ROWS {
        out += &format!("… and {}, all in --json\n", counted(plan.set.task_count() - MOST_ROWS, "more task"));
    }
    out + &chains::table(&plan.set, [row].into_iter(), false, true)
}
