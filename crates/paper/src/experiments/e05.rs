//! E5: how deep and wide the network is, and how many heads it has.

use std::time::Instant;

use serde::Deserialize;
use temponet::Model;
use temponet_infer::{Network, Options, Rows};
use temponet_train::{NetworkShape, Recipe};

use crate::ablation::{Ablation, Effort, Variant, VariantResult, span};
use crate::{Better, Context, Estimate, Findings, Line, ReproduceError, Unit};
use temponet_lab::stats::{mean, percent, quantile};
use temponet_page::plot::{Panel, Span, svg};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    layers: Vec<usize>,
    heads: Vec<usize>,
    widths: Vec<usize>,
    /// Distinct jobs of the forward pass that is timed.
    latency_jobs: usize,
    effort: Effort,
}

/// Forward passes that are timed.
const PASSES: usize = 201;

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let Settings { layers, heads, widths, latency_jobs, effort } = protocol.settings(context.mode);
    let recipe = effort.recipe(&protocol.recipe);
    let base = recipe.network;
    let divided = |shape: NetworkShape| NetworkShape { width: shape.width - shape.width % shape.heads, ..shape };
    let shapes: Vec<(String, NetworkShape)> =
        (layers.iter().map(|l| (format!("layers_{l}"), NetworkShape { layers: *l, ..base })))
            .chain(heads.iter().map(|h| (format!("heads_{h}"), divided(NetworkShape { heads: *h, ..base }))))
            .chain(widths.iter().map(|d| {
                let shape = NetworkShape { width: *d, feed_forward: d * base.feed_forward / base.width, ..base };
                (format!("width_{d}"), divided(shape))
            }))
            .collect();
    // The same shape under several names is trained once.
    let mut variants: Vec<Variant<'static>> = Vec::new();
    for (name, shape) in &shapes {
        if !variants.iter().any(|variant| variant.recipe.network == *shape) {
            variants.push(Variant::new(name, Recipe { network: *shape, ..recipe.clone() }));
        }
    }
    let cases = protocol.cases("heterogeneous", effort.test)?;
    let seconds = effort.test.oracle_seconds;
    let ablation =
        context.ablation("network shapes", &variants, effort.seeds, &cases, &protocol.schedulers, seconds)?;
    let mut points: Vec<(String, f64, f64)> = Vec::new();
    for (name, shape) in &shapes {
        let place = variants.iter().position(|variant| variant.recipe.network == *shape);
        let Some(tried) = place.map(|place| &ablation.results[place]) else { continue };
        findings.add(ablation.share_line(name, tried));
        let latency = latency(&tried.trained[0].model, *latency_jobs)?;
        if name.starts_with("layers") {
            findings.add(Line::new(
                format!("latency_{name}"),
                Unit::Microseconds,
                Better::Lower,
                Estimate::single(latency),
            ));
        }
        points.push((name.clone(), mean(&tried.shares()), latency));
    }
    draw(findings, &points);
    ablation.add_classical(findings);
    let of = |name: &str| {
        let (_, shape) = shapes.iter().find(|(known, _)| known == name)?;
        variants.iter().position(|variant| variant.recipe.network == *shape)
    };
    conclude(findings, &ablation, of, &base);
    Ok(())
}

/// The median time of a forward pass over distinct rows, in µs.
fn latency(model: &Model, jobs: usize) -> Result<f64, ReproduceError> {
    let failed = |error: temponet::NetworkError| ReproduceError::Network(error.to_string());
    let mut network = Network::new(&model.weights, Options::default()).map_err(failed)?;
    let sizes: Vec<usize> = model.weights.architecture.job.iter().map(|feature| feature.size).collect();
    let tokens: Vec<u16> = (0..jobs).flat_map(|job| sizes.iter().map(move |size| (job % size) as u16)).collect();
    let bias = vec![0.0; jobs + 1];
    let rows = Rows { idle: &[0, 0], jobs: &tokens, real: &[], bias: &bias, sparsity: None };
    let mut q = Vec::new();
    let mut times = Vec::new();
    for _ in 0..PASSES {
        let begin = Instant::now();
        network.forward(&rows, &mut q);
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    Ok(quantile(&times, 0.5).unwrap_or(0.0))
}

/// What depth, heads and width change, and what they cost.
fn draw(findings: &mut Findings, points: &[(String, f64, f64)]) {
    let curve = |prefix: &str, of: fn(&(String, f64, f64)) -> f64| -> Vec<(f64, f64)> {
        let with = points.iter().filter_map(|point| Some((point.0.strip_prefix(prefix)?.parse().ok()?, of(point))));
        with.collect()
    };
    let shares = span(points.iter().map(|point| point.1));
    let slowest = points.iter().map(|point| point.2).fold(1.0, f64::max);
    let panel = |what: &str, prefix: &str, label: &'static str, is_share: bool| Panel {
        title: what.into(),
        x_label: label,
        curves: if is_share { vec![curve(prefix, |p| p.1), vec![]] } else { vec![vec![], curve(prefix, |p| p.2)] },
        y: if is_share { shares } else { Span::Numbers(0.0, slowest) },
        marks: Vec::new(),
        is_log: false,
    };
    let panels = [
        panel("In time over depth", "layers_", "blocks, L", true),
        panel("In time over heads", "heads_", "heads, H", true),
        panel("In time over width", "width_", "width, d", true),
        panel("µs of a forward pass over width", "width_", "width, d", false),
    ];
    let names = ["in time".to_string(), "µs".to_string()];
    let caption = "Means over the seeds, without a shield; every scale of shares is the same.";
    findings.picture("Depth, heads and width", caption, svg(&panels, 2, &names));
}

/// The paper claims that a second block and four heads matter: whether they do.
fn conclude(findings: &mut Findings, ablation: &Ablation, of: impl Fn(&str) -> Option<usize>, base: &NetworkShape) {
    let pairs =
        [("gain_of_second_block", "layers_2", "layers_1", 0.088), ("gain_of_four_heads", "heads_4", "heads_2", 0.047)];
    for (name, to, from, paper) in pairs {
        if let (Some(to), Some(from)) = (of(to), of(from)) {
            findings.add(ablation.gain(name, &ablation.results[to], &ablation.results[from], Some(paper)).headline());
        }
    }
    let spread = |tried: &VariantResult| temponet_lab::stats::deviation(&tried.shares());
    let typical = mean(&ablation.results.iter().map(spread).collect::<Vec<_>>());
    let spread = format!(
        "seeds alone move a figure by {} points (mean standard deviation) at d = {}",
        temponet_lab::stats::points(typical),
        base.width
    );
    let shares: Vec<f64> = ablation.results.iter().map(|tried| mean(&tried.shares())).collect();
    let ends = shares.iter().fold((1.0f64, 0.0f64), |(low, high), share| (low.min(*share), high.max(*share)));
    let range = format!("all shapes meet {} to {}", percent(ends.0), percent(ends.1));
    findings.judge_claim(&format!("{range}; {spread}; {}", ablation.beside()));
}
