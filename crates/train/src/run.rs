//! A whole training: stage after stage, phase after phase. After each phase progress is judged on unseen jobs and everything is handed out as a
//! checkpoint. Environments and random numbers begin anew with each phase, from the seed and the phase alone, so that a training that was
//! interrupted goes on exactly as if it had not been.

use std::sync::Arc;

use rand::SeedableRng;
use rand_pcg::Pcg64;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use temponet::{Learned, Model, NetworkError, Options, Scale, provenance};
use temponet_grad::{Device, Tensors};
use temponet_infer::Weights;
use temponet_sim::{Metrics, SimError, simulate};
use temponet_task::{TaskSet, Time};

use crate::calibration::calibrate;
use crate::cloning::DemonstrationBuffer;
use crate::dqn::{Dqn, DqnSettings};
use crate::fleet::{Episodes, Fleet, FleetError, mix};
use crate::job_trace::{JobTrace, TraceSplit};
use crate::learner::{Learner, UpdateFigures};
use crate::offline::{Critic, OfflineAlgorithm, log_runs};
use crate::ppo;
use crate::recipe::{Method, Recipe, Stage};
use crate::reward::RewardAccumulator;
use crate::rollouts::{Comparison, ComparisonBuffer, look};
use crate::task_set_source::TaskSetSource;

/// Why a training stopped.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// An environment could not go on.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// The deployed scheduler could not run.
    #[error(transparent)]
    TapeNetwork(#[from] NetworkError),
    /// A run could not be simulated.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The numbers went astray.
    #[error(
        "the training diverged in stage {stage}, phase {phase}: the {what} is {value}; what was learned before is kept"
    )]
    Diverged {
        /// The stage, counted from 1.
        stage: usize,
        /// The phase, counted from 1.
        phase: u64,
        /// What was not finite.
        what: &'static str,
        /// What it was.
        value: f64,
    },
    /// The device computes no longer.
    #[error("{0}; the last checkpoint is kept")]
    Device(String),
    /// A checkpoint is of another training, or damaged.
    #[error("the checkpoint cannot be used: {0}")]
    Checkpoint(String),
    /// Whoever watches cannot go on.
    #[error("{0}")]
    Stopped(String),
}

/// What a phase came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseFigures {
    /// The stage, counted from 1.
    pub stage: usize,
    /// What it does.
    pub method: String,
    /// The phase in its stage, counted from 1.
    pub phase: u64,
    /// Updates of the stage so far.
    pub updates: u64,
    /// The mean loss of the phase's updates.
    pub loss: f64,
    /// The mean norm of their gradients.
    pub norm: f64,
    /// Share of the validation jobs in time, each counted by what it is worth: what the best weights are chosen by.
    pub score: f64,
    /// The best score so far.
    pub best: f64,
    /// Share of the validation jobs in time, each counted as one.
    pub met: f64,
    /// The same of the critical ones; none where none is.
    pub critical: Option<f64>,
}

/// What a model comes to on unseen jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValidationScores {
    /// Mean share in time, each job counted by what it is worth.
    pub score: f64,
    /// Mean share in time, each job counted as one.
    pub met: f64,
    /// Mean share of the critical jobs in time, over the runs that have any.
    pub critical: Option<f64>,
}

/// Watches a training.
pub trait TrainingObserver {
    /// It begins with a model whose share of the validation jobs in time is this.
    fn begun(&mut self, _validated: &ValidationScores) {}
    /// An update was made: so many of so many in this stage.
    fn updated(&mut self, _stage: usize, _done: u64, _of: u64, _figures: UpdateFigures) {}
    /// A phase is over. The checkpoint is what [`TrainingRun::resume`] takes; an error stops the training.
    fn phase(
        &mut self,
        _figures: &PhaseFigures,
        _checkpoint: &mut dyn FnMut() -> Result<Vec<u8>, TrainError>,
    ) -> Result<(), TrainError> {
        Ok(())
    }
}

/// Watches nothing.
pub struct NoObserver;

impl TrainingObserver for NoObserver {}

/// Where the phases of a training stand; what is not a tensor in a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TrainingProgress {
    /// The stage under way.
    pub stage: usize,
    /// Its phases done.
    pub phase: u64,
    /// The best score so far.
    pub best: Option<f64>,
    /// Phases of the stage since then.
    pub since_best: u64,
    /// What all phases so far came to.
    pub figures: Vec<PhaseFigures>,
}

