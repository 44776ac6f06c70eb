//! Models that experiments train, each only once: the next call, of any experiment, finds it in the cache.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use temponet::Model;
use temponet_grad::{Cpu, Device};
use temponet_task::TaskSet;
use temponet_train::{PhaseFigures, Recipe, TrainError, TrainingObserver, TrainingRun, UpdateFigures};

use super::cache::{Cache, key};
use super::{Context, ReproduceError};
use crate::progress::Progress;
use crate::stats::percent;

/// What to train.
#[derive(Clone, Debug)]
pub struct Training<'a> {
    /// What the progress bar calls it.
    pub name: &'a str,
    /// Network, stages, everything.
    pub recipe: &'a Recipe,
    /// The set to learn on; none: those that the recipe draws.
    pub set: Option<&'a TaskSet>,
    /// A model of the same shape to begin with; none: random weights.
    pub begin_with: Option<&'a Model>,
}

/// A trained model, and how it went.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The best weights of the training.
    pub model: Model,
    /// How it went.
    pub history: History,
}

/// How a training went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Phase by phase.
    pub phases: Vec<PhaseFigures>,
    /// Wall-clock seconds of the call that ended it; after an interruption, of the last part only.
    pub seconds: f64,
}

/// Where models are trained.
pub trait Trainer: Sync {
    /// What the device is called. Kinds of devices round differently, so that each has models of its own in the cache.
    fn kind(&self) -> &'static str;

    /// Trains, going on from a checkpoint where there is one of this training: the model, and how its phases went.
    fn train(
        &self,
        training: &Training<'_>,
        checkpoint: Option<&[u8]>,
        watch: &mut dyn TrainingObserver,
    ) -> Result<(Model, Vec<PhaseFigures>), TrainError>;
}

/// Trains on devices of one kind, every training on one of its own.
pub struct On<D> {
    kind: &'static str,
    first: Mutex<D>,
}

impl<D> On<D> {
    /// Devices like this one.
    pub fn new(kind: &'static str, device: D) -> On<D> {
        On { kind, first: Mutex::new(device) }
    }
}

impl On<Cpu<f32>> {
    /// The processor.
    pub fn cpu() -> On<Cpu<f32>> {
        On::new("cpu", Cpu::default())
    }
}

impl<D: Device<Real = f32>> Trainer for On<D> {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn train(
        &self,
        training: &Training<'_>,
        checkpoint: Option<&[u8]>,
        watch: &mut dyn TrainingObserver,
    ) -> Result<(Model, Vec<PhaseFigures>), TrainError> {
        let weights = training.begin_with.map(|model| &model.weights);
        let begin = || {
            let device = self.first.lock().unwrap_or_else(PoisonError::into_inner).another();
            TrainingRun::new(device, training.recipe.clone(), training.set.cloned(), weights)
        };
        let mut run = begin();
        // A checkpoint of another program version is no help, and no harm.
        if checkpoint.is_some_and(|bytes| run.resume(bytes).is_err()) {
            run = begin();
        }
        run.train(watch)?;
        Ok((run.model(), run.figures().to_vec()))
    }
}

