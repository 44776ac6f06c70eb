//! E5: depth and width of the network, and its number of heads.

use std::time::Instant;

use serde::Deserialize;
use temponet::Model;
use temponet_infer::{Network, NetworkOptions, Rows};
use temponet_train::{NetworkShape, Recipe};

use crate::ablation::{Ablation, Effort, Variant, VariantResult};
use crate::findings::words;
use crate::learner;
use crate::plots::{Curve, panel, share_range, share_span};
use crate::rivals::with_rate;
use crate::{Context, Findings, Line, ReproduceError, Unit};
use temponet_lab::stats::{deviation, mean, percent, quantile};
use temponet_page::plot::{Span, svg};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    layers: Vec<usize>,
    heads: Vec<usize>,
    widths: Vec<usize>,
    /// Number of distinct jobs in the forward pass that is timed.
    latency_jobs: usize,
    /// Phases of the short trainings that choose the rate of each width; none: the rate is inverse to the width.
    rate_phases: Option<u64>,
    effort: Effort,
}

/// Number of forward passes that are timed.
const PASSES: usize = 201;

/// The paper claims that a second block and four heads matter: name of the gain, two shapes, and the paper's figure.
const PAIRS: [(&str, &str, &str, f64); 2] =
    [("gain_of_second_block", "layers_2", "layers_1", 0.088), ("gain_of_four_heads", "heads_4", "heads_2", 0.047)];

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, settings) = &context.protocol::<Settings>()?;
    let effort = &settings.effort;
    let recipe = effort.recipe(&protocol.recipe, findings);
    let shapes = shapes(settings, recipe.network);
    // A shape with several names is trained once.
    let mut variants: Vec<Variant<'static>> = Vec::new();
    for (name, shape) in &shapes {
        if !variants.iter().any(|variant| variant.recipe.network == *shape) {
            let own = learner::with_shape(&recipe, *shape);
            // No judged figure is of a width, and a further reading has none.
            let is_tuned = name.starts_with("width_") && !context.is_further();
            let own = match settings.rate_phases.filter(|_| is_tuned) {
                Some(phases) => with_best_rate(context, findings, name, own, phases)?,
                None => own,
            };
            variants.push(Variant::new(name, own));
        }
    }
    let is_judged = |shape: NetworkShape| {
        let named = shapes.iter().filter(|(_, known)| *known == shape);
        named.into_iter().any(|(name, _)| PAIRS.iter().any(|(_, to, from, _)| name == to || name == from))
    };
    for variant in &mut variants {
        variant.is_judged = is_judged(variant.recipe.network);
    }
    let bed = protocol.test_bed("network shapes", "heterogeneous", effort.test)?;
    let ablation = context.ablation(&bed, &variants, effort.seeds())?;
    if context.is_planning() {
        return Ok(());
    }
    let place_of = |name: &str| {
        let (_, shape) = shapes.iter().find(|(known, _)| known == name)?;
        let variant = variants.iter().find(|variant| variant.recipe.network == *shape)?;
        ablation.results.iter().position(|result| result.name == variant.name)
    };
    let result_of = |name: &str| ablation.results.get(place_of(name)?);
    let mut points: Vec<Point> = Vec::new();
    for (name, _) in &shapes {
        let Some(result) = result_of(name) else { continue };
        findings.add(ablation.share_line(name, result));
        let latency = latency(&result.trained[0].model, settings.latency_jobs)?;
        if name.starts_with("layers") {
            findings.add(Line::lower(format!("latency_{name}"), Unit::Microseconds, latency));
        }
        points.push(Point { name: name.clone(), share: result.mean_share(), latency });
    }
    draw(findings, &points);
    ablation.add_classical(findings);
    let overload = context.in_overload(findings, &ablation, effort.test)?;
    for (name, to, from, paper) in PAIRS {
        let (Some(to), Some(from)) = (place_of(to), place_of(from)) else { continue };
        findings.add(ablation.results[to].gain_over(&ablation.results[from], name).claimed(paper).headline());
        findings.add(overload.results[to].gain_over(&overload.results[from], &format!("overload_{name}")));
    }
    conclude(findings, &ablation, &overload, recipe.network.width);
    Ok(())
}

