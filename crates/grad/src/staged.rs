//! Numbers that another thread writes while a device computes, in memory that the device reads by itself.

use std::any::Any;
use std::sync::Arc;

use crate::Real;

/// Numbers on their way to a device.
pub trait Staged: Send {
    /// The numbers, to be written. Their content is arbitrary before.
    fn values(&mut self) -> &mut [Real];
    /// The device's own form of this memory, for [`crate::Device::upload_staged`].
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl Staged for Vec<Real> {
    fn values(&mut self) -> &mut [Real] {
        self
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Makes memory for as many numbers, on any thread.
pub type Stager = Arc<dyn Fn(usize) -> Box<dyn Staged> + Send + Sync>;
