//! E15: cloning EDF before Q-learning, and the number of episodes that this saves.

use serde::Deserialize;
use temponet_train::{CloningSettings, DqnSettings, Recipe};

use crate::ablation::{Effort, Variant, VariantResult};
use crate::plots::{Curve, share_panel};
use crate::{Context, Findings, Line, ReproduceError, Standing, Unit, Verdict};
use temponet_lab::stats::{mean, percent};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Number of tasks per core in the training sets.
    tasks_per_core: f64,
    /// Share of jobs in time that a training must reach.
    threshold: f64,
    /// Number of episodes in a phase of Q-learning; the score is taken after each phase.
    episodes_per_phase: u64,
    /// Number of EDF's decisions that are cloned.
    cloned_steps: u64,
    /// Number of updates for cloning.
    cloning_updates: u64,
    effort: Effort,
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, settings) = &context.protocol::<Settings>()?;
    let effort = &settings.effort;
    let warm = recipe(&effort.recipe(&protocol.recipe, findings), settings);
    let mut random = warm.clone();
    random.stage.retain(|stage| stage.method.settings::<DqnSettings>().is_some());
    let variants = [Variant::new("random", random), Variant::new("warm", warm)];
    let tasks = (settings.tasks_per_core * 8.0).max(16.0) as usize;
    let bed = protocol.test_bed_of("warm start", protocol.cases_of("sets", effort.test, tasks)?, effort.test);
    let ablation = context.ablation(&bed, &variants, effort.seeds())?;
    let (mut episodes, mut censored) = (Vec::new(), Vec::new());
    for result in &ablation.results {
        let name = &result.name;
        let reached: Vec<Option<f64>> = episodes_to(result, settings.threshold, settings.episodes_per_phase);
        let never = reached.iter().filter(|episodes| episodes.is_none()).count();
        censored.push(never > 0);
        if never > 0 {
            let threshold = percent(settings.threshold);
            findings.notes.push(format!("{name}: {never} of {} trainings never reached {threshold}", reached.len()));
        }
        let all = (effort.phases * settings.episodes_per_phase) as f64;
        let counted: Vec<f64> = reached.iter().map(|episodes| episodes.unwrap_or(all)).collect();
        findings.add(Line::lower(format!("episodes_{name}"), Unit::Number, &counted));
        findings.add(ablation.share_line(format!("final_{name}"), result));
        findings.add(Line::lower(format!("seconds_{name}"), Unit::Seconds, result.seconds()));
        episodes.push(counted);
    }
    if let [random, warm] = &episodes[..] {
        let saved =
            random.iter().zip(warm).filter(|(random, _)| **random > 0.0).map(|(random, warm)| 1.0 - warm / random);
        findings.add(Line::share("episodes_saved", saved.collect::<Vec<f64>>()).headline());
    }
    let curves = ablation.results.iter().map(|result| scores(result, settings.episodes_per_phase)).collect();
    let panel = share_panel("In time on validation jobs", "episodes of Q-learning", curves);
    let names = ["from random weights".to_string(), "after cloning EDF".to_string()];
    let caption = "After cloning alone at zero episodes, then as Q-learning goes on; means over the seeds.";
    findings.plot("Convergence", caption, panel, &names);
    ablation.add_classical(findings);
    let course = |name: &str| ablation.result(name).map_or("–".into(), |of| course(of, settings));
    let beside = format!(
        "the threshold of {} is reached by {} from random weights and by {} after cloning; {}",
        percent(settings.threshold),
        course("random"),
        course("warm"),
        ablation.baselines_sentence()
    );
    let is_enough = findings
        .line("episodes_saved")
        .and_then(Line::standing)
        .is_some_and(|of| matches!(of, Standing::Same | Standing::Better));
    if censored == [true, false] && is_enough {
        // The trainings that are not counted to their end would only add to what is saved.
        findings.judge_claim(&format!(
            "at least, as not every training from random weights comes to the threshold; {beside}"
        ));
    } else if censored.contains(&true) {
        // Episodes that were not counted to their end neither confirm nor refute a saving.
        let saved = findings.percent("episodes_saved");
        let sentence = format!(
            "not every training comes to the threshold, so {saved} of the episodes saved is only a bound; {beside}"
        );
        findings.conclude(Verdict::Undecided, &sentence);
    } else {
        findings.judge_claim(&beside);
    }
    Ok(())
}

/// Returns the recipe with the amounts of cloning and Q-learning of the settings.
fn recipe(recipe: &Recipe, settings: &Settings) -> Recipe {
    let mut recipe = recipe.clone();
    recipe.workload.tasks_per_core = (settings.tasks_per_core, settings.tasks_per_core);
    for stage in &mut recipe.stage {
        if let Some(dqn) = stage.method.settings_mut::<DqnSettings>() {
            dqn.episodes = Some(settings.episodes_per_phase);
        }
        if let Some(cloning) = stage.method.settings_mut::<CloningSettings>() {
            (cloning.steps, cloning.updates) = (settings.cloned_steps, settings.cloning_updates);
        }
    }
    recipe
}

/// Returns the number of episodes of Q-learning after which each training reaches `threshold`; none if it never does.
/// The number is 0 if cloning alone suffices.
fn episodes_to(result: &VariantResult, threshold: f64, per_phase: u64) -> Vec<Option<f64>> {
    let of_one = |trained: &crate::Trained| {
        let mut episodes = 0;
        trained.history.phases.iter().find_map(|phase| {
            episodes += if phase.method == "dqn" { per_phase } else { 0 };
            (phase.score >= threshold).then_some(episodes as f64)
        })
    };
    result.trained.iter().map(of_one).collect()
}

/// Says how many trainings reach the threshold, and how far they come on validation jobs on average.
fn course(result: &VariantResult, settings: &Settings) -> String {
    let reached = episodes_to(result, settings.threshold, settings.episodes_per_phase);
    let best: Vec<f64> = result.scores().into_iter().map(|scores| scores.into_iter().fold(0.0, f64::max)).collect();
    let count = reached.iter().flatten().count();
    format!("{count} of {} trainings (at best {} on average)", reached.len(), percent(mean(&best)))
}

/// Returns the validation score over the episodes of Q-learning, averaged over the trainings.
fn scores(result: &VariantResult, per_phase: u64) -> Curve {
    let mut episodes = 0;
    let Some(first) = result.trained.first() else { return Vec::new() };
    let points = first.history.phases.iter().zip(result.convergence()).map(|(phase, (_, score))| {
        episodes += if phase.method == "dqn" { per_phase } else { 0 };
        (episodes as f64, score)
    });
    points.collect()
}