/// What a method remembers from phase to phase.
pub(crate) enum Memory<D: Device<Real = f32>> {
    Cloning(DemonstrationBuffer),
    Rollouts(ComparisonBuffer),
    Dqn(Box<Dqn<D>>),
    Nothing,
    Offline { dqn: Box<Dqn<D>>, judge: Option<Box<Critic<D>>> },
}

/// A training under way.
pub struct TrainingRun<D: Device<Real = f32>> {
    pub(crate) recipe: Recipe,
    source: Option<Arc<TaskSet>>,
    /// Of the source, if it is a trace.
    parts: Option<TraceSplit>,
    pub(crate) learner: Learner<D>,
    pub(crate) memory: Memory<D>,
    pub(crate) progress: TrainingProgress,
    /// The best weights so far.
    pub(crate) best: Weights,
    /// Where the model that it began with comes from, if it began with one.
    begun_with: Option<String>,
}

/// A set may have more ready jobs than tasks, and what was learned carries a little further than what was seen.
const SPARE: f64 = 1.5;

/// Validation and test jobs have seeds of their own.
const VALIDATION: u64 = 0x7A11_DA7E;

impl<D: Device<Real = f32>> TrainingRun<D> {
    /// A training that has not begun, on the user's own set if there is one. It begins with a model's weights, or with random ones.
    pub fn new(device: D, recipe: Recipe, set: Option<TaskSet>, begin_with: Option<&Weights>) -> TrainingRun<D> {
        let tokenizer = recipe.tokenizer();
        let random = || Weights::random(recipe.network.architecture(&tokenizer), mix(recipe.seed, 1));
        let weights = begin_with.cloned().unwrap_or_else(random);
        let learner = Learner::new(device, &weights, recipe.optimizer.adam);
        let mut run = TrainingRun {
            parts: set.as_ref().and_then(JobTrace::split),
            source: set.map(Arc::new),
            learner,
            memory: Memory::Nothing,
            progress: TrainingProgress::default(),
            best: weights,
            recipe,
            begun_with: begin_with.map(|weights| provenance(weights).unwrap_or("unknown weights").into()),
        };
        run.memory = run.begin_stage(0);
        run
    }

    /// Fresh memory for a stage.
    pub(crate) fn begin_stage(&mut self, stage: usize) -> Memory<D> {
        self.learner.restart_optimizer();
        let Some(stage) = self.recipe.stage.get(stage) else { return Memory::Nothing };
        match &stage.method {
            Method::Cloning(settings) => Memory::Cloning(DemonstrationBuffer::new(settings)),
            Method::Rollouts(settings) => Memory::Rollouts(ComparisonBuffer::new(settings)),
            Method::Dqn(settings) => Memory::Dqn(Box::new(Dqn::new(settings.clone(), &mut self.learner))),
            Method::Ppo(_) | Method::Stay(_) => Memory::Nothing,
            Method::Offline(settings) => {
                let mut dqn_settings = settings.dqn.clone();
                if let OfflineAlgorithm::Cql { conservative } = settings.algorithm {
                    dqn_settings = DqnSettings { conservative, ..dqn_settings };
                }
                let dqn = Box::new(Dqn::new(dqn_settings, &mut self.learner));
                let judge = matches!(settings.algorithm, OfflineAlgorithm::Iql { .. }).then(|| {
                    let weights = Weights::random(self.learner.network.architecture.clone(), mix(self.recipe.seed, 2));
                    let device = self.learner.another_device();
                    let mut learner = Learner::new(device, &weights, self.recipe.optimizer.adam);
                    let target = learner.copy_parameters();
                    Box::new(Critic { learner, target })
                });
                Memory::Offline { dqn, judge }
            }
        }
    }

    /// What tells one set from another.
    pub(crate) fn set_fingerprint(&self) -> String {
        self.source.as_ref().map_or("drawn sets".into(), |set| format!("{set:?}"))
    }

