//! E6: slack as a number instead of a token, in the Transformer and in a feed-forward network, with paired t-tests over
//! the seeds.
//!
//! A variant is compared with the tokens that tell the same: slack alone, or slack and remaining work.

use temponet::stages::{Continuous, Feature, Tokenizer};
use temponet_infer::Body;
use temponet_train::{NetworkShape, Recipe, Tokens};

use crate::ablation::{Ablation, Effort, Variant, VariantResult};
use crate::findings::words;
use crate::networks;
use crate::{Context, Findings, FindingsTable, ReproduceError};
use temponet_lab::stats::{deviation, mean, paired_t_test, percent, points};

/// Variants with tokens: slack alone, as the paper's default has it, and slack with the remaining work.
const TOKENS: [&str; 2] = ["temponet", "temponet_remaining"];
/// Beginning of the names of variants that know slack alone.
const SLACK_ALONE: &str = "slack_alone";
/// Variance over trainings that the paper reports, by variant.
const VARIANCES: [(&str, f64); 5] = [
    ("temponet", 1.7e-3),
    ("without_ut", 2.4e-3),
    ("ff_dqn_raw", 4.5e-3),
    ("ff_dqn_z_score", 3.9e-3),
    ("ff_dqn_mlp", 3.1e-3),
];
/// Gains that the paper reports, with the variants that they are between. Both of a pair know the same.
const GAINS: [(&str, &str, &str); 4] = [
    ("gain_over_without_ut", "temponet_remaining", "without_ut_z_score"),
    ("gain_over_ff_dqn", "temponet_remaining", "ff_dqn_mlp"),
    ("slack_alone_gain_over_without_ut", "temponet", "slack_alone_without_ut"),
    ("slack_alone_gain_over_ff_dqn", "temponet", "slack_alone_ff_dqn"),
];
/// Workloads, with the beginning of the names of their figures.
const WORKLOADS: [(&str, &str); 2] = [("", "heterogeneous"), ("overload_", "overload")];

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, effort) = &context.protocol::<Effort>()?;
    let variants = variants(context, &effort.recipe(&protocol.recipe, findings))?;
    let trained = context.train_variants(&variants, effort.seeds())?;
    let mut sentences = Vec::new();
    for (prefix, workload) in WORKLOADS {
        let bed = protocol.test_bed(format!("slack as a number, {workload}"), workload, effort.test)?;
        let named = variants.iter().map(|variant| variant.name.clone()).zip(trained.clone()).collect();
        let ablation = context.contest_models(&bed, named)?;
        for result in &ablation.results {
            findings.add(ablation.share_line(format!("{prefix}{}", result.name), result));
        }
        for (name, to, from) in GAINS {
            if let Some((to, from)) = ablation.pair(to, from) {
                let gain = to.gain_over(from, &format!("{prefix}{name}"));
                findings.add(gain.headline_if(prefix.is_empty()));
            }
        }
        findings.tables.push(tests(&ablation, workload));
        ablation.add_classical(findings);
        if prefix.is_empty() {
            ablation.add_convergence(findings);
        }
        sentences.push(format!("{workload}: {}; {}", order(&ablation), ablation.baselines_sentence()));
    }
    findings.judge_claim(&sentences.join("; "));
    Ok(())
}

/// Returns the tokens with which a variant is compared: those that know the same.
fn tokens_like(name: &str) -> &'static str {
    if name.starts_with(SLACK_ALONE) { TOKENS[0] } else { TOKENS[1] }
}

