//! E22: the paper's remaining pictures, measured here: bin width × network width, Q-values over utilization, attention
//! entropy per layer, attention over tasks, and the correlation of attention with criticality.

use std::sync::Arc;

use serde::Deserialize;
use temponet::stages::{Binning, Learned, Observation, Tokenizer};
use temponet::{Model, Options};
use temponet_lab::explain::diagnostics::{ENTROPY_STEP, RunReport, explain};
use temponet_sim::{Engine, SimError, Unobserved};
use temponet_task::{Assignment, Scheduler, TaskId};
use temponet_train::{NetworkShape, Recipe, Tokens};

use super::e21::{Inspected, reports};
use crate::ablation::{Variant, VariantResult};
use crate::learner;
use crate::plots::{Curve, panel, range, share_range};
use crate::{Better, Context, Findings, Line, ReproduceError, Size, Unit};
use temponet_lab::arena::Case;
use temponet_lab::stats::{mean, percent};
use temponet_page::charts::{Grid, bars, histogram};
use temponet_page::plot::Span;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    contour: Contour,
    /// Runs that are inspected at each load.
    inside: Size,
    /// Utilizations of the core.
    loads: Vec<f64>,
    /// Runs of tasks with several levels of criticality.
    critical: Size,
    /// Number of decisions in the heat map of attention.
    shown: usize,
}

/// Models of every bin width and network width, trained and tested in the same way.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contour {
    size: Size,
    /// Widths of a slack bin, in median wcets.
    bins: Vec<f64>,
    /// Widths of the network.
    widths: Vec<usize>,
    /// Number of trainings of each model.
    seeds: u64,
    /// What is different from the paper's learner.
    #[serde(deserialize_with = "learner::read")]
    recipe: Recipe,
}

/// Range that the bins of every width cover together, in median wcets: that of the paper's 128 bins of width 1/4.
const RANGE: f64 = 32.0;

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, settings) = &context.protocol::<Settings>()?;
    let (paper, shipped) = (Inspected::paper(context)?, Inspected::shipped(context)?);
    // No judged figure is of the contour.
    let range = match context.is_further() {
        true => None,
        false => Some(contour(context, findings, &settings.contour)?),
    };
    if context.is_planning() {
        return Ok(());
    }
    let mut by_load = Vec::new();
    for (n, load) in settings.loads.iter().enumerate() {
        let cases = protocol.cases_at("one_core", settings.inside, *load, n)?;
        by_load.push((*load, reports(&format!("load {load}"), &cases, &paper)?));
    }
    q_values(findings, &by_load);
    entropies(findings, &by_load);
    let critical = protocol.cases("critical", settings.critical)?;
    let graded: Vec<Case> = critical.into_iter().map(graded).collect();
    for (prefix, inspected) in [("", &paper), ("temponet_", &shipped)] {
        let looked = reports("criticality", &graded, inspected)?;
        let correlations: Vec<f64> = looked.iter().filter_map(|report| report.attention_criticality).collect();
        let name = format!("{prefix}attention_criticality");
        let line = Line::new(name, Unit::Number, Better::Higher, correlations);
        findings.add(line.headline_if(prefix.is_empty()));
        let urgency: Vec<f64> = looked.iter().filter_map(|report| report.attention_urgency).collect();
        findings.add(Line::new(format!("{prefix}attention_urgency"), Unit::Number, Better::Higher, urgency));
    }
    if let Some(case) = graded.first() {
        attention(findings, case, &paper.models[0], settings.shown)?;
    }
    let layers: Vec<String> = (1..)
        .map_while(|layer| findings.line(&format!("entropy_layer_{layer}")))
        .map(|line| format!("{:.2}", line.ours.mean))
        .collect();
    let contour = range.map(|(least, greatest)| {
        format!(
            "compliance over bin width and network width lies between {} and {}, where the paper's contour is by its own caption synthetic; ",
            percent(least),
            percent(greatest)
        )
    });
    let beside = format!(
        "{}mean attention entropy is {} bits from layer to layer",
        contour.unwrap_or_default(),
        layers.join(", "),
    );
    findings.judge(&beside);
    Ok(())
}

