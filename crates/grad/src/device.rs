//! The interface of a processor with memory of its own, and the shapes that its operations take.
//!
//! A [`Device`] provides plain tensor operations, forward and backward, and Adam. It knows nothing of reinforcement
//! learning; the losses are in [`crate::LearningLosses`].

use crate::Real;
use crate::staged::{Staged, Stager};

/// Assignment of stacked rows to samples: sample `i` has the rows from `starts[i]` up to `starts[i + 1]`, exclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments {
    starts: Vec<u32>,
}

impl Segments {
    /// Segments of samples with the given numbers of rows, one after the other.
    pub fn of_lengths(lengths: impl IntoIterator<Item = usize>) -> Segments {
        let mut starts = vec![0];
        let mut end = 0u32;
        for length in lengths {
            end += length as u32;
            starts.push(end);
        }
        Segments { starts }
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns `true` if there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Total number of rows of all samples.
    pub fn rows(&self) -> usize {
        self.starts[self.len()] as usize
    }

    /// Range of the rows of one sample.
    pub fn range(&self, sample: usize) -> std::ops::Range<usize> {
        self.starts[sample] as usize..self.starts[sample + 1] as usize
    }

    /// Ranges of the rows of all samples, in order.
    pub fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        self.starts.windows(2).map(|pair| pair[0] as usize..pair[1] as usize)
    }

    /// First row of each sample, followed by the total number of rows.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }
}

/// A matrix product out = left · right, where `out` is m × n. Either factor may be stored transposed.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// Number of rows of the result.
    pub m: usize,
    /// Number of columns of the result.
    pub n: usize,
    /// Number of terms of each sum: columns of the left factor and rows of the right one.
    pub k: usize,
    /// Whether the left factor is stored transposed, as k × m.
    pub left_transposed: bool,
    /// Whether the right factor is stored transposed, as n × k.
    pub right_transposed: bool,
    /// Whether the product is added to `out` instead of replacing it.
    pub accumulate: bool,
}

/// Shape of a multi-head attention. The queries of a sample attend to the keys of the same sample.
#[derive(Clone, Copy, Debug)]
pub struct AttentionShape<'a> {
    /// Query rows of each sample.
    pub queries: &'a Segments,
    /// Key and value rows of each sample.
    pub keys: &'a Segments,
    /// Number of heads, which divides `columns`.
    pub heads: usize,
    /// Number of columns of all heads together.
    pub columns: usize,
}

impl AttentionShape<'_> {
    /// Number of attention weights: the sum over all samples and heads of queries × keys.
    pub fn weights(&self) -> usize {
        self.queries.ranges().zip(self.keys.ranges()).map(|(q, k)| q.len() * k.len()).sum::<usize>() * self.heads
    }
}

/// What an attention read and wrote, for its backward pass.
pub struct AttentionPass<'a, B> {
    /// Queries.
    pub q: &'a B,
    /// Keys.
    pub k: &'a B,
    /// Values.
    pub v: &'a B,
    /// Bias of the logits of each key.
    pub bias: Option<&'a B>,
    /// What the forward pass kept.
    pub kept: &'a B,
    /// Result.
    pub out: &'a B,
}

/// A processor with memory of its own.
///
/// Matrices are stored in row-major order. A parameter `out` is overwritten unless the method's name or documentation
/// says that it is added to. Backward methods add to the gradients that they are given.
pub trait Device: Send + Sync {
    /// Buffer of numbers in the device's memory.
    type Buffer: Send + Sync;
    /// List of row numbers in the device's memory.
    type Index: Send + Sync;
    /// Scalar result that may not have been computed yet.
    type Number: Send;

    /// Creates another device of the same kind with memory of its own. Both may compute at the same time.
    fn another(&self) -> Self
    where
        Self: Sized;
    /// Returns why the device failed, if it did. A failed device ignores all further work and returns zeros.
    fn failure(&self) -> Option<String> {
        None
    }
    /// Waits for a scalar result and returns it.
    fn number(&self, number: &Self::Number) -> f64;
    /// Number of rows of a batch that each device should have when a batch is split among several. `usize::MAX` means
    /// that a batch is never split.
    fn shard_rows(&self) -> usize;
    /// Number of pairs of rows of the same sample up to which a batch that is not split by rows is computed at once. A
    /// larger batch is computed in parts, one after the other, because attention needs memory for every pair. No limit
    /// by default.
    fn most_pairs(&self) -> usize {
        usize::MAX
    }
    /// Whether computing equal rows once and copying the results pays on this device. `false` by default.
    fn shares_rows(&self) -> bool {
        false
    }