    /// The model as it is best so far, with where it comes from.
    pub fn model(&self) -> Model {
        let mut model = Model { tokenizer: self.recipe.tokenizer(), weights: self.best.clone() };
        let methods: Vec<&str> = self.recipe.stage.iter().map(|stage| stage.method.name()).collect();
        let on = self.source.as_ref().map_or("drawn sets".into(), |set| format!("{:?}", set.name));
        let own = format!("trained on {on}: {}; seed {}", methods.join(", "), self.recipe.seed);
        let provenance = match &self.begun_with {
            Some(before) => format!("{before}; then {own}"),
            None => own,
        };
        model.set_provenance(provenance);
        model.set_reach(match &self.source {
            Some(set) => (set.tasks.len() as f64 / set.cores as f64).ceil() * SPARE,
            None => self.recipe.workloads().map(|ranges| ranges.tasks_per_core.1).fold(1.0, f64::max) * SPARE,
        });
        model
    }

    /// What all phases so far came to, those before an interruption included.
    pub fn figures(&self) -> &[PhaseFigures] {
        &self.progress.figures
    }

    /// Goes through the stages to the end.
    pub fn train(&mut self, watch: &mut dyn TrainingObserver) -> Result<(), TrainError> {
        if self.begun_with.is_some() && self.progress == TrainingProgress::default() {
            // What it began with is kept until something is better.
            let model = Arc::new(Model { tokenizer: self.recipe.tokenizer(), weights: self.best.clone() });
            let validated = self.validate(&model)?;
            self.progress.best = Some(validated.score);
            watch.begun(&validated);
        }
        while let Some(stage) = self.recipe.stage.get(self.progress.stage).cloned() {
            if self.progress.phase >= stage.phases || self.is_patience_over() {
                self.progress.stage += 1;
                self.progress.phase = 0;
                self.progress.since_best = 0;
                self.memory = self.begin_stage(self.progress.stage);
                continue;
            }
            let (loss, norm) = match self.phase(&stage, watch) {
                // Every scheduler does the same there, and so does this one.
                Err(TrainError::Fleet(FleetError::NothingToChoose)) => (0.0, 0.0),
                outcome => outcome?,
            };
            if let Some(failure) = self.learner.failure() {
                return Err(TrainError::Device(failure));
            }
            self.progress.phase += 1;
            let figures = self.judge(&stage, loss, norm)?;
            self.progress.figures.push(figures.clone());
            watch.phase(&figures, &mut || self.checkpoint())?;
        }
        Ok(())
    }

    fn is_patience_over(&self) -> bool {
        self.recipe.validation.patience.is_some_and(|patience| self.progress.since_best >= patience)
    }

    fn episodes(&self, stage: &Stage, teacher: Option<String>) -> Episodes {
        let source = match (&self.parts, &self.source, &stage.workload) {
            (Some(parts), ..) => TaskSetSource::Trace(parts.training.clone()),
            (None, Some(set), _) => TaskSetSource::Fixed(set.clone()),
            (None, None, Some(ranges)) => TaskSetSource::Drawn(Box::new(ranges.clone())),
            (None, None, None) => TaskSetSource::Drawn(Box::new(self.recipe.workload.clone())),
        };
        let episode = self.recipe.episode;
        Episodes {
            source,
            tokenizer: Arc::new(self.recipe.tokenizer()),
            reward: stage.reward.unwrap_or(episode.reward),
            length: episode.length,
            tick: episode.tick,
            gamma: episode.gamma,
            teacher,
            with_base_scheduler: matches!(stage.method, Method::Rollouts(_)),
        }
    }

