//! The comparison as one self-contained HTML page: verdict, ranked table, zoomable schedules, response times, tasks.
//!
//! The page holds its figures as JSON and draws them itself (`report.js`), so that schedules can be zoomed; nothing is
//! loaded from anywhere.

use serde::Serialize;
use temponet_sched::oracle::Piece;
use temponet_sim::{Metrics, Release};
use temponet_task::Time;

use crate::clairvoyant::Clairvoyant;
use crate::comparison::{Comparison, Row, picture_window};
use crate::gantt::{MOST_TASK_ROWS, PALETTE, escape, reason};

const PAGE: &str = include_str!("report.html");
pub(crate) const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// Jobs that the schedules of a page show at most, per scheduler.
pub const MOST_JOBS: f64 = 600.0;
/// Jobs that can be read without zooming.
const FIRST_VIEW_JOBS: f64 = 60.0;
/// Points of a response-time distribution.
const QUANTILES: usize = 60;

#[derive(Serialize)]
struct Page<'a> {
    tasks: Vec<&'a str>,
    cores: usize,
    until_ns: u64,
    /// How much of it is shown at first.
    first_view_ns: u64,
    by_task: bool,
    palette: [&'static str; 10],
    has_critical: bool,
    has_values: bool,
    rows: Vec<PageRow<'a>>,
    clairvoyant: Option<PageOptimum>,
}

/// The clairvoyant optimum, with its schedule in the form that the others have.
#[derive(Serialize)]
struct PageOptimum {
    scheduler: &'static str,
    exact: bool,
    released: u64,
    upper: f64,
    lower: f64,
    /// Greatest shares, each at the cost of the others.
    critical: Option<f64>,
    value: Option<f64>,
    slices: Vec<PageSlice>,
    jobs: Vec<PageJob>,
}

/// Core, task, job, start, end.
type PageSlice = (u32, u32, u64, u64, u64);
/// Task, job, release, deadline, end of life, why missed (empty if met or still open).
type PageJob = (u32, u64, u64, u64, u64, String);

#[derive(Serialize)]
struct PageRow<'a> {
    scheduler: &'a str,
    compliance: f64,
    ci95: Option<f64>,
    missed: u64,
    pitmd: Option<f64>,
    value: f64,
    value_possible: f64,
    art_completed_ns: Option<f64>,
    art_all_ns: Option<f64>,
    lateness_p95_ns: Option<i64>,
    preemptions_per_job: f64,
    migrations_per_job: f64,
    idle: f64,
    /// Per task: share met.
    tasks: Vec<f64>,
    /// (share of jobs, response time in ns), ascending.
    responses: Vec<(f64, i64)>,
    slices: Vec<PageSlice>,
    jobs: Vec<PageJob>,
}

/// The page.
pub fn html(comparison: &Comparison) -> String {
    let plan = &comparison.plan;
    let set = &plan.set;
    let page = Page {
        tasks: set.tasks.iter().map(|task| task.name.as_str()).collect(),
        cores: set.cores,
        until_ns: plan.record_until.0,
        first_view_ns: picture_window(set, plan.record_until, FIRST_VIEW_JOBS).0,
        by_task: set.tasks.len() <= MOST_TASK_ROWS,
        palette: PALETTE,
        has_critical: set.has_critical_tasks(),
        has_values: set.has_values(),
        rows: comparison.rows.iter().map(|row| page_row(row, plan.horizon, plan.record_until, set.cores)).collect(),
        clairvoyant: comparison.clairvoyant.as_ref().map(|optimum| page_optimum(optimum, comparison)),
    };
    // A `<` inside a string could end the script element or open a comment in it.
    let data = serde_json::to_string(&page).unwrap_or_default().replace('<', "\\u003c");
    let skipped = comparison.skipped.iter().map(|(name, why)| format!("<li>{}: {}</li>", escape(name), escape(why)));
    let facts = format!(
        "{} tasks · {} · load {:.2} per core · horizon {} · {} · on a miss: {}",
        set.tasks.len(),
        if set.cores == 1 { "1 core".into() } else { format!("{} cores", set.cores) },
        set.mean_utilization() / set.cores as f64,
        plan.horizon,
        if plan.runs == 1 { "1 run".into() } else { format!("{} runs from seed {}", plan.runs, plan.seed) },
        set.on_miss.name()
    );
    let (name, description) = (escape(&set.name), escape(&set.description));
    let (facts, verdict) = (escape(&facts), escape(&comparison.verdict()));
    let skipped = skipped.collect::<String>();
    filled(&[
        ("style", STYLE),
        ("name", &name),
        ("description", &description),
        ("facts", &facts),
        ("verdict", &verdict),
        ("skipped", &skipped),
        ("version", env!("CARGO_PKG_VERSION")),
        ("script", SCRIPT),
        ("data", &data),
    ])
}

