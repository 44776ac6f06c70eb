//! A small reverse-mode tape of coarse operations on matrices, and optimisers. It knows no tasks and no schedulers.
//!
//! A [`Tape`] records operations as they are computed on a [`Device`] and walks them backwards; parameters and their gradients are kept
//! apart from it ([`Tensors`]). Batches are ragged: the rows of all samples stand one below the other, and [`Segments`] says whose they are, so no
//! work is done for padding.

mod backward;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod losses;
mod optimizer;
mod real;
mod tape;
mod tensors;

pub use cpu::Cpu;
#[cfg(feature = "cuda")]
pub use cuda::{Cuda, CudaError, Recorder};
pub use device::{AdamRates, AttentionShape, Device, Product, Segments};
pub use losses::{
    Exchange, ImitationBatch, LearningLosses, Likelihood, NStepReturn, NextStates, PolicyBatch, PolicySample,
    PolicyWeights, QValueBatch, SelectedRows, best_rows, likelihood, q_value_of,
};
pub use optimizer::{Adam, AdamSettings, Schedule};
pub use real::Real;
pub use tape::{Embedding, Loss, RowNumbers, Tape, Var};
pub use tensors::{TensorId, Tensors};
