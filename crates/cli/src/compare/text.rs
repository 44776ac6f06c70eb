//! A comparison as a text table: at most ten rows, with ties folded, and a conclusion in one sentence.

use std::io::IsTerminal;
use temponet_sim::labels;

use temponet_lab::clairvoyant::Clairvoyant;
use temponet_lab::comparison::ranking;
use temponet_lab::comparison::{Comparison, ComparisonRow};
use temponet_lab::roster::SHIELDED;
use temponet_lab::stats::percent;
use temponet_sched::Kind;
use temponet_task::Measure;
use temponet_wording::counted;

use crate::chains;
use crate::hints::with_flags;
use crate::output::BOLD;
use crate::setup::heading;
use crate::table;

/// Greatest number of schedulers in a table that is not shown whole.
const MOST_ROWS: usize = 10;

/// A column: its heading, and the measure that it shows, if any.
struct Column {
    head: String,
    measure: Option<Measure>,
}

/// Renders the table and the conclusion. With `is_whole`, every scheduler has a row.
pub fn text(comparison: &Comparison, is_whole: bool) -> String {
    let plan = &comparison.plan;
    let columns = columns(comparison, is_whole);
    let header: Vec<&str> = columns.iter().map(|column| column.head.as_str()).collect();
    let folded = if is_whole { Folded::whole(comparison) } else { Folded::of(comparison) };
    let optimum = comparison.clairvoyant.as_ref().map(|optimum| optimum_cells(comparison, optimum, &columns));
    let rows: Vec<Vec<String>> =
        optimum.into_iter().chain(folded.shown.iter().map(|row| cells(comparison, row, &columns))).collect();
    let released = comparison.rows.first().map_or(0, |row| row.metrics.jobs.released);
    let (runs, jobs) = (counted(plan.runs, "run"), counted(released, "job"));
    let mut out = heading(&plan.set, plan.horizon);
    out += &format!("\n{runs} from seed {}, {jobs} each scheduler; ", plan.seed);
    out += &format!("goal: {}\n\n", plan.goal);
    let table = table::render_fitting(&header, &rows, 1);
    out += &if std::io::stdout().is_terminal() { bold_row(&table, SHIELDED) } else { table };
    for (name, others) in &folded.ties {
        out += &format!("as {name}: {}\n", others.join(", "));
    }
    if folded.hidden > 0 {
        out += &format!("left out: {}; --all shows every one\n", counted(folded.hidden, "scheduler"));
    }
    if is_whole {
        for (name, why) in &comparison.skipped {
            out += &format!("not run: {name} ({})\n", with_flags(why));
        }
    } else if !comparison.skipped.is_empty() {
        let names: Vec<&str> = comparison.skipped.iter().map(|(name, _)| name.as_str()).collect();
        out += &format!("not for this set: {} (--all says why)\n", names.join(", "));
    }
    out += &comparison.shield_line().map_or(String::new(), |line| line + "\n");
    if let Some(optimum) = comparison.clairvoyant.as_ref().filter(|optimum| !optimum.met.is_exact()) {
        let (lower, upper) = (table::count(optimum.met.lower as u64), table::count(optimum.met.upper as u64));
        out += &if optimum.is_bound {
            let counted = [
                (plan.set.has_precedence(), "the longest path before each job"),
                (!plan.set.has_identical_cores(), "the total speed of the cores"),
            ];
            let counted: Vec<&str> =
                counted.into_iter().filter_map(|(applies, what)| applies.then_some(what)).collect();
            let how = match counted.is_empty() {
                true => "the bound counts no waiting for resources".into(),
                false => format!("the bound counts {} only", counted.join(" and ")),
            };
            format!("no schedule has more than {upper} jobs in time; {how}\n")
        } else {
            format!(
                "the optimum is not known exactly: {lower} to {upper} jobs in time; a larger --oracle-budget may tell\n"
            )
        };
    }
    out += &chains::table(&plan.set, folded.shown.iter().copied(), true, is_whole);
    out + &format!("\n{}\n", with_flags(&comparison.verdict()))
}

fn bold_row(table: &str, name: &str) -> String {
    let [begin, end] = BOLD;
    let is_row = |line: &str| line.split_whitespace().next() == Some(name);
    table.lines().map(|line| if is_row(line) { format!("{begin}{line}{end}\n") } else { format!("{line}\n") }).collect()
}

/// Rows that are shown, and the schedulers that tie with them.
struct Folded<'a> {
    shown: Vec<&'a ComparisonRow>,
    ties: Vec<(&'a str, Vec<&'a str>)>,
    hidden: usize,
}

