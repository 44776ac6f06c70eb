//! E19: exploration by ε-greedy, by ε-greedy with a count bonus, and by UCB.

use std::sync::Arc;
use std::time::Instant;

use serde::Deserialize;
use temponet_bench::decision::{TimingEffort, measure};
use temponet_task::TaskId;
use temponet_train::{DqnSettings, ExplorationBonus, Recipe, VisitCounter};

use crate::ablation::{Effort, Variant, VariantResult};
use crate::findings::words;
use crate::{Better, Context, Findings, Line, ReproduceError, Unit};
use temponet_lab::stats::percent;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Weight of the count bonus and of UCB.
    weight: f64,
    /// Further weights of the count bonus.
    weights: Vec<f64>,
    /// Cells in a row of the count-min sketch.
    sketch: usize,
    /// Number of decisions that are timed.
    passes: u64,
    effort: Effort,
}

/// Ways that judged figures rest on.
const JUDGED: [&str; 3] = ["epsilon_greedy", "with_bonus", "ucb"];
/// Greatest difference from the last score with which a training counts as stable.
const STABLE: f64 = 0.01;

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, Settings { weight, weights, sketch, passes, effort }) = &context.protocol::<Settings>()?;
    let recipe = effort.recipe(&protocol.recipe, findings);
    let mut bonuses = vec![
        (JUDGED[0].to_string(), ExplorationBonus::None),
        (JUDGED[1].into(), ExplorationBonus::Count { weight: *weight, sketch: None }),
        (JUDGED[2].into(), ExplorationBonus::Ucb { weight: *weight }),
        ("sketch".into(), ExplorationBonus::Count { weight: *weight, sketch: Some(*sketch) }),
    ];
    let bonus_of =
        |weight: &f64| (format!("bonus_{weight}"), ExplorationBonus::Count { weight: *weight, sketch: None });
    bonuses.extend(weights.iter().map(bonus_of));
    let variant = |(name, bonus): &(String, ExplorationBonus)| {
        Variant::new(name, with_bonus(&recipe, *bonus)).judged_if(JUDGED.contains(&name.as_str()))
    };
    let variants: Vec<Variant<'static>> = bonuses.iter().map(variant).collect();
    let bed = protocol.test_bed("exploration", "heterogeneous", effort.test)?;
    let ablation = context.ablation(&bed, &variants, effort.seeds())?;
    if context.is_planning() {
        return Ok(());
    }
    let [plain, bonus, ucb, ..] = &ablation.results[..] else {
        return Err(context.protocol_error("there are not three variants"));
    };
    for result in &ablation.results {
        let name = &result.name;
        findings.add(ablation.share_line(name, result));
        findings.add(Line::lower(format!("phases_{name}"), Unit::Number, stable_from(result)));
        findings.add(Line::lower(format!("seconds_{name}"), Unit::Seconds, result.seconds()));
    }
    let network = plain.trained.first().map(|trained| Arc::new(trained.model.clone()));
    let network =
        network.map(|model| measure("network", &model, TASKS, TimingEffort { passes: *passes, ..Default::default() }));
    let network = network.transpose().map_err(|error| context.protocol_error(error))?;
    let network = network.map_or(f64::NAN, |figures| figures.end_to_end_ns_p50 / 1e3);
    let mut times = Vec::new();
    for (name, bonus) in &bonuses[..4] {
        let time = network + counting(*bonus, *passes);
        findings.add(Line::lower(format!("decision_{name}"), Unit::Microseconds, time));
        times.push(time);
    }
    findings.add(Line::share("decision_time_saved_against_ucb", 1.0 - times[0] / times[2]));
    if let Some(sketched) = ablation.result("sketch") {
        findings.add(sketched.gain_over(bonus, "gain_of_sketch_over_exact_counts"));
    }
    findings.add(bonus.gain_over(plain, "gain_of_bonus").headline());
    let below = Line { better: Better::Lower, ..ucb.gain_over(plain, "below_ucb") };
    findings.add(below.headline());
    // Seed by seed.
    let saved = |less: Vec<f64>, more: Vec<f64>| -> Vec<f64> {
        less.iter().zip(&more).map(|(less, more)| 1.0 - less / more).collect()
    };
    let phases = saved(stable_from(bonus), stable_from(plain));
    findings.add(Line::share("phases_saved_by_bonus", phases).headline());
    findings.add(Line::share("time_saved_against_ucb", saved(plain.seconds(), ucb.seconds())));
    ablation.add_convergence(findings);
    ablation.add_classical(findings);
    let overload = context.in_overload(findings, &ablation, effort.test)?;
    for (name, from) in [("overload_gain_of_bonus", "epsilon_greedy"), ("overload_gain_of_bonus_over_ucb", "ucb")] {
        if let Some((bonus, from)) = overload.pair("with_bonus", from) {
            findings.add(bonus.gain_over(from, name));
        }
    }
    let shares: Vec<String> =
        overload.results.iter().map(|of| format!("{} {}", words(&of.name), percent(of.mean_share()))).collect();
    findings.judge_claim(&format!(
        "{}; in overload {}, {}",
        ablation.baselines_sentence(),
        shares.join(", "),
        overload.baselines_sentence()
    ));
    Ok(())
}

/// Number of ready jobs in a decision that is timed.
const TASKS: usize = 5;

/// Returns the mean time in which a decision looks up and counts its pairs, in microseconds.
fn counting(bonus: ExplorationBonus, passes: u64) -> f64 {
    if bonus == ExplorationBonus::None {
        return 0.0;
    }
    let mut counter = VisitCounter::new(bonus);
    let mut sum = 0.0;
    let begin = Instant::now();
    for pass in 0..passes {
        let pairs = (0..TASKS as u32).map(|task| (((pass * 31 + u64::from(task) * 17) % 128) as u16, TaskId(task)));
        sum += pairs.clone().map(|(slack, task)| bonus.of(&counter, pass + 1, slack, task)).sum::<f64>();
        pairs.take(1).for_each(|(slack, task)| counter.add(slack, task));
    }
    std::hint::black_box(sum);
    begin.elapsed().as_secs_f64() * 1e6 / passes.max(1) as f64
}

/// Returns the recipe with another exploration bonus.
fn with_bonus(recipe: &Recipe, bonus: ExplorationBonus) -> Recipe {
    let mut recipe = recipe.clone();
    for stage in &mut recipe.stage {
        if let Some(settings) = stage.method.settings_mut::<DqnSettings>() {
            settings.bonus = bonus;
        }
    }
    recipe
}

/// Returns the phase from which on each training is stable, counted from 1.
fn stable_from(result: &VariantResult) -> Vec<f64> {
    let of_one = |scores: &Vec<f64>| {
        let last = scores.last().copied().unwrap_or(0.0);
        let unstable = scores.iter().rposition(|score| (score - last).abs() > STABLE);
        (unstable.map_or(0, |place| place + 1) + 1) as f64
    };
    result.scores().iter().map(of_one).collect()
}