    /// Allocates a buffer with arbitrary content.
    fn blank(&mut self, len: usize) -> Self::Buffer;
    /// Allocates a buffer of zeros.
    fn zeros(&mut self, len: usize) -> Self::Buffer {
        let mut buffer = self.blank(len);
        self.clear(&mut buffer);
        buffer
    }
    /// Takes a buffer back for later reuse.
    fn recycle(&mut self, buffer: Self::Buffer);
    /// Copies `len` values to the device, which `fill` writes. Their content is arbitrary before.
    fn upload_filled(&mut self, len: usize, fill: &mut dyn FnMut(&mut [Real])) -> Self::Buffer;
    /// Copies values to the device.
    fn upload(&mut self, values: &[Real]) -> Self::Buffer {
        self.upload_filled(values.len(), &mut |out| out.copy_from_slice(values))
    }
    /// Returns a maker of memory that other threads write for [`Device::upload_staged`]; `None` if the device gains
    /// nothing from it, the default.
    fn stager(&self) -> Option<Stager> {
        None
    }
    /// Copies values to the device.
    fn upload_staged(&mut self, mut staged: Box<dyn Staged>) -> Self::Buffer {
        self.upload(staged.values())
    }
    /// Waits for a buffer and copies its values from the device.
    fn download(&self, buffer: &Self::Buffer) -> Vec<Real>;
    /// Copies row numbers to the device.
    fn index(&mut self, rows: &[u32]) -> Self::Index;

    /// Sets all numbers to zero.
    fn clear(&mut self, out: &mut Self::Buffer);
    /// out = from.
    fn copy(&mut self, from: &Self::Buffer, out: &mut Self::Buffer);
    /// out += from.
    fn add(&mut self, from: &Self::Buffer, out: &mut Self::Buffer);
    /// out += share · (from − out).
    fn blend(&mut self, share: Real, from: &Self::Buffer, out: &mut Self::Buffer);
    /// out *= factor.
    fn scale(&mut self, factor: Real, out: &mut Self::Buffer);
    /// Sum of the squares of all numbers.
    fn square_sum(&mut self, buffer: &Self::Buffer) -> f64;

    // The same operations on many buffers at once, which a device may do faster than one by one.
    /// [`Device::clear`] for each buffer.
    fn clear_all(&mut self, out: &mut [Self::Buffer]) {
        out.iter_mut().for_each(|out| self.clear(out));
    }
    /// [`Device::scale`] for each buffer.
    fn scale_all(&mut self, factor: Real, out: &mut [Self::Buffer]) {
        out.iter_mut().for_each(|out| self.scale(factor, out));
    }
    /// [`Device::blend`] for each pair of buffers.
    fn blend_all(&mut self, share: Real, from: &[Self::Buffer], out: &mut [Self::Buffer]) {
        from.iter().zip(out).for_each(|(from, out)| self.blend(share, from, out));
    }
    /// Sum of the squares of all numbers of all buffers.
    fn square_sum_of_all(&mut self, buffers: &[Self::Buffer]) -> f64 {
        buffers.iter().map(|buffer| self.square_sum(buffer)).sum()
    }
    /// [`Device::adam`] for each parameter.
    fn adam_all(
        &mut self,
        rates: &AdamRates,
        gradients: &[Self::Buffer],
        first: &mut [Self::Buffer],
        second: &mut [Self::Buffer],
        parameters: &mut [Self::Buffer],
    ) {
        let moments = first.iter_mut().zip(second);
        for ((gradient, parameter), (first, second)) in gradients.iter().zip(parameters).zip(moments) {
            self.adam(rates, gradient, first, second, parameter);
        }
    }
    /// One step of Adam with gradient clipping: the gradients are scaled down to a Euclidean norm of `most` if theirs
    /// is greater. If the norm is not finite, nothing changes. Returns the norm before scaling. A device need not write
    /// the scaled gradients back.
    fn clipped_adam_all(
        &mut self,
        most: f64,
        rates: &AdamRates,
        gradients: &mut [Self::Buffer],
        first: &mut [Self::Buffer],
        second: &mut [Self::Buffer],
        parameters: &mut [Self::Buffer],
    ) -> Self::Number;

    /// Matrix product; see [`Product`].
    fn product(&mut self, product: Product, left: &Self::Buffer, right: &Self::Buffer, out: &mut Self::Buffer);
    /// Adds the vector `row` to every row of `out`.
    fn add_row(&mut self, row: &Self::Buffer, out: &mut Self::Buffer);
    /// Adds every row of `x` to the vector `out`.
    fn add_sum_of_rows(&mut self, x: &Self::Buffer, out: &mut Self::Buffer);

