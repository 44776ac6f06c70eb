//! E15: cloning EDF before Q-learning, and how many episodes that saves.

use serde::Deserialize;
use temponet_train::{Method, Recipe};

use crate::ablation::{Effort, Variant, VariantResult, span};
use crate::{Better, Context, Estimate, Findings, Line, ReproduceError, Unit};
use temponet_lab::stats::percent;
use temponet_page::plot::{Panel, svg};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Tasks of the sets that are learned on.
    tasks_per_core: f64,
    /// The share of jobs in time to reach.
    threshold: f64,
    /// Episodes between looks at the score.
    episodes_per_phase: u64,
    /// Steps of EDF that are cloned, and updates for it.
    cloned_steps: u64,
    cloning_updates: u64,
    effort: Effort,
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let settings = protocol.settings(context.mode);
    let effort = &settings.effort;
    let warm = recipe(&effort.recipe(&protocol.recipe), settings);
    let mut random = warm.clone();
    random.stage.retain(|stage| matches!(stage.method, Method::Dqn(_)));
    let variants = [Variant::new("random", random), Variant::new("warm", warm)];
    let cases = protocol.cases("sets", effort.test)?;
    let seconds = effort.test.oracle_seconds;
    let ablation = context.ablation("warm start", &variants, effort.seeds, &cases, &protocol.schedulers, seconds)?;
    let mut episodes = Vec::new();
    for tried in &ablation.results {
        let name = &tried.name;
        let reached: Vec<Option<f64>> = episodes_to(tried, settings.threshold, settings.episodes_per_phase);
        let never = reached.iter().filter(|episodes| episodes.is_none()).count();
        if never > 0 {
            let threshold = percent(settings.threshold);
            findings.notes.push(format!("{name}: {never} of {} trainings never reached {threshold}", reached.len()));
        }
        let all = (effort.phases * settings.episodes_per_phase) as f64;
        let counted: Vec<f64> = reached.iter().map(|episodes| episodes.unwrap_or(all)).collect();
        episodes.push(counted.clone());
        findings.add(Line::new(format!("episodes_{name}"), Unit::Number, Better::Lower, Estimate::of(&counted)));
        findings.add(ablation.share_line(format!("final_{name}"), tried));
        let seconds: Vec<f64> = tried.trained.iter().map(|trained| trained.history.seconds).collect();
        findings.add(Line::new(format!("seconds_{name}"), Unit::Seconds, Better::Lower, Estimate::of(&seconds)));
    }
    if let [random, warm] = &episodes[..] {
        let saved =
            random.iter().zip(warm).filter(|(random, _)| **random > 0.0).map(|(random, warm)| 1.0 - warm / random);
        findings.add(Line::share("episodes_saved", Estimate::of(&saved.collect::<Vec<_>>())).headline());
    }
    let curves: Vec<Vec<(f64, f64)>> =
        ablation.results.iter().map(|tried| scores(tried, settings.episodes_per_phase)).collect();
    let panel = Panel {
        title: "In time on validation jobs".into(),
        x_label: "episodes of Q-learning",
        y: span(curves.iter().flatten().map(|(_, score)| *score)),
        curves,
        marks: Vec::new(),
        is_log: false,
    };
    let names = ["from random weights".to_string(), "after cloning EDF".to_string()];
    let caption = "After cloning alone at nought episodes, then as Q-learning goes on; means over the seeds.";
    findings.picture("Convergence", caption, svg(&[panel], 1, &names));
    ablation.add_classical(findings);
    findings.judge_claim(&ablation.beside());
    Ok(())
}

/// Cloning and then Q-learning, as much of each as the mode says.
fn recipe(recipe: &Recipe, settings: &Settings) -> Recipe {
    let mut recipe = recipe.clone();
    recipe.workload.tasks_per_core = (settings.tasks_per_core, settings.tasks_per_core);
    for stage in &mut recipe.stage {
        match &mut stage.method {
            Method::Dqn(dqn) => dqn.episodes = Some(settings.episodes_per_phase),
            Method::Cloning(cloning) => {
                (cloning.steps, cloning.updates) = (settings.cloned_steps, settings.cloning_updates);
            }
            _ => {}
        }
    }
    recipe
}

/// Episodes of Q-learning after which each training has reached a score; none if it never has. After cloning it may be none at all.
fn episodes_to(tried: &VariantResult, threshold: f64, per_phase: u64) -> Vec<Option<f64>> {
    let of_one = |trained: &crate::Trained| {
        let mut episodes = 0;
        trained.history.phases.iter().find_map(|phase| {
            episodes += if phase.method == "dqn" { per_phase } else { 0 };
            (phase.score >= threshold).then_some(episodes as f64)
        })
    };
    tried.trained.iter().map(of_one).collect()
}

/// The score over episodes of Q-learning, mean over the trainings.
fn scores(tried: &VariantResult, per_phase: u64) -> Vec<(f64, f64)> {
    let mut episodes = 0;
    let Some(first) = tried.trained.first() else { return Vec::new() };
    let points = first.history.phases.iter().zip(tried.convergence()).map(|(phase, (_, score))| {
        episodes += if phase.method == "dqn" { per_phase } else { 0 };
        (episodes as f64, score)
    });
    points.collect()
}
