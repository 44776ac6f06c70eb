//! The ranked table of schedulers, with bars on a scale that makes small differences visible.

use temponet_sim::labels;
use temponet_task::Measure;
use temponet_wording::{counted, grouped, listed};

use crate::clairvoyant::Clairvoyant;
use crate::comparison::{Comparison, ComparisonRow};
use crate::stats::percent;
use temponet_page::fragment::folded;
use temponet_page::{HtmlCell, HtmlTable};

/// Range of the bars: round shares around all schedulers except a few that are far behind.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BarScale {
    low: f64,
    high: f64,
}

impl BarScale {
    fn of(comparison: &Comparison) -> BarScale {
        let optimum = comparison.clairvoyant.as_ref().map(|optimum| optimum.met.upper / optimum.released as f64);
        BarScale::over(comparison.rows.iter().map(|row| row.metrics.jobs.compliance()).collect(), optimum)
    }

    fn over(mut shares: Vec<f64>, optimum: Option<f64>) -> BarScale {
        shares.sort_by(f64::total_cmp);
        let most = shares.last().copied().unwrap_or(1.0).max(optimum.unwrap_or(0.0));
        // Schedulers far behind would flatten all other bars. As few as possible are left out, at most a quarter.
        let first = shares.first().copied().unwrap_or(most);
        let is_near = |share: &&f64| most - **share < (most - first) / 3.0;
        let few = (shares.len() / 4).max(1);
        let least = shares.iter().skip(1).take(few).find(is_near).copied().unwrap_or(first);
        if most <= least {
            return BarScale { low: 0.0, high: 1.0 };
        }
        let rough = (most - least) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        // A little lower, so the shortest bar is still visible.
        let low = (((least - step / 2.0) / step).floor() * step).max(0.0);
        BarScale { low, high: ((most / step - 1e-9).ceil() * step).min(1.0) }
    }

    /// Returns the length of a share's bar, in percent of the full width.
    fn place(self, share: f64) -> f64 {
        100.0 * ((share - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Returns a cell with a bar, its 95% confidence interval, and the figure in words.
    fn bar(self, share: f64, ci95: Option<f64>, words: &str) -> HtmlCell {
        let below = if share < self.low { " class=\"below\"" } else { "" };
        let interval = ci95.filter(|half| *half > 0.0).map(|half| {
            let (from, to) = (self.place(share - half), self.place(share + half));
            format!("<b style=\"left:{from:.1}%;width:{:.1}%\"></b>", to - from)
        });
        let bar = format!(
            "<span class=\"bar\" aria-hidden=\"true\"><i{below} style=\"width:{:.1}%\"></i>{}</span>{words}",
            self.place(share),
            interval.unwrap_or_default()
        );
        HtmlCell::html(bar, Some(share)).class("met")
    }
}

/// Formats a share in percent, with as few decimals as it needs.
fn round(share: f64) -> String {
    let text = format!("{:.3}", 100.0 * share);
    text.trim_end_matches('0').trim_end_matches('.').to_string() + "%"
}

pub(super) fn hint(comparison: &Comparison) -> String {
    let scale = BarScale::of(comparison);
    let below = if comparison.rows.iter().any(|row| row.metrics.jobs.compliance() < scale.low) {
        "; a hatched end marks what lies below it"
    } else {
        ""
    };
    let interval = if comparison.plan.runs > 1 { "; the line in a bar is the 95% interval" } else { "" };
    let shield = comparison.shield_line().map_or(String::new(), |line| format!(" {line}."));
    format!(
        "Bars run from {} to {}{below}{interval}. A header sorts, # restores the order of the verdict.{shield}",
        round(scale.low),
        round(scale.high)
    )
}

/// Formats a duration in nanoseconds with a fitting unit; a dash if there is none.
pub(super) fn time(ns: Option<f64>) -> String {
    let Some(ns) = ns else { return "–".into() };
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    match units.into_iter().find(|(size, _)| ns.abs() >= *size) {
        Some((size, unit)) => {
            let digits = (3 - (ns.abs() / size).log10().floor() as i32).max(0) as usize;
            format!("{:.digits$} {unit}", ns / size)
        }
        None => format!("{ns:.0} ns"),
    }
}

/// A column of the ranked table.
struct RankedColumn<'a> {
    /// Text of the header.
    name: String,
    /// What the header says when it is pointed at; empty if its name says enough.
    meaning: &'static str,
    /// Class of the header; narrow windows leave `minor` columns out.
    class: &'static str,
    /// Makes the cell of a scheduler's row.
    cell: Box<dyn Fn(&ComparisonRow) -> HtmlCell + 'a>,
}

impl<'a> RankedColumn<'a> {
    /// A column that every window shows.
    fn major(name: &str, meaning: &'static str, cell: impl Fn(&ComparisonRow) -> HtmlCell + 'a) -> RankedColumn<'a> {
        RankedColumn { name: name.into(), meaning, class: "", cell: Box::new(cell) }
    }

    /// A column that narrow windows leave out.
    fn minor(name: &str, meaning: &'static str, cell: impl Fn(&ComparisonRow) -> HtmlCell + 'a) -> RankedColumn<'a> {
        let cell = move |row: &ComparisonRow| cell(row).class("minor");
        RankedColumn { class: "minor", ..RankedColumn::major(name, meaning, cell) }
    }
}

