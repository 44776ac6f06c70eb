//! Reverse-mode automatic differentiation over coarse matrix operations, and the Adam optimizer. The crate knows
//! nothing of tasks or schedulers.
//!
//! A [`Tape`] records operations as they are computed on a [`Device`] and then walks them backwards. Parameters and
//! their gradients live outside the tape, in [`Tensors`]. Batches are ragged: the rows of all samples are stacked into
//! one matrix, and [`Segments`] says which rows belong to which sample, so no work is spent on padding.
//!
//! There are two devices: [`Cpu`], one thread with vector instructions, and `Cuda` (feature `cuda`), an NVIDIA GPU. The
//! losses of reinforcement learning are a second trait, [`LearningLosses`], which both devices implement.
//!
//! ```
//! use temponet_grad::{Adam, AdamSettings, Cpu, Tape, Tensors};
//!
//! let mut device = Cpu::default();
//! let mut parameters = Tensors::default();
//! let weight = parameters.add(&mut device, "weight", 1, 2, &[0.0, 0.0]);
//! let mut gradients = parameters.zeros_like(&mut device);
//! let mut adam = Adam::new(&mut device, AdamSettings::default(), &parameters);
//!
//! let mut tape = Tape::new(&mut device, &parameters);
//! let x = tape.input(3, 2, &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
//! let y = tape.linear(x, weight, None);
//! let loss = tape.regression(y, None, &[2.0, -1.0, 1.0], &[1.0; 3]);
//! assert_eq!(loss.value, 3.0);
//! tape.backward([loss], &mut gradients);
//! drop(tape);
//! adam.clipped_step(&mut device, 0.1, 1.0, &mut gradients, &mut parameters);
//! assert!(parameters.values(&device, weight)[0] > 0.0);
//! ```

mod backward;
mod cpu;
#[cfg(all(feature = "cuda", not(test)))]
mod cuda;
mod device;
#[cfg(test)]
mod gradients;
mod key_lists;
mod losses;
mod operations;
mod optimizer;
mod real;
mod sinkhorn;
mod staged;
mod tape;
mod tensors;

pub use cpu::Cpu;
#[cfg(all(feature = "cuda", not(test)))]
pub use cuda::{Cuda, CudaError, Recorder};
pub use device::{AdamRates, AttentionPass, AttentionShape, Device, Product, Segments};
pub use key_lists::KeyLists;
pub use losses::{
    Exchange, ImitationBatch, LearningLosses, Likelihood, NStepReturn, NextStates, PolicyBatch, PolicySample,
    PolicyWeights, QValueBatch, SelectedRows, best_rows, greatest_pickable, likelihood, log_likelihood, q_value_of,
};
pub use operations::Operations;
pub use optimizer::{Adam, AdamSettings, Schedule};
pub use real::Real;
pub use sinkhorn::MatchingShape;
pub use staged::{Staged, Stager};
pub use tape::{Embedding, Loss, ProcessorFunction, RowNumbers, Tape, Var};
pub use tensors::{TensorId, Tensors};

/// The examples of the README, which are run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