/// Returns the Transformer with tokens, and the Transformer and the feed-forward network with each encoding of numbers.
fn variants(context: &Context<'_>, recipe: &Recipe) -> Result<Vec<Variant<'static>>, ReproduceError> {
    let z_score = Continuous::fit(&context.observed(recipe)?);
    let hidden = recipe.network.width;
    let custom = |tokenizer: Tokenizer| Tokens::Custom(Box::new(tokenizer));
    let remaining = Tokenizer { features: vec![Feature::Remaining], ..Tokenizer::paper() };
    let mut variants = vec![
        Variant::new(TOKENS[0], recipe.clone()),
        Variant::new(TOKENS[1], Recipe { tokens: custom(remaining), ..recipe.clone() }),
    ];
    let slots = recipe.workload.tasks_per_core.1 as usize;
    let numbers = [
        ("without_ut", "ff_dqn_raw", Some(Continuous::Raw)),
        ("without_ut_z_score", "ff_dqn_z_score", Some(z_score.clone())),
        ("without_ut_mlp", "ff_dqn_mlp", Some(Continuous::Mlp { hidden })),
        ("slack_alone_without_ut", "slack_alone_ff_dqn", z_score.without_remaining()),
    ];
    for (transformer, feed_forward, continuous) in numbers {
        let Some(continuous) = continuous else { continue };
        for (name, body) in [(transformer, Body::default()), (feed_forward, networks::feed_forward(slots))] {
            let tokens = custom(Tokenizer::continuous(continuous.clone()));
            let network = NetworkShape { body, ..recipe.network };
            variants.push(Variant::new(name, Recipe { tokens, network, ..recipe.clone() }));
        }
    }
    let is_judged = |name: &str| GAINS.iter().any(|(_, to, from)| name == *to || name == *from);
    for variant in &mut variants {
        variant.is_judged = is_judged(&variant.name);
    }
    Ok(variants)
}

/// Returns a table of paired t-tests of each variant against the tokens that know the same, paired by seed.
fn tests(ablation: &Ablation, workload: &str) -> FindingsTable {
    let row = |result: &VariantResult| {
        let with_tokens = ablation.result(tokens_like(&result.name)).map(VariantResult::shares).unwrap_or_default();
        let shares = result.shares();
        let test = paired_t_test(&shares, &with_tokens).filter(|_| !TOKENS.contains(&result.name.as_str()));
        let paper = VARIANCES.iter().find(|(name, _)| *name == result.name);
        vec![
            words(&result.name),
            words(tokens_like(&result.name)),
            points(mean(&shares) - mean(&with_tokens)),
            test.map_or("–".into(), |test| format!("{:.3}", test.statistic)),
            test.map_or("–".into(), |test| format!("{:.2e}", test.p)),
            format!("{:.2e}", deviation(&shares).powi(2)),
            paper.map_or("–".into(), |(_, variance)| format!("{variance:.2e}")),
            result.trained.first().map_or(0, |trained| trained.model.weights.architecture.parameters()).to_string(),
        ]
    };
    let title = format!(
        "Paired two-sided t-tests against tokens that tell the same, {workload}, pair by seed (the paper: all p < 0.001)"
    );
    let header =
        ["variant", "tokens", "points above the tokens", "t", "p", "σ² over seeds", "the paper's σ²", "parameters"];
    FindingsTable::new(title, &header, ablation.results.iter().map(row).collect())
}

/// Describes how many variants differ from the tokens that know the same, and the best of them.
fn order(ablation: &Ablation) -> String {
    let shares_of = |name: &str| ablation.result(name).map(VariantResult::shares).unwrap_or_default();
    let differs = |result: &&VariantResult| {
        paired_t_test(&shares_of(tokens_like(&result.name)), &result.shares()).is_some_and(|test| test.p < 0.05)
    };
    let others = || ablation.results.iter().filter(|result| !TOKENS.contains(&result.name.as_str()));
    let count = others().filter(differs).count();
    let best = others().max_by(|a, b| a.mean_share().total_cmp(&b.mean_share())).map_or(String::new(), |best| {
        format!("the best without tokens is {} with {}", words(&best.name), percent(best.mean_share()))
    });
    let tokens = TOKENS.map(|name| percent(mean(&shares_of(name)))).join(" and, with the remaining work, ");
    format!(
        "tokens meet {tokens}; {count} of {} variants differ with p < 0.05 from tokens that tell the same, and {best}",
        others().count()
    )
}
