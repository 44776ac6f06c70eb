//! How long the trainings of a plan take on the device at hand, by a few updates of each kind of training.
//!
//! Trainings of the same network on the same kind of sets by the same methods are of one kind, whatever their seeds,
//! rates and rewards. Validation is left out, so the sum is somewhat too small.

use std::collections::BTreeMap;
use std::time::Instant;

use temponet_lab::progress::Progress;
use temponet_train::{
    CloningSettings, DqnSettings, OfflineSettings, PpoSettings, Recipe, TrainingObserver, UpdateFigures,
};

use super::methods::A2cSettings;
use super::plan::Planned;
use super::rivals::replay_of;
use super::training::Training;
use super::{ReproduceError, Trainer};

/// Number of updates that are timed.
const UPDATES: u64 = 12;
/// Number of logged decisions of a stage that learns from them.
const LOGGED: u64 = 256;

/// Returns how long each training takes on one device, in hours.
pub fn hours(all: &[Planned], trainer: &dyn Trainer) -> Result<Vec<f64>, ReproduceError> {
    let mut known: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let progress = Progress::steps(all.len() as u64);
    let mut hours = Vec::new();
    for planned in all {
        let training = planned.training();
        progress.say(&format!("a few updates of {}", planned.name));
        let recipe = short(training.recipe);
        let kind = kind(&recipe, &training);
        let seconds = match known.get(&kind) {
            Some(seconds) => seconds.clone(),
            None => {
                let mut watch = Watch::new(&recipe);
                let outcome = trainer.train(&Training { recipe: &recipe, ..training.clone() }, None, &mut watch);
                outcome.map_err(|error| ReproduceError::Train(planned.name.clone(), error.to_string()))?;
                known.entry(kind).or_insert(watch.seconds()).clone()
            }
        };
        let of_stage = training.recipe.stage.iter().zip(seconds);
        let total: f64 =
            of_stage.map(|(stage, seconds)| (stage.phases * stage.method.updates()) as f64 * seconds).sum();
        hours.push(total / 3600.0);
        progress.step();
    }
    progress.finish();
    Ok(hours)
}

/// Returns the recipe with a few updates in each stage, and hardly any validation.
fn short(recipe: &Recipe) -> Recipe {
    let mut recipe = recipe.clone();
    (recipe.validation.runs, recipe.validation.length) = (1, 1.0);
    for stage in &mut recipe.stage {
        stage.phases = 1;
        let method = &mut stage.method;
        if let Some(dqn) = method.settings_mut::<DqnSettings>() {
            dqn.episodes = None;
        }
        if let Some(replay) = replay_of(method) {
            replay.learn_from = replay.batch as u64;
            replay.steps = replay.learn_from + UPDATES * replay.update_every;
        }
        if let Some(ppo) = method.settings_mut::<PpoSettings>() {
            ppo.rounds = 1;
        }
        if let Some(a2c) = method.settings_mut::<A2cSettings>() {
            a2c.updates = UPDATES;
        }
        if let Some(offline) = method.settings_mut::<OfflineSettings>() {
            (offline.transitions, offline.updates) = (LOGGED as usize, UPDATES);
        }
        if let Some(cloning) = method.settings_mut::<CloningSettings>() {
            (cloning.steps, cloning.updates) = (LOGGED, UPDATES);
        }
    }
    recipe
}

/// Text that is the same for trainings of one kind.
fn kind(recipe: &Recipe, training: &Training<'_>) -> String {
    let architecture = recipe.network.architecture(&recipe.tokenizer());
    let methods: Vec<_> = recipe.stage.iter().map(|stage| &stage.method).collect();
    let set = training.set.map(|set| set.fingerprint());
    format!("{architecture:?} {:?} {methods:?} {set:?} {}", recipe.workload, recipe.sparse)
}

/// Times of a stage.
struct StageTimes {
    /// Whether its first updates wait for a replay buffer, which a short training has to fill, too.
    has_replay: bool,
    begin: Option<Instant>,
    updates: u64,
    seconds: f64,
}

/// Measures the time of an update in each stage.
struct Watch {
    stages: Vec<StageTimes>,
    last: Instant,
}

impl Watch {
    fn new(recipe: &Recipe) -> Watch {
        let times = |has_replay| StageTimes { has_replay, begin: None, updates: 0, seconds: 0.0 };
        let has_replay = recipe.stage.iter().map(|stage| replay_of(&mut stage.method.clone()).is_some());
        Watch { stages: has_replay.map(times).collect(), last: Instant::now() }
    }

    /// Seconds of an update, stage by stage.
    fn seconds(&self) -> Vec<f64> {
        self.stages.iter().map(|of| of.seconds / of.updates.max(1) as f64).collect()
    }
}

impl TrainingObserver for Watch {
    fn updated(&mut self, stage: usize, _done: u64, _of: u64, _figures: UpdateFigures) {
        let now = Instant::now();
        let last = std::mem::replace(&mut self.last, now);
        let Some(times) = stage.checked_sub(1).and_then(|stage| self.stages.get_mut(stage)) else { return };
        match times.begin {
            None if times.has_replay => times.begin = Some(now),
            None => {
                // What is gathered before the first update belongs to all of them.
                times.begin = Some(last);
                (times.updates, times.seconds) = (1, (now - last).as_secs_f64());
            }
            Some(begin) => {
                times.updates += 1;
                times.seconds = (now - begin).as_secs_f64();
            }
        }
    }
}
