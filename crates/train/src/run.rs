//! A whole training: stage after stage, phase after phase.
//!
//! After each phase the model is validated on unseen jobs, and everything needed to continue is handed to the observer
//! as a checkpoint. Environments and random numbers start anew with each phase, from the seed and the number of the
//! phase alone. An interrupted training therefore continues exactly as if it had not been interrupted.

use std::sync::Arc;

use rand::SeedableRng;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use temponet::Model;
use temponet::stages::provenance;
use temponet_grad::{Device, Tensors};
use temponet_infer::Weights;
use temponet_task::TaskSet;

use crate::error::TrainError;
use crate::fleet::{Episodes, FleetError, mix};
use crate::job_trace::{JobTrace, TraceSplit};
use crate::learner::Learner;
use crate::method::{Algorithm, MethodDevice, Phase};
use crate::observer::{PhaseFigures, TrainingObserver};
use crate::recipe::{EpisodeSettings, Keep, Recipe, Stage};
use crate::task_set_source::TaskSetSource;
use crate::updates::{PhaseMeans, StepSize, UpdatePlan, Updates};
use crate::validation::{ValidationRuns, ValidationScores};

/// Position of a training in its recipe, and its results so far: the part of a checkpoint that every method has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TrainingProgress {
    /// Index of the stage under way, counted from 0.
    pub stage: usize,
    /// Phases of that stage that are done.
    pub phase: u64,
    /// Best validation score so far.
    pub best: Option<f64>,
    /// Phases of the stage since the best score.
    pub since_best: u64,
    /// Figures of all phases so far.
    pub figures: Vec<PhaseFigures>,
}

/// A training under way.
pub struct TrainingRun<D: Device> {
    pub(crate) recipe: Recipe,
    /// The user's own set, if there is one.
    set: Option<Arc<TaskSet>>,
    /// Parts of that set, if it is a trace.
    trace: Option<TraceSplit>,
    pub(crate) learner: Learner<D>,
    /// Algorithm of the stage under way; `None` after the last stage.
    pub(crate) algorithm: Option<Box<dyn Algorithm<D>>>,
    pub(crate) progress: TrainingProgress,
    /// Weights that are kept so far, the best or the last.
    pub(crate) best: Weights,
    /// Provenance of the model that the training began with, if it began with one.
    begun_with: Option<String>,
}

/// Invariant of [`TrainingRun::begin_stage`].
const UNDER_WAY: &str = "a stage of the recipe that is under way has an algorithm";

impl<D: MethodDevice> TrainingRun<D> {
    /// A training at its start: on the user's own set or on the recipe's workload, from a model's weights or from
    /// random ones.
    ///
    /// # Panics
    ///
    /// If the weights to begin with are not those of the recipe's network and tokens. Tokens would then have another
    /// meaning, without any other sign of it. [`Model::grown`] adapts a model with fewer features.
    pub fn new(device: D, recipe: Recipe, set: Option<TaskSet>, begin_with: Option<&Weights>) -> TrainingRun<D> {
        let tokenizer = recipe.tokenizer();
        let architecture = recipe.network.architecture(&tokenizer);
        if let Some(weights) = begin_with {
            assert_eq!(
                weights.architecture, architecture,
                "the model to begin with has the network and tokens of the recipe"
            );
        }
        let weights = begin_with.cloned().unwrap_or_else(|| Weights::random(architecture, mix(recipe.seed, 1)));
        let mut learner = Learner::new(device, &weights, recipe.optimizer.adam);
        learner.network.sparse = recipe.tokenizer().sparse;
        let mut run = TrainingRun {
            trace: set.as_ref().and_then(JobTrace::split),
            set: set.map(Arc::new),
            learner,
            algorithm: None,
            progress: TrainingProgress::default(),
            best: weights,
            recipe,
            begun_with: begin_with.map(|weights| provenance(weights).unwrap_or("unknown weights").into()),
        };
        run.begin_stage(0);
        run
    }

