//! What the paper leaves open of its learner, one setting at a time, and whether its plain maximum overestimates.

use serde::Deserialize;
use temponet::Model;
use temponet::stages::{Binning, Tokenizer};
use temponet_infer::{Network, NetworkOptions};
use temponet_sim::generate::WorkloadRanges;
use temponet_train::{
    DqnSettings, Ending, EpisodeSettings, Episodes, Fleet, FleetError, Recipe, TaskSetSource, Tokens,
};

use crate::ablation::{Effort, Variant, VariantResult};
use crate::contest::differences;
use crate::findings::words;
use crate::{Context, Findings, FindingsTable, Line, ReproduceError, Unit, Verdict};
use temponet_lab::stats::{mean, percent};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Factors on the learning rate.
    rates: Vec<f64>,
    /// Discounts per median wcet.
    gammas: Vec<f64>,
    /// Transitions in an update.
    batches: Vec<usize>,
    /// Shares by which the target network follows.
    target_shares: Vec<f64>,
    /// Widths of a slack bin, in median wcets; together the bins cover the same range.
    bins: Vec<f64>,
    effort: Effort,
}

/// Name of the learner of all experiments.
const LEARNER: &str = "learner";
/// Range that the bins of every width cover together, in median wcets.
const RANGE: f64 = 32.0;

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, settings) = &context.protocol::<Settings>()?;
    let effort = &settings.effort;
    let recipe = effort.recipe(&protocol.recipe, findings);
    let variants = variants(settings, &recipe);
    let bed = protocol.test_bed("open settings", "sets", effort.test)?;
    let ablation = context.ablation(&bed, &variants, effort.seeds())?;
    ablation.add_shares(findings);
    let Some(learner) = ablation.result(LEARNER).filter(|_| !context.is_planning()) else { return Ok(()) };
    let mut better = Vec::new();
    let mut rows = Vec::new();
    for result in &ablation.results {
        let gain = result.gain_over(learner, &format!("change_{}", result.name));
        if gain.ours.ci95.is_some_and(|half| gain.ours.mean > half) {
            better.push(format!("{} ({})", words(&result.name), gain.shown()));
        }
        rows.push(vec![words(&result.name), percent(result.mean_share()), gain.shown()]);
        if result.name != LEARNER {
            findings.add(gain);
        }
    }
    findings.tables.push(FindingsTable::new(
        "One setting changed",
        &["setting", "in time", "change, seed by seed"],
        rows,
    ));
    let excess = |result: &VariantResult| -> Result<Vec<f64>, ReproduceError> {
        result.trained.iter().map(|trained| overestimation(context, &recipe, &trained.model)).collect()
    };
    if let Some(double) = ablation.result("double") {
        let (plain, double) = (excess(learner)?, excess(double)?);
        let less = differences(&plain, &double);
        findings.add(Line::neither("overestimation_plain", Unit::Number, plain));
        findings.add(Line::neither("overestimation_double", Unit::Number, double));
        findings.add(Line::neither("overestimation_plain_less_double", Unit::Number, less));
    }
    ablation.add_convergence(findings);
    ablation.add_classical(findings);
    let shown = |name: &str| findings.line(name).map_or("–".into(), Line::shown);
    let above = |name: &str| if findings.value(name) < 0.0 { "below" } else { "above" };
    let sentence = format!(
        "the paper states none of these settings; {}; the value of a chosen job less the return that follows, in rewards of a job, is {} with the plain maximum, \
         {} the return, and {} with double selection, {} it (difference {}); double selection changes the jobs in time by {}; {}",
        match better.is_empty() {
            true => "no other one is better than the learner's by more than its interval".to_string(),
            false => format!("better than the learner's by more than their interval are {}", better.join(", ")),
        },
        shown("overestimation_plain"),
        above("overestimation_plain"),
        shown("overestimation_double"),
        above("overestimation_double"),
        shown("overestimation_plain_less_double"),
        shown("change_double"),
        ablation.baselines_sentence(),
    );
    findings.conclude(Verdict::NoFigure, &sentence);
    Ok(())
}

