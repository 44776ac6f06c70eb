//! The results of `exec` as text: the platform sheet, the table of a comparison with the simulator beside it, and the
//! latencies of the machine.

use temponet_lab::comparison::ComparisonRow;
use temponet_lab::stats::{percent, points};
use temponet_runtime::platform_sheet::PlatformSheet;
use temponet_sim::Histogram;
use temponet_sim::labels;
use temponet_task::Measure;
use temponet_wording::counted;

use super::host_time;
use super::outcome::{ExecResult, Measured};
use crate::hints::with_flags;
use crate::setup::heading;
use crate::table;

/// Quantiles of a latency: p50, p99, p99.9 and the maximum.
fn quantiles(histogram: &Histogram) -> String {
    if histogram.count() == 0 {
        return "–".into();
    }
    let cells =
        [0.5, 0.99, 0.999, 1.0].map(|q| histogram.quantile(q).map_or("–".into(), |ns| table::time(ns as f64)));
    cells.join(" / ")
}

/// The platform sheet: what a reader has to know of the machine, and what would work.
pub fn sheet(sheet: &PlatformSheet) -> String {
    let mut out = facts(sheet);
    out += "\n";
    for ability in &sheet.abilities {
        out += &match &ability.problem {
            None => format!("works: {}\n", ability.what),
            Some(why) => format!("missing: {}: {}\n", ability.what, with_flags(why)),
        };
    }
    out
}

fn fact(name: &str, value: &str) -> String {
    format!("{name:<22} {value}\n")
}

fn facts(sheet: &PlatformSheet) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &str| out += &fact(name, value);
    line("kernel", &format!("{}, {}", sheet.kernel, sheet.machine));
    line("ticks a second", &sheet.hz.map_or("unknown".into(), |hz| hz.to_string()));
    line("preemption", &sheet.preemption);
    line("isolated processors", &sheet.isolated);
    line("without ticks", &sheet.no_ticks);
    line("throttling", &sheet.throttling);
    line("clock source", &sheet.clock);
    line("usable processors", &sheet.usable.iter().map(usize::to_string).collect::<Vec<_>>().join(", "));
    for timer in &sheet.timers {
        let late = quantiles(&timer.late_ns);
        line(
            &format!("timers, processor {}", timer.cpu),
            &format!("late by {late} (p50 / p99 / p99.9 / max of {})", timer.late_ns.count()),
        );
    }
    if let Some(bare) = &sheet.bare_switch {
        let (name, took) = (format!("bare switch, {} to {}", bare.from, bare.to), quantiles(&bare.took_ns));
        line(&name, &format!("{took} (p50 / p99 / p99.9 / max of {})", bare.took_ns.count()));
    }
    out
}