/// The page with its placeholders filled in one pass, so that nothing inside a value is taken for a placeholder.
fn filled(values: &[(&str, &str)]) -> String {
    let mut parts = PAGE.split("{{");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (key, rest) = part.split_once("}}").unwrap_or(("", part));
        out += values.iter().find(|(name, _)| *name == key).map_or("", |(_, value)| value);
        out += rest;
    }
    out
}

fn page_row(row: &Row, horizon: Time, until: Time, cores: usize) -> PageRow<'_> {
    let metrics = &row.metrics;
    let per_job = |count: u64| count as f64 / metrics.jobs.released.max(1) as f64;
    let capacity = horizon.0 as f64 * cores as f64 * metrics.runs as f64;
    PageRow {
        scheduler: &row.scheduler,
        compliance: metrics.jobs.compliance(),
        ci95: row.ci95(),
        missed: metrics.missed(),
        pitmd: metrics.pitmd(),
        value: metrics.value,
        value_possible: metrics.value_possible,
        art_completed_ns: metrics.art_completed(),
        art_all_ns: metrics.art_all(),
        lateness_p95_ns: metrics.lateness.quantile(0.95),
        preemptions_per_job: per_job(metrics.preemptions),
        migrations_per_job: per_job(metrics.migrations),
        idle: metrics.idle_ns as f64 / capacity,
        tasks: metrics.tasks.iter().map(|task| task.jobs.compliance()).collect(),
        responses: responses(metrics),
        slices: row.recording.slices.iter().map(|s| (s.core, s.task, s.number, s.start.0, s.end.0)).collect(),
        jobs: row
            .recording
            .jobs
            .iter()
            .map(|job| {
                let why = if job.met() || job.deadline > until { String::new() } else { reason(job) };
                (job.task, job.number, job.release.0, job.deadline.0, job.left.0, why)
            })
            .collect(),
    }
}

fn page_optimum(optimum: &Clairvoyant, comparison: &Comparison) -> PageOptimum {
    let (cores, until) = (comparison.plan.set.cores, comparison.plan.record_until);
    let pieces = optimum.schedule(cores, until);
    let slice = |piece: &Piece| {
        let release = &optimum.first_run[piece.job].0;
        (piece.core as u32, release.task, release.number, piece.start.0, piece.end.0)
    };
    let mut ends = vec![Time::ZERO; optimum.first_run.len()];
    for piece in &pieces {
        ends[piece.job] = ends[piece.job].max(piece.end);
    }
    let job = |((release, is_chosen), end): (&(Release, bool), &Time)| {
        let is_missed = !is_chosen && release.deadline <= until;
        let why = if is_missed { "left out, so that others meet theirs".into() } else { String::new() };
        let end = if *is_chosen { *end } else { release.deadline };
        (release.task, release.number, release.time.0, release.deadline.0, end.0, why)
    };
    let shown = optimum.first_run.iter().zip(&ends).filter(|((release, _), _)| release.time < until);
    PageOptimum {
        scheduler: if optimum.met.is_exact() { "clairvoyant" } else { "clairvoyant, best schedule found" },
        exact: optimum.met.is_exact(),
        released: optimum.released,
        upper: optimum.met.upper,
        lower: optimum.met.lower,
        critical: comparison.critical_possible(),
        value: comparison.value_possible(),
        slices: pieces.iter().map(slice).collect(),
        jobs: shown.map(job).collect(),
    }
}

/// The distribution of response times over all jobs: those that never complete keep the curve below one.
fn responses(metrics: &Metrics) -> Vec<(f64, i64)> {
    let completed = metrics.tasks.iter().map(|task| task.completed).sum::<u64>();
    let share = completed as f64 / metrics.jobs.released.max(1) as f64;
    let quantile = |step: usize| {
        let q = step as f64 / QUANTILES as f64;
        Some((q * share, metrics.response_completed.quantile(q)?))
    };
    (0..=QUANTILES).filter_map(quantile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{Plan, compare};
    use crate::progress::Progress;
    use temponet_task::{Task, TaskSet};

    #[test]
    fn the_page_is_self_contained_and_cannot_be_broken_by_names() {
        let tasks = vec![Task::periodic("</script><!--<script>{{data}}", Time::from_ms(10), Time::from_ms(12))];
        let horizon = Time::from_ms(100);
        let plan = Plan {
            set: TaskSet::new("<set>", tasks, 1),
            goal: temponet_task::Goal::default(),
            horizon,
            seed: 0,
            runs: 1,
            schedulers: vec!["edf".into()],
            roster: crate::roster::Roster::classical(),
            latency: false,
            record_until: horizon,
            oracle: Some(1.0),
        };
        let page = html(&compare(plan, &Progress::new(1, horizon)).unwrap());
        assert_eq!(page.matches("</script>").count(), 2, "the data and the script, and no more");
        assert!(page.contains("&lt;set&gt;") && !page.contains("<!--<script>"));
        assert_eq!(page.matches("{{").count(), 1, "the task's own name, untouched");
        assert!(!page.contains("http://") && !page.contains("https://"));
        assert!(page.contains("aborted at its deadline with 10ms done"));
    }
}
