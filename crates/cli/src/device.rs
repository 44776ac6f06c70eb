//! Where training computes.

use anyhow::{Result, bail};
use temponet_grad::Cpu;

/// A device that is ready.
pub enum Opened {
    /// The processor.
    Cpu(Cpu<f32>),
    /// An NVIDIA GPU.
    #[cfg(feature = "cuda")]
    Cuda(Box<temponet_grad::Cuda>),
}

/// The device of a name: `cpu`, `cuda`, or `auto` for a GPU if there is one.
pub fn open(name: &str) -> Result<Opened> {
    match (name, gpu()) {
        ("cuda" | "auto", Ok(gpu)) => Ok(gpu),
        ("cuda", Err(why)) => bail!("--device cuda: {why}"),
        _ => Ok(Opened::Cpu(Cpu::default())),
    }
}

#[cfg(feature = "cuda")]
fn gpu() -> Result<Opened, String> {
    temponet_grad::Cuda::new().map(|gpu| Opened::Cuda(Box::new(gpu))).map_err(|error| error.to_string())
}

#[cfg(not(feature = "cuda"))]
fn gpu() -> Result<Opened, String> {
    Err("this program was built without it; `cargo build --release --features cuda` builds it, and needs no CUDA"
        .into())
}
