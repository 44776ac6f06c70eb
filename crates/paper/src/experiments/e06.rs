//! E6: slack as a number instead of a token, in the Transformer and in a feed-forward network, with a paired t-test over the seeds.

use temponet::{Continuous, Tokenizer};
use temponet_train::{NetworkShape, Recipe, Tokens};

use crate::ablation::{Ablation, Effort, Variant, VariantResult};
use crate::{Context, Findings, FindingsTable, ReproduceError};
use temponet_lab::stats::{deviation, paired_t_test, percent, points};

/// The variant that all others are held against.
const OURS: &str = "temponet";
/// What the paper says of its trainings' variance, by variant.
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
    let cases = protocol.cases("heterogeneous", effort.test)?;
    let (seeds, seconds) = (effort.seeds, effort.test.oracle_seconds);
    let ablation = context.ablation("slack as a number", &variants, seeds, &cases, &protocol.schedulers, seconds)?;
    for tried in &ablation.results {
        findings.add(ablation.share_line(&tried.name, tried));
    }
    for (name, from) in [("gain_over_without_ut", "without_ut"), ("gain_over_ff_dqn", "ff_dqn_mlp")] {
        if let (Some(to), Some(from)) = (ablation.of(OURS), ablation.of(from)) {
            findings.add(ablation.gain(name, to, from, None).headline());
        }
    }
    findings.tables.push(tests(&ablation));
    ablation.add_classical(findings);
    let names: Vec<&str> = ablation.results.iter().map(|tried| tried.name.as_str()).collect();
    ablation.add_convergence(findings, &names);
    let order = order(&ablation);
    findings.judge_claim(&format!("{order}; {}", ablation.beside()));
    Ok(())
}

/// The Transformer with tokens and without, and the feed-forward network, with each way to read numbers.
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

/// Each variant against ours, seed by seed.
fn tests(ablation: &Ablation) -> FindingsTable {
    let ours = ablation.of(OURS).map(VariantResult::shares).unwrap_or_default();
    let row = |tried: &VariantResult| {
        let shares = tried.shares();
        let test = paired_t_test(&shares, &ours).filter(|_| tried.name != OURS);
        let difference = temponet_lab::stats::mean(&shares) - temponet_lab::stats::mean(&ours);
        let paper = VARIANCES.iter().find(|(name, _)| *name == tried.name);
        vec![
            tried.name.replace('_', " "),
            points(difference),
            test.map_or("–".into(), |test| format!("{:.3}", test.statistic)),
            test.map_or("–".into(), |test| format!("{:.2e}", test.p)),
            format!("{:.2e}", deviation(&shares).powi(2)),
            paper.map_or("–".into(), |(_, variance)| format!("{variance:.2e}")),
            tried.trained.first().map_or(0, |trained| trained.model.weights.architecture.parameters()).to_string(),
        ]
    };
    let header = ["variant", "points above temponet", "t", "p", "σ² over seeds", "the paper's σ²", "parameters"];
    FindingsTable {
        title: "Paired two-sided t-tests against temponet, pair by seed (the paper: all p < 0.001)".into(),
        header: header.map(String::from).to_vec(),
        rows: ablation.results.iter().map(row).collect(),
    }
}

/// Who is above whom, in words.
fn order(ablation: &Ablation) -> String {
    let ours = ablation.of(OURS).map(VariantResult::shares).unwrap_or_default();
    let significant = |tried: &&VariantResult| paired_t_test(&ours, &tried.shares()).is_some_and(|test| test.p < 0.05);
    let others = || ablation.results.iter().filter(|tried| tried.name != OURS);
    let count = others().filter(significant).count();
    let best = others()
        .max_by(|a, b| temponet_lab::stats::mean(&a.shares()).total_cmp(&temponet_lab::stats::mean(&b.shares())));
    let best = best.map_or(String::new(), |best| {
        format!(
            "the best without tokens is {} with {}",
            best.name.replace('_', " "),
            percent(temponet_lab::stats::mean(&best.shares()))
        )
    });
    format!("{count} of {} variants differ from TempoNet's with p < 0.05, and {best}", others().count())
}
