//! What tuning gains and loses: the learned scheduler under each [`Tuning`], beside every candidate of its portfolio
//! alone.
//!
//! `cargo run --release -p temponet --example portfolio [-- FILE|KIND...]`
//!
//! Without files, it draws lists of jobs and sets with modes (`kinds.rs`): all kinds, or those whose name contains an
//! argument. Each kind is drawn several times, and differences are paired over the draws. A file with tasks is run with
//! several seeds; a file with a list of jobs has one run, which has no interval.
//!
//! Each row has the means of the goal's measures in percent, the differences from the choice at the start with their
//! 95% confidence intervals, up to the first measure that differs beyond its interval (marked by an asterisk), and what
//! was followed at the end of the last run.

mod kinds;

use std::path::Path;
use std::sync::Arc;

use temponet::tuning::{Candidate, Choices, Portfolio, Settings};
use temponet::{Model, Options, Temponet, Tuning};
use temponet_sim::ranking::{self, Scores};
use temponet_sim::statistics::paired_difference;
use temponet_sim::{Unobserved, simulate};
use temponet_task::{Arrival, Goal, Scheduler, Task, TaskSet, Time};

/// Number of runs of a set with random times, and of draws of a kind.
const RUNS: u64 = 10;
/// Seed of the first draw of a kind.
const FIRST_DRAW: u64 = 2_000;
/// Number of jobs in a run of tasks that recur.
const JOBS: f64 = 10_000.0;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let model = Arc::new(Model::built_in()?);
    let (files, names): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| Path::new(argument).exists());
    for file in &files {
        let set = temponet_formats::load(Path::new(file))?.set;
        let runs = if last_deadline(&set).is_some() { 1 } else { RUNS };
        report(file, &(0..runs).map(|_| set.clone()).collect::<Vec<_>>(), &model)?;
    }
    let is_wanted = |kind: &str| names.iter().any(|name| kind.contains(name)) || names.is_empty() && files.is_empty();
    for (name, draw) in kinds::KINDS.iter().filter(|(name, _)| is_wanted(name)) {
        report(name, &(FIRST_DRAW..FIRST_DRAW + RUNS).map(draw).collect::<Vec<_>>(), &model)?;
    }
    Ok(())
}

/// Last deadline of a set of lists; `None` if tasks recur.
fn last_deadline(set: &TaskSet) -> Option<Time> {
    let lists = set.tasks().iter().map(|task| match &task.arrival {
        Arrival::Listed(jobs) => jobs.iter().map(|job| job.deadline).max(),
        _ => None,
    });
    lists.collect::<Option<Vec<Time>>>()?.into_iter().max()
}

/// Returns the scores of a scheduler by the goal, one row per set; `None` if it does not apply.
fn scores(sets: &[TaskSet], goal: &Goal, scheduler: &mut dyn Scheduler) -> Option<Vec<Vec<f64>>> {
    let rate = |set: &TaskSet| set.tasks().iter().map(Task::jobs_per_second).sum::<f64>();
    let run = |(seed, set): (usize, &TaskSet)| {
        let end = last_deadline(set).unwrap_or_else(|| Time((JOBS / rate(set) * 1e9) as u64));
        Some(simulate(set, 1 + seed as u64, end, scheduler, &mut Unobserved).ok()?.scores(goal))
    };
    sets.iter().enumerate().map(run).collect()
}

/// A row of the report.
struct Row {
    name: String,
    scores: Vec<Vec<f64>>,
    /// What was followed at the end of the last run, and how often it was reviewed and changed in that run.
    note: String,
}

fn report(name: &str, sets: &[TaskSet], model: &Arc<Model>) -> Result<(), Error> {
    let goal = sets[0].goal();
    let choices = Choices::default();
    let mut rows: Vec<Row> = Vec::new();
    for (label, tuning) in [("at start", Tuning::AtStart), ("online", Tuning::Online), ("network", Tuning::Off)] {
        let options = Options { tuning, ..Options::default() };
        let mut scheduler = Temponet::new(model.clone(), options)?.sharing(choices.clone());
        let scores = scores(sets, goal, &mut scheduler).ok_or("the learned scheduler does not apply")?;
        let followed = scheduler.followed().unwrap_or_default();
        rows.push(Row { name: label.into(), scores, note: format!("{followed}{}", moves(&scheduler)) });
    }
    for (label, tuning) in [("tuned", Tuning::AtStart), ("tuned, online", Tuning::Online)] {
        let mut tuned = Portfolio::classical(tuning, Settings::BARE).sharing(choices.clone());
        let scores = scores(sets, goal, &mut tuned).ok_or("no candidate applies")?;
        let note = format!("{}{}", tuned.followed().unwrap_or_default(), moves(&tuned));
        rows.push(Row { name: label.into(), scores, note });
    }
    rows.extend(best_candidate(sets, goal));
    println!("{name}: {goal}; {} runs", sets.len());
    let base = rows[0].scores.clone();
    for Row { name, scores, note } in &rows {
        let means: Vec<String> = ranking::means(scores).iter().map(|mean| format!("{:6.2}", 100.0 * mean)).collect();
        println!("  {name:<14} {}  {}  {note}", means.join(" "), differences(goal, scores, &base));
    }
    println!();
    Ok(())
}

/// Returns the simple scheduler that is best on these sets.
fn best_candidate(sets: &[TaskSet], goal: &Goal) -> Option<Row> {
    let row = |candidate: &Candidate| {
        let scores = scores(sets, goal, &mut *candidate.scheduler()?)?;
        Some(Row { name: "best simple".into(), scores, note: candidate.name().into() })
    };
    let rows: Vec<Row> = Candidate::classical(&sets[0].system).iter().filter_map(row).collect();
    rows.into_iter().reduce(|best, other| {
        let is_better = ranking::order(&ranking::means(&other.scores), &ranking::means(&best.scores)).is_lt();
        if is_better { other } else { best }
    })
}

/// Number of reviews and switches in the last run, if there was any.
fn moves(scheduler: &dyn Scheduler) -> String {
    let counters = scheduler.counters();
    let count = |name: &str| counters.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count);
    match count("retunings") {
        0 => String::new(),
        reviews => format!(" ({reviews} reviews, {} switches)", count("switches")),
    }
}

/// Differences from another scheduler, measure by measure, up to the first one beyond its interval.
fn differences(goal: &Goal, one: &Scores, base: &Scores) -> String {
    let mut parts: Vec<String> = Vec::new();
    for place in 0..goal.measures().len() {
        let (one, base) = (ranking::values(one, place), ranking::values(base, place));
        let (difference, interval) = paired_difference(&one, &base);
        let is_clear = one != base && interval.is_none_or(|half| difference.abs() > half);
        let interval = interval.map(|half| format!(" ± {:.2}", 100.0 * half)).unwrap_or_default();
        parts.push(match one == base {
            true => "=".into(),
            false => format!("{:+.2}{interval}{}", 100.0 * difference, if is_clear { " *" } else { "" }),
        });
        if is_clear {
            break;
        }
    }
    if parts.iter().all(|part| part == "=") { "=".into() } else { parts.join(", ") }
}
