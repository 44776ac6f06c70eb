//! What surrounds a training: the weights that it begins with, checks of its recipe on a set, and the runs and
//! schedulers of its verdict.

use std::sync::Arc;

use temponet::Model;
use temponet::stages::Scale;
use temponet_infer::{Architecture, Weights};
use temponet_sim::generate::GenerateError;
use temponet_task::{Arrival, TaskSet, Time};
use temponet_train::{
    JobTrace, MIN_TRACE_JOBS, Recipe, TaskSetSource, TraceSplit, WorkloadRanges, cannot_teach, trial_seed,
};

use crate::curves;
use crate::verdict::{JudgedScheduler, Start, TrainingVerdict, judge};
use temponet_lab::arena::Case;
use temponet_lab::comparison::CompareError;
use temponet_lab::models;
use temponet_lab::progress::Progress;
use temponet_lab::roster::{Roster, is_baseline};

/// Reason why a training cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum PreparationError {
    /// Model to begin with, and what is wrong with it.
    #[error("the model to begin with, {0}: {1}")]
    BeginWith(String, String),
    /// Name that does not lead to a model.
    #[error(transparent)]
    Model(#[from] models::ModelError),
    /// Teacher that does not apply.
    #[error("teacher: {0}")]
    Teacher(String),
    /// Trace that is too short to be divided.
    #[error("a trace is cut in time to be judged on jobs that were not learned on, which takes {MIN_TRACE_JOBS} jobs")]
    ShortTrace,
    /// Set that cannot be drawn.
    #[error(transparent)]
    Generate(#[from] GenerateError),
}

/// Returns the weights of the model to start from. The network must have the shape of the recipe. If the recipe has
/// more features, the model is grown.
pub fn initial_weights(name: &str, recipe: &Recipe) -> Result<Weights, PreparationError> {
    let tokenizer = recipe.tokenizer();
    let wrong = |why: String| PreparationError::BeginWith(name.into(), why);
    let weights = models::named(name)?.grown(&tokenizer).map_err(|error| wrong(error.to_string()))?.weights;
    let wanted = recipe.network.architecture(&tokenizer);
    let shape = |network: &Architecture| {
        let Architecture { width, layers, heads, feed_forward, .. } = network;
        format!("width {width}, {layers} layers, {heads} heads, feed_forward {feed_forward}")
    };
    if weights.architecture != wanted {
        let (has, wants) = (shape(&weights.architecture), shape(&wanted));
        return Err(wrong(format!("the model has another shape than the recipe: {has}, not {wants}")));
    }
    Ok(weights)
}

/// Returns the model that a training begins with, by its name.
pub fn start(name: &str, weights: &Weights, recipe: &Recipe) -> Start {
    let is_built_in = name == models::BUILT_IN;
    let name = if is_built_in { "the built-in model".into() } else { name.to_string() };
    Start { name, model: Model { tokenizer: recipe.tokenizer(), weights: weights.clone() } }
}

/// Compares the trained model with the one that it began with and with all other schedulers, because the best one for a
/// load is not known beforehand. Inapplicable schedulers are left out.
pub fn verdict(model: Model, start: Option<&Start>, trials: &[Case]) -> Result<TrainingVerdict, CompareError> {
    let roster = Roster::with(model);
    let others = Roster::classical().names();
    let _progress = Progress::busy("verdict");
    judge(&roster, start, &others, trials, ORACLE_SECONDS)
}

/// Returns the shares in time of EDF and of the best other scheduler on the runs of the verdict.
pub fn baselines(verdict: &TrainingVerdict) -> Vec<curves::Baseline> {
    let is_shown = |(place, judged): &(usize, &JudgedScheduler)| *place == 0 || is_baseline(&judged.name);
    let others = verdict.others.iter().enumerate().filter(is_shown);
    others.map(|(_, judged)| (judged.name.clone(), judged.compliance)).collect()
}

/// Limit on the computation of the optimum of one trial, in seconds of one core.
const ORACLE_SECONDS: f64 = 0.5;

/// Whether a set is a trace: a list of jobs and nothing else.
pub fn is_trace(set: &TaskSet) -> bool {
    set.tasks().iter().all(|task| matches!(task.arrival, Arrival::Listed(_)))
}

/// Returns how a trace is divided; `None` for other sets. A trace that is too short to be divided is rejected.
pub fn parts(set: Option<&TaskSet>) -> Result<Option<TraceSplit>, PreparationError> {
    let Some(set) = set.filter(|set| is_trace(set)) else { return Ok(None) };
    JobTrace::split(set).map(Some).ok_or(PreparationError::ShortTrace)
}

/// Checks that the teachers are applicable to the set, or to each number of cores that is drawn.
pub fn check_teachers(recipe: &Recipe, set: Option<&TaskSet>) -> Result<(), PreparationError> {
    for stage in &recipe.stage {
        let ranges = stage.workload.as_ref().unwrap_or(&recipe.workload);
        let draw =
            |cores: &usize| WorkloadRanges { cores: vec![*cores], ..ranges.clone() }.draw(trial_seed(recipe.seed, 0));
        let sets = match set {
            Some(set) => vec![set.clone()],
            None => ranges.cores.iter().map(draw).collect::<Result<_, _>>()?,
        };
        let problem = |name: &String| sets.iter().find_map(|set| cannot_teach(name, set));
        if let Some(problem) = stage.method.teachers().iter().find_map(problem) {
            return Err(PreparationError::Teacher(problem.to_string()));
        }
    }
    Ok(())
}

/// Returns the runs of the verdict: `count` of them, or one if nothing is random or the set is a trace.
pub fn trials(recipe: &Recipe, set: Option<TaskSet>, count: u32) -> Result<Vec<Case>, GenerateError> {
    if let Some(TraceSplit { verdict, .. }) = set.as_ref().and_then(JobTrace::split) {
        let seed = trial_seed(recipe.seed, 0);
        return Ok(vec![Case { set: (**verdict.set()).clone(), seed, horizon: verdict.end() }]);
    }
    // All runs of a set without randomness are the same.
    let count = if set.as_ref().is_some_and(|set| !set.is_random()) { 1 } else { count };
    let source = match set {
        Some(set) => TaskSetSource::Fixed(Arc::new(set)),
        None => TaskSetSource::Drawn(Box::new(recipe.workload.clone())),
    };
    let tokenizer = recipe.tokenizer();
    let trial = |number: u64| -> Result<Case, GenerateError> {
        let seed = trial_seed(recipe.seed, number);
        let set = source.set(seed)?;
        let horizon = Time((Scale::of(&tokenizer, &set.system).unit * TRIAL_LENGTH) as u64);
        Ok(Case { set: (*set).clone(), seed, horizon })
    };
    (0..u64::from(count)).map(trial).collect()
}

/// Length of a trial, in median wcets.
const TRIAL_LENGTH: f64 = 1_000.0;