/// Gives the tasks the criticalities 0 to 3 in turn.
fn graded(mut case: Case) -> Case {
    (0..)
        .zip(case.set.system.tasks_mut().iter_mut())
        .for_each(|(place, task): (usize, _)| task.criticality = (place % 4) as u8);
    case
}

/// Trains the models of the contour and draws it. Returns the least and the greatest share of jobs in time.
fn contour(context: &Context<'_>, findings: &mut Findings, contour: &Contour) -> Result<(f64, f64), ReproduceError> {
    let (protocol, _) = &context.protocol::<Settings>()?;
    let own = context.reading.of(contour.recipe.clone());
    findings.notes.push(format!("the contour's models: {}", learner::described(&own)));
    let mut variants = Vec::new();
    for bin in &contour.bins {
        for width in &contour.widths {
            let shape = NetworkShape { width: *width, feed_forward: 4 * width, ..own.network };
            let mut recipe = learner::with_shape(&own, shape);
            let tokenizer = Tokenizer {
                bins: (RANGE / bin).round().max(2.0) as usize,
                binning: Binning::Uniform { width: *bin },
                ..own.tokens.tokenizer()
            };
            recipe.tokens = Tokens::Custom(Box::new(tokenizer));
            variants.push(Variant::new(format!("compliance_bin_{bin}_width_{width}"), recipe));
        }
    }
    let bed = protocol.test_bed("contour", "one_core", contour.size)?;
    let ablation = context.ablation(&bed, &variants, contour.seeds)?;
    ablation.add_shares(findings);
    let means: Vec<f64> = ablation.results.iter().map(VariantResult::mean_share).collect();
    let range = share_range(means.iter().copied());
    let cells = means.chunks(contour.widths.len()).map(|row| row.iter().copied().map(Some).collect()).collect();
    let of = |name: &str| ablation.contest.share(name).map_or("–".into(), percent);
    let optimum = ablation.contest.optimum().map_or("–".into(), |(share, _)| percent(share));
    let grid = Grid {
        x_label: "width of the network, d".into(),
        y_label: "bin width, Δ".into(),
        columns: contour.widths.iter().map(usize::to_string).collect(),
        rows: contour.bins.iter().map(|bin| format!("{bin}")).collect(),
        cells,
        label: Some(percent),
        cell: None,
        span: None,
    };
    let caption = format!(
        "Jobs in time, mean over {} trainings of each, network alone; Δ in median wcets. On the same runs EDF meets {}, MH-EDF {}, the \
         optimum {optimum}.",
        contour.seeds,
        of("edf"),
        of("mh-edf"),
    );
    findings.picture("Δ × d", &caption, grid.svg());
    Ok(range)
}

/// Draws the quantiles of the Q-values of chosen jobs over the load.
fn q_values(findings: &mut Findings, by_load: &[(f64, Vec<RunReport>)]) {
    // Of the seven quantiles of a report, these are the five in the middle.
    let names = ["5%", "25%", "median", "75%", "95%"];
    let mut curves: Vec<Curve> = vec![Vec::new(); names.len()];
    for (load, reports) in by_load {
        for (place, curve) in curves.iter_mut().enumerate() {
            let values: Vec<f64> = reports
                .iter()
                .filter_map(|report| report.q_chosen.quantiles.get(place + 1))
                .map(|(_, q)| f64::from(*q))
                .collect();
            curve.push((*load, mean(&values)));
        }
    }
    let (least, greatest) = range(curves.iter().flatten().map(|(_, q)| *q));
    let y = Span::Numbers(least, greatest.max(least + 1e-6));
    let panel = panel("Q-values of chosen jobs", "utilization", curves, y);
    let caption = "Quantiles over decisions, mean over the sets.";
    findings.plot("Q-values over utilization", caption, panel, &names.map(String::from));
}