    /// One phase; gives its mean loss and norm.
    fn phase(&mut self, stage: &Stage, watch: &mut dyn TrainingObserver) -> Result<(f64, f64), TrainError> {
        let own_seed = mix(self.recipe.seed, 16 + self.progress.stage as u64);
        let seed = mix(own_seed, self.progress.phase);
        let mut rng = Pcg64::seed_from_u64(mix(seed, 3));
        let optimizer = self.recipe.optimizer;
        let (place, phase, in_all) = (self.progress.stage, self.progress.phase, stage.phases * stage.method.updates());
        let base = stage.rate.unwrap_or(optimizer.rate);
        let first = phase * stage.method.updates();
        let (mut asked, mut updates, mut sums) = (first, 0u64, (0.0, 0.0));
        let mut rate = || {
            let rate = base * optimizer.schedule.factor(asked, in_all, optimizer.warm_up);
            asked += 1;
            (rate, optimizer.clip)
        };
        let mut done = |learner: &Learner<D>, figures: UpdateFigures| {
            if let Some(failure) = learner.failure() {
                return Err(TrainError::Device(failure));
            }
            for (what, value) in [("loss", figures.loss), ("gradient's norm", figures.norm)] {
                if !value.is_finite() {
                    return Err(TrainError::Diverged { stage: place + 1, phase: phase + 1, what, value });
                }
            }
            updates += 1;
            sums = (sums.0 + figures.loss, sums.1 + figures.norm);
            watch.updated(place + 1, first + updates, in_all, figures);
            Ok(())
        };
        let teacher = match &stage.method {
            Method::Cloning(settings) => Some(settings.teacher.clone()),
            _ => None,
        };
        let episodes = self.episodes(stage, teacher);
        let (learner, mut last) = (&mut self.learner, None);
        match (&stage.method, &mut self.memory) {
            (Method::Cloning(settings), Memory::Cloning(lessons)) => {
                let mut fleet = Fleet::new(episodes, settings.environments, seed)?;
                let own_share = if phase == 0 { 0.0 } else { settings.dagger };
                lessons.collect(settings, learner, &mut fleet, &mut rng, own_share)?;
                for _ in 0..if lessons.is_empty() { 0 } else { settings.updates } {
                    let (rate, clip) = rate();
                    let queued = lessons.update(settings, learner, &mut rng, rate, clip);
                    learner.tell(&mut last, Some(queued), &mut done)?;
                }
                learner.tell(&mut last, None, &mut done)?;
            }
            (Method::Rollouts(settings), Memory::Rollouts(findings)) => {
                let mut actor = learner.twin();
                let mut look = |phase: u64| -> Result<Vec<Comparison>, FleetError> {
                    let seed = mix(own_seed, phase);
                    let mut fleet = Fleet::new(episodes.clone(), settings.environments, seed)?;
                    let own_share = if phase < 2 { 0.0 } else { settings.own_share };
                    look(settings, &mut actor, &mut fleet, mix(seed, 5), own_share)
                };
                let found = findings.ahead.take().map_or_else(|| look(phase), Ok)?;
                findings.add(found);
                let mut ahead = None;
                rayon::in_place_scope(|scope| {
                    if phase + 1 < stage.phases {
                        // What goes wrong there will again when it is that phase's turn.
                        scope.spawn(|_| ahead = look(phase + 1).ok());
                    }
                    for _ in 0..if findings.is_empty() { 0 } else { settings.updates } {
                        let (rate, clip) = rate();
                        let queued = findings.update(settings, learner, &mut rng, rate, clip);
                        learner.tell(&mut last, Some(queued), &mut done)?;
                    }
                    learner.tell(&mut last, None, &mut done)
                })?;
                findings.ahead = ahead;
            }
            (Method::Dqn(settings), Memory::Dqn(dqn)) => {
                if phase == 0 && (self.begun_with.is_some() || place > 0) {
                    let mut fleet = Fleet::new(episodes.clone(), settings.environments, mix(seed, 6))?;
                    calibrate(settings, learner, &mut fleet, &mut rng)?;
                    dqn.target = learner.copy_parameters();
                }
                let mut fleet = Fleet::new(episodes, settings.environments, seed)?;
                let (from, to) = settings.epsilon;
                let phases = stage.phases as f64;
                // Falls over the first half and stays.
                let epsilon = |share: f64| from + (to - from) * (2.0 * (phase as f64 + share) / phases).min(1.0);
                dqn.phase(learner, &mut fleet, &mut rng, epsilon, rate, done)?;
            }
            (Method::Ppo(settings), Memory::Nothing) => {
                let mut fleet = Fleet::new(episodes, settings.environments, seed)?;
                ppo::rounds(settings, learner, &mut fleet, seed, rate, done)?;
            }
            (Method::Offline(settings), Memory::Offline { dqn, judge }) => {
                if dqn.replay.is_empty() {
                    dqn.replay = log_runs(settings, &episodes, mix(self.recipe.seed, 4))?;
                }
                for _ in 0..settings.updates {
                    let (rate, clip) = rate();
                    match (settings.algorithm, &mut *judge) {
                        (OfflineAlgorithm::Iql { expectile, sharpness }, Some(judge)) => {
                            let figures = judge.update(dqn, (expectile, sharpness), learner, &mut rng, rate, clip);
                            done(learner, figures)?;
                        }
                        _ => {
                            let queued = dqn.update(learner, &mut rng, rate, clip);
                            learner.tell(&mut last, Some(queued), &mut done)?;
                        }
                    }
                }
                learner.tell(&mut last, None, &mut done)?;
            }
            _ => {}
        }
        let count = updates.max(1) as f64;
        Ok((sums.0 / count, sums.1 / count))
    }