/// Returns the recipe of a width with the rate that is best in a short training.
fn with_best_rate(
    context: &Context<'_>,
    findings: &mut Findings,
    name: &str,
    recipe: Recipe,
    phases: u64,
) -> Result<Recipe, ReproduceError> {
    let mut short = recipe.clone();
    short.stage.iter_mut().for_each(|stage| stage.phases = phases);
    let recipe = with_rate(&recipe, context.best_rate(name, &short)?);
    findings.notes.push(format!("rate of {}: {}", words(name), recipe.optimizer.rate));
    Ok(recipe)
}

/// Returns all network shapes by name. The width is reduced to a multiple of the number of heads.
fn shapes(settings: &Settings, base: NetworkShape) -> Vec<(String, NetworkShape)> {
    let divided = |shape: NetworkShape| NetworkShape { width: shape.width - shape.width % shape.heads, ..shape };
    let layers = settings.layers.iter().map(|l| (format!("layers_{l}"), NetworkShape { layers: *l, ..base }));
    let heads = settings.heads.iter().map(|h| (format!("heads_{h}"), divided(NetworkShape { heads: *h, ..base })));
    let widths = settings.widths.iter().map(|d| {
        let shape = NetworkShape { width: *d, feed_forward: d * base.feed_forward / base.width, ..base };
        (format!("width_{d}"), divided(shape))
    });
    layers.chain(heads).chain(widths).collect()
}

/// Returns the median time of a forward pass over distinct rows, in microseconds.
fn latency(model: &Model, jobs: usize) -> Result<f64, ReproduceError> {
    let mut network = Network::new(&model.weights, NetworkOptions::default())?;
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

/// A shape in the plots.
struct Point {
    name: String,
    /// Share of jobs in time.
    share: f64,
    /// Median time of a forward pass, in microseconds.
    latency: f64,
}

/// Draws shares over depth, heads and width, and the time of a forward pass over width.
fn draw(findings: &mut Findings, points: &[Point]) {
    let curve = |prefix: &str, of: fn(&Point) -> f64| -> Curve {
        let with = points.iter().filter_map(|point| Some((point.name.strip_prefix(prefix)?.parse().ok()?, of(point))));
        with.collect()
    };
    let shares = share_span(points.iter().map(|point| point.share));
    let slowest = points.iter().map(|point| point.latency).fold(1.0, f64::max);
    // Every panel has an entry for each name of the legend.
    let share = |title: &str, prefix: &str, x_label: &'static str| {
        panel(title, x_label, vec![curve(prefix, |point| point.share), vec![]], shares)
    };
    let latency = vec![vec![], curve("width_", |point| point.latency)];
    let panels = [
        share("In time over depth", "layers_", "blocks, L"),
        share("In time over heads", "heads_", "heads, H"),
        share("In time over width", "width_", "width, d"),
        panel("µs of a forward pass over width", "width, d", latency, Span::Numbers(0.0, slowest)),
    ];
    let names = ["in time".to_string(), "µs".to_string()];
    let caption = "Means over the seeds, without a shield; every scale of shares is the same.";
    findings.picture("Depth, heads and width", caption, svg(&panels, 2, &names));
}

fn conclude(findings: &mut Findings, ablation: &Ablation, overload: &Ablation, width: usize) {
    let spreads = ablation.results.iter().map(|result| deviation(&result.shares()));
    let spread = format!(
        "seeds alone move a figure by {} points (mean standard deviation) at d = {width}",
        temponet_lab::stats::points(mean(&spreads.collect::<Vec<_>>())),
    );
    let range = |ablation: &Ablation| {
        let (least, greatest) = share_range(ablation.results.iter().map(VariantResult::mean_share));
        format!("{} to {}; {}", percent(least), percent(greatest), ablation.baselines_sentence())
    };
    findings.judge_claim(&format!("all shapes meet {}; in overload {}; {spread}", range(ablation), range(overload)));
}
