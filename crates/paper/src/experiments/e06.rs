//! E6: slack as a number instead of a token, in the Transformer and in a feed-forward network, with paired t-tests over the seeds.

use temponet::stages::{Continuous, Tokenizer};
use temponet_train::{NetworkShape, Recipe, Tokens};

use crate::ablation::{Ablation, Effort, Variant, VariantResult};
use crate::findings::words;
use crate::{Context, Findings, FindingsTable, ReproduceError};
use temponet_lab::stats::{deviation, mean, paired_t_test, percent, points};

/// Name of the variant that all others are compared with.
const OURS: &str = "temponet";
/// Variance over trainings that the paper reports, by variant.
const VARIANCES: [(&str, f64); 5] = [
    (OURS, 1.7e-3),
    ("without_ut", 2.4e-3),
    ("ff_dqn_raw", 4.5e-3),
    ("ff_dqn_z_score", 3.9e-3),
    ("ff_dqn_mlp", 3.1e-3),
];

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Effort>()?;
    let effort = protocol.settings(context.mode);
    let variants = variants(context, &effort.recipe(&protocol.recipe))?;
    let bed = protocol.test_bed("slack as a number", "heterogeneous", effort.test)?;
    let ablation = context.ablation(&bed, &variants, effort.seeds)?;
    ablation.add_shares(findings);
    for (name, from) in [("gain_over_without_ut", "without_ut"), ("gain_over_ff_dqn", "ff_dqn_mlp")] {
        if let Some((to, from)) = ablation.pair(OURS, from) {
            findings.add(to.gain_over(from, name).headline());
        }
    }
    findings.tables.push(tests(&ablation));
    ablation.add_classical(findings);
    ablation.add_convergence(findings);
    findings.judge_claim(&format!("{}; {}", order(&ablation), ablation.baselines_sentence()));
    Ok(())
}

/// Returns the Transformer with tokens, and the Transformer and the feed-forward network with each encoding of numbers.
fn variants(context: &Context<'_>, recipe: &Recipe) -> Result<Vec<Variant<'static>>, ReproduceError> {
    let z_score = Continuous::fit(&context.observed(recipe)?);
    let hidden = recipe.network.width;
    let mut variants = vec![Variant::new(OURS, recipe.clone())];
    let tasks = recipe.workload.tasks_per_core.1 as usize;
    for (kind, slots) in [("without_ut", None), ("ff_dqn_raw", Some(tasks))] {
        let ways = [("", Continuous::Raw), ("z_score", z_score.clone()), ("mlp", Continuous::Mlp { hidden })];
        for (way, continuous) in ways {
            let name = match (slots, way) {
                (_, "") => kind.into(),
                (None, way) => format!("{kind}_{way}"),
                (Some(_), way) => format!("ff_dqn_{way}"),
            };
            let tokens = Tokens::Custom(Box::new(Tokenizer::continuous(continuous)));
            let network = NetworkShape { slots, ..recipe.network };
            variants.push(Variant::new(name, Recipe { tokens, network, ..recipe.clone() }));
        }
    }
    Ok(variants)
}

/// Returns a table of paired t-tests of each variant against ours, paired by seed.
fn tests(ablation: &Ablation) -> FindingsTable {
    let ours = ablation.result(OURS).map(VariantResult::shares).unwrap_or_default();
    let row = |result: &VariantResult| {
        let shares = result.shares();
        let test = paired_t_test(&shares, &ours).filter(|_| result.name != OURS);
        let paper = VARIANCES.iter().find(|(name, _)| *name == result.name);
        vec![
            words(&result.name),
            points(mean(&shares) - mean(&ours)),
            test.map_or("–".into(), |test| format!("{:.3}", test.statistic)),
            test.map_or("–".into(), |test| format!("{:.2e}", test.p)),
            format!("{:.2e}", deviation(&shares).powi(2)),
            paper.map_or("–".into(), |(_, variance)| format!("{variance:.2e}")),
            result.trained.first().map_or(0, |trained| trained.model.weights.architecture.parameters()).to_string(),
        ]
    };
    let title = "Paired two-sided t-tests against temponet, pair by seed (the paper: all p < 0.001)";
    let header = ["variant", "points above temponet", "t", "p", "σ² over seeds", "the paper's σ²", "parameters"];
    FindingsTable::new(title, &header, ablation.results.iter().map(row).collect())
}

/// Describes how many variants differ from ours, and the best of them.
fn order(ablation: &Ablation) -> String {
    let ours = ablation.result(OURS).map(VariantResult::shares).unwrap_or_default();
    let differs = |result: &&VariantResult| paired_t_test(&ours, &result.shares()).is_some_and(|test| test.p < 0.05);
    let others = || ablation.results.iter().filter(|result| result.name != OURS);
    let count = others().filter(differs).count();
    let best = others().max_by(|a, b| a.mean_share().total_cmp(&b.mean_share())).map_or(String::new(), |best| {
        format!("the best without tokens is {} with {}", words(&best.name), percent(best.mean_share()))
    });
    format!("{count} of {} variants differ from TempoNet's with p < 0.05, and {best}", others().count())
}
