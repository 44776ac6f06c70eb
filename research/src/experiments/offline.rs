//! The paper's offline pipeline: cloning, then conservative or implicit Q-learning from logs, then fine-tuning by
//! acting; beside Q-learning from random weights.

use serde::Deserialize;
use temponet_train::{CloningSettings, DqnSettings, OfflineAlgorithm, OfflineSettings, Recipe, Stage};

use crate::ablation::{Effort, Variant};
use crate::{Context, Findings, ReproduceError, Verdict};
use temponet_lab::stats::percent;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Share of random decisions in fine-tuning.
    epsilon: f64,
    /// Number of the teacher's decisions that are cloned.
    cloned_steps: u64,
    /// Number of logged transitions.
    transitions: usize,
    /// Number of updates from the log.
    offline_updates: u64,
    effort: Effort,
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, settings) = &context.protocol::<Settings>()?;
    let effort = &settings.effort;
    let recipe = sized(effort.recipe(&protocol.recipe, findings), settings);
    let variants = [
        Variant::new("random", of(&recipe, &[is_acting], None)),
        Variant::new("cloning", of(&recipe, &[is_cloning], None)),
        Variant::new("cloning_cql", of(&recipe, &[is_cloning, is_cql], None)),
        Variant::new("cloning_iql", of(&recipe, &[is_cloning, is_iql], None)),
        Variant::new("cloning_fine_tuned", of(&recipe, &[is_cloning, is_acting], Some(settings.epsilon))),
        Variant::new("cloning_cql_fine_tuned", of(&recipe, &[is_cloning, is_cql, is_acting], Some(settings.epsilon))),
        Variant::new("cloning_iql_fine_tuned", of(&recipe, &[is_cloning, is_iql, is_acting], Some(settings.epsilon))),
    ];
    let bed = protocol.test_bed("offline pipeline", "sets", effort.test)?;
    let ablation = context.ablation(&bed, &variants, effort.seeds())?;
    ablation.add_shares(findings);
    for (name, to, from) in [
        ("gain_of_cql_pipeline", "cloning_cql_fine_tuned", "random"),
        ("gain_of_iql_pipeline", "cloning_iql_fine_tuned", "random"),
        ("gain_of_cql_over_cloning", "cloning_cql_fine_tuned", "cloning_fine_tuned"),
        ("gain_of_iql_over_cloning", "cloning_iql_fine_tuned", "cloning_fine_tuned"),
        ("gain_of_fine_tuning_after_cql", "cloning_cql_fine_tuned", "cloning_cql"),
        ("gain_of_fine_tuning_after_iql", "cloning_iql_fine_tuned", "cloning_iql"),
    ] {
        if let Some((to, from)) = ablation.pair(to, from) {
            findings.add(to.gain_over(from, name));
        }
    }
    ablation.add_convergence(findings);
    ablation.add_classical(findings);
    let share = |name: &str| ablation.result(name).map_or("–".into(), |result| percent(result.mean_share()));
    let gain = |name: &str| findings.line(name).map_or("–".into(), |line| line.shown());
    let sentence = format!(
        "the paper recommends the pipeline and gives no figure of it; cloning alone meets {}, with CQL {}, with IQL {}, and with fine-tuning {}, {} and {}; from random \
         weights the same updates meet {}, over which CQL's pipeline gains {} and IQL's {}; {}",
        share("cloning"),
        share("cloning_cql"),
        share("cloning_iql"),
        share("cloning_fine_tuned"),
        share("cloning_cql_fine_tuned"),
        share("cloning_iql_fine_tuned"),
        share("random"),
        gain("gain_of_cql_pipeline"),
        gain("gain_of_iql_pipeline"),
        ablation.baselines_sentence()
    );
    findings.conclude(Verdict::NoFigure, &sentence);
    Ok(())
}

fn is_cloning(stage: &Stage) -> bool {
    stage.method.settings::<CloningSettings>().is_some()
}

fn is_acting(stage: &Stage) -> bool {
    stage.method.settings::<DqnSettings>().is_some()
}

fn is_cql(stage: &Stage) -> bool {
    let settings = stage.method.settings::<OfflineSettings>();
    settings.is_some_and(|settings| matches!(settings.algorithm, OfflineAlgorithm::Cql { .. }))
}

fn is_iql(stage: &Stage) -> bool {
    let settings = stage.method.settings::<OfflineSettings>();
    settings.is_some_and(|settings| matches!(settings.algorithm, OfflineAlgorithm::Iql { .. }))
}

/// Returns the recipe with the stages that are meant, and with `epsilon` as the share of random decisions.
fn of(recipe: &Recipe, meant: &[fn(&Stage) -> bool], epsilon: Option<f64>) -> Recipe {
    let mut recipe = recipe.clone();
    recipe.stage.retain(|stage| meant.iter().any(|is_meant| is_meant(stage)));
    for stage in &mut recipe.stage {
        if let (Some(dqn), Some(epsilon)) = (stage.method.settings_mut::<DqnSettings>(), epsilon) {
            dqn.epsilon = (epsilon, dqn.epsilon.1.min(epsilon));
        }
    }
    recipe
}

/// Returns the recipe with the amounts of the settings.
fn sized(mut recipe: Recipe, settings: &Settings) -> Recipe {
    for stage in &mut recipe.stage {
        if let Some(cloning) = stage.method.settings_mut::<CloningSettings>() {
            (cloning.steps, cloning.updates) = (settings.cloned_steps, settings.offline_updates);
        }
        if let Some(offline) = stage.method.settings_mut::<OfflineSettings>() {
            (offline.transitions, offline.updates) = (settings.transitions, settings.offline_updates);
        }
    }
    recipe
}