/// Adds the mean attention entropy of each layer and draws its distribution.
fn entropies(findings: &mut Findings, by_load: &[(f64, Vec<RunReport>)]) {
    let reports: Vec<&RunReport> = by_load.iter().flat_map(|(_, reports)| reports).collect();
    let layers = reports.first().map_or(0, |report| report.entropy_bits.len());
    for layer in 0..layers {
        let means: Vec<f64> = reports.iter().map(|report| report.entropy_bits[layer].mean).collect();
        findings.add(Line::neither(format!("entropy_layer_{}", layer + 1), Unit::Bits, means));
        let steps = reports.first().map_or(0, |report| report.entropy_counts[layer].len());
        let counts: Vec<u64> =
            (0..steps).map(|bar| reports.iter().map(|report| report.entropy_counts[layer][bar]).sum()).collect();
        let total = counts.iter().sum::<u64>().max(1) as f64;
        let last = counts.iter().rposition(|count| *count > 0).map_or(1, |last| last + 1);
        let shares: Vec<f64> = counts[..last].iter().map(|count| *count as f64 / total).collect();
        let picture = histogram((0.0, f64::from(last as f32 * ENTROPY_STEP)), &[("decisions", &shares)]);
        let title = format!("Attention entropy, layer {}", layer + 1);
        findings.picture(
            &title,
            "In bits, decision by decision; the further to the right, the more spread out.",
            picture,
        );
    }
}

/// Draws what the decision token attends to in the last layer, task by task, over the first `shown` decisions with
/// several ready jobs.
fn attention(findings: &mut Findings, case: &Case, model: &Arc<Model>, shown: usize) -> Result<(), ReproduceError> {
    let mut scheduler = Learned::new(model.clone(), Options::default())?;
    let mut engine = Engine::new(&case.set, case.seed, case.horizon);
    scheduler.start(engine.system()).map_err(SimError::NotApplicable)?;
    let mut observation = Observation::default();
    observation.start(engine.system());
    let mut columns: Vec<Vec<Option<f64>>> = Vec::new();
    let mut assignment = Assignment::default();
    // Attention relative to an even share, by criticality.
    let mut relative: [Vec<f64>; 4] = Default::default();
    while columns.len() < shown && engine.advance(&mut Unobserved) {
        let view = engine.view();
        observation.note(&view);
        assignment.reset(case.set.cores());
        scheduler.decide(&view, &mut assignment);
        if view.active.len() > 1 {
            let mut column = vec![None; case.set.tasks().len()];
            let explained = explain(model, &mut observation, &view, &assignment);
            for job in explained.jobs.iter().filter(|job| job.row > 0) {
                let place = case.set.tasks().iter().position(|task| task.name == job.task);
                // Equal jobs share the attention of their row.
                let share = f64::from(job.attention) / explained.rows[job.row as usize - 1].count.max(1) as f64;
                if let Some(place) = place {
                    let level = usize::from(case.set.tasks()[place].criticality).min(3);
                    relative[level].push(share * explained.jobs.len() as f64);
                    column[place] = Some(column[place].unwrap_or(0.0) + share);
                }
            }
            columns.push(column);
        }
        engine.apply(&assignment, &mut Unobserved)?;
    }
    let row = |task: TaskId| columns.iter().map(|column| column[task]).collect();
    let grid = Grid {
        x_label: "decision by decision, from the left".into(),
        y_label: "task".into(),
        columns: Vec::new(),
        rows: case.set.tasks().iter().map(|task| format!("{} ({})", task.name, task.criticality)).collect(),
        cells: case.set.task_ids().map(row).collect(),
        label: None,
        cell: Some((9.0, 20.0)),
        span: None,
    };
    let caption = "Attention of the decision token to each ready job, last layer, mean over heads; a task's criticality in brackets. Brighter is more; no colour: no job is ready.";
    findings.picture("Attention over tasks", caption, grid.svg());
    let groups: Vec<String> = (0..relative.len()).map(|level| format!("criticality {level}")).collect();
    let means: Vec<f64> = relative.iter().map(|shares| mean(shares)).collect();
    let top = means.iter().copied().fold(1.0, f64::max);
    let series = [("attention, 1 is an even share".to_string(), means)];
    let caption = "Mean over the ready jobs of these decisions.";
    findings.picture("Attention by criticality", caption, bars(&groups, &series, top, |value| format!("{value:.2}")));
    Ok(())
}
