//! E14: how many slack bins, and how they are cut.

use serde::Deserialize;
use temponet::{Binning, Tokenizer};
use temponet_train::{Recipe, Tokens};

use crate::ablation::{Effort, Variant, VariantResult};
use crate::{Context, Findings, FindingsTable, ReproduceError, Unit};
use temponet_lab::stats::{deviation, mean, percent};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    bins: Vec<usize>,
    /// What equal bins span, in median wcets.
    span: f64,
    effort: Effort,
}

/// Where logarithmic bins begin, in median wcets.
const FIRST: f64 = 0.1;

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let settings = protocol.settings(context.mode);
    let effort = &settings.effort;
    let recipe = effort.recipe(&protocol.recipe);
    let observed: Vec<f64> = context.observed(&recipe)?.iter().map(|[slack, _]| *slack).collect();
    let mut variants = Vec::new();
    for bins in &settings.bins {
        let binnings = [
            ("uniform", Binning::Uniform { width: settings.span / *bins as f64 }),
            ("log", Binning::Log { first: FIRST, last: settings.span }),
            ("fitted", Binning::fit(&observed, *bins)),
        ];
        for (name, binning) in binnings {
            variants.push(Variant::new(format!("{name}_{bins}"), with_bins(&recipe, *bins, binning)));
        }
    }
    let cases = protocol.cases("heterogeneous", effort.test)?;
    let seconds = effort.test.oracle_seconds;
    let ablation = context.ablation("slack bins", &variants, effort.seeds, &cases, &protocol.schedulers, seconds)?;
    for tried in &ablation.results {
        findings.add(ablation.share_line(&tried.name, tried));
    }
    findings.tables.push(FindingsTable {
        title: "Response times and spread".into(),
        header: ["bins", "mean response, completed jobs", "σ² over seeds"].map(String::from).to_vec(),
        rows: ablation.results.iter().map(response).collect(),
    });
    ablation.add_classical(findings);
    let names: Vec<&str> = ablation.results.iter().map(|tried| tried.name.as_str()).collect();
    ablation.add_convergence(findings, &names);
    let share = |name: &str| ablation.of(name).map(|tried| mean(&tried.shares()));
    let (few, many) = (settings.bins.first().unwrap_or(&0), settings.bins.last().unwrap_or(&0));
    let pairs = [
        ("gain_of_more_bins", format!("uniform_{many}"), format!("uniform_{few}"), 0.035),
        ("gain_of_fitted_bins", format!("fitted_{many}"), format!("uniform_{many}"), 0.003),
    ];
    for (name, to, from, paper) in pairs {
        if let (Some(to), Some(from)) = (ablation.of(&to), ablation.of(&from)) {
            findings.add(ablation.gain(name, to, from, Some(paper)).headline());
        }
    }
    let best = ablation.results.iter().max_by(|a, b| mean(&a.shares()).total_cmp(&mean(&b.shares())));
    let best = best.and_then(|best| {
        Some(format!("{} are best with {}", best.name.replace('_', " "), percent(share(&best.name)?)))
    });
    findings.judge_claim(&format!("{}; {}", best.unwrap_or_default(), ablation.beside()));
    Ok(())
}

fn with_bins(recipe: &Recipe, bins: usize, binning: Binning) -> Recipe {
    // K-means may find fewer clusters than it was asked for.
    let bins = if let Binning::Fitted { edges } = &binning { edges.len() + 1 } else { bins };
    let tokenizer = Tokenizer { bins, binning, ..recipe.tokens.tokenizer() };
    Recipe { tokens: Tokens::Custom(Box::new(tokenizer)), ..recipe.clone() }
}

fn response(tried: &VariantResult) -> Vec<String> {
    let art = mean(&tried.values(|run| run.art_completed));
    vec![
        tried.name.replace('_', " "),
        Unit::Milliseconds.show(art),
        format!("{:.2e}", deviation(&tried.shares()).powi(2)),
    ]
}
