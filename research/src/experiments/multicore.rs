//! What the paper's state and reward have for several cores: the core that a job was last assigned to, a price of
//! migrations, and the number of the task.

use serde::Deserialize;
use temponet::stages::Feature;
use temponet_train::{Recipe, Tokens};

use crate::ablation::{Effort, Variant};
use crate::{Better, Context, Findings, ReproduceError, Unit, Verdict};
use temponet_lab::stats::percent;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// λ: cost of a migration in the reward.
    penalty: f64,
    effort: Effort,
}

/// The learner without any of this.
const PLAIN: &str = "plain";

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, Settings { penalty, effort }) = &context.protocol::<Settings>()?;
    let recipe = effort.recipe(&protocol.recipe, findings);
    let variants = [
        Variant::new(PLAIN, recipe.clone()),
        Variant::new("cores", with(&recipe, &[Feature::Core], 0.0)),
        Variant::new("penalty", with(&recipe, &[], *penalty)),
        Variant::new("cores_and_penalty", with(&recipe, &[Feature::Core], *penalty)),
        Variant::new("tasks", with(&recipe, &[Feature::Task], 0.0)),
    ];
    let bed = protocol.test_bed("several cores", "sets", effort.test)?;
    let ablation = context.ablation(&bed, &variants, effort.seeds())?;
    ablation.add_shares(findings);
    for result in &ablation.results {
        let name = format!("migrations_{}", result.name);
        findings.add(ablation.line(name, result, Unit::Number, Better::Lower, |run| Some(run.migrations)));
    }
    let mut gains = Vec::new();
    if let Some(plain) = ablation.result(PLAIN) {
        for result in ablation.results.iter().filter(|result| result.name != PLAIN) {
            let gain = result.gain_over(plain, &format!("gain_of_{}", result.name));
            gains.push(format!("{} {}", crate::findings::words(&gain.name), gain.shown()));
            findings.add(gain);
        }
    }
    ablation.add_convergence(findings);
    ablation.add_classical(findings);
    let migrations =
        |name: &str| findings.line(&format!("migrations_{name}")).map_or("–".into(), |line| line.shown());
    let sentence = format!(
        "the paper has no figure of these parts; without them {} are in time with {} migrations a job, with both cores and λ = {penalty} {} migrations; {}; {}",
        ablation.result(PLAIN).map_or("–".into(), |plain| percent(plain.mean_share())),
        migrations(PLAIN),
        migrations("cores_and_penalty"),
        gains.join(", "),
        ablation.baselines_sentence()
    );
    findings.conclude(Verdict::NoFigure, &sentence);
    Ok(())
}

/// Returns the recipe with further features of a token and a price of migrations.
fn with(recipe: &Recipe, features: &[Feature], penalty: f64) -> Recipe {
    let mut recipe = recipe.clone();
    recipe.episode.reward.migration = penalty;
    if !features.is_empty() {
        let mut tokenizer = recipe.tokens.tokenizer();
        tokenizer.features.extend_from_slice(features);
        recipe.tokens = Tokens::Custom(Box::new(tokenizer));
    }
    recipe
}
