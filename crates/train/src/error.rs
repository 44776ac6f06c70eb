//! Errors that end a training.

use temponet::NetworkError;
use temponet_sim::SimError;

use crate::fleet::FleetError;

/// Reason why a training stopped.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// An environment could not continue.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// The deployed scheduler could not run in a validation run.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A validation run could not be simulated.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// Losses or gradient norms were infinite or NaN, update after update.
    #[error(
        "the training diverged in stage {stage}, phase {phase}: the {what} is {value}; what was learned before is kept"
    )]
    Diverged {
        /// Number of the stage, counted from 1.
        stage: usize,
        /// Number of the phase in its stage, counted from 1.
        phase: u64,
        /// Name of the quantity that is not finite.
        what: &'static str,
        /// Value of that quantity.
        value: f64,
    },
    /// The device stopped computing, for example because it ran out of memory.
    #[error("{0}; the last checkpoint is kept")]
    Device(String),
    /// A checkpoint belongs to another training, or is damaged.
    #[error("the checkpoint cannot be used: {0}")]
    Checkpoint(String),
    /// The model to begin with cannot be grown to the tokens of the recipe.
    #[error("the model to begin with: {0}")]
    Growth(#[from] temponet::stages::GrowthError),
    /// The observer of the training asked for a stop.
    #[error("{0}")]
    Stopped(String),
}
