//! `temponet advise`: which settings of Linux serve a system best, proved or simulated, and written as they are applied.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use temponet_lab::advice::Claim;
use temponet_lab::linux::advice::{AdvicePlan, Line, SettingsAdvice, Verdict, advise, processors};
use temponet_lab::linux::apply::{Applied, Form};
use temponet_lab::linux::{html, json_report};
use temponet_lab::progress::Progress;
use temponet_lab::stats::percent;
use temponet_sim::labels;
use temponet_task::{TaskId, TaskSet, Time};

use crate::paths::{Kind, Output, Replace};
use crate::setup::{ModelArgs, SetupArgs, heading};
use crate::{output, table};

/// Find priorities, affinities and reservations of Linux for a system, proved or simulated, against today's
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet advise mytasks.toml\n  \
    temponet advise trace.txt                              # imports by itself\n  \
    temponet advise mytasks.toml --for chrt -o apply.sh    # the best settings of Linux as a script\n  \
    temponet advise mytasks.toml --line 3 --for cie -o threads.yaml\n\n\
    Today's settings are those of the file: SCHED_FIFO for tasks with a priority, SCHED_OTHER for others, on their cores.\n\
    docs/settings.md describes what is proved, and how settings are simulated.")]
pub struct Args {
    /// Task-set file (.toml, .csv, .json, rt-app's .json, SimSo's .xml), trace, or a built-in set's name
    #[arg(value_name = "SET")]
    set: String,
    #[command(flatten)]
    setup: SetupArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// What a reservation has beyond the wcet, as a share of it in percent, 0 to 1000; less where it does not fit
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = percentage)]
    margin: f64,
    /// Let threads leave the cores that the file binds their tasks to
    #[arg(long)]
    any_core: bool,
    /// Number of simulated runs [default: 10 if anything in the set is random]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    runs: Option<u64>,
    /// Write the settings of a line in the form in which they are applied: chrt (shell script), systemd (drop-in files,
    /// as a shell script), rt-app, cie (callback-isolated executor of ROS 2) or toml (task set)
    #[arg(long = "for", value_name = "FORM", value_parser = form)]
    form: Option<Form>,
    /// Line whose settings are written, as the table numbers them [default: the first that Linux carries out]
    #[arg(long, value_name = "N", requires = "form")]
    line: Option<usize>,
    /// File for these settings [default: standard output, without the table]
    #[arg(short, long, value_name = "FILE", requires = "form")]
    output: Option<PathBuf>,
    /// Write a page with the settings of every line
    #[arg(long, value_name = "OUT.html")]
    report: Option<PathBuf>,
    /// Replace existing files of any kind
    #[arg(long)]
    force: bool,
    /// Print the results as one JSON object
    #[arg(long, conflicts_with = "form")]
    json: bool,
}

/// Default number of runs if anything in the set is random.
const RUNS: u64 = 10;

/// Greatest number of tasks in the table of settings.
const MOST_ROWS: usize = 40;

fn form(text: &str) -> Result<Form, String> {
    Form::from_name(text).ok_or_else(|| format!("is none of {}", Form::ALL.map(Form::name).join(", ")))
}

fn percentage(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| (0.0..=1000.0).contains(value));
    value.ok_or_else(|| "is no percentage from 0 to 1000".into())
}

pub fn run(args: Args) -> Result<()> {
    let (set, horizon, notes) = args.setup.prepare(Some(&args.set))?;
    // Outputs are claimed first, so that a path that cannot be written does not waste the work.
    let page = Output::wanted(args.report.as_deref(), Kind::Page, args.force)?;
    let kind = args.form.map_or(Kind::TaskSet, kind_of);
    let claim = |path: &PathBuf| Output::claim(path, kind, Replace::nothing_or(args.force));
    let file = args.output.as_ref().map(claim).transpose()?;
    let heading = heading(&set, horizon);
    let runs = args.runs.unwrap_or(RUNS);
    let plan = AdvicePlan {
        may_leave_cores: args.any_core,
        margin: args.margin / 100.0,
        horizon,
        seed: args.setup.seed(),
        runs,
        roster: args.model.roster()?,
        set,
    };
    let advice = advise(plan, &Progress::busy("advice"))?;
    if let Some(page) = page {
        page.write(html(&advice))?;
    }
    let applied = args.form.map(|form| written(&advice, form, args.line)).transpose()?;
    let of_form = applied.iter().flat_map(|applied| &applied.notes);
    advice.notes.iter().chain(of_form).for_each(|note| output::say(&format!("note: {note}")));
    if let Some(applied) = applied {
        return match file {
            Some(file) => file.write(&applied.text),
            None => output::print_bytes(applied.text.as_bytes()),
        };
    }
    match args.json {
        true => output::print_json(&json_report(&advice, &notes)),
        false => output::print(&format!("{heading}\n\n{}\n", text(&advice).trim_end())),
    }
}