    /// Starts a stage: a fresh optimizer, and an algorithm that remembers nothing.
    pub(crate) fn begin_stage(&mut self, stage: usize) {
        self.learner.restart_optimizer();
        let stage = self.recipe.stage.get(stage);
        self.algorithm = stage.map(|stage| D::begin(&stage.method, &self.recipe, &mut self.learner));
    }

    /// Text that differs between trainings on different sets.
    pub(crate) fn set_fingerprint(&self) -> String {
        self.set.as_ref().map_or("drawn sets".into(), |set| set.fingerprint())
    }

    /// Returns the best model so far, with its provenance.
    pub fn model(&self) -> Model {
        let mut model = Model { tokenizer: self.recipe.tokenizer(), weights: self.best.clone() };
        let methods: Vec<&str> = self.recipe.stage.iter().map(|stage| stage.method.name()).collect();
        let on = self.set.as_ref().map_or("drawn sets".into(), |set| format!("{:?}", set.name));
        let own = format!("trained on {on}: {}; seed {}", methods.join(", "), self.recipe.seed);
        let provenance = match &self.begun_with {
            Some(before) => format!("{before}; then {own}"),
            None => own,
        };
        model.set_provenance(provenance);
        model
    }

    /// Returns the figures of all phases so far, including those before an interruption.
    pub fn figures(&self) -> &[PhaseFigures] {
        &self.progress.figures
    }

    /// Runs all stages that are left.
    pub fn train(&mut self, observer: &mut dyn TrainingObserver) -> Result<(), TrainError> {
        if self.begun_with.is_some() && self.progress == TrainingProgress::default() {
            // The model that the training began with is kept until a phase scores better, or until the next phase.
            let model = Arc::new(Model { tokenizer: self.recipe.tokenizer(), weights: self.best.clone() });
            let validated = self.validate(&model)?;
            self.progress.best = Some(validated.score);
            observer.begun(&validated);
        }
        while let Some(stage) = self.recipe.stage.get(self.progress.stage).cloned() {
            if self.progress.phase >= stage.phases || self.is_patience_over() {
                self.progress.stage += 1;
                self.progress.phase = 0;
                self.progress.since_best = 0;
                self.begin_stage(self.progress.stage);
                continue;
            }
            let means = match self.phase(&stage, observer) {
                // Where there is nothing to choose, all schedulers do the same, and there is nothing to learn.
                Err(TrainError::Fleet(FleetError::NothingToChoose)) => PhaseMeans::default(),
                outcome => outcome?,
            };
            if let Some(failure) = self.learner.failure() {
                return Err(TrainError::Device(failure));
            }
            self.progress.phase += 1;
            let figures = self.validate_phase(&stage, means)?;
            self.progress.figures.push(figures.clone());
            observer.kept(&figures, &|| self.model())?;
            observer.phase(&figures, &mut || self.checkpoint())?;
        }
        Ok(())
    }

    fn is_patience_over(&self) -> bool {
        self.recipe.validation.patience.is_some_and(|patience| self.progress.since_best >= patience)
    }

    /// Episodes of a stage, on the training part of a trace, the user's set, or the stage's workload.
    fn episodes(&self, stage: &Stage) -> Episodes {
        let source = match (&self.trace, &self.set, &stage.workload) {
            (Some(trace), ..) => TaskSetSource::Trace(trace.training.clone()),
            (None, Some(set), _) => TaskSetSource::Fixed(set.clone()),
            (None, None, Some(ranges)) => TaskSetSource::Drawn(Box::new(ranges.clone())),
            (None, None, None) => TaskSetSource::Drawn(Box::new(self.recipe.workload.clone())),
        };
        let episode = self.recipe.episode;
        let settings = EpisodeSettings { reward: stage.reward.unwrap_or(episode.reward), ..episode };
        let speeds = self.recipe.network.body.keys().speeds;
        Episodes { speeds, ..Episodes::new(source, self.recipe.tokenizer(), settings) }
    }

