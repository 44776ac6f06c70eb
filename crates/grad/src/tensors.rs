//! Named tensors: the parameters of a network, their gradients, or the moments of an optimizer.

use crate::{Device, Real};

/// Handle of a tensor in [`Tensors`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorId(pub(crate) usize);

/// List of named matrices on a device.
pub struct Tensors<D: Device> {
    names: Vec<String>,
    shapes: Vec<(usize, usize)>,
    pub(crate) buffers: Vec<D::Buffer>,
}

impl<D: Device> Default for Tensors<D> {
    fn default() -> Self {
        Tensors { names: Vec::new(), shapes: Vec::new(), buffers: Vec::new() }
    }
}

impl<D: Device> Tensors<D> {
    /// Adds a matrix in row-major order.
    pub fn add(&mut self, device: &mut D, name: &str, rows: usize, columns: usize, values: &[Real]) -> TensorId {
        assert_eq!(values.len(), rows * columns, "{name}");
        self.names.push(name.into());
        self.shapes.push((rows, columns));
        self.buffers.push(device.upload(values));
        TensorId(self.names.len() - 1)
    }

    /// Tensors of the same names and shapes, all zero.
    pub fn zeros_like(&self, device: &mut D) -> Tensors<D> {
        let buffers = self.shapes.iter().map(|(rows, columns)| device.zeros(rows * columns)).collect();
        Tensors { names: self.names.clone(), shapes: self.shapes.clone(), buffers }
    }

    /// Copies all tensors on the same device.
    pub fn copy(&self, device: &mut D) -> Tensors<D> {
        let mut copy = self.zeros_like(device);
        for (to, from) in copy.buffers.iter_mut().zip(&self.buffers) {
            device.copy(from, to);
        }
        copy
    }

    /// Replaces all values by those of tensors of the same names and shapes on another device.
    pub fn take_over(&mut self, device: &mut D, others: &Tensors<D>, other_device: &D) {
        for id in self.ids() {
            self.set(device, id, &others.values(other_device, id));
        }
    }

    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns `true` if there are no tensors.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Handles of all tensors, in order.
    pub fn ids(&self) -> impl Iterator<Item = TensorId> + use<D> {
        (0..self.names.len()).map(TensorId)
    }

    /// Handle of the tensor with this name.
    pub fn find(&self, name: &str) -> Option<TensorId> {
        self.names.iter().position(|other| other == name).map(TensorId)
    }

    /// Name of a tensor.
    pub fn name(&self, id: TensorId) -> &str {
        &self.names[id.0]
    }

    /// Number of rows and columns of a tensor.
    pub fn shape(&self, id: TensorId) -> (usize, usize) {
        self.shapes[id.0]
    }

    /// Values of a tensor in row-major order. Waits for the device.
    pub fn values(&self, device: &D, id: TensorId) -> Vec<Real> {
        device.download(&self.buffers[id.0])
    }

    /// Replaces the values of a tensor.
    pub fn set(&mut self, device: &mut D, id: TensorId, values: &[Real]) {
        let (rows, columns) = self.shapes[id.0];
        assert_eq!(values.len(), rows * columns, "{}", self.names[id.0]);
        self.buffers[id.0] = device.upload(values);
    }

    /// Sets all values to zero.
    pub fn clear(&mut self, device: &mut D) {
        device.clear_all(&mut self.buffers);
    }

    /// Adds tensors of the same shapes, one by one.
    pub fn add_all(&mut self, device: &mut D, others: &Tensors<D>) {
        for (to, from) in self.buffers.iter_mut().zip(&others.buffers) {
            device.add(from, to);
        }
    }

    /// Moves each value toward that of `others` by the fraction `share`: the soft update of a target network.
    pub fn blend(&mut self, device: &mut D, others: &Tensors<D>, share: Real) {
        device.blend_all(share, &others.buffers, &mut self.buffers);
    }
}