impl Context<'_> {
    /// The model of a training, from the cache where it is there. A training that was interrupted goes on where it stopped.
    pub fn trained(&self, training: &Training<'_>) -> Result<Trained, ReproduceError> {
        let progress = Progress::steps(updates(training));
        progress.say(training.name);
        let trained = self.train(training, &progress);
        progress.finish();
        trained
    }

    /// The models of many trainings, each on one thread and as many at once as there are threads; what comes of them does not depend on that.
    pub fn trained_all(&self, trainings: &[Training<'_>]) -> Result<Vec<Trained>, ReproduceError> {
        let threads = rayon::current_num_threads().min(trainings.len());
        if threads < 2 {
            return trainings.iter().map(|training| self.trained(training)).collect();
        }
        let progress = Progress::steps(trainings.iter().map(updates).sum());
        let next = AtomicUsize::new(0);
        let worker = || -> Result<Vec<(usize, Trained)>, ReproduceError> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
            let pool = pool.map_err(|error| self.broken("thread", &error))?;
            let mut done = Vec::new();
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(training) = trainings.get(place) else { break };
                done.push((place, pool.install(|| self.train(training, &progress))?));
            }
            Ok(done)
        };
        let done: Vec<_> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().map(|worker| worker.join()).collect()
        });
        progress.finish();
        let mut all = Vec::new();
        for worker in done {
            all.extend(worker.map_err(|_| self.broken("thread", &"it came to an end"))??);
        }
        all.sort_by_key(|(place, _)| *place);
        Ok(all.into_iter().map(|(_, trained)| trained).collect())
    }

    fn train(&self, training: &Training<'_>, progress: &Progress) -> Result<Trained, ReproduceError> {
        let recipe = serde_json::to_string(training.recipe).map_err(|error| self.broken("recipe", &error))?;
        let set = training.set.map_or(String::new(), |set| format!("{set:?}"));
        let begun = training.begin_with.map_or(String::new(), |model| model.checksum().unwrap_or_default());
        let kind = self.trainer.kind();
        let name = format!("model-{}", key(&[env!("CARGO_PKG_VERSION"), &recipe, &set, &begun, kind]));
        let files = [".safetensors", ".json", ".checkpoint"].map(|ending| name.clone() + ending);
        if let Some(known) = self.known(&files)? {
            return Ok(known);
        }
        let checkpoint = self.cache.read(&files[2])?;
        let begin = Instant::now();
        let mut watcher = Watcher { name: training.name, progress, cache: self.cache, checkpoint: &files[2] };
        let outcome = self.trainer.train(training, checkpoint.as_deref(), &mut watcher);
        let (model, phases) =
            outcome.map_err(|error| ReproduceError::Train(training.name.into(), error.to_string()))?;
        let history = History { phases, seconds: begin.elapsed().as_secs_f64() };
        self.cache.write(&files[1], &serde_json::to_vec(&history).map_err(|error| self.broken("history", &error))?)?;
        self.cache.write(&files[0], &model.to_bytes().map_err(|error| self.broken("model", &error))?)?;
        self.cache.remove(&files[2]);
        Ok(Trained { model, history })
    }

    fn known(&self, [model, history, _]: &[String; 3]) -> Result<Option<Trained>, ReproduceError> {
        let (Some(bytes), Some(text)) = (self.cache.read(model)?, self.cache.read(history)?) else { return Ok(None) };
        // What is damaged is trained again.
        Ok(Model::from_bytes(&bytes)
            .ok()
            .zip(serde_json::from_slice(&text).ok())
            .map(|(model, history)| Trained { model, history }))
    }

    fn broken(&self, what: &str, error: &dyn std::fmt::Display) -> ReproduceError {
        ReproduceError::Train(what.into(), error.to_string())
    }
}

fn updates(training: &Training<'_>) -> u64 {
    training.recipe.stage.iter().map(|stage| stage.phases * stage.method.updates()).sum()
}

/// Moves the bar and keeps checkpoints.
struct Watcher<'a> {
    name: &'a str,
    progress: &'a Progress,
    cache: &'a Cache,
    checkpoint: &'a str,
}

impl TrainingObserver for Watcher<'_> {
    fn updated(&mut self, _stage: usize, _done: u64, _of: u64, _figures: UpdateFigures) {
        self.progress.step();
    }

    fn phase(
        &mut self,
        figures: &PhaseFigures,
        checkpoint: &mut dyn FnMut() -> Result<Vec<u8>, TrainError>,
    ) -> Result<(), TrainError> {
        let PhaseFigures { method, phase, score, .. } = figures;
        self.progress.say(&format!("{}: {method}, phase {phase}, in time {}", self.name, percent(*score)));
        self.cache.write(self.checkpoint, &checkpoint()?).map_err(|error| TrainError::Stopped(error.to_string()))
    }
}
