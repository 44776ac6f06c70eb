//! E7: sparse beside dense attention on this CPU. The paper's figures were measured on a GPU; `docs/gpu.md` has ours.

use serde::Deserialize;

use crate::{Context, Estimate, Findings, Line, ReproduceError, Unit, Verdict};
use temponet_lab::measure::attention::{AttentionFigures, measure};
use temponet_lab::stats::mean;
use temponet_page::charts::bars;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Numbers of jobs; the last one is the paper's.
    jobs: Vec<usize>,
    /// Number of forward passes per measurement.
    passes: u64,
    /// Number of decisions in a batch.
    batch: f64,
    /// Number of repetitions of each measurement.
    repeats: usize,
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let settings = protocol.settings(context.mode);
    let mut all: Vec<Vec<AttentionFigures>> = Vec::new();
    for jobs in &settings.jobs {
        let one = |_| measure(*jobs, settings.passes).map_err(|error| context.protocol_error(error));
        all.push((0..settings.repeats).map(one).collect::<Result<_, _>>()?);
    }
    let Some(last) = all.last() else { return Err(context.protocol_error("there are no jobs to measure")) };
    let of = |value: &dyn Fn(&AttentionFigures) -> f64| Estimate::of(&last.iter().map(value).collect::<Vec<f64>>());
    let per_layer = |ns: f64, layers: usize| settings.batch * ns / layers as f64 / 1e6;
    let sparse = of(&|figures| per_layer(figures.sparse_ns_p50, figures.layers));
    let dense = of(&|figures| per_layer(figures.dense_ns_p50, figures.layers));
    let kept = of(&|figures| figures.sparse_bytes as f64 / figures.dense_bytes as f64);
    let differing = of(&|figures| figures.differing as f64 / figures.decisions.max(1) as f64);
    let latency = Line::lower("latency_per_layer", Unit::Milliseconds, sparse);
    findings.add(latency.beside("dense", None, Some(dense.mean)));
    findings.add(Line::lower("dense_latency_per_layer", Unit::Milliseconds, dense));
    // These figures are counted, not timed, and so are the same in every repetition.
    findings.add(Line::lower("memory_traffic", Unit::Number, kept.mean).beside("dense", None, Some(1.0)));
    findings.add(Line::lower("other_decisions", Unit::Share, differing.mean));
    draw(findings, &settings.jobs, &all);
    findings.notes.push(
        "the figure of a GPU is printed by cargo run --release -p temponet-grad --features cuda --example attention_cuda -- 600 (docs/gpu.md)".into(),
    );
    context.note_clock(findings);
    let faster = dense.mean / sparse.mean;
    let why = format!(
        "the paper's {} ms per layer are of a V100, and its memory traffic is relative to another sparse kernel; on this processor a layer of {} decisions \
         with 600 jobs each takes {:.1} ms sparse and {:.1} ms dense ({faster:.2} times as long), reads {:.2} of the keys, and other jobs are chosen in {:.1}% \
         of the decisions (random weights)",
        findings.paper_value("latency_per_layer"),
        settings.batch,
        sparse.mean,
        dense.mean,
        kept.mean,
        100.0 * differing.mean,
    );
    findings.conclude(Verdict::NotReproducible, &why);
    Ok(())
}

/// Draws the time of a forward pass with dense and with sparse attention.
fn draw(findings: &mut Findings, jobs: &[usize], all: &[Vec<AttentionFigures>]) {
    let micro = |name: &str, value: fn(&AttentionFigures) -> f64| -> (String, Vec<f64>) {
        let mean = |figures: &Vec<AttentionFigures>| mean(&figures.iter().map(value).collect::<Vec<f64>>()) / 1e3;
        (name.to_string(), all.iter().map(mean).collect())
    };
    let series = [micro("dense", |figures| figures.dense_ns_p50), micro("sparse", |figures| figures.sparse_ns_p50)];
    let groups: Vec<String> = jobs.iter().map(|jobs| format!("{jobs} jobs")).collect();
    let top = series.iter().flat_map(|(_, values)| values).copied().fold(1.0, f64::max);
    let caption = "Median time of one forward pass of two layers, in microseconds; every job is a row of its own.";
    findings.picture("Dense and sparse attention", caption, bars(&groups, &series, top, |value| format!("{value:.0}")));
}