/// The whole result.
pub fn text(result: &ExecResult) -> String {
    let (comparison, plan) = (&result.comparison, &result.comparison.plan);
    let mut out = facts(&result.sheet);
    out += &result.stolen.map_or(String::new(), |share| fact("taken by the host", &percent(share)));
    out += &host_time::warning(result.stolen).map_or(String::new(), |warning| format!("\n{warning}\n"));
    out += &format!("\n{}", heading(&plan.set, plan.horizon));
    let released = comparison.rows.first().map_or(0, |row| row.metrics.jobs.released);
    let (runs, jobs) = (counted(plan.runs, "run"), counted(released, "job"));
    out +=
        &format!("\non real threads: {runs} from seed {}, {jobs} each scheduler; goal: {}\n\n", plan.seed, plan.goal);
    let advice = comparison.advice();
    out += &advice.warning.as_ref().map_or(String::new(), |warning| format!("{warning}\n\n"));
    let others: Vec<Measure> =
        plan.goal.measures().iter().copied().filter(|measure| *measure != Measure::Met).collect();
    let labels: Vec<String> = others.iter().map(|measure| labels::measure(&plan.goal, *measure)).collect();
    let mut header = vec!["scheduler"];
    header.extend(labels.iter().map(String::as_str));
    header.extend(["met", "±95%", "simulated", "difference", "missed", "of opt.", "response", "preempt/job"]);
    let rows = comparison.rows.iter().zip(&result.measured);
    let cells: Vec<Vec<String>> = rows.clone().map(|(row, measured)| cells(result, &others, row, measured)).collect();
    out += &table::render_fitting(&header, &cells, 1);
    out += "simulated: the same jobs with the median costs measured here; difference in percentage points\n\n";
    let header = ["scheduler", "latency", "count", "median", "p99", "p99.9", "max"];
    let latencies: Vec<Vec<String>> = rows.clone().flat_map(|(row, measured)| latency_rows(row, measured)).collect();
    out += &table::render_with(&header, &latencies, 2);
    out += "release to start: of jobs that were put on a core at once; timer to order: its parts before the switch\n";
    out += "switch: of jobs that took the core from another one, from the order to the first instruction\n\n";
    let header = ["scheduler", "adopted", "agreed", "overtaken", "overruns", "skipped", "dispatcher", "switch / bare"];
    let counts = rows.map(|(row, measured)| count_cells(row, measured, &result.sheet));
    out += &table::render(&header, &counts.collect::<Vec<_>>());
    out +=
        "adopted, agreed, overtaken: answers of the network; dispatcher: share of one core; switch / bare: medians\n";
    for (name, why) in &comparison.skipped {
        out += &format!("not run: {name} ({})\n", with_flags(why));
    }
    for note in &result.notes {
        out += &format!("note: {}\n", with_flags(note));
    }
    out + &format!("\n{}\n", with_flags(&advice.verdict()))
}

fn cells(result: &ExecResult, others: &[Measure], row: &ComparisonRow, measured: &Measured) -> Vec<String> {
    let (metrics, comparison) = (&row.metrics, &result.comparison);
    let met = metrics.jobs.compliance();
    let simulated = measured.simulated_share();
    let mut cells = vec![row.shown()];
    cells.extend(others.iter().map(|measure| percent(metrics.score(*measure))));
    cells.extend([
        percent(met),
        row.interval_in_words(),
        simulated.map_or("–".into(), percent),
        simulated.map_or("–".into(), |simulated| points(met - simulated)),
        table::count(metrics.missed()),
        comparison.of_optimum(row).map_or("–".into(), percent),
        metrics.art_completed().map_or("–".into(), table::time),
        format!("{:.2}", metrics.preemptions as f64 / metrics.jobs.released.max(1) as f64),
    ]);
    cells
}

/// The latencies of a scheduler that were measured, a row each.
fn latency_rows(row: &ComparisonRow, measured: &Measured) -> Vec<Vec<String>> {
    let line = |(kind, histogram): (&str, &Histogram)| {
        let time = |at: f64| histogram.quantile(at).map_or("–".into(), |ns| table::time(ns as f64));
        let words = [row.scheduler.clone(), kind.into(), table::count(histogram.count())];
        words.into_iter().chain([0.5, 0.99, 0.999, 1.0].map(time)).collect()
    };
    measured.latencies.kinds().into_iter().filter(|(_, histogram)| histogram.count() > 0).map(line).collect()
}

fn count_cells(row: &ComparisonRow, measured: &Measured, sheet: &PlatformSheet) -> Vec<String> {
    let counts = &measured.counts;
    let has_decider = measured.latencies.answer.count() > 0;
    let answers = |count: u64| if has_decider { table::count(count) } else { "–".into() };
    vec![
        row.scheduler.clone(),
        answers(counts.adopted),
        answers(counts.agreed),
        answers(counts.overtaken),
        table::count(counts.overruns),
        table::count(counts.skipped),
        measured.dispatcher.map_or("–".into(), percent),
        measured.against_bare(sheet).map_or("–".into(), |ratio| format!("{ratio:.2}")),
    ]
}
