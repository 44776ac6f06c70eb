//! E11: six shapes of the reward, and none at all for a miss.

use serde::Deserialize;
use temponet_train::{Recipe, RewardShape};

use crate::ablation::{Ablation, Effort, Variant, VariantResult, span};
use crate::{Better, Context, Estimate, Findings, Line, ReproduceError, Unit};
use temponet_lab::stats::{deviation, mean, percent};
use temponet_page::plot::{Panel, svg};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Tasks of the sets that are learned on.
    tasks_per_core: f64,
    /// What each shape adds to the binary reward is weighed by it.
    weight: f64,
    effort: Effort,
}

/// The energy index, energy for each job in time, is relative to it.
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
    let variants = shapes.map(variant);
    let cases = protocol.cases("sets", effort.test)?;
    let seconds = effort.test.oracle_seconds;
    let ablation = context.ablation("rewards", &variants, effort.seeds, &cases, &protocol.schedulers, seconds)?;
    let base = ablation.of(ENERGY).map(energy).unwrap_or(f64::NAN);
    for tried in &ablation.results {
        findings.add(ablation.share_line(&tried.name, tried));
    }
    for tried in &ablation.results {
        let name = format!("lateness_{}", tried.name);
        findings.add(ablation.line(name, tried, Unit::Milliseconds, Better::Lower, |run| run.lateness_p95));
    }
    for tried in &ablation.results {
        let index: Vec<f64> = tried.values(|run| Some(run.energy_per_met)).iter().map(|energy| energy / base).collect();
        let line = Line::new(format!("energy_{}", tried.name), Unit::Number, Better::Lower, Estimate::of(&index));
        let edf = ablation.contest.of("edf").and_then(|edf| edf.mean(|run| Some(run.energy_per_met)));
        findings.add(line.beside("edf", None, edf.map(|energy| energy / base)));
        let spread = Estimate::of(&stability(tried));
        findings.add(Line::new(format!("stability_{}", tried.name), Unit::Number, Better::Lower, spread));
    }
    let pair = |to: &str, from: &str| ablation.of(to).zip(ablation.of(from));
    if let Some((slack, binary)) = pair("r3_slack", "binary") {
        findings.add(ablation.gain("gain_of_slack_reward", slack, binary, None).headline());
    }
    if let Some((none, binary)) = pair("no_penalty", "binary") {
        findings.add(ablation.gain("change_without_penalty", none, binary, None));
        let saved = Estimate::single(1.0 - base / energy(binary));
        findings.add(Line::share("energy_saved_by_r5", saved).headline());
    }
    draw(findings, &ablation, base);
    ablation.add_convergence(findings, &shapes.map(|(name, _)| name));
    ablation.add_classical(findings);
    let change = findings.line("change_without_penalty").map(Line::shown).unwrap_or_default();
    let spent = |name: &str| ablation.of(name).map_or(f64::NAN, |tried| mean(&tried.values(|run| Some(run.energy))));
    let rests = format!("in all, R5 spends {} of the binary reward's energy", percent(spent(ENERGY) / spent("binary")));
    findings.judge_claim(&format!("without the penalty it changes by {change}; {rests}; {}", ablation.beside()));
    Ok(())
}

/// Energy for each job in time.
fn energy(tried: &VariantResult) -> f64 {
    mean(&tried.values(|run| Some(run.energy_per_met)))
}

/// How much the score of each training moves in its second half.
fn stability(tried: &VariantResult) -> Vec<f64> {
    let of_one = |scores: Vec<f64>| deviation(&scores[scores.len() / 2..]);
    let scores = tried.trained.iter().map(|trained| trained.history.phases.iter().map(|phase| phase.score).collect());
    scores.map(of_one).collect()
}

/// What is gained against what it costs.
fn draw(findings: &mut Findings, ablation: &Ablation, base: f64) {
    let names: Vec<String> = ablation.results.iter().map(|tried| tried.name.replace('_', " ")).collect();
    let y = span(ablation.results.iter().map(|tried| mean(&tried.shares())));
    let panel = |title: &str, x_label: &'static str, x: &dyn Fn(&VariantResult) -> f64| Panel {
        title: title.into(),
        x_label,
        curves: ablation.results.iter().map(|tried| vec![(x(tried), mean(&tried.shares()))]).collect(),
        y,
        marks: Vec::new(),
        is_log: false,
    };
    let late = |tried: &VariantResult| mean(&tried.values(|run| run.lateness_p95));
    let panels = [
        panel("In time against lateness", "95th percentile of lateness, ms", &late),
        panel("In time against energy", "energy for a job in time, of R5's", &|tried| energy(tried) / base),
    ];
    findings.picture(
        "Trade-offs of rewards",
        "A point for each shape of the reward, mean over the seeds.",
        svg(&panels, 2, &names),
    );
}
