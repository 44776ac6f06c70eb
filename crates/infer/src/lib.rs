//! Inference of the Q-network: the weights file, the kernels for different processors, and the forward pass from tokens
//! to one Q-value per row. The crate knows nothing of tasks or schedulers.
//!
//! [`Weights`] reads and writes weights files. A [`Network`] packs weights for the fastest kernel of the machine and
//! runs forward passes. It allocates only when it is built and when it meets more rows than ever before.
//! [`reference()`] computes the same in plain loops, with everything that diagnostics look at.
//!
//! Clones of a network share one immutable copy of the packed weights, and each has its own working memory, so every
//! thread can have a clone:
//!
//! ```
//! use temponet_infer::{Architecture, Network, NetworkOptions, Rows, Vocabulary, Weights};
//!
//! let vocabulary = |name: &str, size| vec![Vocabulary { name: name.into(), size }];
//! let weights = Weights::random(Architecture::paper(vocabulary("slack", 130), vocabulary("cores", 8)), 1);
//! let network = Network::new(&weights, NetworkOptions::default())?;
//! let rows = Rows { idle: &[2], jobs: &[5, 17, 99], real: &[], bias: &[0.0; 4], sparsity: None };
//!
//! let results: Vec<Vec<f32>> = std::thread::scope(|scope| {
//!     let threads: Vec<_> = (0..2).map(|_| {
//!         let mut own = network.clone();
//!         scope.spawn(move || {
//!             let mut q = Vec::new();
//!             own.forward(&rows, &mut q);
//!             q
//!         })
//!     }).collect();
//!     threads.into_iter().map(|thread| thread.join().unwrap()).collect()
//! });
//! assert_eq!(results[0].len(), 4);
//! assert_eq!(results[0], results[1]);
//! # Ok::<(), temponet_infer::NetworkError>(())
//! ```

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "parts that only kernels of x86-64 use"))]

mod aligned;
mod architecture;
mod atoms;
mod body;
mod kernels;
mod network;
mod pass;
mod prepared;
mod reference;
mod rows;
mod sparse;
mod sparse_pass;
mod transformer;
mod weights;

pub use architecture::{Architecture, RealInput, SLOT, Vocabulary, within};
pub use atoms::Atoms;
pub use body::{Body, BodyError, BodyKeys, BodyKind, Forward, OtherBody, register_body};
pub use kernels::{GROUP as ROW_GROUP, Kernel, Precision};
pub use network::{Network, NetworkError, NetworkOptions};
pub use reference::{AttentionMap, Trace, reference};
pub use rows::{AttentionWork, Rows, Rule, Sparsity};
pub use sparse::KeptKeys;
pub use transformer::Heads;
pub use weights::{Metadata, Weights, WeightsError, check_file, file_checksum, write_tensors};

/// Parts of the reference, for references of other networks.
pub mod plain {
    pub use crate::reference::{add_and_norm, apply, embed};
}

/// The examples of the README, which are run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
