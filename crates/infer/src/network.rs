//! The network that schedulers run: computes what [`crate::reference()`] computes, fast and without allocating.
//!
//! A [`Network`] consists of the packed weights ([`Prepared`]), which are immutable and shared between clones, and the
//! working memory ([`Scratch`]), which each clone has for itself.

use std::sync::Arc;

use crate::body::{Body, Forward, OtherBody};
use crate::kernels::{Engine, Kernel, Precision, Scalar};
use crate::pass::Scratch;
use crate::prepared::Prepared;
use crate::{Architecture, AttentionWork, Rows, Weights};

/// Options of building a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkOptions {
    /// Kernel to compute with. `None`, the default, takes the fastest available kernel that is precise enough.
    pub kernel: Option<Kernel>,
    /// Least precision that is allowed. Default [`Precision::Bf16`].
    pub precision: Precision,
    /// Number of rows, including the idle row, that memory is allocated for when the network is built. Default 256. A
    /// forward pass with more rows allocates once.
    pub rows: usize,
}

impl NetworkOptions {
    /// Options for this kernel, whatever its precision.
    pub fn of(kernel: Kernel) -> NetworkOptions {
        NetworkOptions { kernel: Some(kernel), precision: kernel.precision(), ..NetworkOptions::default() }
    }
}

impl Default for NetworkOptions {
    fn default() -> NetworkOptions {
        NetworkOptions { kernel: None, precision: Precision::Bf16, rows: 256 }
    }
}

/// Reason why a network cannot be built.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NetworkError {
    /// The architecture is invalid.
    #[error("no network has this shape: {0}")]
    Architecture(String),
    /// The processor or the operating system does not support the kernel.
    #[error("this machine has no {0}; it has {available}", available = names(&Kernel::available()))]
    Unavailable(Kernel),
    /// The kernel is less precise than allowed.
    #[error("kernel {0} multiplies with less precision than asked for")]
    Precision(Kernel),
}

fn names(kernels: &[Kernel]) -> String {
    kernels.iter().map(|kernel| kernel.name()).collect::<Vec<_>>().join(", ")
}

/// A network that is ready to run.
///
/// Cloning is cheap: clones share the packed weights, which are immutable, and each has its own working memory. Give
/// each thread a clone of its own; see the example of the [crate]. Networks are `Send` and `Sync`.
pub struct Network {
    architecture: Arc<Architecture>,
    kernel: Kernel,
    runner: Box<dyn Forward>,
}

impl Network {
    /// Packs the weights for a kernel and allocates the working memory.
    pub fn new(weights: &Weights, options: NetworkOptions) -> Result<Network, NetworkError> {
        if let Some(problem) = weights.architecture.problem() {
            return Err(NetworkError::Architecture(problem));
        }
        let kernel = options.kernel.unwrap_or_else(|| Kernel::best_of(options.precision));
        if kernel.precision() < options.precision {
            return Err(NetworkError::Precision(kernel));
        }
        let (kernel, runner) = match weights.architecture.body {
            Body::Other(OtherBody { kind, size }) => (Kernel::Scalar, Some(kind.network(size, weights))),
            Body::Transformer(_) => (kernel, transformer(kernel, weights, options.rows)),
        };
        let runner = runner.ok_or(NetworkError::Unavailable(kernel))?;
        Ok(Network { architecture: Arc::new(weights.architecture.clone()), kernel, runner })
    }

    /// Kernel that the network computes with: [`Kernel::Scalar`] for every body but the Transformer.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Architecture of the network.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// Computes one Q-value per row into `q`, the idle row's first. If the architecture has speeds, the gains of each
    /// follow, one per job row. Feature values out of range count as the feature's last value, missing ones as zero.
    ///
    /// Allocates only if there are more rows than ever before (see [`NetworkOptions::rows`]), if attention is sparse
    /// for the first time, or if the capacity of `q` is too small.
    pub fn forward(&mut self, rows: &Rows<'_>, q: &mut Vec<f32>) {
        self.runner.forward(rows, q);
    }

    /// Forgets all forward passes before, as at the start of a run. It concerns networks with memory alone; a clone of
    /// a network has forgotten them, too.
    pub fn reset(&mut self) {
        self.runner.reset();
    }

    /// What the attention of the last forward pass has read; zeros for a network without attention.
    pub fn attention_work(&self) -> AttentionWork {
        self.runner.attention_work()
    }
}

impl Clone for Network {
    fn clone(&self) -> Network {
        Network { architecture: self.architecture.clone(), kernel: self.kernel, runner: self.runner.again() }
    }
}

impl std::fmt::Debug for Network {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Network").field("kernel", &self.kernel).field("architecture", &self.architecture).finish()
    }
}

/// A Transformer's forward pass on one engine.
struct Runner<E: Engine> {
    /// Shared by all clones of a network.
    prepared: Arc<Prepared<E>>,
    scratch: Scratch<E>,
}

/// A Transformer on a kernel; `None` if the machine does not have it.
fn transformer(kernel: Kernel, weights: &Weights, rows: usize) -> Option<Box<dyn Forward>> {
    match kernel {
        Kernel::Scalar => runner(Some(Scalar), weights, rows),
        #[cfg(any(
            target_arch = "x86_64",
            target_arch = "aarch64",
            all(target_arch = "wasm32", target_feature = "simd128")
        ))]
        Kernel::Simd128 => runner(crate::kernels::Simd128::new(), weights, rows),
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => runner(crate::kernels::Avx2::new(), weights, rows),
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx512 => runner(crate::kernels::Avx512::new(), weights, rows),
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx512Int8 => runner(crate::kernels::Avx512Int8::new(), weights, rows),
        #[cfg(target_arch = "x86_64")]
        Kernel::Amx => runner(crate::kernels::Amx::new(), weights, rows),
        #[cfg(not(target_arch = "x86_64"))]
        _ => None,
    }
}

fn runner<E: Engine>(engine: Option<E>, weights: &Weights, rows: usize) -> Option<Box<dyn Forward>> {
    let prepared = Arc::new(Prepared::new(engine?, weights));
    let scratch = Scratch::new(prepared.widths, rows);
    Some(Box::new(Runner { prepared, scratch }))
}

impl<E: Engine> Forward for Runner<E> {
    fn forward(&mut self, rows: &Rows<'_>, q: &mut Vec<f32>) {
        self.scratch.pass(&self.prepared, rows, q);
    }

    fn attention_work(&self) -> AttentionWork {
        self.scratch.work
    }

    fn again(&self) -> Box<dyn Forward> {
        let scratch = Scratch::new(self.prepared.widths, self.scratch.capacity());
        Box::new(Runner { prepared: self.prepared.clone(), scratch })
    }
}
