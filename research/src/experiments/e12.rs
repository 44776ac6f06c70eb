//! E12: duration of a decision and of its parts, and the number of ready jobs that fit into one millisecond.

use serde::Deserialize;
use temponet_infer::Kernel;

use crate::plots::{Curve, log_panel};
use crate::{Better, Context, Findings, FindingsTable, Line, PAPER, RepeatedMean, ReproduceError, Unit};
use temponet_bench::decision::{DecisionFigures, TimingEffort, measure};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Numbers of ready jobs that the paper reports.
    jobs: Vec<usize>,
    /// Numbers of ready jobs of the curve.
    curve: Vec<usize>,
    /// Number of decisions per measurement.
    passes: u64,
}

/// Largest number of decisions that are timed with each kernel, the slowest of which is fifty times slower than the
/// fastest.
const KERNEL_PASSES: u64 = 40;

/// Number of measurements after which parts and whole stand as they are.
const ATTEMPTS: usize = 5;

/// Whether no part takes longer than the whole.
fn is_consistent(figures: &DecisionFigures) -> bool {
    let parts = [figures.tokens_ns_p50, figures.encoder_ns_p50, figures.mapping_ns_p50];
    parts.iter().all(|part| *part <= figures.end_to_end_ns_p50)
}

/// Time budget of a decision, in microseconds.
const BUDGET: f64 = 1_000.0;

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (_, settings) = &context.protocol::<Settings>()?;
    let models = [("", PAPER, context.papers()?.remove(0)), ("built_in_", "built-in", context.model()?.clone())];
    let effort = TimingEffort { passes: settings.passes, ..TimingEffort::default() };
    let mut curves: Vec<Curve> = Vec::new();
    let mut most = Vec::new();
    for (prefix, name, model) in models {
        let time = |jobs: usize| -> Result<DecisionFigures, ReproduceError> {
            measure(name, &model, jobs, effort).map_err(|error| context.protocol_error(error))
        };
        for jobs in &settings.jobs {
            let mut figures = time(*jobs)?;
            // Parts and whole are timed one after the other; a machine that was disturbed in between is asked again.
            for _ in 1..ATTEMPTS {
                if is_consistent(&figures) {
                    break;
                }
                figures = time(*jobs)?;
            }
            if !is_consistent(&figures) {
                findings.notes.push(format!(
                    "{name}, {jobs} jobs: a part took longer than the whole in all of {ATTEMPTS} measurements"
                ));
            }
            add_parts(findings, prefix, *jobs, &figures);
        }
        let curve: Curve = settings
            .curve
            .iter()
            .map(|jobs| Ok((*jobs as f64, time(*jobs)?.end_to_end_ns_p50 / 1e3)))
            .collect::<Result<_, ReproduceError>>()?;
        let (jobs, is_bound) = fitting(&curve);
        findings.add(Line::new(format!("{prefix}jobs_in_1_ms"), Unit::Number, Better::Higher, jobs));
        most.push(format!("{}{jobs:.0} ready jobs", if is_bound { "at least " } else { "" }));
        curves.push(curve);
    }
    let ends = curves[0].first().zip(curves[0].last()).map(|(first, last)| vec![(first.0, BUDGET), (last.0, BUDGET)]);
    curves.push(ends.unwrap_or_default());
    let names = ["paper's tokens".to_string(), "built-in model".into(), "1 ms".into()];
    let panel = log_panel("Median time of a decision, µs", "ready jobs", curves);
    findings.plot("Latency over the number of jobs", "Both axes are logarithmic.", panel, &names);
    findings.notes.push("σ of an end-to-end time is its median absolute deviation, as in the paper".into());
    let beside = format!(
        "within a millisecond: {} with the paper's model and {} with the built-in one, which takes {} for 600 jobs; one thread of {} stands against the paper's ARM Cortex-A78 and \
         Tegra Orin Nano at 1.7 GHz, so this does not compare programs; the paper's 375 µs for 600 jobs and its limit of about 430 jobs in 1 ms cannot both be",
        most[0],
        most[1],
        findings.line("built_in_end_to_end_600_jobs").map_or("–".into(), |line| line.shown()),
        processor(),
    );
    findings.tables.push(kernels(context, settings)?);
    context.note_clock(findings);
    findings.judge(&beside);
    Ok(())
}

/// Returns the time of a decision of each model with each kernel that this processor has, on one thread.
fn kernels(context: &Context<'_>, settings: &Settings) -> Result<FindingsTable, ReproduceError> {
    let mut rows = Vec::new();
    for (name, model) in [(PAPER, context.papers()?.remove(0)), ("built-in", context.model()?.clone())] {
        for kernel in Kernel::available() {
            let passes = settings.passes.min(KERNEL_PASSES);
            let effort = TimingEffort { passes, kernel: Some(kernel), ..TimingEffort::default() };
            let time = |jobs: &usize| -> Result<String, ReproduceError> {
                let figures = measure(name, &model, *jobs, effort).map_err(|error| context.protocol_error(error))?;
                Ok(format!("{:.0} µs", figures.end_to_end_ns_p50 / 1e3))
            };
            let times = settings.jobs.iter().map(time).collect::<Result<Vec<_>, _>>()?;
            rows.push([name.to_string(), kernel.name().into()].into_iter().chain(times).collect());
        }
    }
    let jobs = settings.jobs.iter().map(|jobs| format!("{jobs} jobs"));
    let header = ["model", "kernel"].map(String::from).into_iter().chain(jobs).collect();
    let title = format!("Median time of a decision by kernel, one thread of {}", processor());
    Ok(FindingsTable { title, header, rows })
}

/// Returns the name of the processor, where the system tells it.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_string(), |(_, name)| name.trim().to_string())
}

/// Adds the parts of a decision among `jobs` ready jobs.
fn add_parts(findings: &mut Findings, prefix: &str, jobs: usize, figures: &DecisionFigures) {
    let parts = [
        ("encoder", figures.encoder_ns_p50),
        ("mapping", figures.mapping_ns_p50),
        ("tokens", figures.tokens_ns_p50),
        ("end_to_end", figures.end_to_end_ns_p50),
        ("p99", figures.end_to_end_ns_p99),
    ];
    for (part, ns) in parts {
        let deviation = (part == "end_to_end").then_some(figures.end_to_end_ns_mad / 1e3);
        let ours = RepeatedMean { deviation, ..RepeatedMean::single(ns / 1e3) };
        let line = Line::lower(format!("{prefix}{part}_{jobs}_jobs"), Unit::Microseconds, ours);
        findings.add(line.headline_if(part == "end_to_end" && prefix.is_empty()));
    }
}

/// Returns the number of jobs that the budget suffices for, interpolated between the points of a curve, and whether it
/// is only a lower bound because the budget suffices for all points.
fn fitting(curve: &[(f64, f64)]) -> (f64, bool) {
    for pair in curve.windows(2) {
        let [(fewer, below), (more, above)] = [pair[0], pair[1]];
        if below <= BUDGET && above > BUDGET {
            return (fewer + (more - fewer) * (BUDGET - below) / (above - below), false);
        }
    }
    match curve.last() {
        Some((jobs, time)) if *time <= BUDGET => (*jobs, true),
        _ => (0.0, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_lies_between_the_points_around_it() {
        assert_eq!(fitting(&[(100.0, 500.0), (300.0, 1_500.0)]), (200.0, false));
        assert_eq!(fitting(&[(100.0, 500.0), (300.0, 900.0)]), (300.0, true));
        assert_eq!(fitting(&[(100.0, 1_500.0)]), (0.0, false));
    }
}
