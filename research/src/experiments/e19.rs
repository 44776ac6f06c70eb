//! E19: exploration by ε-greedy, by ε-greedy with a count bonus, and by UCB.

use serde::Deserialize;
use temponet_train::{DqnSettings, ExplorationBonus, Recipe};

use crate::ablation::{Effort, Variant, VariantResult};
use crate::findings::words;
use crate::{Better, Context, Findings, Line, ReproduceError, Unit};
use temponet_lab::stats::{mean, percent};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Weight of the count bonus and of UCB.
    weight: f64,
    effort: Effort,
}

/// Greatest difference from the last score with which a training counts as stable.
const STABLE: f64 = 0.01;

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, Settings { weight, effort }) = &context.protocol::<Settings>()?;
    let recipe = effort.recipe(&protocol.recipe, findings);
    let bonuses = [
        ("epsilon_greedy", ExplorationBonus::None),
        ("with_bonus", ExplorationBonus::Count { weight: *weight, sketch: None }),
        ("ucb", ExplorationBonus::Ucb { weight: *weight }),
    ];
    let variants = bonuses.map(|(name, bonus)| Variant::new(name, with_bonus(&recipe, bonus)));
    let bed = protocol.test_bed("exploration", "heterogeneous", effort.test)?;
    let ablation = context.ablation(&bed, &variants, effort.seeds)?;
    let [plain, bonus, ucb] = &ablation.results[..] else {
        return Err(context.protocol_error("there are not three variants"));
    };
    for result in &ablation.results {
        let name = &result.name;
        findings.add(ablation.share_line(name, result));
        findings.add(Line::lower(format!("phases_{name}"), Unit::Number, stable_from(result)));
        findings.add(Line::lower(format!("seconds_{name}"), Unit::Seconds, result.seconds()));
    }
    findings.add(bonus.gain_over(plain, "gain_of_bonus").headline());
    let below = Line { better: Better::Lower, ..ucb.gain_over(plain, "below_ucb") };
    findings.add(below.headline());
    let saved = |less: Vec<f64>, more: Vec<f64>| 1.0 - mean(&less) / mean(&more);
    let phases = saved(stable_from(bonus), stable_from(plain));
    findings.add(Line::share("phases_saved_by_bonus", phases).headline());
    findings.add(Line::share("time_saved_against_ucb", saved(plain.seconds(), ucb.seconds())));
    ablation.add_convergence(findings);
    ablation.add_classical(findings);
    let overload = context.in_overload(findings, &ablation, effort.test)?;
    for (name, from) in [("overload_gain_of_bonus", "epsilon_greedy"), ("overload_gain_of_bonus_over_ucb", "ucb")] {
        if let Some((bonus, from)) = overload.pair("with_bonus", from) {
            findings.add(bonus.gain_over(from, name));
        }
    }
    let shares: Vec<String> =
        overload.results.iter().map(|of| format!("{} {}", words(&of.name), percent(of.mean_share()))).collect();
    findings.judge_claim(&format!(
        "{}; in overload {}, {}",
        ablation.baselines_sentence(),
        shares.join(", "),
        overload.baselines_sentence()
    ));
    Ok(())
}

/// Returns the recipe with another exploration bonus.
fn with_bonus(recipe: &Recipe, bonus: ExplorationBonus) -> Recipe {
    let mut recipe = recipe.clone();
    for stage in &mut recipe.stage {
        if let Some(settings) = stage.method.settings_mut::<DqnSettings>() {
            settings.bonus = bonus;
        }
    }
    recipe
}

/// Returns the phase from which on each training is stable, counted from 1.
fn stable_from(result: &VariantResult) -> Vec<f64> {
    let of_one = |scores: &Vec<f64>| {
        let last = scores.last().copied().unwrap_or(0.0);
        let unstable = scores.iter().rposition(|score| (score - last).abs() > STABLE);
        (unstable.map_or(0, |place| place + 1) + 1) as f64
    };
    result.scores().iter().map(of_one).collect()
}
