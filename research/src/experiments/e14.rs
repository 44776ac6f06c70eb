//! E14: number of slack bins, and how slack is divided into them.

use serde::Deserialize;
use temponet::stages::{Binning, Tokenizer};
use temponet_train::{Recipe, Tokens};

use crate::ablation::{Ablation, Effort, Variant, VariantResult};
use crate::findings::words;
use crate::{Context, Findings, FindingsTable, ReproduceError, Unit};
use temponet_lab::stats::{deviation, mean, percent};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Numbers of bins.
    bins: Vec<usize>,
    /// Range of the uniform bins and start of the last logarithmic bin, in median wcets.
    span: f64,
    effort: Effort,
}

/// Width of the first logarithmic bin, in median wcets.
const FIRST: f64 = 0.1;

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, settings) = &context.protocol::<Settings>()?;
    let effort = &settings.effort;
    let recipe = effort.recipe(&protocol.recipe, findings);
    let observed: Vec<f64> = context.observed(&recipe)?.iter().map(|[slack, _]| *slack).collect();
    let (few, many) = (settings.bins.first().unwrap_or(&0), settings.bins.last().unwrap_or(&0));
    let pairs = [
        ("gain_of_more_bins", format!("uniform_{many}"), format!("uniform_{few}"), 0.035),
        ("gain_of_fitted_bins", format!("fitted_{many}"), format!("uniform_{many}"), 0.003),
    ];
    let mut variants = Vec::new();
    for bins in &settings.bins {
        let binnings = [
            ("uniform", Binning::Uniform { width: settings.span / *bins as f64 }),
            ("log", Binning::Log { first: FIRST, last: settings.span }),
            ("fitted", Binning::fit(&observed, *bins)),
        ];
        for (name, binning) in binnings {
            let name = format!("{name}_{bins}");
            let is_judged = pairs.iter().any(|(_, to, from, _)| name == *to || name == *from);
            variants.push(Variant::new(name, with_bins(&recipe, *bins, binning)).judged_if(is_judged));
        }
    }
    let bed = protocol.test_bed("slack bins", "heterogeneous", effort.test)?;
    let ablation = context.ablation(&bed, &variants, effort.seeds())?;
    ablation.add_shares(findings);
    findings.tables.push(FindingsTable::new(
        "Response times and spread",
        &["bins", "mean response, completed jobs", "σ² over seeds"],
        ablation.results.iter().map(response).collect(),
    ));
    ablation.add_classical(findings);
    ablation.add_convergence(findings);
    let overload = context.in_overload(findings, &ablation, effort.test)?;
    for (name, to, from, paper) in pairs {
        if let Some((to, from)) = ablation.pair(&to, &from) {
            findings.add(to.gain_over(from, name).claimed(paper).headline());
        }
        if let Some((to, from)) = overload.pair(&to, &from) {
            findings.add(to.gain_over(from, &format!("overload_{name}")));
        }
    }
    let best = |ablation: &Ablation| {
        let best = ablation.results.iter().max_by(|a, b| a.mean_share().total_cmp(&b.mean_share()));
        let best = best.map(|best| format!("{} are best with {}", words(&best.name), percent(best.mean_share())));
        format!("{}; {}", best.unwrap_or_default(), ablation.baselines_sentence())
    };
    findings.judge_claim(&format!("{}; in overload {}", best(&ablation), best(&overload)));
    Ok(())
}

/// Returns the recipe with another division of slack into bins.
fn with_bins(recipe: &Recipe, bins: usize, binning: Binning) -> Recipe {
    // K-means may find fewer clusters than it was asked for.
    let bins = if let Binning::Fitted { edges } = &binning { edges.len() + 1 } else { bins };
    let tokenizer = Tokenizer { bins, binning, ..recipe.tokens.tokenizer() };
    Recipe { tokens: Tokens::Custom(Box::new(tokenizer)), ..recipe.clone() }
}

/// Returns a variant's row in the table of response times.
fn response(result: &VariantResult) -> Vec<String> {
    let art = mean(&result.values(|run| run.art_completed));
    let variance = deviation(&result.shares()).powi(2);
    vec![words(&result.name), Unit::Milliseconds.show(art), format!("{variance:.2e}")]
}
