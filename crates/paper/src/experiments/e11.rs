//! E11: six shapes of the reward, and a reward without a penalty for misses.

use serde::Deserialize;
use temponet_train::{Recipe, RewardShape};

use crate::ablation::{Ablation, Effort, Variant, VariantResult};
use crate::findings::words;
use crate::plots::{panel, share_span};
use crate::{Better, Context, Findings, Line, ReproduceError, Unit};
use temponet_lab::stats::{deviation, mean, percent};
use temponet_page::plot::svg;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Number of tasks per core in the training sets.
    tasks_per_core: f64,
    /// Weight of the term that each shape adds to the binary reward.
    weight: f64,
    effort: Effort,
}

/// Reward that the energy index, the energy per job in time, is relative to.
const ENERGY: &str = "r5_energy";

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let Settings { tasks_per_core, weight, effort } = protocol.settings(context.mode);
    let mut recipe = effort.recipe(&protocol.recipe);
    recipe.workload.tasks_per_core = (*tasks_per_core, *tasks_per_core);
    let weight = *weight;
    let shapes = [
        ("binary", RewardShape::Binary),
        ("r1_lateness", RewardShape::Lateness { weight }),
        ("r2_early", RewardShape::Early { weight }),
        ("r3_slack", RewardShape::Slack { weight }),
        ("r4_risk", RewardShape::Risk { weight }),
        (ENERGY, RewardShape::Energy { weight }),
        ("no_penalty", RewardShape::NoPenalty),
    ];
    let variant = |(name, shape): (&str, RewardShape)| {
        let mut recipe: Recipe = recipe.clone();
        recipe.episode.reward.shape = shape;
        Variant::new(name, recipe)
    };
    let bed = protocol.test_bed("rewards", "sets", effort.test)?;
    let ablation = context.ablation(&bed, &shapes.map(variant), effort.seeds)?;
    let base = ablation.result(ENERGY).map(energy).unwrap_or(f64::NAN);
    add_lines(findings, &ablation, base);
    if let Some((slack, binary)) = ablation.pair("r3_slack", "binary") {
        findings.add(slack.gain_over(binary, "gain_of_slack_reward").headline());
    }
    if let Some((none, binary)) = ablation.pair("no_penalty", "binary") {
        findings.add(none.gain_over(binary, "change_without_penalty"));
        findings.add(Line::share("energy_saved_by_r5", 1.0 - base / energy(binary)).headline());
    }
    draw(findings, &ablation, base);
    ablation.add_convergence(findings);
    ablation.add_classical(findings);
    let change = findings.line("change_without_penalty").map(Line::shown).unwrap_or_default();
    let spent =
        |name: &str| ablation.result(name).map_or(f64::NAN, |result| mean(&result.values(|run| Some(run.energy))));
    let rests = format!("in all, R5 spends {} of the binary reward's energy", percent(spent(ENERGY) / spent("binary")));
    let baselines = ablation.baselines_sentence();
    findings.judge_claim(&format!("without the penalty it changes by {change}; {rests}; {baselines}"));
    Ok(())
}

/// Adds the share of jobs in time, lateness, energy index and stability of every reward. The energy index is relative to `base`.
fn add_lines(findings: &mut Findings, ablation: &Ablation, base: f64) {
    ablation.add_shares(findings);
    for result in &ablation.results {
        let name = format!("lateness_{}", result.name);
        findings.add(ablation.line(name, result, Unit::Milliseconds, Better::Lower, |run| run.lateness_p95));
    }
    let edf = ablation.contest.contender("edf").and_then(|edf| edf.mean(|run| Some(run.energy_per_met)));
    for result in &ablation.results {
        let energies = result.values(|run| Some(run.energy_per_met));
        let index: Vec<f64> = energies.iter().map(|energy| energy / base).collect();
        let line = Line::lower(format!("energy_{}", result.name), Unit::Number, index);
        findings.add(line.beside("edf", None, edf.map(|energy| energy / base)));
        findings.add(Line::lower(format!("stability_{}", result.name), Unit::Number, stability(result)));
    }
}

/// Returns the energy per job in time.
fn energy(result: &VariantResult) -> f64 {
    mean(&result.values(|run| Some(run.energy_per_met)))
}

/// Returns the standard deviation of each training's validation score in its second half.
fn stability(result: &VariantResult) -> Vec<f64> {
    result.scores().iter().map(|scores| deviation(&scores[scores.len() / 2..])).collect()
}

/// Draws the share of jobs in time over lateness and over energy.
fn draw(findings: &mut Findings, ablation: &Ablation, base: f64) {
    let names: Vec<String> = ablation.results.iter().map(|result| words(&result.name)).collect();
    let y = share_span(ablation.results.iter().map(VariantResult::mean_share));
    let over = |title: &str, x_label: &'static str, x: &dyn Fn(&VariantResult) -> f64| {
        let points = ablation.results.iter().map(|result| vec![(x(result), result.mean_share())]);
        panel(title, x_label, points.collect(), y)
    };
    let late = |result: &VariantResult| mean(&result.values(|run| run.lateness_p95));
    let panels = [
        over("In time against lateness", "95th percentile of lateness, ms", &late),
        over("In time against energy", "energy for a job in time, of R5's", &|result| energy(result) / base),
    ];
    findings.picture(
        "Trade-offs of rewards",
        "A point for each shape of the reward, mean over the seeds.",
        svg(&panels, 2, &names),
    );
}
