//! The arithmetic, one file for each kind of processor. A [`Kernel`] is chosen once, when a network is built; what it computes with is an
//! [`Engine`], a value that exists only on a processor that has the instructions.
//!
//! Every engine multiplies rows by *packed* matrices: columns in panels of [`Engine::COLUMNS`], zeros up to whole panels. Rows come in
//! sixteens ([`GROUP`]), and everything is padded to that, so the inner loops have no remainders.

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod amx_attention;
#[cfg(target_arch = "x86_64")]
mod amx_pipeline;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_bf16;
#[cfg(target_arch = "x86_64")]
mod avx512_int8;
#[cfg(target_arch = "x86_64")]
mod bf16;
mod lanes;
#[cfg(target_arch = "x86_64")]
mod norm;
mod scalar;

#[cfg(target_arch = "x86_64")]
pub(crate) use {amx::Amx, avx2::Avx2, avx512::Avx512, avx512_bf16::Avx512Bf16, avx512_int8::Avx512Int8};

pub(crate) use scalar::Scalar;

use std::ops::Range;

use crate::aligned::Aligned;

/// Rows are computed this many at a time.
pub(crate) const GROUP: usize = 16;

/// Queries whose attention is computed together.
pub(crate) const QUERIES: usize = 2 * GROUP;

/// Widths in memory are multiples of this many numbers.
pub(crate) const PAD: usize = 32;

/// Stands for minus infinity among attention logits, without its arithmetic.
pub(crate) const NEVER: f32 = -1e30;

/// How numbers are multiplied. Norms and what passes from layer to layer are single precision everywhere, and so are sums but those of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// Products of integers of eight bits in linear maps, of single-precision numbers elsewhere.
    Int8,
    /// Products of bfloat16 numbers, eight significant bits.
    Bf16,
    /// Products of single-precision numbers.
    F32,
}

/// A way to compute, by the instructions it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Plain Rust, on any processor.
    Scalar,
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ and VL.
    Avx512,
    /// The same with bfloat16 products.
    Avx512Bf16,
    /// The same with VNNI: linear maps in integers of eight bits.
    Avx512Int8,
    /// x86-64 with matrix tiles (AMX) of bfloat16, on Linux.
    Amx,
}

impl Kernel {
    /// All there are, slowest first. Intel's processors multiply bfloat16 in vectors no faster than single precision, which is better.
    pub const ALL: [Kernel; 6] =
        [Kernel::Scalar, Kernel::Avx2, Kernel::Avx512Bf16, Kernel::Avx512, Kernel::Avx512Int8, Kernel::Amx];

    /// The fastest one that this machine has.
    pub fn best() -> Kernel {
        Kernel::best_of(Precision::Bf16)
    }

    /// The fastest one that this machine has and that is at least so precise.
    pub fn best_of(precision: Precision) -> Kernel {
        let fit = |kernel: &&Kernel| kernel.precision() >= precision && kernel.is_available();
        Kernel::ALL.iter().rev().find(fit).copied().unwrap_or(Kernel::Scalar)
    }

    /// Those that this machine has, slowest first.
    pub fn available() -> Vec<Kernel> {
        Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()).collect()
    }

    /// Whether this machine has it.
    pub fn is_available(self) -> bool {
        match self {
            Kernel::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => Avx2::new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => Avx512::new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Bf16 => Avx512Bf16::new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Int8 => Avx512Int8::new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Kernel::Amx => Amx::new().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// How it multiplies.
    pub fn precision(self) -> Precision {
        match self {
            Kernel::Scalar | Kernel::Avx2 | Kernel::Avx512 => Precision::F32,
            Kernel::Avx512Bf16 | Kernel::Amx => Precision::Bf16,
            Kernel::Avx512Int8 => Precision::Int8,
        }
    }

    /// Its name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Scalar => "scalar",
            Kernel::Avx2 => "avx2",
            Kernel::Avx512 => "avx512",
            Kernel::Avx512Bf16 => "avx512-bf16",
            Kernel::Avx512Int8 => "avx512-int8",
            Kernel::Amx => "amx",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Kernel> {
        Kernel::ALL.into_iter().find(|kernel| kernel.name() == name)
    }
}

impl std::fmt::Display for Kernel {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.pad(self.name())
    }
}

/// Rows in memory, each `stride` numbers after the one before.
#[derive(Clone, Copy)]
pub(crate) struct View<'a, T> {
    pub data: &'a [T],
    pub stride: usize,
}

/// Rows that are written.
pub(crate) struct ViewMut<'a, T> {
    pub data: &'a mut [T],
    pub stride: usize,
}