    /// out = max(x, 0).
    fn relu(&mut self, x: &Self::Buffer, out: &mut Self::Buffer);
    /// Turns the gradient with respect to the result of [`Device::relu`] into the gradient with respect to `x`.
    /// Consumes the buffer so that it can be reused.
    fn relu_backward(&mut self, x: &Self::Buffer, gradient: Self::Buffer) -> Self::Buffer;

    /// Adds row `from[k]` of `x` to row `to[k]` of `out` for every `k` below the row count. `shape` is the row count
    /// and the number of columns. A missing list stands for row `k` itself.
    fn add_rows(
        &mut self,
        shape: (usize, usize),
        x: &Self::Buffer,
        from: Option<&Self::Index>,
        out: &mut Self::Buffer,
        to: Option<&Self::Index>,
    );

    /// Copies the rows `from` of `x` to `out`. `shape` is their number and the number of columns.
    fn take_rows(&mut self, shape: (usize, usize), x: &Self::Buffer, from: &Self::Index, out: &mut Self::Buffer) {
        self.clear(out);
        self.add_rows(shape, x, Some(from), out, None);
    }

    /// Layer norm of the rows of `x`, or of x + change. `normal` receives the rows with mean 0 and variance 1, `scales`
    /// the reciprocal standard deviation of each row, and `out` the result normal ∘ weight + bias.
    #[allow(clippy::too_many_arguments)]
    fn layer_norm(
        &mut self,
        x: &Self::Buffer,
        change: Option<&Self::Buffer>,
        weight: &Self::Buffer,
        bias: &Self::Buffer,
        normal: &mut Self::Buffer,
        scales: &mut Self::Buffer,
        out: &mut Self::Buffer,
    );
    /// Backward pass of [`Device::layer_norm`], given its `normal` and `scales`. `dx` is overwritten; `dweight` and
    /// `dbias` are added to.
    #[allow(clippy::too_many_arguments)]
    fn layer_norm_backward(
        &mut self,
        normal: &Self::Buffer,
        scales: &Self::Buffer,
        weight: &Self::Buffer,
        dy: &Self::Buffer,
        dx: &mut Self::Buffer,
        dweight: &mut Self::Buffer,
        dbias: &mut Self::Buffer,
    );

    /// Length of the buffer that [`Device::attention`] keeps for its backward pass; by default it holds all attention
    /// weights.
    fn kept_of_attention(&self, shape: AttentionShape<'_>) -> usize {
        shape.weights()
    }
    /// Softmax attention within each sample. `bias` is added to the logits of each key. `kept` receives what the
    /// backward pass needs.
    #[allow(clippy::too_many_arguments)]
    fn attention(
        &mut self,
        shape: AttentionShape<'_>,
        q: &Self::Buffer,
        k: &Self::Buffer,
        v: &Self::Buffer,
        bias: Option<&Self::Buffer>,
        kept: &mut Self::Buffer,
        out: &mut Self::Buffer,
    );
    /// Backward pass of [`Device::attention`]. Adds to `dq`, `dk` and `dv`.
    fn attention_backward(
        &mut self,
        shape: AttentionShape<'_>,
        pass: AttentionPass<'_, Self::Buffer>,
        dy: &Self::Buffer,
        dq: &mut Self::Buffer,
        dk: &mut Self::Buffer,
        dv: &mut Self::Buffer,
    );

    /// One step of Adam with decoupled weight decay. `rates` already includes the bias corrections of both moments.
    #[allow(clippy::too_many_arguments)]
    fn adam(
        &mut self,
        rates: &AdamRates,
        gradient: &Self::Buffer,
        first: &mut Self::Buffer,
        second: &mut Self::Buffer,
        parameter: &mut Self::Buffer,
    );
}

/// Coefficients of one Adam step.
#[derive(Clone, Copy, Debug)]
pub struct AdamRates {
    /// Decay rate of the first moment.
    pub beta1: Real,
    /// Decay rate of the second moment.
    pub beta2: Real,
    /// Learning rate, divided by the bias correction of the first moment.
    pub step: Real,
    /// Factor on the second moment: its bias correction.
    pub correction: Real,
    /// Term added to the denominator, which keeps the quotient finite.
    pub epsilon: Real,
    /// Fraction of each parameter that decays in the step: learning rate × weight decay.
    pub decay: Real,
}
