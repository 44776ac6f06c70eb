//! What a training reports while it runs: figures of every update and of every phase, and a checkpoint after each
//! phase.

use serde::{Deserialize, Serialize};

use temponet::Model;

use crate::error::TrainError;
use crate::learner::UpdateFigures;
use crate::validation::ValidationScores;

/// Figures of one finished phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseFigures {
    /// Number of the stage, counted from 1.
    pub stage: usize,
    /// Name of the stage's method; see [`crate::Method::NAME`].
    pub method: String,
    /// Number of the phase in its stage, counted from 1.
    pub phase: u64,
    /// Updates of the stage so far, as the recipe plans them.
    pub updates: u64,
    /// Mean loss of the phase's updates.
    pub loss: f64,
    /// Mean norm of the phase's gradients before clipping.
    pub norm: f64,
    /// Updates of the phase that were left out, because their loss or gradient was not finite; no phase ends with one.
    #[serde(default)]
    pub skipped: u64,
    /// Validation score of the phase, 0 to 1; see [`ValidationScores::score`].
    pub score: f64,
    /// Best score so far, 0 to 1.
    pub best: f64,
    /// Share of the validation jobs that met their deadlines, 0 to 1.
    pub met: f64,
    /// Share of the critical validation jobs that met their deadlines, 0 to 1; `None` if no job is critical.
    pub critical: Option<f64>,
}

/// Observer of a training.
pub trait TrainingObserver {
    /// Called once before the first phase if the training starts from a model, with that model's validation scores.
    fn begun(&mut self, _validated: &ValidationScores) {}
    /// Called after each update: `done` of the `of` updates planned for this stage (counted from 1) are done.
    fn updated(&mut self, _stage: usize, _done: u64, _of: u64, _figures: UpdateFigures) {}
    /// Called after each phase, before [`TrainingObserver::phase`]. `model` makes the model that is kept so far. An error
    /// stops the training.
    fn kept(&mut self, _figures: &PhaseFigures, _model: &dyn Fn() -> Model) -> Result<(), TrainError> {
        Ok(())
    }
    /// Called after each phase. `checkpoint` makes the bytes that [`crate::TrainingRun::resume`] takes. An error stops
    /// the training.
    fn phase(
        &mut self,
        _figures: &PhaseFigures,
        _checkpoint: &mut dyn FnMut() -> Result<Vec<u8>, TrainError>,
    ) -> Result<(), TrainError> {
        Ok(())
    }
}

/// Observer that ignores everything.
pub struct NoObserver;

impl TrainingObserver for NoObserver {}