impl<T> View<'_, T> {
    /// Where it starts, after a check that it has so many rows and columns.
    fn pointer(&self, rows: usize, columns: usize) -> *const T {
        assert!(fits(self.data.len(), self.stride, rows, columns), "rows within the view");
        self.data.as_ptr()
    }
}

impl<T> ViewMut<'_, T> {
    fn pointer(&mut self, rows: usize, columns: usize) -> *mut T {
        assert!(fits(self.data.len(), self.stride, rows, columns), "rows within the view");
        self.data.as_mut_ptr()
    }
}

/// Whether so many rows and columns are there; what follows the last row's columns need not be.
fn fits(len: usize, stride: usize, rows: usize, columns: usize) -> bool {
    rows == 0 || (columns <= stride && (rows - 1) * stride + columns <= len)
}

/// A packed matrix: `depth` numbers go into each of `columns`, both padded.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'a, T> {
    pub data: &'a [T],
    pub depth: usize,
    pub columns: usize,
}

impl<T> Packed<'_, T> {
    fn pointer(&self) -> *const T {
        assert!(self.data.len() >= self.depth * self.columns, "a whole matrix");
        self.data.as_ptr()
    }
}

/// A linear map.
pub(crate) struct Map<'a, M> {
    pub matrix: &'a M,
    /// As many as there are outputs, padded.
    pub bias: &'a [f32],
}

/// A packed matrix with its own memory.
pub(crate) struct OwnPacked<T> {
    data: Aligned<T>,
    depth: usize,
    columns: usize,
}

impl<T: Copy + Default> OwnPacked<T> {
    /// Padded with zeros.
    pub(crate) fn new<E: Engine<Element = T>>(
        inputs: usize,
        outputs: usize,
        entry: impl Fn(usize, usize) -> f32,
    ) -> Self {
        let (depth, columns) = (inputs.next_multiple_of(E::DEPTH), outputs.next_multiple_of(PAD));
        let mut data = Aligned::new(depth * columns);
        let padded =
            |row: usize, column: usize| if row < inputs && column < outputs { entry(row, column) } else { 0.0 };
        pack_from::<E>(depth, columns, &mut data, padded);
        OwnPacked { data, depth, columns }
    }

    pub(crate) fn view(&self) -> Packed<'_, T> {
        Packed { data: &self.data, depth: self.depth, columns: self.columns }
    }
}

/// A packed matrix that is written.
pub(crate) struct PackedMut<'a, T> {
    pub data: &'a mut [T],
    pub depth: usize,
    pub columns: usize,
}

impl<T> PackedMut<'_, T> {
    fn pointer(&mut self) -> *mut T {
        assert!(self.data.len() >= self.depth * self.columns, "a whole matrix");
        self.data.as_mut_ptr()
    }
}

/// What a forward pass is made of. `rows` is a multiple of [`GROUP`] wherever it is not said to be anything.
pub(crate) trait Engine: Copy + Send + Sync + 'static {
    /// What is multiplied.
    type Element: Copy + Default + Send + Sync + 'static;
    /// The weights of a linear map.
    type Matrix: Send + Sync + 'static;
    /// Packed depths are multiples of it.
    const DEPTH: usize;
    /// Packed columns are multiples of it.
    const COLUMNS: usize;
    /// So many of a logit are one power of two.
    const UNIT: f32;

    fn element(value: f32) -> Self::Element;
    /// Where an entry of a packed matrix is.
    fn place(depth: usize, row: usize, column: usize) -> usize;

    /// Before the first product of a pass, and after the last.
    fn begin(self) {}
    fn end(self) {}

    /// c = a·b + bias.
    fn multiply(self, rows: usize, a: View<Self::Element>, b: Packed<Self::Element>, bias: &[f32], c: ViewMut<f32>);
    /// A linear map's weights, by input and output.
    fn matrix(inputs: usize, outputs: usize, entry: impl Fn(usize, usize) -> f32) -> Self::Matrix;
    /// Elements of room that a linear map of so many inputs wants.
    fn linear_room(_inputs: usize) -> usize {
        0
    }
    /// c = a·matrix + bias.
    fn apply(
        self,
        rows: usize,
        a: View<Self::Element>,
        map: Map<'_, Self::Matrix>,
        room: &mut [Self::Element],
        c: ViewMut<f32>,
    );
    /// The same as elements; with `relu`, zero where that is negative.
    fn apply_elements(
        self,
        rows: usize,
        a: View<Self::Element>,
        map: Map<'_, Self::Matrix>,
        relu: bool,
        room: &mut [Self::Element],
        c: ViewMut<Self::Element>,
    );
    /// sum += other.
    fn add(self, sum: &mut [f32], other: &[f32]);
    /// sum += factor · other.
    fn add_scaled(self, sum: &mut [f32], other: &[f32], factor: f32);
    /// Numbers as elements, a multiple of [`PAD`] of them.
    fn convert(self, from: &[f32], to: &mut [Self::Element]);
    /// Rows as the columns of a packed matrix: depth is their width. Any number of rows; zeros in the place of the others.
    fn pack_keys(self, rows: usize, columns: usize, from: View<Self::Element>, to: PackedMut<Self::Element>);
    /// Rows as the rows of a packed matrix. Any number of rows; zeros in the place of the others.
    fn pack_values(self, rows: usize, columns: usize, from: View<Self::Element>, to: PackedMut<Self::Element>);
    /// Leaves so many of a block's keys, besides the own ones; see [`crate::sparse::mask`].
    fn keep_best(self, keys: &mut [f32], own: Range<usize>, keep: usize, order: &mut [u32]) {
        crate::sparse::keep_best(keys, own, keep, order);
    }
    /// Elements of room that [`Engine::attend`] wants for so many rows.
    fn attention_room(_heads: usize, _size: usize, _rows: usize) -> usize {
        0
    }
    /// All heads' attention at once, if the engine has a way of its own for these; otherwise false, and nothing is done.
    fn attend(
        self,
        _heads: &Heads<'_, Self::Element>,
        _room: &mut [Self::Element],
        _to: ViewMut<Self::Element>,
    ) -> bool {
        false
    }
    /// Powers of two of each row's logits less its greatest, and one divided by the sums of them.
    fn softmax(self, rows: usize, columns: usize, attention: &mut Attention<'_, Self::Element>);
    /// Some columns of powers·b as elements, each row times its factor.
    fn mix(
        self,
        rows: usize,
        columns: usize,
        attention: &mut Attention<'_, Self::Element>,
        b: Packed<Self::Element>,
        c: ViewMut<Self::Element>,
    );
    /// x = norm(x + change), also as elements. Strides are padded with zeros, and stay so.
    fn add_norm(
        self,
        rows: usize,
        norm: Norm<'_>,
        x: ViewMut<f32>,
        change: View<f32>,
        elements: ViewMut<Self::Element>,
    );
}