    /// Runs one phase of the stage's algorithm; returns the mean loss and gradient norm of its updates.
    fn phase(&mut self, stage: &Stage, observer: &mut dyn TrainingObserver) -> Result<PhaseMeans, TrainError> {
        let stage_seed = mix(self.recipe.seed, 16 + self.progress.stage as u64);
        let seed = mix(stage_seed, self.progress.phase);
        let (optimizer, updates) = (self.recipe.optimizer, stage.method.updates());
        let plan = UpdatePlan {
            stage: self.progress.stage + 1,
            phase: self.progress.phase + 1,
            first: self.progress.phase * updates,
            total: stage.phases * updates,
            size: StepSize { rate: stage.rate.unwrap_or(optimizer.rate), clip: optimizer.clip },
            schedule: optimizer.schedule,
            warm_up: optimizer.warm_up,
        };
        let mut phase = Phase {
            index: self.progress.phase,
            count: stage.phases,
            is_warm_start: self.begun_with.is_some() || self.progress.stage > 0,
            training_seed: self.recipe.seed,
            stage_seed,
            seed,
            rng: Pcg64::seed_from_u64(mix(seed, 3)),
            episodes: self.episodes(stage),
            updates: Updates::new(plan, observer),
        };
        let algorithm = self.algorithm.as_mut().expect(UNDER_WAY);
        algorithm.phase(&mut self.learner, &mut phase)?;
        phase.updates.finish()
    }

    /// Validates the model that a phase proposes, and keeps it if it is the best so far or the last is kept.
    fn validate_phase(&mut self, stage: &Stage, means: PhaseMeans) -> Result<PhaseFigures, TrainError> {
        let (tokenizer, phases) = (self.recipe.tokenizer(), self.progress.phase);
        let algorithm = self.algorithm.as_ref().expect(UNDER_WAY);
        let mut model = algorithm.candidate(&self.learner, tokenizer, &self.best, phases);
        model.set_tick(self.recipe.episode.tick);
        let model = Arc::new(model);
        let ValidationScores { score, met, critical } = self.validate(&model)?;
        self.progress.since_best += 1;
        let is_best = self.progress.best.is_none_or(|best| score > best);
        if is_best {
            self.progress.best = Some(score);
            self.progress.since_best = 0;
        }
        // Where nothing is learned, phases try out values, and only the best counts.
        if is_best || (self.recipe.validation.keep == Keep::Last && stage.method.updates() > 0) {
            self.best = model.weights.clone();
        }
        Ok(PhaseFigures {
            stage: self.progress.stage + 1,
            method: stage.method.name().into(),
            phase: phases,
            updates: phases * stage.method.updates(),
            loss: means.updates.loss,
            norm: means.updates.norm,
            skipped: means.skipped,
            score,
            best: self.progress.best.unwrap_or(score),
            met,
            critical,
        })
    }

    /// Scores a model, without a shield, on unseen jobs.
    pub fn validate(&self, model: &Arc<Model>) -> Result<ValidationScores, TrainError> {
        let source = match (&self.trace, &self.set) {
            (Some(trace), _) => TaskSetSource::Trace(trace.validation.clone()),
            (None, Some(set)) => TaskSetSource::Fixed(set.clone()),
            (None, None) => TaskSetSource::Drawn(Box::new(self.recipe.workload.clone())),
        };
        let Recipe { validation: settings, episode, seed, .. } = &self.recipe;
        ValidationRuns { source, settings: *settings, reward: episode.reward, seed: *seed }.score(model)
    }

    /// Shows all tensors of a checkpoint: the name of each list of them, the device they live on, and the list.
    pub(crate) fn visit_tensors(&mut self, mut each: impl FnMut(String, &mut D, &mut Tensors<D>)) {
        match &mut self.algorithm {
            Some(algorithm) => algorithm.visit_tensors(&mut self.learner, &mut each),
            None => self.learner.visit(Vec::new(), |name, device, tensors| each(name.into(), device, tensors)),
        }
    }
}
