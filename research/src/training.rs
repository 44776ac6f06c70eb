//! Training of the models that experiments need.
//!
//! Every model is trained once. Later calls, also of other experiments, find it in the cache. An interrupted training
//! continues from its checkpoint.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use temponet::Model;
use temponet_formats::Format;
use temponet_task::TaskSet;
use temponet_train::{PhaseFigures, Recipe, Tokens, TrainError, TrainingDevice, TrainingObserver, UpdateFigures};

use super::cache::{Cache, TRAINING_CODE, key, model_key};
use super::{Context, ReproduceError};
use temponet_lab::progress::Progress;
use temponet_lab::stats::percent;

/// Kinds of devices whose models are taken from the cache, so that those of a GPU serve where there is none.
const KINDS: [&str; 2] = ["cuda", "cpu"];

/// A training to carry out.
#[derive(Clone, Debug)]
pub struct Training<'a> {
    /// Label of the progress bar.
    pub name: &'a str,
    /// Recipe: network, stages and all other settings.
    pub recipe: &'a Recipe,
    /// Task set to train on; none: sets drawn as the recipe says.
    pub set: Option<&'a TaskSet>,
    /// Initial model, of the same shape; none: random weights.
    pub begin_with: Option<&'a Model>,
}

/// A trained model.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The model with the best weights of the training.
    pub model: Model,
    /// Course of the training.
    pub history: History,
}

/// Course of a training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Figures of each phase.
    pub phases: Vec<PhaseFigures>,
    /// Wall-clock duration in seconds; after an interruption, of the last part only.
    pub seconds: f64,
}

/// Device that trains models.
pub trait Trainer: Sync {
    /// Returns the kind of the device. Different kinds round differently, so the cache tells their models apart.
    fn kind(&self) -> &'static str;

    /// Returns how many trainings are best carried out at once.
    fn at_once(&self) -> usize {
        rayon::current_num_threads()
    }

    /// Trains a model, continuing from a checkpoint of the same training if there is one. Returns the model and the
    /// figures of its phases.
    fn train(
        &self,
        training: &Training<'_>,
        checkpoint: Option<&[u8]>,
        watch: &mut dyn TrainingObserver,
    ) -> Result<(Model, Vec<PhaseFigures>), TrainError>;
}

/// A trainer that gives every training its own device, all of one kind.
pub struct DeviceTrainer {
    kind: &'static str,
    at_once: usize,
    first: Mutex<TrainingDevice>,
}

/// Trainings at once for each thread of the machine, in a gang: while the GPU computes for some, the threads simulate for
/// others.
const TOGETHER: usize = 8;

impl DeviceTrainer {
    /// Trains on devices like `device`.
    pub fn new(kind: &'static str, device: TrainingDevice) -> DeviceTrainer {
        DeviceTrainer { kind, at_once: rayon::current_num_threads(), first: Mutex::new(device) }
    }

    /// Trains on devices like this one of a gang, on more of them than there are threads.
    pub fn together(kind: &'static str, device: TrainingDevice) -> DeviceTrainer {
        DeviceTrainer { at_once: TOGETHER * rayon::current_num_threads(), ..DeviceTrainer::new(kind, device) }
    }

    /// Trains on the CPU.
    pub fn cpu() -> DeviceTrainer {
        DeviceTrainer::new("cpu", TrainingDevice::cpu())
    }
}

impl Trainer for DeviceTrainer {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn at_once(&self) -> usize {
        self.at_once
    }

    fn train(
        &self,
        training: &Training<'_>,
        checkpoint: Option<&[u8]>,
        watch: &mut dyn TrainingObserver,
    ) -> Result<(Model, Vec<PhaseFigures>), TrainError> {
        let tokenizer = training.recipe.tokenizer();
        let model = training.begin_with.map(|model| model.grown(&tokenizer)).transpose()?;
        let weights = model.as_ref().map(|model| &model.weights);
        let begin = || {
            let device = self.first.lock().unwrap_or_else(PoisonError::into_inner).another();
            device.session(training.recipe.clone(), training.set.cloned(), weights)
        };
        let mut run = begin();
        // A checkpoint of another program version cannot be resumed; the training then starts from the beginning.
        if checkpoint.is_some_and(|bytes| run.resume(bytes).is_err()) {
            run = begin();
        }
        run.train(watch)?;
        Ok((run.model(), run.figures().to_vec()))
    }
}

impl Context<'_> {
    /// Returns the model of a training, from the cache if it is there. An interrupted training continues where it
    /// stopped.
    pub fn trained(&self, training: &Training<'_>) -> Result<Trained, ReproduceError> {
        let progress = Progress::steps(updates(training));
        progress.say(training.name);
        let trained = self.train(training, &progress);
        progress.finish();
        trained
    }

    /// Returns the models of many trainings. Each training runs on one thread, and as many run at once as the trainer
    /// says. The models do not depend on their number.
    pub fn trained_all(&self, trainings: &[Training<'_>]) -> Result<Vec<Trained>, ReproduceError> {
        let threads = self.trainer.at_once().min(trainings.len());
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

    /// Returns the model of a training that has been carried out before, on this kind of device or else on another;
    /// `None` if it has not.
    pub fn already_trained(&self, training: &Training<'_>) -> Result<Option<Trained>, ReproduceError> {
        for kind in [self.trainer.kind()].into_iter().chain(KINDS) {
            if let Some(known) = self.known(&self.files(training, kind)?)? {
                return Ok(Some(known));
            }
        }
        Ok(None)
    }

    /// Returns the names of the cache files of a training on a kind of device: model, history and checkpoint.
    fn files(&self, training: &Training<'_>, kind: &str) -> Result<[String; 3], ReproduceError> {
        // Tokens have several names in recipes. What counts is what they tell, of which a later version may have more.
        let told = Tokens::Custom(Box::new(training.recipe.tokenizer()));
        let recipe = Recipe { tokens: told, ..training.recipe.clone() };
        let recipe = serde_json::to_string(&recipe).map_err(|error| self.broken("recipe", &error))?;
        let written = |set| temponet_formats::write(set, Format::Json).map_err(|error| self.broken("task set", &error));
        let set = training.set.map_or(Ok(String::new()), written)?;
        let begun = training.begin_with.map_or(Ok(String::new()), model_key)?;
        let name = format!("model-{}", key(&[TRAINING_CODE, &recipe, &set, &begun, kind]));
        Ok([".safetensors", ".json", ".checkpoint"].map(|ending| name.clone() + ending))
    }

    fn train(&self, training: &Training<'_>, progress: &Progress) -> Result<Trained, ReproduceError> {
        let files = self.files(training, self.trainer.kind())?;
        let known = self.already_trained(training)?;
        if let Some(plan) = self.plan {
            return plan.note(self.experiment.id, training, &files[0], known);
        }
        if let Some(known) = known {
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
        // A damaged model is trained again.
        Ok(Model::from_bytes(&bytes)
            .ok()
            .zip(serde_json::from_slice(&text).ok())
            .map(|(model, history)| Trained { model, history }))
    }

    fn broken(&self, what: &str, error: &dyn std::fmt::Display) -> ReproduceError {
        ReproduceError::Train(what.into(), error.to_string())
    }
}

/// Number of updates of the network in a training.
pub(crate) fn updates(training: &Training<'_>) -> u64 {
    training.recipe.stage.iter().map(|stage| stage.phases * stage.method.updates()).sum()
}

/// Advances the progress bar and stores checkpoints.
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
