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
mod imitation;
mod optimizer;
mod picks;
mod policy;
mod real;
mod tape;
mod tensors;
mod values;

pub use cpu::Cpu;
#[cfg(feature = "cuda")]
pub use cuda::{Cuda, CudaError, Recorder};
pub use device::{Activation, AdamRates, AttentionShape, Device, Product, Segments};
pub use imitation::{Exchange, Imitation};
pub use optimizer::{Adam, AdamSettings, Schedule};
pub use picks::{Likelihood, Picks, best_rows, likelihood};
pub use policy::{Choices, Made, PolicyWeights};
pub use real::Real;
pub use tape::{Embedding, Loss, RowNumbers, Tape, Var};
pub use tensors::{TensorId, Tensors};
pub use values::{Ahead, Values, Way, value_of};
