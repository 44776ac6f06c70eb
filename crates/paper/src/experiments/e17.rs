//! E17: how the time of a decision grows with the number of jobs: a power law, fitted.

use std::sync::Arc;

use serde::Deserialize;
use temponet::{Mapping, Model, Tokenizer};

use crate::{Better, Context, Estimate, Findings, Line, ReproduceError, Unit};
use temponet_lab::measure::{attention, decision};
use temponet_lab::stats::power_law;
use temponet_page::plot::{Panel, Span, svg};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    jobs: Vec<usize>,
    passes: u64,
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let settings = protocol.settings(context.mode);
    let effort = decision::TimingEffort { passes: settings.passes, controls: 0, mapping: Mapping::Greedy };
    let model = Arc::new(Model::random(Tokenizer::paper(), 1));
    // Sparse and dense attention over a row for each job, and our default over distinct rows.
    let mut curves: Vec<Vec<(f64, f64)>> = vec![Vec::new(); 3];
    for jobs in &settings.jobs {
        let wrong = |error: temponet_lab::measure::MeasureError| context.wrong(error.to_string());
        let by_job = attention::measure(*jobs, settings.passes).map_err(wrong)?;
        let distinct = decision::measure("paper", &model, *jobs, effort).map_err(wrong)?;
        let times = [by_job.sparse_ns_p50, by_job.dense_ns_p50, distinct.end_to_end_ns_p50];
        curves.iter_mut().zip(times).for_each(|(curve, ns)| curve.push((*jobs as f64, ns / 1e3)));
    }
    let names = ["sparse", "dense", "distinct_rows"];
    let mut sentences = Vec::new();
    for (name, curve) in names.into_iter().zip(&curves) {
        let law = power_law(curve);
        let exponent =
            Line::new(format!("{name}_exponent"), Unit::Number, Better::Lower, Estimate::single(law.exponent));
        findings.add(if name == "sparse" { exponent.headline() } else { exponent });
        findings.add(Line::new(
            format!("{name}_r_squared"),
            Unit::Number,
            Better::Higher,
            Estimate::single(law.r_squared),
        ));
        sentences.push(format!("{} N^{:.2} (R² = {:.3})", name.replace('_', " "), law.exponent, law.r_squared));
    }
    let (least, most) =
        curves.iter().flatten().fold((f64::MAX, f64::MIN), |(low, high), (_, y)| (low.min(*y), high.max(*y)));
    let panel = Panel {
        title: "Median time, µs".into(),
        x_label: "jobs",
        curves,
        y: Span::Numbers(least * 0.8, most * 1.2),
        marks: Vec::new(),
        is_log: true,
    };
    let legend = ["sparse attention".to_string(), "dense attention".into(), "distinct rows, whole decision".into()];
    findings.picture(
        "Time over the number of jobs",
        "Both axes are logarithmic: a power law is a line.",
        svg(&[panel], 1, &legend),
    );
    let beside = format!(
        "time grows as {}; full attention inside ⌈ln N⌉ chunks is N²/ln N in the end, as the paper's own appendix says",
        sentences.join(", ")
    );
    context.note_clock(findings);
    findings.judge(&beside);
    Ok(())
}
