//! The forward pass that schedulers run: what [`crate::reference`] computes, fast and without allocating.

use std::sync::Arc;

use crate::feed_forward::FeedForward;
use crate::kernels::{Engine, Kernel, Precision, Scalar};
use crate::pass::Scratch;
use crate::prepared::Prepared;
use crate::{Architecture, Rows, Weights};

/// How a network is to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkOptions {
    /// The kernel; none is the fastest that the machine has and that is precise enough.
    pub kernel: Option<Kernel>,
    /// The roughest arithmetic that is allowed.
    pub precision: Precision,
    /// Rows to have memory for from the beginning, the idle row included. More rows are taken when they come, by allocating once.
    pub rows: usize,
}

impl NetworkOptions {
    /// This kernel, however rough.
    pub fn of(kernel: Kernel) -> NetworkOptions {
        NetworkOptions { kernel: Some(kernel), precision: kernel.precision(), ..NetworkOptions::default() }
    }
}

impl Default for NetworkOptions {
    fn default() -> NetworkOptions {
        NetworkOptions { kernel: None, precision: Precision::Bf16, rows: 256 }
    }
}

/// Why a network cannot be built.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NetworkError {
    /// There is no network of this shape.
    #[error("no network has this shape: {0}")]
    Architecture(String),
    /// The processor or the system does not have what the kernel needs.
    #[error("this machine has no {0}; it has {available}", available = names(&Kernel::available()))]
    Unavailable(Kernel),
    /// The kernel is rougher than what is allowed.
    #[error("kernel {0} multiplies with less precision than asked for")]
    Precision(Kernel),
}

fn names(kernels: &[Kernel]) -> String {
    kernels.iter().map(|kernel| kernel.name()).collect::<Vec<_>>().join(", ")
}

/// A network that is ready to run. Clones share the weights, and each has its own working memory: one for each thread.
pub struct Network {
    architecture: Arc<Architecture>,
    kernel: Kernel,
    runner: Box<dyn Forward>,
}

impl Network {
    /// Packs the weights for a kernel and allocates.
    pub fn new(weights: &Weights, options: NetworkOptions) -> Result<Network, NetworkError> {
        if let Some(problem) = weights.architecture.problem() {
            return Err(NetworkError::Architecture(problem));
        }
        let kernel = options.kernel.unwrap_or_else(|| Kernel::best_of(options.precision));
        if kernel.precision() < options.precision {
            return Err(NetworkError::Precision(kernel));
        }
        let runner = match kernel {
            _ if weights.architecture.slots.is_some() => Some(Box::new(FeedForward::new(weights)) as Box<dyn Forward>),
            Kernel::Scalar => runner(Some(Scalar), weights, options.rows),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => runner(crate::kernels::Avx2::new(), weights, options.rows),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => runner(crate::kernels::Avx512::new(), weights, options.rows),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Bf16 => runner(crate::kernels::Avx512Bf16::new(), weights, options.rows),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Int8 => runner(crate::kernels::Avx512Int8::new(), weights, options.rows),
            #[cfg(target_arch = "x86_64")]
            Kernel::Amx => runner(crate::kernels::Amx::new(), weights, options.rows),
            #[cfg(not(target_arch = "x86_64"))]
            _ => None,
        };
        let runner = runner.ok_or(NetworkError::Unavailable(kernel))?;
        let kernel = if weights.architecture.slots.is_some() { Kernel::Scalar } else { kernel };
        Ok(Network { architecture: Arc::new(weights.architecture.clone()), kernel, runner })
    }

    /// What it computes with.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Its shape.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// One number per row into `q`, the idle row's first. Values out of range count as their feature's last, missing ones as zero.
    ///
    /// Allocates only if there are more rows than ever before (see [`NetworkOptions::rows`]), or if `q` has no room for them.
    pub fn forward(&mut self, rows: &Rows<'_>, q: &mut Vec<f32>) {
        self.runner.forward(rows, q);
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

pub(crate) trait Forward: Send + Sync {
    fn forward(&mut self, rows: &Rows<'_>, q: &mut Vec<f32>);
    fn again(&self) -> Box<dyn Forward>;
}

struct Runner<E: Engine> {
    prepared: Arc<Prepared<E>>,
    scratch: Scratch<E>,
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

    fn again(&self) -> Box<dyn Forward> {
        let scratch = Scratch::new(self.prepared.widths, self.scratch.capacity());
        Box::new(Runner { prepared: self.prepared.clone(), scratch })
    }
}