fn kind_of(form: Form) -> Kind {
    match form {
        Form::Chrt | Form::Systemd => Kind::Script,
        Form::Cie => Kind::Threads,
        Form::RtApp => Kind::Workload,
        Form::Toml => Kind::TaskSet,
    }
}

/// The settings of a line in a form.
fn written(advice: &SettingsAdvice, form: Form, number: Option<usize>) -> Result<Applied> {
    let line = match number {
        None => advice.best().context("there are no settings")?,
        Some(number) => {
            let line = number.checked_sub(1).and_then(|at| advice.lines.get(at));
            line.with_context(|| format!("--line {number}: there are {} lines", advice.lines.len()))?
        }
    };
    let Some(settings) = line.settings() else {
        bail!("{} has no settings of Linux: `temponet exec` carries it out", line.name);
    };
    Ok(form.write(&advice.plan.set, settings)?)
}

fn text(advice: &SettingsAdvice) -> String {
    let header = ["", "what", "verdict", "met", "±95%", "against today", "proved", "growth", "changes"];
    let rows: Vec<Vec<String>> = advice.lines.iter().enumerate().map(|(at, line)| row(advice, at, line)).collect();
    let mut out = format!("{}\n\n{}", advice.verdict(), table::render_with(&header, &rows, 3));
    for (at, line) in advice.lines.iter().enumerate() {
        if let Verdict::Unknown(why) = line.verdict() {
            out += &format!("line {}: unknown: {why}\n", at + 1);
        }
    }
    let mut notes: Vec<&String> = Vec::new();
    for note in advice.lines.iter().flat_map(|line| &line.notes).filter(|note| !note.is_empty()) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    if let Some(line) = advice.best().filter(|line| !line.is_today) {
        out += &format!("\n{}\n", threads(advice, line));
    }
    for note in notes {
        let lines: Vec<String> = advice
            .lines
            .iter()
            .zip(1..)
            .filter(|(line, _)| line.notes.contains(note))
            .map(|(_, at)| at.to_string())
            .collect();
        let of = if lines.len() == 1 { "line" } else { "lines" };
        out += &format!("{of} {}: {note}\n", lines.join(", "));
    }
    out
}

fn row(advice: &SettingsAdvice, at: usize, line: &Line) -> Vec<String> {
    let against = |claim: &Claim| {
        let sign = if claim.edge.difference < 0.0 { "-" } else { "+" };
        let measure = labels::measure(&advice.goal, claim.edge.measure);
        let chance = if claim.is_lead() || claim.is_deficit() { "" } else { ", chance" };
        format!("{sign}{} {measure}{chance}", claim.edge.points())
    };
    let against = match advice.against_today(line) {
        _ if line.is_today => "–".into(),
        Some(claim) => against(&claim),
        None => "equal".into(),
    };
    vec![
        (at + 1).to_string(),
        line.name.clone(),
        line.verdict().name().into(),
        line.share().map_or("–".into(), percent),
        line.margin().map_or("–".into(), percent),
        against,
        format!("{} of {}", line.proved_tasks(), line.bounds.len()),
        line.growth.map_or("–".into(), |growth| format!("{growth:.2}")),
        line.changes(),
    ]
}

/// The settings of each thread of a line, beside today's.
fn threads(advice: &SettingsAdvice, line: &Line) -> String {
    let Some(settings) = line.settings() else { return String::new() };
    let set: &TaskSet = &advice.plan.set;
    let header = [&line.name[..], "today", "setting", "on core", "response at most", "deadline", "met"];
    let time = |time: Time| table::time(time.0 as f64);
    let row = |id: TaskId| {
        let bound = line.bounds[id.index()];
        let met = line.simulated.as_ref().map(|runs| runs.metrics.tasks[id.index()].jobs.compliance());
        let (today, thread) = (&advice.today.threads[id.index()], &settings.threads[id.index()]);
        vec![
            set.tasks()[id].name.clone(),
            today.policy.to_string(),
            thread.policy.to_string(),
            processors(set, thread),
            bound.map_or("–".into(), |bound| time(bound.response)),
            time(set.tasks()[id].deadline),
            met.map_or("–".into(), percent),
        ]
    };
    let rows: Vec<Vec<String>> = set.task_ids().take(MOST_ROWS).map(row).collect();
    let mut out = table::render_with(&header, &rows, 3);
    if set.tasks().len() > MOST_ROWS {
        out += &format!("… and {} more; --json has them all\n", set.tasks().len() - MOST_ROWS);
    }
    out
}
