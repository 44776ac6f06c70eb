//! The trainings that experiments need, without carrying them out, and all of them carried out in one go.
//!
//! A plan is made by running the experiments with untrained networks, without the contests that take their time: so it
//! names the trainings that the experiments ask for, and nothing has to be listed twice. A training that begins with a model that
//! is not trained yet has to wait for it, and so has one whose rate or reward others choose.
//!
//! Several processes share a plan by its parts ([`Part`]). They need not know of each other: each makes the plan itself and
//! carries out what is at its own places.

use std::collections::BTreeSet;
use std::str::FromStr;
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
    /// Whether it begins with a model that is not trained yet, or trainings that are not done choose its settings.
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

/// One of several parts of a plan, such as 2/16: every 16th training, from the second on. A training is at the same place
/// of the plan whether others are done or not, so that parts are disjoint, whenever and wherever each is carried out.
/// Neighbors in a plan are seeds of one variant, which take about equally long, and so do the parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Number of this part, from 1.
    number: usize,
    of: usize,
}

impl Part {
    /// The whole plan.
    pub const WHOLE: Part = Part { number: 1, of: 1 };

    /// Whether the training at this place of the plan, from 0, belongs to this part.
    pub fn has(self, place: usize) -> bool {
        place % self.of == self.number - 1
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        let numbers = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Part { number, of }),
            Some((number, of)) if of > 0 => {
                Err(format!("there is no part {number} of {of}; they count from 1 to {of}"))
            }
            _ => Err("a part is a number and how many there are, such as 1/4".into()),
        }
    }
}

/// Trainings that were asked for so far.
#[derive(Default)]
pub struct Plan {
    all: Mutex<Vec<Planned>>,
    /// Keys of models that were handed out without being trained.
    untrained: Mutex<BTreeSet<String>>,
    /// Variants, with their experiments, whose settings depend on trainings that are not done.
    open: Mutex<BTreeSet<(&'static str, String)>>,
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
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let is_open = open.contains(&(experiment, training.name.to_string()));
        let waits = known.is_none() && (is_open || begun.is_some_and(|key| untrained.contains(&key)));
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

impl Context<'_> {
    /// Says that these trainings choose settings of a variant. As long as one of them is not done, a plan has the variant's
    /// trainings wait that follow.
    pub(crate) fn chooses(&self, trained: &[Vec<Trained>], variant: &str) {
        let Some(plan) = self.plan else { return };
        if trained.iter().flatten().any(|trained| trained.history.phases.is_empty()) {
            let mut open = plan.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.insert((self.experiment.id, variant.into()));
        }
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

/// What a call leaves to others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Left {
    /// Missing trainings of the part.
    pub of_part: usize,
    /// Missing trainings of the whole plan.
    pub of_plan: usize,
}

/// Carries out the trainings of a part of the plan that the cache does not have, at most `most` of them. A training that
/// begins with a model of another part is left to a later call if that model is not there when everything else is done.
pub fn train(
    chosen: &[&'static Experiment],
    mode: Mode,
    roster: &Roster,
    cache: &Cache,
    trainer: &dyn Trainer,
    part: Part,
    most: usize,
) -> Result<Left, ReproduceError> {
    let mut allowed = most;
    loop {
        let all = plan(chosen, mode, roster, cache, trainer)?;
        let of_plan = all.iter().filter(|planned| !planned.is_done).count();
        let own = all.iter().enumerate().filter(|(place, planned)| part.has(*place) && !planned.is_done);
        let missing: Vec<&Planned> = own.map(|(_, planned)| planned).collect();
        let ready: Vec<&&Planned> = missing.iter().filter(|planned| !planned.waits).take(allowed).collect();
        let Some(first) = ready.first() else { return Ok(Left { of_part: missing.len(), of_plan }) };
        let experiment = super::find(first.experiment)?;
        let trainings: Vec<Training<'_>> = ready.iter().map(|planned| planned.training()).collect();
        Context::new(experiment, mode, roster, cache, trainer).trained_all(&trainings)?;
        allowed -= ready.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_training_is_in_one_part() {
        let parts: Vec<Part> = ["1/3", "2/3", "3/3"].iter().map(|text| text.parse().unwrap()).collect();
        for place in 0..20 {
            assert_eq!(parts.iter().filter(|part| part.has(place)).count(), 1, "{place}");
        }
        assert!(parts[1].has(1) && parts[1].has(4) && (0..20).all(|place| Part::WHOLE.has(place)));
        assert_eq!("1/1".parse(), Ok(Part::WHOLE));
    }

    #[test]
    fn what_is_no_part_is_told() {
        let error = |text: &str| text.parse::<Part>().unwrap_err();
        assert_eq!(error("0/4"), "there is no part 0 of 4; they count from 1 to 4");
        assert_eq!(error("5/4"), "there is no part 5 of 4; they count from 1 to 4");
        for text in ["x", "", "1", "0/0", "1/0", "1/-2", "-1/2", "1/2/3", "1/99999999999999999999"] {
            assert!(error(text).contains("such as 1/4"), "{text}");
        }
    }
}