impl<'a> Folded<'a> {
    fn whole(comparison: &'a Comparison) -> Folded<'a> {
        Folded { shown: comparison.rows.iter().collect(), ties: Vec::new(), hidden: 0 }
    }

    /// Folds schedulers that are equal in every measure of the goal in every run into one row. EDF, the learned
    /// scheduler and the one that the verdict is about keep their own rows, and what the verdict names is not left out.
    fn of(comparison: &'a Comparison) -> Folded<'a> {
        let best = comparison.advice().best;
        let is_kept = |row: &ComparisonRow| {
            row.is_baseline() || row.kind() == Kind::Learned || best.as_ref() == Some(&row.scheduler)
        };
        let named: Vec<&str> = comparison.named().iter().map(|row| row.scheduler.as_str()).collect();
        // Rows are sorted, so equal rows are adjacent.
        let groups: Vec<&[ComparisonRow]> =
            comparison.rows.chunk_by(|a, b| ranking::are_equal(&a.scores, &b.scores)).collect();
        let mut represented: Vec<(&ComparisonRow, Vec<&str>)> = Vec::new();
        for group in groups {
            let kept: Vec<&ComparisonRow> = group.iter().filter(|row| is_kept(row)).collect();
            let first = kept.first().copied().unwrap_or(&group[0]);
            let others = group.iter().filter(|row| !is_kept(row) && row.scheduler != first.scheduler);
            represented.push((first, others.map(|row| row.scheduler.as_str()).collect()));
            represented.extend(kept.iter().skip(1).map(|row| (*row, Vec::new())));
        }
        let mut room = MOST_ROWS.saturating_sub(comparison.rows.iter().filter(|row| is_kept(row)).count());
        let mut folded = Folded { shown: Vec::new(), ties: Vec::new(), hidden: 0 };
        for (row, others) in represented {
            let is_named = [row.scheduler.as_str()].iter().chain(&others).any(|name| named.contains(name));
            if !is_kept(row) && !is_named && room == 0 {
                folded.hidden += 1 + others.len();
                continue;
            }
            room = room.saturating_sub(usize::from(!is_kept(row)));
            folded.shown.push(row);
            if !others.is_empty() {
                folded.ties.push((row.scheduler.as_str(), others));
            }
        }
        folded
    }
}

/// Returns the columns of the table, those that matter most on the left; with `is_whole`, also the lateness.
fn columns(comparison: &Comparison, is_whole: bool) -> Vec<Column> {
    let plan = &comparison.plan;
    let plain = |head: &str| Column { head: head.into(), measure: None };
    let measured = |measure: Measure| Column { head: labels::measure(&plan.goal, measure), measure: Some(measure) };
    let mut columns = vec![plain("scheduler")];
    columns.extend(plan.goal.measures().iter().filter(|measure| **measure != Measure::Met).map(|of| measured(*of)));
    columns.extend([measured(Measure::Met), plain("±95%"), plain("missed")]);
    columns.extend(comparison.clairvoyant.is_some().then(|| plain("of opt.")));
    if plan.latency {
        columns.extend(["decision p50", "p99", "p99.9", "max"].map(plain));
    }
    columns.extend(["response", "resp. all"].map(plain));
    columns.extend(is_whole.then(|| plain("lateness p95")));
    if plan.set.is_server() {
        columns.extend(["shed", "wasted"].map(plain));
        return columns;
    }
    columns.push(plain("preempt/job"));
    columns.extend((plan.set.cores() > 1).then(|| plain("migr/job")));
    columns
}

/// Returns the cells of a scheduler, in the order of the columns.
fn cells(comparison: &Comparison, row: &ComparisonRow, columns: &[Column]) -> Vec<String> {
    let metrics = &row.metrics;
    let share =
        |measure: Measure| if metrics.jobs.released > 0 { percent(metrics.score(measure)) } else { "–".into() };
    let per_job = |count: u64| format!("{:.2}", count as f64 / metrics.jobs.released.max(1) as f64);
    let optional = |time: Option<f64>| time.map_or("–".into(), table::time);
    let latency = |q: f64| optional(row.latency.as_ref().and_then(|times| times.quantile(q)).map(|ns| ns as f64));
    let cell = |column: &Column| match (column.measure, column.head.as_str()) {
        (Some(measure), _) => share(measure),
        (_, "scheduler") => row.shown(),
        (_, "±95%") => row.interval_in_words(),
        (_, "missed") => table::count(metrics.missed()),
        (_, "of opt.") => comparison.of_optimum(row).map_or("–".into(), |share| {
            let is_exact = comparison.possible(comparison.counted()).is_some_and(|(_, is_exact)| is_exact);
            format!("{}{}", if is_exact { "" } else { "≥" }, percent(share))
        }),
        (_, "response") => optional(metrics.art_completed()),
        (_, "resp. all") => optional(metrics.art_all()),
        (_, "lateness p95") => optional(metrics.lateness.quantile(0.95).map(|lateness| lateness as f64)),
        (_, "shed") => table::count(metrics.shed),
        (_, "wasted") => metrics.wasted_share().map_or("–".into(), percent),
        (_, "preempt/job") => per_job(metrics.preemptions),
        (_, "migr/job") => per_job(metrics.migrations),
        (_, "decision p50") => latency(0.5),
        (_, "p99") => latency(0.99),
        (_, "p99.9") => latency(0.999),
        (_, "max") => latency(1.0),
        _ => String::new(),
    };
    columns.iter().map(cell).collect()
}

/// Returns the cells of the clairvoyant optimum, or of its bound.
fn optimum_cells(comparison: &Comparison, optimum: &Clairvoyant, columns: &[Column]) -> Vec<String> {
    let is_exact = comparison.is_exact();
    let counts_exactly = comparison.possible(Measure::Met).is_some_and(|(_, is_exact)| is_exact);
    let cell = |column: &Column| match (column.measure, column.head.as_str()) {
        (Some(measure), _) => comparison.possible(measure).map_or(String::new(), |(share, is_exact)| {
            format!("{}{}", if is_exact { "" } else { "≤" }, percent(share))
        }),
        (_, "scheduler") => if is_exact { "clairvoyant optimum" } else { "clairvoyant bound" }.into(),
        (_, "missed") => {
            let at_least = if counts_exactly { "" } else { "≥" };
            format!("{at_least}{}", table::count(optimum.released - optimum.met.upper as u64))
        }
        _ => String::new(),
    };
    columns.iter().map(cell).collect()
}
