//! E13: a model trained at low load meets a burst and high load, and continues training there.

use serde::Deserialize;

use crate::ablation::{Effort, Variant};
use crate::adaptation::adapted;
use crate::plots::{Curve, share_panel};
use crate::{Baselines, Context, Findings, Line, ReproduceError, Trained, Unit};
use temponet_lab::arena::Case;
use temponet_lab::stats::mean;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Number of tasks in a set of the experiment.
    tasks: usize,
    /// Number of tasks per core in the sets of the first training.
    tasks_per_core: f64,
    /// Numbers of episodes of adaptation that are compared.
    episodes: Vec<u64>,
    /// Learning rate during adaptation.
    rate: f64,
    /// Number of runs of each set, each with other jobs.
    runs: u64,
    effort: Effort,
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, settings) = &context.protocol::<Settings>()?;
    let effort = &settings.effort;
    let mut recipe = effort.recipe(&protocol.recipe, findings);
    recipe.workload.tasks_per_core = (settings.tasks_per_core, settings.tasks_per_core);
    let base = context.train_variants(&[Variant::new("low load", recipe.clone())], effort.seeds)?.remove(0);
    // Share of jobs in time of each set and seed, by number of episodes.
    let counts: Vec<u64> = [0].into_iter().chain(settings.episodes.iter().copied()).collect();
    let mut shares: Vec<Vec<f64>> = vec![Vec::new(); counts.len()];
    // The same shares, as what is left to the optimum and to the best classical scheduler of each set.
    let mut gaps: [Vec<Vec<f64>>; 2] = std::array::from_fn(|_| vec![Vec::new(); counts.len()]);
    let mut baselines: Vec<Baselines> = Vec::new();
    for case in &protocol.cases_of("sets", effort.test, settings.tasks)? {
        let cases = (0..settings.runs).map(|run| Case { seed: case.seed + STEP * run, ..case.clone() }).collect();
        let variants: Vec<Variant<'_>> =
            settings.episodes.iter().map(|episodes| adaptation(&recipe, settings, *episodes, case, &base)).collect();
        let mut named = vec![("0".to_string(), base.clone())];
        let trained = context.train_variants(&variants, effort.seeds)?;
        named.extend(variants.iter().map(|variant| variant.name.clone()).zip(trained));
        let bed = protocol.test_bed_of("mode switch", cases, effort.test);
        let held = context.contest_models(&bed, named)?;
        let own = held.contest.baselines();
        let best = [own.optimum.map(|(optimum, _)| optimum), own.best].map(|share| share.unwrap_or(f64::NAN));
        for (place, result) in held.results.iter().enumerate() {
            shares[place].extend(result.shares());
            for (gaps, best) in gaps.iter_mut().zip(best) {
                gaps[place].extend(result.shares().iter().map(|share| 1.0 - share / best));
            }
        }
        baselines.push(own);
    }
    let baselines = averaged(&baselines);
    let [to_optimum, to_classical] = &gaps;
    for (place, count) in counts.iter().enumerate() {
        findings.add(Line::share(format!("episodes_{count}"), &shares[place]).beside_baselines(&baselines));
        findings.add(Line::lower(format!("gap_after_{count}"), Unit::Share, &to_optimum[place]));
        findings.add(Line::lower(format!("gap_to_classical_after_{count}"), Unit::Share, &to_classical[place]));
    }
    if let (Some(first), Some(last)) = (shares.first(), shares.last()) {
        let gains: Vec<f64> = last.iter().zip(first).map(|(last, first)| last - first).collect();
        findings.add(Line::share("gain_of_20_episodes", gains).headline());
    }
    draw(findings, &counts, &shares, &baselines);
    let gap = |name: &str, count: Option<&u64>| {
        count.map_or("–".into(), |count| findings.percent(&format!("{name}_after_{count}")))
    };
    let beside = format!(
        "{}; {} of the best classical scheduler's share is missing without adaptation and {} after it",
        baselines.sentence("runs"),
        gap("gap_to_classical", counts.first()),
        gap("gap_to_classical", counts.last())
    );
    findings.judge_claim(&beside);
    Ok(())
}

/// Averages the baselines of several sets. The best classical scheduler may differ between sets and has no name.
fn averaged(all: &[Baselines]) -> Baselines {
    let averaged = |of: fn(&Baselines) -> Option<f64>| mean(&all.iter().filter_map(of).collect::<Vec<f64>>());
    let is_exact = all.iter().all(|of| of.optimum.is_some_and(|(_, is_exact)| is_exact));
    Baselines {
        edf: Some(averaged(|of| of.edf)),
        best: Some(averaged(|of| of.best)),
        best_name: None,
        optimum: Some((averaged(|of| of.optimum.map(|(optimum, _)| optimum)), is_exact)),
    }
}

/// Distance between the seeds of two runs of one set.
const STEP: u64 = 20;

/// Returns the variant that adapts the base models for `episodes` whole runs of the set itself, with other jobs.
fn adaptation<'a>(
    recipe: &temponet_train::Recipe,
    settings: &Settings,
    episodes: u64,
    case: &'a Case,
    base: &'a [Trained],
) -> Variant<'a> {
    let mut recipe = adapted(recipe, episodes, settings.rate);
    let scale = temponet::stages::Scale::of(&recipe.tokenizer(), &case.set.system);
    recipe.episode.length = case.horizon.0 as f64 / scale.unit;
    recipe.validation.runs = 1;
    Variant { set: Some(&case.set), begin_with: Some(base), ..Variant::new(episodes.to_string(), recipe) }
}

fn draw(findings: &mut Findings, counts: &[u64], shares: &[Vec<f64>], baselines: &Baselines) {
    let Baselines { edf, best, optimum, .. } = baselines;
    let flat = |share: Option<f64>| -> Curve {
        counts.iter().map(|count| (*count as f64, share.unwrap_or(f64::NAN))).collect()
    };
    let ours = counts.iter().zip(shares).map(|(count, shares)| (*count as f64, mean(shares))).collect();
    let curves = vec![ours, flat(*edf), flat(*best), flat(optimum.map(|(optimum, _)| optimum))];
    let panel = share_panel("In time after a switch of modes", "episodes of adaptation", curves);
    let names = ["learned at low load", "edf", "best classical", "optimum, at most"].map(String::from);
    let caption = "Whole runs from low load through a burst to high load; means over sets and seeds.";
    findings.plot("Adaptation", caption, panel, &names);
}
