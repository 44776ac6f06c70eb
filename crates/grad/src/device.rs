//! Where the numbers live and the operations happen.

use crate::Real;

/// Which rows belong to which sample: sample i has the rows from `starts[i]` to `starts[i + 1]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments {
    starts: Vec<u32>,
}

impl Segments {
    /// Samples of these lengths, one after the other.
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

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows of all samples.
    pub fn rows(&self) -> usize {
        self.starts[self.len()] as usize
    }

    /// The rows of one sample.
    pub fn range(&self, sample: usize) -> std::ops::Range<usize> {
        self.starts[sample] as usize..self.starts[sample + 1] as usize
    }

    /// The rows of each sample.
    pub fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        self.starts.windows(2).map(|pair| pair[0] as usize..pair[1] as usize)
    }

    /// Where each sample starts, and the end.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }
}

/// A matrix product out = left · right, either of them transposed first if so asked; `out` is m × n.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// What is summed over.
    pub k: usize,
    /// The left matrix is stored k × m.
    pub left_transposed: bool,
    /// The right matrix is stored n × k.
    pub right_transposed: bool,
    /// Add to what `out` holds instead of replacing it.
    pub accumulate: bool,
}

/// The shape of an attention: whose queries see whose keys, and in how many heads the columns are divided.
#[derive(Clone, Copy, Debug)]
pub struct AttentionShape<'a> {
    /// Rows of queries of each sample.
    pub queries: &'a Segments,
    /// Rows of keys and values of each sample.
    pub keys: &'a Segments,
    /// Heads.
    pub heads: usize,
    /// Columns of all heads together.
    pub columns: usize,
}

impl AttentionShape<'_> {
    /// How many attention weights there are: per sample and head, queries times keys.
    pub fn weights(&self) -> usize {
        self.queries.ranges().zip(self.keys.ranges()).map(|(q, k)| q.len() * k.len()).sum::<usize>() * self.heads
    }
}

/// A processor with memory of its own. All matrices are stored row after row; `out` is written unless the method's name or words say that
/// it is added to. Backward methods add to the gradients they are given.
#[allow(missing_docs)]
pub trait Device: Send {
    /// Its numbers.
    type Real: Real;
    /// Numbers in its memory.
    type Buffer: Send + Sync;
    /// Row numbers in its memory.
    type Index: Send + Sync;
    /// One number that may still be under way.
    type Number: Send;

    /// Another one of the same kind, with memory of its own; it may work at the same time as this one.
    fn another(&self) -> Self
    where
        Self: Sized;
    /// Why it computes no longer, if it failed. Whatever it was asked since then was not done, and what it gave are noughts.
    fn failure(&self) -> Option<String> {
        None
    }
    /// A number, waited for.
    fn number(&self, number: &Self::Number) -> f64;
    /// Rows of a batch from which on it is worth cutting it up among several devices.
    fn shard_rows(&self) -> usize;
    /// Whether it is worth computing equal rows once and copying what comes out.
    fn shares_rows(&self) -> bool {
        false
    }

    /// Memory of arbitrary content.
    fn blank(&mut self, len: usize) -> Self::Buffer;
    /// Memory of noughts.
    fn zeros(&mut self, len: usize) -> Self::Buffer {
        let mut buffer = self.blank(len);
        self.clear(&mut buffer);
        buffer
    }
    /// Takes memory back for later use.
    fn recycle(&mut self, buffer: Self::Buffer);
    fn upload(&mut self, values: &[Self::Real]) -> Self::Buffer;
    fn download(&self, buffer: &Self::Buffer) -> Vec<Self::Real>;
    fn index(&mut self, rows: &[u32]) -> Self::Index;

    fn clear(&mut self, out: &mut Self::Buffer);
    fn copy(&mut self, from: &Self::Buffer, out: &mut Self::Buffer);
    /// out += from.
    fn add(&mut self, from: &Self::Buffer, out: &mut Self::Buffer);
    /// out += share · (from − out).
    fn blend(&mut self, share: Self::Real, from: &Self::Buffer, out: &mut Self::Buffer);
    fn scale(&mut self, factor: Self::Real, out: &mut Self::Buffer);
    fn square_sum(&mut self, buffer: &Self::Buffer) -> f64;