/// A cell with a share in percent; a dash if there is none.
fn share_cell(share: Option<f64>) -> HtmlCell {
    HtmlCell::figure(share.map_or("–".into(), percent), share)
}

/// A cell with a duration, given in nanoseconds; a dash if there is none.
fn duration_cell(ns: Option<f64>) -> HtmlCell {
    HtmlCell::figure(time(ns), ns)
}

/// A cell with a count per released job.
fn per_job_cell(row: &ComparisonRow, count: u64) -> HtmlCell {
    let value = count as f64 / row.metrics.jobs.released.max(1) as f64;
    HtmlCell::figure(format!("{value:.2}"), Some(value))
}

/// Returns the columns from left to right.
fn columns(comparison: &Comparison) -> Vec<RankedColumn<'_>> {
    let mut columns = identity_columns(comparison);
    columns.extend(deadline_columns(comparison));
    columns.extend(time_columns());
    columns.extend(overhead_columns(comparison));
    columns
}

/// Rank and name.
fn identity_columns(comparison: &Comparison) -> Vec<RankedColumn<'_>> {
    let rank =
        |row: &ComparisonRow| comparison.rows.iter().position(|of| of.scheduler == row.scheduler).unwrap_or(0) + 1;
    // Sorting descends first, so the best rank has the greatest value.
    let rank_cell = move |row: &ComparisonRow| HtmlCell::figure(rank(row).to_string(), Some(-(rank(row) as f64)));
    let name_cell = |row: &ComparisonRow| HtmlCell::text(row.shown()).class("words");
    vec![
        RankedColumn { class: "rank", ..RankedColumn::major("#", "rank by the verdict", rank_cell) },
        RankedColumn { class: "words", ..RankedColumn::major("scheduler", "", name_cell) },
    ]
}