/// Returns the learner, and the learner with each setting changed.
fn variants(settings: &Settings, recipe: &Recipe) -> Vec<Variant<'static>> {
    let with = |name: String, change: &dyn Fn(&mut Recipe)| {
        let mut recipe = recipe.clone();
        change(&mut recipe);
        Variant::new(name, recipe)
    };
    let with_dqn = |name: String, change: &dyn Fn(&mut DqnSettings)| {
        with(name, &|recipe| {
            recipe.stage.iter_mut().filter_map(|stage| stage.method.settings_mut::<DqnSettings>()).for_each(change);
        })
    };
    let mut all = vec![Variant::new(LEARNER, recipe.clone())];
    all.extend(
        settings
            .rates
            .iter()
            .map(|factor| with(format!("rate_times_{factor}"), &|recipe| recipe.optimizer.rate *= factor)),
    );
    all.extend(
        settings.gammas.iter().map(|gamma| with(format!("discount_{gamma}"), &|recipe| recipe.episode.gamma = *gamma)),
    );
    all.extend(
        settings.batches.iter().map(|batch| with_dqn(format!("batch_{batch}"), &|dqn| dqn.replay.batch = *batch)),
    );
    all.extend(
        settings
            .target_shares
            .iter()
            .map(|share| with_dqn(format!("target_share_{share}"), &|dqn| dqn.replay.target_share = *share)),
    );
    all.extend(settings.bins.iter().map(|width| {
        with(format!("bin_{width}"), &|recipe| {
            let tokenizer = Tokenizer {
                bins: (RANGE / width).round().max(2.0) as usize,
                binning: Binning::Uniform { width: *width },
                ..recipe.tokens.tokenizer()
            };
            recipe.tokens = Tokens::Custom(Box::new(tokenizer));
        })
    }));
    all.push(with_dqn("double".into(), &|dqn| dqn.double = true));
    all.push(with_dqn("dueling".into(), &|dqn| dqn.dueling = true));
    all.push(with_dqn("huber".into(), &|dqn| dqn.huber = Some(1.0)));
    // The claim that the plain maximum overestimates rests on these.
    all.into_iter()
        .map(|one| {
            let is_judged = [LEARNER, "double"].contains(&one.name.as_str());
            one.judged_if(is_judged)
        })
        .collect()
}

/// Number of episodes on which values are compared with returns, their length in median wcets, and their seed, of which
/// no training is.
const EPISODES: usize = 16;
const LENGTH: f64 = 400.0;
const SEED: u64 = 0x0E57;
/// Greatest weight of what follows an episode in a return that counts.
const UNKNOWN: f64 = 0.01;

/// Returns the mean Q-value of the job that a model chooses less the discounted return that follows, on one core, where
/// the value of a choice is the job's output.
fn overestimation(context: &Context<'_>, recipe: &Recipe, model: &Model) -> Result<f64, ReproduceError> {
    let wrong = |error: FleetError| context.protocol_error(error);
    let workload = WorkloadRanges { cores: vec![1], ..recipe.workload.clone() };
    let settings = EpisodeSettings { length: LENGTH, ..recipe.episode };
    let source = TaskSetSource::Drawn(Box::new(workload));
    let mut fleet = Fleet::new(Episodes::new(source, recipe.tokenizer(), settings), EPISODES, SEED).map_err(wrong)?;
    let mut network = Network::new(&model.weights, NetworkOptions::default())?;
    let (mut q, mut excess) = (Vec::new(), Vec::new());
    for member in &mut fleet.members {
        // Values, rewards and discounts of an episode, choice by choice.
        let mut course: Vec<[f64; 3]> = Vec::new();
        let ending = loop {
            member.observed(|observation| network.forward(&observation.rows(), &mut q));
            let jobs = member.top_jobs(|_, row| q[row as usize]);
            let value = member.rows_of(&jobs).first().map_or(0.0, |row| f64::from(q[*row as usize]));
            let outcome = member.act(&fleet.episodes, &jobs).map_err(wrong)?;
            course.push([value, outcome.reward, outcome.discount]);
            if let Some(ending) = outcome.ending {
                break ending;
            }
        };
        let (mut later, mut unknown) = (0.0, if ending == Ending::Terminated { 0.0 } else { 1.0 });
        for [value, reward, discount] in course.into_iter().rev() {
            (later, unknown) = (reward + discount * later, discount * unknown);
            if unknown < UNKNOWN {
                excess.push(value - later);
            }
        }
    }
    Ok(mean(&excess))
}