    // The same for many buffers at once, which a device may do faster than one by one.
    fn clear_all(&mut self, out: &mut [Self::Buffer]) {
        out.iter_mut().for_each(|out| self.clear(out));
    }
    fn scale_all(&mut self, factor: Self::Real, out: &mut [Self::Buffer]) {
        out.iter_mut().for_each(|out| self.scale(factor, out));
    }
    fn blend_all(&mut self, share: Self::Real, from: &[Self::Buffer], out: &mut [Self::Buffer]) {
        from.iter().zip(out).for_each(|(from, out)| self.blend(share, from, out));
    }
    fn square_sum_of_all(&mut self, buffers: &[Self::Buffer]) -> f64 {
        buffers.iter().map(|buffer| self.square_sum(buffer)).sum()
    }
    fn adam_all(
        &mut self,
        rates: &AdamRates<Self::Real>,
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
    /// A step of Adam with gradients that are scaled down to a norm if theirs is greater; none if it is not finite. Gives the norm as it was.
    fn clipped_adam_all(
        &mut self,
        most: f64,
        rates: &AdamRates<Self::Real>,
        gradients: &mut [Self::Buffer],
        first: &mut [Self::Buffer],
        second: &mut [Self::Buffer],
        parameters: &mut [Self::Buffer],
    ) -> Self::Number;

    fn product(&mut self, product: Product, left: &Self::Buffer, right: &Self::Buffer, out: &mut Self::Buffer);
    /// Adds a row to every row of `out`.
    fn add_row(&mut self, row: &Self::Buffer, out: &mut Self::Buffer);
    /// Adds all rows of `x` to the row `out`.
    fn add_sum_of_rows(&mut self, x: &Self::Buffer, out: &mut Self::Buffer);

    fn relu(&mut self, x: &Self::Buffer, out: &mut Self::Buffer);
    /// From the gradient by what came out, which is not needed any more, to that by `x`.
    fn relu_backward(&mut self, x: &Self::Buffer, gradient: Self::Buffer) -> Self::Buffer;

    /// Adds row `from[k]` of `x` to row `to[k]` of `out`, for every k below the first number of `shape`; rows have the second
    /// number of columns. Without a list it is row k.
    fn add_rows(
        &mut self,
        shape: (usize, usize),
        x: &Self::Buffer,
        from: Option<&Self::Index>,
        out: &mut Self::Buffer,
        to: Option<&Self::Index>,
    );

    /// `out` gets the rows `from` of `x`; their number and that of their columns is `shape`.
    fn take_rows(&mut self, shape: (usize, usize), x: &Self::Buffer, from: &Self::Index, out: &mut Self::Buffer) {
        self.clear(out);
        self.add_rows(shape, x, Some(from), out, None);
    }

    /// `normal` gets the rows of `x`, or of x + change, brought to mean 0 and variance 1, and `out` those times weight plus bias; `scales` gets 1/deviation
    /// of each row.
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
    /// Backward from `dy`, given the normalised rows and their scales. `dx` is written.
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

    /// Softmax attention with a bias added to the logits of each key; `weights` keeps the attention weights.
    #[allow(clippy::too_many_arguments)]
    fn attention(
        &mut self,
        shape: AttentionShape<'_>,
        q: &Self::Buffer,
        k: &Self::Buffer,
        v: &Self::Buffer,
        bias: Option<&Self::Buffer>,
        weights: &mut Self::Buffer,
        out: &mut Self::Buffer,
    );
    #[allow(clippy::too_many_arguments)]
    fn attention_backward(
        &mut self,
        shape: AttentionShape<'_>,
        q: &Self::Buffer,
        k: &Self::Buffer,
        v: &Self::Buffer,
        weights: &Self::Buffer,
        dy: &Self::Buffer,
        dq: &mut Self::Buffer,
        dk: &mut Self::Buffer,
        dv: &mut Self::Buffer,
    );

    /// One step of Adam with decoupled weight decay; the rates already hold the corrections of the moments' bias.
    #[allow(clippy::too_many_arguments)]
    fn adam(
        &mut self,
        rates: &AdamRates<Self::Real>,
        gradient: &Self::Buffer,
        first: &mut Self::Buffer,
        second: &mut Self::Buffer,
        parameter: &mut Self::Buffer,
    );
}

/// The numbers of one Adam step.
#[derive(Clone, Copy, Debug)]
pub struct AdamRates<R> {
    /// Decay of the first moment.
    pub beta1: R,
    /// Decay of the second moment.
    pub beta2: R,
    /// Step size, corrected for the first moment's bias.
    pub step: R,
    /// Factor on the second moment, its bias's correction.
    pub correction: R,
    /// Keeps the quotient finite.
    pub epsilon: R,
    /// Share of each parameter that decays in the step.
    pub decay: R,
}
