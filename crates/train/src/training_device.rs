//! Training on whichever device there is, without a type parameter.
//!
//! [`TrainingRun`] is generic over its device. A [`TrainingSession`] is a run on a device that is chosen at run time.
//! Every device's code is compiled in this crate, and users of a session do not compile it again.

use temponet::Model;
use temponet_grad::{Cpu, Device as _};
use temponet_infer::Weights;
use temponet_task::TaskSet;

use crate::{MethodDevice, PhaseFigures, Recipe, TrainError, TrainingObserver, TrainingRun};

/// A device that training can run on.
pub enum TrainingDevice {
    /// One thread of the CPU.
    Cpu(Cpu),
    /// An NVIDIA GPU. Its matrix products round their factors to TF32.
    #[cfg(feature = "cuda")]
    Cuda(Box<temponet_grad::Cuda>),
}

impl TrainingDevice {
    /// The CPU.
    pub fn cpu() -> TrainingDevice {
        TrainingDevice::Cpu(Cpu::default())
    }

    /// Opens a device by name: `cpu`, `cuda`, or `auto` for a GPU if there is one and the CPU otherwise. Returns the
    /// reason if there is no GPU.
    pub fn open(name: &str) -> Result<TrainingDevice, String> {
        open_with(name, gpu)
    }

    /// Name of the device: `cpu` or `cuda`.
    pub fn name(&self) -> &'static str {
        match self {
            TrainingDevice::Cpu(_) => "cpu",
            #[cfg(feature = "cuda")]
            TrainingDevice::Cuda(_) => "cuda",
        }
    }

    /// Another device of the same kind, for another training.
    pub fn another(&self) -> TrainingDevice {
        match self {
            TrainingDevice::Cpu(device) => TrainingDevice::Cpu(device.another()),
            #[cfg(feature = "cuda")]
            TrainingDevice::Cuda(device) => TrainingDevice::Cuda(Box::new(device.another())),
        }
    }

    /// A device of the same kind for many trainings of small networks at once, each on [another](TrainingDevice::another)
    /// made of it. On a GPU these devices compute together; the CPU remains as it is.
    pub fn in_gang(self) -> Result<TrainingDevice, String> {
        match self {
            TrainingDevice::Cpu(device) => Ok(TrainingDevice::Cpu(device)),
            #[cfg(feature = "cuda")]
            TrainingDevice::Cuda(device) => {
                let gang = device.gang().map_err(|error| error.to_string())?;
                Ok(TrainingDevice::Cuda(Box::new(gang)))
            }
        }
    }

    /// A training that has not begun; see [`TrainingRun::new`].
    pub fn session(
        self,
        recipe: Recipe,
        set: Option<TaskSet>,
        begin_with: Option<&Weights>,
    ) -> Box<dyn TrainingSession> {
        match self {
            TrainingDevice::Cpu(device) => Box::new(TrainingRun::new(device, recipe, set, begin_with)),
            #[cfg(feature = "cuda")]
            TrainingDevice::Cuda(device) => Box::new(TrainingRun::new(*device, recipe, set, begin_with)),
        }
    }
}

/// Opens a device, calling `gpu` only if a GPU is wanted, because opening one takes time and GPU memory.
fn open_with(name: &str, gpu: impl FnOnce() -> Result<TrainingDevice, String>) -> Result<TrainingDevice, String> {
    if name == "cpu" {
        return Ok(TrainingDevice::cpu());
    }
    match (name, gpu()) {
        ("cuda", Err(why)) => Err(why),
        (_, opened) => Ok(opened.unwrap_or_else(|_| TrainingDevice::cpu())),
    }
}

#[cfg(feature = "cuda")]
fn gpu() -> Result<TrainingDevice, String> {
    let mut gpu = temponet_grad::Cuda::new().map_err(|error| error.to_string())?;
    // Gradients of a batch are noisier by far than ten bits of mantissa.
    gpu.allow_tf32(true);
    Ok(TrainingDevice::Cuda(Box::new(gpu)))
}

#[cfg(not(feature = "cuda"))]
fn gpu() -> Result<TrainingDevice, String> {
    Err("this program was built without it; `cargo build --release --features cuda` builds it, and needs no CUDA"
        .into())
}

/// A [`TrainingRun`] on any device.
pub trait TrainingSession {
    /// Continues from a checkpoint; see [`TrainingRun::resume`].
    fn resume(&mut self, checkpoint: &[u8]) -> Result<(), TrainError>;

    /// Trains to the end of the recipe; see [`TrainingRun::train`].
    fn train(&mut self, observer: &mut dyn TrainingObserver) -> Result<(), TrainError>;

    /// Returns the best model so far.
    fn model(&self) -> Model;

    /// Returns the figures of all phases so far.
    fn figures(&self) -> &[PhaseFigures];
}

impl<D: MethodDevice> TrainingSession for TrainingRun<D> {
    fn resume(&mut self, checkpoint: &[u8]) -> Result<(), TrainError> {
        TrainingRun::resume(self, checkpoint)
    }

    fn train(&mut self, observer: &mut dyn TrainingObserver) -> Result<(), TrainError> {
        TrainingRun::train(self, observer)
    }

    fn model(&self) -> Model {
        TrainingRun::model(self)
    }

    fn figures(&self) -> &[PhaseFigures] {
        TrainingRun::figures(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_opened_without_opening_the_gpu() {
        assert!(open_with("cpu", || panic!("the GPU was opened")).is_ok());
        assert!(open_with("auto", || Err("there is none".into())).is_ok());
        assert!(open_with("cuda", || Err("there is none".into())).is_err());
    }
}