/// The queries, keys and values of all heads, each head's beside the one before.
#[derive(Clone, Copy)]
pub(crate) struct Heads<'a, T> {
    /// Any number of rows.
    pub count: usize,
    pub heads: usize,
    /// Of a head.
    pub size: usize,
    pub queries: View<'a, T>,
    pub keys: View<'a, T>,
    pub values: View<'a, T>,
    /// For how many rows each key stands, rounded once for all that it is multiplied with; zeros up to a multiple of [`PAD`].
    pub weights: &'a [T],
    /// No weight's logarithm is of a greater magnitude, in the unit of logits.
    pub most_bias: f32,
}

/// The attention of some queries while it is computed. Rows of logits and powers follow each other without a gap.
pub(crate) struct Attention<'a, T> {
    pub logits: &'a mut [f32],
    pub powers: &'a mut [T],
    /// One divided by each row's sum of powers.
    pub factors: &'a mut [f32],
    /// Room for what is mixed, which starts from no bias.
    pub sums: &'a mut [f32],
    pub no_bias: &'a [f32],
}

/// A layer norm's parameters, padded with zeros to whole strides.
#[derive(Clone, Copy)]
pub(crate) struct Norm<'a> {
    pub width: usize,
    pub weight: &'a [f32],
    pub bias: &'a [f32],
}

/// The usual way to pack, entry by entry.
pub(crate) fn pack_from<E: Engine>(
    depth: usize,
    columns: usize,
    to: &mut [E::Element],
    entry: impl Fn(usize, usize) -> f32,
) {
    for row in 0..depth {
        for column in 0..columns {
            to[E::place(depth, row, column)] = E::element(entry(row, column));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adds_scaled<E: Engine>(engine: Option<E>) {
        let Some(engine) = engine else { return };
        for length in [PAD, 3 * PAD, 16 * PAD] {
            let other: Vec<f32> = (0..length).map(|place| place as f32 * 0.25 - 7.0).collect();
            let mut sum: Vec<f32> = (0..length).map(|place| 3.0 - place as f32).collect();
            let expected: Vec<f32> = sum.iter().zip(&other).map(|(sum, other)| sum - 1.5 * other).collect();
            engine.add_scaled(&mut sum, &other, -1.5);
            assert_eq!(sum, expected);
        }
    }

    #[test]
    fn every_engine_adds_scaled() {
        adds_scaled(Some(Scalar));
        #[cfg(target_arch = "x86_64")]
        {
            adds_scaled(Avx2::new());
            adds_scaled(Avx512::new());
            adds_scaled(Avx512Bf16::new());
            adds_scaled(Avx512Int8::new());
            adds_scaled(Amx::new());
        }
    }
}
