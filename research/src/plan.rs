//! The trainings that experiments need, without carrying them out, and all of them carried out in one go.
//!
//! A plan is made by running the experiments with untrained networks, without the contests that take their time: so it
//! names the trainings that the experiments ask for, and nothing has to be listed twice. A training that begins with a model that
//! is not trained yet has to wait for it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use temponet::Model;
use temponet_infer::Weights;
use temponet_lab::progress::Progress;
use temponet_lab::roster::Roster;
use temponet_task::TaskSet;
use temponet_train::Recipe;

use super::cache::{Cache, model_key};
use super::training::{Trained, Training, updates};
use super::{Context, Experiment, History, Mode, ReproduceError, Trainer};

/// Experiments whose trainings come first: those that decide what the others learn with, then those with the paper's
/// main claims. The others follow in the order of reports.
const FIRST: [&str; 8] = ["sweep", "E2", "E1", "E18", "E6", "E4", "E3", "E9"];

/// A training that an experiment needs.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Experiment that asked for it first.
    pub experiment: &'static str,
    /// Name of its variant.
    pub name: String,
    /// Cache file of its model.
    pub file: String,
    recipe: Recipe,
    set: Option<TaskSet>,
    begin_with: Option<Model>,
    /// Whether the cache has its model.
    pub is_done: bool,
    /// Whether it begins with a model that is not trained yet.
    pub waits: bool,
}

impl Planned {
    /// Returns the training.
    pub fn training(&self) -> Training<'_> {
        Training {
            name: &self.name,
            recipe: &self.recipe,
            set: self.set.as_ref(),
            begin_with: self.begin_with.as_ref(),
        }
    }

    /// Number of updates of the network.
    pub fn updates(&self) -> u64 {
        updates(&self.training())
    }
}

/// Trainings that were asked for so far.
#[derive(Default)]
pub struct Plan {
    all: Mutex<Vec<Planned>>,
    /// Keys of models that were handed out without being trained.
    untrained: Mutex<BTreeSet<String>>,
}

impl Plan {
    /// Notes a training. Returns its model if it is known, and an untrained one otherwise.
    pub(crate) fn note(
        &self,
        experiment: &'static str,
        training: &Training<'_>,
        file: &str,
        known: Option<Trained>,
    ) -> Result<Trained, ReproduceError> {
        let mut untrained = self.untrained.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = training.begin_with.map(model_key).transpose()?;
        let waits = known.is_none() && begun.is_some_and(|key| untrained.contains(&key));
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.iter().all(|planned| planned.file != file) {
            all.push(Planned {
                experiment,
                name: training.name.into(),
                file: file.into(),
                recipe: training.recipe.clone(),
                set: training.set.cloned(),
                begin_with: training.begin_with.cloned(),
                is_done: known.is_some(),
                waits,
            });
        }
        if let Some(known) = known {
            return Ok(known);
        }
        let tokenizer = training.recipe.tokenizer();
        let mut model = match training.begin_with {
            Some(begun) => begun.grown(&tokenizer),
            None => Ok(Model {
                weights: Weights::random(training.recipe.network.architecture(&tokenizer), training.recipe.seed),
                tokenizer,
            }),
        }
        .map_err(|error| ReproduceError::Train(training.name.into(), error.to_string()))?;
        // Two trainings of different length with one seed begin alike, and only one of them may be known.
        model.set_provenance(format!("untrained: {file}"));
        untrained.insert(model_key(&model)?);
        Ok(Trained { model, history: History { phases: Vec::new(), seconds: 0.0 } })
    }
}

/// Returns the experiments in the order in which their trainings are worth most.
pub fn by_importance(mut chosen: Vec<&'static Experiment>) -> Vec<&'static Experiment> {
    let place = |experiment: &&Experiment| FIRST.iter().position(|id| *id == experiment.id).unwrap_or(FIRST.len());
    chosen.sort_by_key(place);
    chosen
}

/// Returns the trainings that experiments need in a mode, the most important ones first.
pub fn plan(
    chosen: &[&'static Experiment],
    mode: Mode,
    roster: &Roster,
    cache: &Cache,
    trainer: &dyn Trainer,
) -> Result<Vec<Planned>, ReproduceError> {
    let plan = Plan::default();
    let progress = Progress::steps(chosen.len() as u64);
    for experiment in chosen {
        progress.say(&format!("trainings of {}", experiment.id));
        let context = Context::new(experiment, mode, roster, cache, trainer);
        if context.has_runs()? {
            super::findings_of(&Context { plan: Some(&plan), ..context })?;
        }
        progress.step();
    }
    progress.finish();
    Ok(plan.all.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Carries out the trainings that experiments need and the cache does not have, at most `most` of them. Returns the
/// number of those that are left.
pub fn train(
    chosen: &[&'static Experiment],
    mode: Mode,
    roster: &Roster,
    cache: &Cache,
    trainer: &dyn Trainer,
    most: usize,
) -> Result<usize, ReproduceError> {
    let mut allowed = most;
    loop {
        let mut missing = plan(chosen, mode, roster, cache, trainer)?;
        missing.retain(|planned| !planned.is_done);
        let ready: Vec<&Planned> = missing.iter().filter(|planned| !planned.waits).take(allowed).collect();
        let Some(first) = ready.first() else { return Ok(missing.len()) };
        let experiment = super::find(first.experiment)?;
        let trainings: Vec<Training<'_>> = ready.iter().map(|planned| planned.training()).collect();
        Context::new(experiment, mode, roster, cache, trainer).trained_all(&trainings)?;
        allowed -= ready.len();
    }
}