    /// Judges the learner on unseen jobs and keeps it if it is the best.
    fn judge(&mut self, stage: &Stage, loss: f64, norm: f64) -> Result<PhaseFigures, TrainError> {
        let tokenizer = self.recipe.tokenizer();
        let model = match &stage.method {
            Method::Stay(settings) => {
                let mut model = Model { tokenizer, weights: self.best.clone() };
                model.set_stay((settings.step * (self.progress.phase - 1) as f64) as f32);
                model
            }
            method => {
                let mut model = Model { tokenizer, weights: self.learner.weights() };
                model.set_never_idles(!method.may_idle());
                model
            }
        };
        let model = Arc::new(model);
        let validated = self.validate(&model)?;
        let score = validated.score;
        self.progress.since_best += 1;
        if self.progress.best.is_none_or(|best| score > best) {
            self.progress.best = Some(score);
            self.progress.since_best = 0;
            self.best = model.weights.clone();
        }
        Ok(PhaseFigures {
            stage: self.progress.stage + 1,
            method: stage.method.name().into(),
            phase: self.progress.phase,
            updates: self.progress.phase * stage.method.updates(),
            loss,
            norm,
            score,
            best: self.progress.best.unwrap_or(score),
            met: validated.met,
            critical: validated.critical,
        })
    }

    /// What a model without a shield comes to on unseen jobs.
    pub fn validate(&self, model: &Arc<Model>) -> Result<ValidationScores, TrainError> {
        let (validation, reward) = (self.recipe.validation, self.recipe.episode.reward);
        let own_seed = mix(self.recipe.seed, VALIDATION);
        // One run says all there is to say where no two differ.
        let is_random = self.source.as_ref().is_none_or(|set| set.is_random() || self.parts.is_some());
        let count = if is_random { validation.runs as u64 } else { 1 };
        let source = match (&self.parts, &self.source) {
            (Some(parts), _) => TaskSetSource::Trace(parts.validation.clone()),
            (None, Some(set)) => TaskSetSource::Fixed(set.clone()),
            (None, None) => TaskSetSource::Drawn(Box::new(self.recipe.workload.clone())),
        };
        let one = |run: u64| -> Result<(f64, Metrics), TrainError> {
            let seed = mix(own_seed, run);
            let set = source.set(seed).map_err(FleetError::from)?;
            let scale = Scale::of(&model.tokenizer, &set.system());
            let horizon = Time((scale.unit * validation.length).min(Time::MAX_INPUT.0 as f64) as u64);
            let mut scheduler = Learned::new(model.clone(), Options::default())?;
            let mut purse = RewardAccumulator::new(reward, scale.unit, &set).on_time_only(horizon);
            let metrics = simulate(&set, seed, horizon, &mut scheduler, &mut purse)?;
            Ok((purse.share(), metrics))
        };
        let runs = (0..count).into_par_iter().map(one).collect::<Result<Vec<_>, TrainError>>()?;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let scores: Vec<f64> = runs.iter().map(|(score, _)| *score).collect();
        let met: Vec<f64> = runs.iter().map(|(_, metrics)| metrics.jobs.compliance()).collect();
        let critical: Vec<f64> = runs.iter().filter_map(|(_, metrics)| metrics.pitmd()).collect();
        let critical = (!critical.is_empty()).then(|| mean(&critical));
        Ok(ValidationScores { score: mean(&scores), met: mean(&met), critical })
    }

    /// Shows all tensors of a checkpoint: a name for each list of them, and the device they live on.
    pub(crate) fn visit(&mut self, mut each: impl FnMut(String, &mut D, &mut Tensors<D>)) {
        let (others, judge) = match &mut self.memory {
            Memory::Dqn(dqn) => (vec![("target", &mut dqn.target)], None),
            Memory::Offline { dqn, judge } => (vec![("target", &mut dqn.target)], judge.as_mut()),
            Memory::Cloning(_) | Memory::Rollouts(_) | Memory::Nothing => (Vec::new(), None),
        };
        self.learner.visit(others, |name, device, tensors| each(name.into(), device, tensors));
        if let Some(judge) = judge {
            let Critic { learner, target } = &mut **judge;
            learner.visit(vec![("target", target)], |name, device, tensors| {
                each(format!("judge-{name}"), device, tensors)
            });
        }
    }
}
