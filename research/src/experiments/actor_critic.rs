//! Actor–critic as in the paper's appendix, beside Q-learning: a two-layer actor with masked logits over the same
//! encoder, and critics with a Q-value for every token. All learn from the same number of decisions and run the same
//! unseen sets.

use serde::Deserialize;
use temponet_infer::Body;
use temponet_train::{DqnSettings, NetworkShape, PpoSettings, Recipe, StageMethod};

use crate::ablation::{Effort, Variant};
use crate::methods::SacSettings;
use crate::{Context, Findings, Line, ReproduceError, Unit, Verdict};
use temponet_lab::stats::percent;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Width of the actor's hidden layer.
    actor: usize,
    /// Extent; `steps` are the decisions in a phase of every method.
    effort: Effort,
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, Settings { actor, effort }) = &context.protocol::<Settings>()?;
    let recipe = effort.recipe(&protocol.recipe, findings);
    let of = |name: &str, has_actor: bool| {
        let stage = recipe.stage.iter().find(|stage| stage.method.name() == name).cloned();
        let mut stage = stage.ok_or_else(|| context.protocol_error(format!("there is no stage {name}")))?;
        stage.phases = effort.phases;
        with_decisions(&mut stage.method, effort.steps);
        let body = Body::transformer(has_actor.then_some(*actor), 0);
        let network = NetworkShape { body, ..recipe.network };
        Ok::<Recipe, ReproduceError>(Recipe { network, stage: vec![stage], ..recipe.clone() })
    };
    let variants = [
        Variant::new("dqn", of("dqn", false)?),
        Variant::new("ppo_one_layer", of("ppo", false)?),
        Variant::new("ppo_actor", of("ppo", true)?),
        Variant::new("sac_actor", of("sac", true)?),
    ];
    let bed = protocol.test_bed("actor–critic", "sets", effort.test)?;
    let ablation = context.ablation(&bed, &variants, effort.seeds())?;
    ablation.add_shares(findings);
    for result in &ablation.results {
        findings.add(Line::lower(format!("seconds_{}", result.name), Unit::Seconds, result.seconds()));
    }
    if let Some((ppo, dqn)) = ablation.pair("ppo_actor", "dqn") {
        findings.add(ppo.gain_over(dqn, "ppo_actor_less_dqn"));
    }
    if let Some((sac, dqn)) = ablation.pair("sac_actor", "dqn") {
        findings.add(sac.gain_over(dqn, "sac_actor_less_dqn"));
    }
    if let Some((two, one)) = ablation.pair("ppo_actor", "ppo_one_layer") {
        findings.add(two.gain_over(one, "gain_of_actor_and_critic"));
    }
    ablation.add_convergence(findings);
    ablation.add_classical(findings);
    context.note_clock(findings);
    let share = |name: &str| ablation.result(name).map_or("–".into(), |result| percent(result.mean_share()));
    let sentence = format!(
        "the paper describes actor–critic and gives no figure of it; from the same {} decisions Q-learning meets {}, PPO {} with a two-layer actor and a critic for \
         every token and {} without, SAC {}; {}",
        effort.phases * effort.steps,
        share("dqn"),
        share("ppo_actor"),
        share("ppo_one_layer"),
        share("sac_actor"),
        ablation.baselines_sentence(),
    );
    findings.conclude(Verdict::NoFigure, &sentence);
    Ok(())
}

/// Sets the number of decisions in a phase. PPO makes them in rounds of its environments, and may make fewer by less
/// than one decision of each.
fn with_decisions(method: &mut StageMethod, steps: u64) {
    if let Some(DqnSettings { replay, .. }) = method.settings_mut() {
        replay.steps = steps;
    }
    if let Some(SacSettings { replay, .. }) = method.settings_mut() {
        replay.steps = steps;
    }
    if let Some(settings) = method.settings_mut::<PpoSettings>() {
        settings.length = (steps / (settings.rounds * settings.environments as u64)).max(1) as usize;
    }
}
