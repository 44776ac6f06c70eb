//! E19: ε-greedy, the count bonus on top of it, and UCB.

use serde::Deserialize;
use temponet_train::{ExplorationBonus, Method, Recipe};

use super::ablation::{Effort, Tried, Variant};
use super::{Better, Context, Estimate, Findings, Line, ReproduceError, Unit};
use crate::stats::mean;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Of the bonus and of UCB.
    weight: f64,
    effort: Effort,
}

/// A training is stable from the phase on after which its score stays within this of its last.
const STABLE: f64 = 0.01;

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let Settings { weight, effort } = protocol.settings(context.mode);
    let recipe = effort.recipe(&protocol.recipe);
    let bonuses = [
        ("epsilon_greedy", ExplorationBonus::None),
        ("with_bonus", ExplorationBonus::Count { weight: *weight, sketch: None }),
        ("ucb", ExplorationBonus::Ucb { weight: *weight }),
    ];
    let variants = bonuses.map(|(name, bonus)| Variant::new(name, with_bonus(&recipe, bonus)));
    let cases = protocol.cases("heterogeneous", effort.test)?;
    let seconds = effort.test.oracle_seconds;
    let ablation = context.ablation("exploration", &variants, effort.seeds, &cases, &protocol.schedulers, seconds)?;
    let [plain, bonus, ucb] = &ablation.tried[..] else { return Err(context.wrong("there are not three variants")) };
    for tried in &ablation.tried {
        findings.add(ablation.share_line(&tried.name, tried));
        let phases = Estimate::of(&stable_from(tried));
        findings.add(Line::new(format!("phases_{}", tried.name), Unit::Number, Better::Lower, phases));
        let seconds: Vec<f64> = tried.trained.iter().map(|trained| trained.history.seconds).collect();
        findings.add(Line::new(
            format!("seconds_{}", tried.name),
            Unit::Seconds,
            Better::Lower,
            Estimate::of(&seconds),
        ));
    }
    findings.add(ablation.gain("gain_of_bonus", bonus, plain, None).headline());
    let below = Line { better: Better::Lower, ..ablation.gain("below_ucb", ucb, plain, None) };
    findings.add(below.headline());
    let saved = |less: f64, more: f64| Estimate::single(1.0 - less / more);
    let phases = saved(mean(&stable_from(bonus)), mean(&stable_from(plain)));
    findings.add(Line::share("phases_saved_by_bonus", phases).headline());
    findings.add(Line::share("time_saved_against_ucb", saved(plain.seconds(), ucb.seconds())));
    ablation.add_convergence(findings, &["epsilon_greedy", "with_bonus", "ucb"]);
    ablation.add_classical(findings);
    findings.judge_claim(&ablation.beside());
    Ok(())
}

fn with_bonus(recipe: &Recipe, bonus: ExplorationBonus) -> Recipe {
    let mut recipe = recipe.clone();
    for stage in &mut recipe.stage {
        if let Method::Dqn(settings) = &mut stage.method {
            settings.bonus = bonus;
        }
    }
    recipe
}

/// From which phase on each training is stable.
fn stable_from(tried: &Tried) -> Vec<f64> {
    let of_one = |scores: Vec<f64>| {
        let last = scores.last().copied().unwrap_or(0.0);
        let unstable = scores.iter().rposition(|score| (score - last).abs() > STABLE);
        (unstable.map_or(0, |place| place + 1) + 1) as f64
    };
    tried
        .trained
        .iter()
        .map(|trained| of_one(trained.history.phases.iter().map(|phase| phase.score).collect()))
        .collect()
}
