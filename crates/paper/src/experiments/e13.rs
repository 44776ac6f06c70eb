//! E13: a model that has learned at low load meets a burst and high load, and goes on learning there.

use serde::Deserialize;

use crate::ablation::{Effort, Variant, VariantResult};
use crate::adaptation::adapted;
use crate::{Context, Estimate, Findings, Line, ReproduceError, Trained};
use temponet_lab::arena::Case;
use temponet_lab::stats::{mean, percent};
use temponet_page::plot::{Panel, svg};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Tasks of the sets that the model has learned on before.
    tasks_per_core: f64,
    /// How many episodes it adapts.
    episodes: Vec<u64>,
    /// The learning rate meanwhile.
    rate: f64,
    /// Runs of each set, each with other jobs.
    runs: u64,
    effort: Effort,
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let settings = protocol.settings(context.mode);
    let effort = &settings.effort;
    let mut recipe = effort.recipe(&protocol.recipe);
    recipe.workload.tasks_per_core = (settings.tasks_per_core, settings.tasks_per_core);
    let base = context.train_variants(&[Variant::new("low load", recipe.clone())], effort.seeds)?.remove(0);
    let sets = protocol.cases("sets", effort.test)?;
    // By number of episodes, the share of each set and seed.
    let counts: Vec<u64> = [0].into_iter().chain(settings.episodes.iter().copied()).collect();
    let mut shares: Vec<Vec<f64>> = vec![Vec::new(); counts.len()];
    let (mut edf, mut best, mut optimum) = (Vec::new(), Vec::new(), Vec::new());
    let mut is_exact = true;
    for case in &sets {
        let cases: Vec<Case> =
            (0..settings.runs).map(|run| Case { seed: case.seed + STEP * run, ..case.clone() }).collect();
        let variants: Vec<Variant<'_>> =
            settings.episodes.iter().map(|episodes| adaptation(&recipe, settings, *episodes, case, &base)).collect();
        let mut named = vec![("0".to_string(), base.clone())];
        let trained = context.train_variants(&variants, effort.seeds)?;
        named.extend(variants.iter().map(|variant| variant.name.clone()).zip(trained));
        let held =
            context.contest_models("mode switch", named, &cases, &protocol.schedulers, effort.test.oracle_seconds)?;
        shares.iter_mut().zip(&held.results).for_each(|(shares, tried)| shares.extend(VariantResult::shares(tried)));
        let of = |run: &crate::RunFigures| run.in_time();
        edf.extend(held.contest.of("edf").and_then(|edf| edf.mean(of)));
        best.extend(held.contest.best_classical(crate::Better::Higher, of).map(|(_, share)| share));
        optimum.extend(held.contest.optimum().map(|(share, _)| share));
        is_exact &= held.contest.optimum().is_some_and(|(_, is_exact)| is_exact);
    }
    let at_most = (!is_exact).then_some("at most");
    for (count, shares) in counts.iter().zip(&shares) {
        let line = Line::share(format!("episodes_{count}"), Estimate::of(shares))
            .beside("edf", None, Some(mean(&edf)))
            .beside("best classical", None, Some(mean(&best)))
            .beside("optimum", at_most, Some(mean(&optimum)));
        findings.add(line);
        findings.add(Line::share(format!("gap_after_{count}"), Estimate::single(mean(&optimum) - mean(shares))));
    }
    if let (Some(first), Some(last)) = (shares.first(), shares.last()) {
        let gains: Vec<f64> = last.iter().zip(first).map(|(last, first)| last - first).collect();
        findings.add(Line::share("gain_of_20_episodes", Estimate::of(&gains)).headline());
    }
    draw(findings, &counts, &shares, [mean(&edf), mean(&best), mean(&optimum)]);
    let beside = format!(
        "on the same runs EDF meets {}, the best classical scheduler {}, the optimum{} {}",
        percent(mean(&edf)),
        percent(mean(&best)),
        if is_exact { "" } else { " at most" },
        percent(mean(&optimum))
    );
    findings.judge_claim(&beside);
    Ok(())
}

/// Seeds of the runs of one set are so far apart.
const STEP: u64 = 20;

/// On whole runs of the set itself, with other jobs.
fn adaptation<'a>(
    recipe: &temponet_train::Recipe,
    settings: &Settings,
    episodes: u64,
    case: &'a Case,
    base: &'a [Trained],
) -> Variant<'a> {
    let mut recipe = adapted(recipe, episodes, settings.rate);
    let scale = temponet::Scale::of(&recipe.tokenizer(), &case.set.system());
    recipe.episode.length = case.horizon.0 as f64 / scale.unit;
    recipe.validation.runs = 1;
    Variant { name: episodes.to_string(), recipe, set: Some(&case.set), begin_with: Some(base) }
}

fn draw(findings: &mut Findings, counts: &[u64], shares: &[Vec<f64>], [edf, best, optimum]: [f64; 3]) {
    let flat = |share: f64| -> Vec<(f64, f64)> { counts.iter().map(|count| (*count as f64, share)).collect() };
    let ours = counts.iter().zip(shares).map(|(count, shares)| (*count as f64, mean(shares))).collect();
    let curves: Vec<Vec<(f64, f64)>> = vec![ours, flat(edf), flat(best), flat(optimum)];
    let panel = Panel {
        title: "In time after a switch of modes".into(),
        x_label: "episodes of adaptation",
        y: crate::ablation::span(curves.iter().flatten().map(|(_, share)| *share)),
        curves,
        marks: Vec::new(),
        is_log: false,
    };
    let names = ["learned at low load", "edf", "best classical", "optimum, at most"].map(String::from);
    let caption = "Whole runs from low load through a burst to high load; means over sets and seeds.";
    findings.picture("Adaptation", caption, svg(&[panel], 1, &names));
}
