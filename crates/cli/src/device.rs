//! Devices that training can run on.

use anyhow::{Result, bail};
use temponet_grad::Cpu;

/// An open device.
pub enum Opened {
    /// The CPU.
    Cpu(Cpu<f32>),
    /// An NVIDIA GPU.
    #[cfg(feature = "cuda")]
    Cuda(Box<temponet_grad::Cuda>),
}

/// Opens a device by name: `cpu`, `cuda`, or `auto` for a GPU if there is one.
pub fn open(name: &str) -> Result<Opened> {
    open_with(name, gpu)
}

/// Opens a device, calling `gpu` only if a GPU is wanted, because opening one takes time and GPU memory.
fn open_with(name: &str, gpu: impl FnOnce() -> Result<Opened, String>) -> Result<Opened> {
    if name == "cpu" {
        return Ok(Opened::Cpu(Cpu::default()));
    }
    match (name, gpu()) {
        (_, Ok(gpu)) => Ok(gpu),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_had_without_opening_the_gpu() {
        assert!(open_with("cpu", || panic!("the GPU was opened")).is_ok());
        assert!(open_with("auto", || Err("there is none".into())).is_ok());
        assert!(open_with("cuda", || Err("there is none".into())).is_err());
    }
}