/// The measures of the goal, the deadlines met and missed, and the share of the optimum.
fn deadline_columns(comparison: &Comparison) -> Vec<RankedColumn<'_>> {
    let plan = &comparison.plan;
    let scale = BarScale::of(comparison);
    let mut columns = Vec::new();
    for measure in plan.goal.measures().iter().copied().filter(|measure| *measure != Measure::Met) {
        let cell = move |row: &ComparisonRow| share_cell(row.metrics.measured(measure));
        let meaning = "what the goal has before the jobs in time";
        columns.push(RankedColumn::major(&labels::measure(&plan.goal, measure), meaning, cell));
    }
    let met_cell = move |row: &ComparisonRow| {
        let share = row.metrics.jobs.compliance();
        scale.bar(share, row.ci95(), &percent(share))
    };
    let met = RankedColumn::major("deadlines met", "share of the jobs that met their deadline", met_cell);
    columns.push(RankedColumn { class: "met", ..met });
    if plan.runs > 1 {
        let meaning = "farther end of the confidence interval over the runs, or both ends where few jobs are missed";
        let cell = |row: &ComparisonRow| HtmlCell::figure(row.interval_in_words(), row.ci95());
        columns.push(RankedColumn::minor("± 95%", meaning, cell));
    }
    columns.push(RankedColumn::major("missed", "jobs that missed their deadline", |row| {
        HtmlCell::figure(thousands(row.metrics.missed()), Some(row.metrics.missed() as f64))
    }));
    if comparison.clairvoyant.is_some() {
        let at_least = if is_exact(comparison, comparison.counted()) { "" } else { "≥ " };
        let cell = move |row: &ComparisonRow| {
            let share = comparison.of_optimum(row);
            HtmlCell::figure(share.map_or("–".into(), |share| format!("{at_least}{}", percent(share))), share)
        };
        columns.push(RankedColumn::major("of optimum", "share of what the clairvoyant optimum meets", cell));
    }
    columns
}

/// Response times and lateness.
fn time_columns<'a>() -> Vec<RankedColumn<'a>> {
    let lateness = |row: &ComparisonRow| duration_cell(row.metrics.lateness.quantile(0.95).map(|ns| ns as f64));
    vec![
        RankedColumn::major("response (completed)", "mean response time of completed jobs", |row| {
            duration_cell(row.metrics.art_completed())
        }),
        RankedColumn::minor("response (all)", "mean time from release to end over all jobs", |row| {
            duration_cell(row.metrics.art_all())
        }),
        RankedColumn::minor(
            "lateness p95",
            "95% of the jobs end at most this long after their deadline; negative: before it",
            lateness,
        ),
    ]
}

/// Preemptions, migrations and idle time; on a server, which has none of the first two, what was shed and wasted.
fn overhead_columns(comparison: &Comparison) -> Vec<RankedColumn<'_>> {
    let plan = &comparison.plan;
    let is_server = plan.set.is_server();
    let mut columns = match is_server {
        true => vec![
            RankedColumn::minor("shed", "jobs that never began", |row| {
                HtmlCell::figure(grouped(row.metrics.shed), Some(row.metrics.shed as f64))
            }),
            RankedColumn::minor("wasted", "share of the work done that was for jobs that were late", |row| {
                share_cell(row.metrics.wasted_share())
            }),
        ],
        false => vec![RankedColumn::minor("preempt / job", "preemptions per job", |row| {
            per_job_cell(row, row.metrics.preemptions)
        })],
    };
    if plan.set.cores() > 1 && !is_server {
        columns.push(RankedColumn::minor("migr / job", "migrations per job", |row| {
            per_job_cell(row, row.metrics.migrations)
        }));
    }
    let capacity = plan.horizon.0 as f64 * plan.set.cores() as f64;
    columns.push(RankedColumn::minor("idle", "core time without a job", move |row| {
        share_cell(Some(row.metrics.idle_ns as f64 / (capacity * row.metrics.runs.max(1) as f64)))
    }));
    columns
}

/// Number of schedulers that are shown at once; the others are folded.
const SHOWN: usize = 10;

/// The table of the best schedulers, the optimum's row first and pinned, and that of the others, folded.
pub(super) fn html(comparison: &Comparison) -> String {
    let columns = columns(comparison);
    let table_of = |id: &'static str, rows: &[ComparisonRow], is_first: bool| {
        let mut table = HtmlTable::sortable().id(id);
        columns.iter().for_each(|column| table.column(&column.name, column.meaning, column.class));
        if let Some(optimum) = comparison.clairvoyant.as_ref().filter(|_| is_first) {
            let cells: Vec<HtmlCell> =
                columns.iter().map(|column| optimum_cell(comparison, optimum, &column.name, column.class)).collect();
            table.pinned("optimum", &cells);
        }
        for (rank, row) in rows.iter().enumerate() {
            let cells: Vec<HtmlCell> = columns.iter().map(|column| (column.cell)(row)).collect();
            table.row(if rank == 0 && is_first { "chosen" } else { "" }, &cells);
        }
        format!("<div class=\"ranking\">{}</div>\n", table.finish())
    };
    let (shown, others) = comparison.rows.split_at(comparison.rows.len().min(SHOWN));
    let mut html = table_of("ranking", shown, true);
    html += "<p class=\"hint narrow\">The window is narrow: some columns are left out.</p>\n";
    if !others.is_empty() {
        let names: Vec<String> = others.iter().map(ComparisonRow::shown).collect();
        let names = listed(names.iter().map(String::as_str), 3);
        let summary = format!("{}: {names}", counted(others.len(), "more scheduler"));
        html += &folded(&summary, &table_of("ranking-rest", others, false));
    }
    html
}

