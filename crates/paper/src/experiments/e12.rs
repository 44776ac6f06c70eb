//! E12: how long a decision takes, in parts, and how many ready jobs fit into a millisecond.

use std::sync::Arc;

use serde::Deserialize;
use temponet::{Mapping, Model, Tokenizer};

use crate::{Better, Context, Estimate, Findings, Line, ReproduceError, Unit};
use temponet_lab::measure::decision::{DecisionFigures, TimingEffort, measure};
use temponet_page::plot::{Panel, Span, svg};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// The paper's numbers of jobs.
    jobs: Vec<usize>,
    /// Those of the curve.
    curve: Vec<usize>,
    passes: u64,
}

/// The budget of a decision, in µs.
const BUDGET: f64 = 1_000.0;

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let settings = protocol.settings(context.mode);
    let paper = Arc::new(Model::random(Tokenizer::paper(), 1));
    let models = [("", "paper", paper), ("built_in_", "built-in", context.model_alone()?)];
    let effort = TimingEffort { passes: settings.passes, controls: 0, mapping: Mapping::Greedy };
    let mut curves: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut most = Vec::new();
    for (prefix, name, model) in models {
        let time = |jobs: usize| -> Result<DecisionFigures, ReproduceError> {
            measure(name, &model, jobs, effort).map_err(|error| context.wrong(error.to_string()))
        };
        for jobs in &settings.jobs {
            let figures = time(*jobs)?;
            let parts = [
                ("encoder", figures.encoder_ns_p50),
                ("mapping", figures.mapping_ns_p50),
                ("tokens", figures.tokens_ns_p50),
                ("end_to_end", figures.end_to_end_ns_p50),
                ("p99", figures.end_to_end_ns_p99),
            ];
            for (part, ns) in parts {
                let deviation = (part == "end_to_end").then_some(figures.end_to_end_ns_mad / 1e3);
                let ours = Estimate { deviation, ..Estimate::single(ns / 1e3) };
                let line = Line::new(format!("{prefix}{part}_{jobs}_jobs"), Unit::Microseconds, Better::Lower, ours);
                findings.add(if part == "end_to_end" && prefix.is_empty() { line.headline() } else { line });
            }
        }
        let curve: Vec<(f64, f64)> = settings
            .curve
            .iter()
            .map(|jobs| Ok((*jobs as f64, time(*jobs)?.end_to_end_ns_p50 / 1e3)))
            .collect::<Result<_, ReproduceError>>()?;
        let (jobs, is_bound) = fitting(&curve);
        findings.add(Line::new(format!("{prefix}jobs_in_1_ms"), Unit::Number, Better::Higher, Estimate::single(jobs)));
        most.push(format!("{}{jobs:.0} ready jobs", if is_bound { "at least " } else { "" }));
        curves.push(curve);
    }
    let ends = curves[0].first().zip(curves[0].last()).map(|(first, last)| vec![(first.0, BUDGET), (last.0, BUDGET)]);
    curves.push(ends.unwrap_or_default());
    let (least, greatest) =
        curves.iter().flatten().fold((f64::MAX, f64::MIN), |(low, high), (_, y)| (low.min(*y), high.max(*y)));
    let panel = Panel {
        title: "Median time of a decision, µs".into(),
        x_label: "ready jobs",
        curves,
        y: Span::Numbers(least * 0.8, greatest * 1.2),
        marks: Vec::new(),
        is_log: true,
    };
    let names = ["paper's tokens".to_string(), "built-in model".into(), "1 ms".into()];
    findings.picture("Latency over the number of jobs", "Both axes are logarithmic.", svg(&[panel], 1, &names));
    findings.notes.push("σ of an end-to-end time is its median absolute deviation, as in the paper".into());
    let beside = format!(
        "within a millisecond: {} with the paper's tokens and {} with the built-in model, on this processor and not on the paper's embedded boards; the paper's \
         375 µs for 600 jobs and its limit of about 430 jobs in 1 ms cannot both be",
        most[0], most[1]
    );
    context.note_clock(findings);
    findings.judge(&beside);
    Ok(())
}

/// How many jobs a millisecond is enough for, between the points of a curve; the last number, and that it is only a bound, where it is enough for all.
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
