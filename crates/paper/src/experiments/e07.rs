//! E7: sparse attention beside the dense one, on this processor. The paper's figures are of a GPU; `docs/gpu.md` has ours.

use serde::Deserialize;

use crate::{Better, Context, Estimate, Findings, Line, ReproduceError, Unit, Verdict};
use temponet_lab::measure::attention::{AttentionFigures, measure};
use temponet_page::charts::bars;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Numbers of jobs; the last is the paper's.
    jobs: Vec<usize>,
    passes: u64,
    /// Decisions at once.
    batch: f64,
    /// How often everything is repeated.
    repeats: usize,
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let settings = protocol.settings(context.mode);
    let mut all: Vec<Vec<AttentionFigures>> = Vec::new();
    for jobs in &settings.jobs {
        let one = |_| measure(*jobs, settings.passes).map_err(|error| context.wrong(error.to_string()));
        all.push((0..settings.repeats).map(one).collect::<Result<_, _>>()?);
    }
    let Some(last) = all.last() else { return Err(context.wrong("there are no jobs to measure")) };
    let of = |value: &dyn Fn(&AttentionFigures) -> f64| Estimate::of(&last.iter().map(value).collect::<Vec<f64>>());
    let per_layer = |ns: f64, layers: usize| settings.batch * ns / layers as f64 / 1e6;
    let sparse = of(&|figures| per_layer(figures.sparse_ns_p50, figures.layers));
    let dense = of(&|figures| per_layer(figures.dense_ns_p50, figures.layers));
    let kept = of(&|figures| figures.sparse_bytes as f64 / figures.dense_bytes as f64);
    let differing = of(&|figures| figures.differing as f64 / figures.decisions.max(1) as f64);
    findings.add(Line::new("latency_per_layer", Unit::Milliseconds, Better::Lower, sparse).beside(
        "dense",
        None,
        Some(dense.mean),
    ));
    findings.add(Line::new("dense_latency_per_layer", Unit::Milliseconds, Better::Lower, dense));
    // Counted, not timed: the same each time.
    let share = Line::new("memory_traffic", Unit::Number, Better::Lower, Estimate::single(kept.mean));
    findings.add(share.beside("dense", None, Some(1.0)));
    findings.add(Line::new("other_decisions", Unit::Share, Better::Lower, Estimate::single(differing.mean)));
    let mean = |figures: &[AttentionFigures], value: fn(&AttentionFigures) -> f64| {
        temponet_lab::stats::mean(&figures.iter().map(value).collect::<Vec<f64>>()) / 1e3
    };
    let series = [
        (
            "dense".to_string(),
            all.iter().map(|figures| mean(figures, |figures| figures.dense_ns_p50)).collect::<Vec<f64>>(),
        ),
        ("sparse".to_string(), all.iter().map(|figures| mean(figures, |figures| figures.sparse_ns_p50)).collect()),
    ];
    let groups: Vec<String> = settings.jobs.iter().map(|jobs| format!("{jobs} jobs")).collect();
    let top = series.iter().flat_map(|(_, values)| values).copied().fold(1.0, f64::max);
    let caption = "Median time of one forward pass of two layers, in microseconds; every job is a row of its own.";
    findings.picture("Dense and sparse attention", caption, bars(&groups, &series, top, |value| format!("{value:.0}")));
    findings.notes.push(
        "the figure of a GPU is printed by cargo run --release -p temponet-grad --features cuda --example attention_cuda -- 600 (docs/gpu.md)".into(),
    );
    context.note_clock(findings);
    let faster = dense.mean / sparse.mean;
    let why = format!(
        "the paper's {} ms per layer are of a V100, and its memory traffic is relative to another sparse kernel; on this processor a layer of {} decisions \
         with 600 jobs each takes {:.1} ms sparse and {:.1} ms dense ({faster:.2} times as long), reads {:.2} of the keys, and other jobs are chosen in {:.1}% \
         of the decisions (random weights)",
        findings.paper.get("latency_per_layer").copied().unwrap_or(f64::NAN),
        settings.batch,
        sparse.mean,
        dense.mean,
        kept.mean,
        100.0 * differing.mean,
    );
    findings.conclude(Verdict::NotReproducible, &why);
    Ok(())
}