/// Whether the optimum of a measure is known, rather than a bound on it.
fn is_exact(comparison: &Comparison, measure: Measure) -> bool {
    comparison.possible(measure).is_some_and(|(_, is_exact)| is_exact)
}

/// Returns the cell of the clairvoyant optimum, or of the bound on it, in the given column.
fn optimum_cell(comparison: &Comparison, optimum: &Clairvoyant, column: &str, class: &'static str) -> HtmlCell {
    let (at_most, at_least) = if is_exact(comparison, Measure::Met) { ("", "") } else { ("≤ ", "≥ ") };
    let goal = &comparison.plan.goal;
    let bound = || {
        let measure = goal.measures().iter().find(|measure| labels::measure(goal, **measure) == column)?;
        let (share, is_exact) = comparison.possible(*measure)?;
        Some(format!("{}{}", if is_exact { "" } else { "≤ " }, percent(share)))
    };
    let cell = match column {
        "scheduler" => HtmlCell::text(if comparison.is_exact() { "clairvoyant optimum" } else { "clairvoyant bound" }),
        "deadlines met" => {
            let share = optimum.met.upper / optimum.released as f64;
            BarScale::of(comparison).bar(share, None, &format!("{at_most}{}", percent(share)))
        }
        "missed" => HtmlCell::text(format!("{at_least}{}", thousands(optimum.released - optimum.met.upper as u64))),
        _ => HtmlCell::text(bound().unwrap_or_default()),
    };
    if class.is_empty() { cell } else { cell.class(class) }
}

/// Groups digits with thin spaces, as in 1 234 567.
fn thousands(count: u64) -> String {
    grouped(count).replace(' ', "\u{2009}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_of_nearly_equal_shares_differ() {
        let scale = BarScale::over(vec![0.95, 0.96, 0.97, 0.98, 0.99], Some(0.992));
        assert!(scale.low >= 0.9 && scale.high <= 1.0, "{scale:?}");
        assert!(scale.place(0.99) - scale.place(0.96) > 40.0, "{scale:?}");
        let outlier = BarScale::over(vec![0.1, 0.95, 0.96, 0.97, 0.98], None);
        assert!(
            outlier.low > 0.9 && outlier.place(0.1) == 0.0,
            "one bad scheduler does not flatten the others: {outlier:?}"
        );
        let mostly_all = [vec![0.74, 0.74, 0.9963, 0.9963], vec![0.9999; 8], vec![1.0; 30]].concat();
        assert!(BarScale::over(mostly_all, Some(1.0)).low < 0.9963, "those a little behind still have bars");
        assert_eq!(BarScale::over(vec![1.0; 5], Some(1.0)), BarScale { low: 0.0, high: 1.0 });
        assert_eq!(BarScale::over(vec![], None), BarScale { low: 0.0, high: 1.0 });
    }

    #[test]
    fn figures_are_short() {
        assert_eq!([time(Some(12_345_678.0)), time(Some(-2.5e3)), time(None)], ["12.35 ms", "-2.500 µs", "–"]);
        assert_eq!(
            (round(0.95), round(0.9725), thousands(1_234_567)),
            ("95%".into(), "97.25%".into(), "1\u{2009}234\u{2009}567".into())
        );
    }
}
