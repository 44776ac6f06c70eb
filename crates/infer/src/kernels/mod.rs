//! The arithmetic, with one file for each instruction set. A [`Kernel`] is chosen once, when a network is built. It
//! computes with an [`Engine`], a value that exists only if the processor has the instructions.
//!
//! Every engine multiplies rows by *packed* matrices: columns in panels of [`Engine::COLUMNS`], padded with zeros to
//! whole panels. Rows are computed sixteen at a time ([`GROUP`]), and everything is padded to that, so the inner loops
//! have no remainders.

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod amx_attention;
#[cfg(target_arch = "x86_64")]
mod amx_pipeline;
#[cfg(target_arch = "x86_64")]
mod amx_sparse;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_int8;
#[cfg(target_arch = "x86_64")]
mod bf16;
mod lanes;
#[cfg(target_arch = "x86_64")]
mod norm;
mod scalar;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", all(target_arch = "wasm32", target_feature = "simd128")))]
mod simd128;

#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
))]
pub(crate) use simd128::Simd128;
#[cfg(target_arch = "x86_64")]
pub(crate) use {avx2::Avx2, avx512::Avx512, avx512_int8::Avx512Int8, bf16::Amx};

pub(crate) use scalar::Scalar;

use crate::aligned::Aligned;
use crate::sparse::plan::Plan;

/// Number of rows that are computed at a time. A forward pass takes as long as one over the next multiple of it.
pub const GROUP: usize = 16;

/// Number of queries whose attention is computed together.
pub(crate) const QUERIES: usize = 2 * GROUP;

/// Widths in memory are padded to multiples of this many numbers.
pub(crate) const PAD: usize = 32;

/// Attention logit of a key that is not attended to. It stands for minus infinity, but differences of it are never NaN.
pub(crate) const NEVER: f32 = -1e30;

/// Precision of the factors of products, least precise first. Norms, activations between layers, and sums (except those
/// of integers) are always in single precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// Products of 8-bit integers in linear maps, and of single-precision numbers elsewhere.
    Int8,
    /// Products of bfloat16 numbers, which have eight significant bits.
    Bf16,
    /// Products of single-precision numbers.
    F32,
}

/// Implementation of the arithmetic, by the instructions that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Plain Rust, on any processor.
    Scalar,
    /// Vectors of four numbers: SSE2 on x86-64, NEON on AArch64, simd128 in WebAssembly.
    Simd128,
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ and VL.
    Avx512,
    /// AVX-512 with VNNI: linear maps in 8-bit integers.
    Avx512Int8,
    /// x86-64 with bfloat16 matrix tiles (AMX), on Linux.
    Amx,
}

impl Kernel {
    /// All kernels, slowest first.
    pub const ALL: [Kernel; 6] =
        [Kernel::Scalar, Kernel::Simd128, Kernel::Avx2, Kernel::Avx512, Kernel::Avx512Int8, Kernel::Amx];

    /// The fastest available kernel of at least [`Precision::Bf16`].
    pub fn best() -> Kernel {
        Kernel::best_of(Precision::Bf16)
    }

    /// The fastest available kernel of at least this precision.
    pub fn best_of(precision: Precision) -> Kernel {
        let fit = |kernel: &&Kernel| kernel.precision() >= precision && kernel.is_available();
        Kernel::ALL.iter().rev().find(fit).copied().unwrap_or(Kernel::Scalar)
    }

    /// Kernels that this machine supports, slowest first.
    pub fn available() -> Vec<Kernel> {
        Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()).collect()
    }

    /// Returns `true` if this machine supports the kernel.
    pub fn is_available(self) -> bool {
        match self {
            Kernel::Scalar => true,
            #[cfg(any(
                target_arch = "x86_64",
                target_arch = "aarch64",
                all(target_arch = "wasm32", target_feature = "simd128")
            ))]
            Kernel::Simd128 => Simd128::new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => Avx2::new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => Avx512::new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Int8 => Avx512Int8::new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Kernel::Amx => Amx::new().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// Precision of the kernel's products.
    pub fn precision(self) -> Precision {
        match self {
            Kernel::Scalar | Kernel::Simd128 | Kernel::Avx2 | Kernel::Avx512 => Precision::F32,
            Kernel::Amx => Precision::Bf16,
            Kernel::Avx512Int8 => Precision::Int8,
        }
    }

    /// Name of the kernel, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Scalar => "scalar",
            Kernel::Simd128 => "simd128",
            Kernel::Avx2 => "avx2",
            Kernel::Avx512 => "avx512",
            Kernel::Avx512Int8 => "avx512-int8",
            Kernel::Amx => "amx",
        }
    }

    /// The kernel with this name.
    pub fn from_name(name: &str) -> Option<Kernel> {
        Kernel::ALL.into_iter().find(|kernel| kernel.name() == name)
    }
}

impl std::fmt::Display for Kernel {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.pad(self.name())
    }
}

/// View of rows in memory. Each row begins `stride` numbers after the one before.
#[derive(Clone, Copy)]
pub(crate) struct View<'a, T> {
    pub data: &'a [T],
    pub stride: usize,
}

/// Mutable view of rows in memory.
pub(crate) struct ViewMut<'a, T> {
    pub data: &'a mut [T],
    pub stride: usize,
}

impl<T> View<'_, T> {
    /// Pointer to the first row. Panics unless the view has this many rows and columns.
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

/// Returns `true` if `len` numbers hold this many rows and columns. The last row may end after its columns.
fn fits(len: usize, stride: usize, rows: usize, columns: usize) -> bool {
    rows == 0 || (columns <= stride && (rows - 1) * stride + columns <= len)
}

/// View of a packed matrix of `depth` rows and `columns` columns, both padded.
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

/// View of a linear map.
pub(crate) struct Map<'a, M> {
    pub matrix: &'a M,
    /// One number per output, padded.
    pub bias: &'a [f32],
}

/// Packed matrix with its own memory.
pub(crate) struct OwnPacked<T> {
    data: Aligned<T>,
    depth: usize,
    columns: usize,
}

impl<T: Copy + Default> OwnPacked<T> {
    /// Packs a matrix and pads it with zeros.
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

/// Mutable view of a packed matrix.
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

/// Operations of a forward pass. `rows` is a multiple of [`GROUP`] unless a method accepts any number.
pub(crate) trait Engine: Copy + Send + Sync + 'static {
    /// Number type of the factors of products.
    type Element: Copy + Default + Send + Sync + 'static;
    /// Packed weights of a linear map.
    type Matrix: Send + Sync + 'static;
    /// Packed depths are padded to multiples of this.
    const DEPTH: usize;
    /// Packed columns are padded to multiples of this.
    const COLUMNS: usize;
    /// Unit of logits: adding `UNIT` to a logit doubles the attention weight.
    const UNIT: f32;

    fn element(value: f32) -> Self::Element;
    /// Place of an entry in a packed matrix.
    fn place(depth: usize, row: usize, column: usize) -> usize;

    /// Called before the first product of a pass and after the last.
    fn begin(self) {}
    fn end(self) {}

    /// c = a·b + bias.
    fn multiply(self, rows: usize, a: View<Self::Element>, b: Packed<Self::Element>, bias: &[f32], c: ViewMut<f32>);
    /// Packs the weights of a linear map, given by input and output.
    fn matrix(inputs: usize, outputs: usize, entry: impl Fn(usize, usize) -> f32) -> Self::Matrix;
    /// Elements of working memory that a linear map with this many inputs needs.
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
    /// [`Engine::apply`] with the result as elements, and max(·, 0) of it if `relu` is set.
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
    /// sum += Σ factor · row, with a row of the table for each factor, as long as the sum: a multiple of [`PAD`].
    fn add_terms(self, sum: &mut [f32], factors: &[f32], table: &[f32]);
    /// Converts numbers to elements. Their count is a multiple of [`PAD`].
    fn convert(self, from: &[f32], to: &mut [Self::Element]);
    /// Packs rows as the columns of a matrix, whose depth is their width. Accepts any number of rows and pads with
    /// zeros.
    fn pack_keys(self, rows: usize, columns: usize, from: View<Self::Element>, to: PackedMut<Self::Element>);
    /// Packs rows as the rows of a matrix. Accepts any number of rows and pads with zeros.
    fn pack_values(self, rows: usize, columns: usize, from: View<Self::Element>, to: PackedMut<Self::Element>);
    /// Sum of rows of elements. The length of the sum is a multiple of [`PAD`].
    fn sum_rows(self, rows: usize, from: View<Self::Element>, sum: &mut [f32]);
    /// Elements of working memory that [`Engine::attend`] needs; 0 if the engine does not implement it for this shape.
    fn attention_room(_heads: usize, _size: usize, _rows: usize) -> usize {
        0
    }
    /// Computes the attention of all heads at once and returns `true`, if the engine can do so for this input.
    /// Otherwise returns `false` without a result.
    fn attend(
        self,
        _heads: &Heads<'_, Self::Element>,
        _room: &mut [Self::Element],
        _to: ViewMut<Self::Element>,
    ) -> bool {
        false
    }
    /// Elements of working memory that [`Engine::attend_plan`] needs for this many tiles of [`GROUP`] queries and units
    /// of keys; 0 if the engine does not implement it for this shape.
    fn plan_room(_size: usize, _tiles: usize, _units: usize) -> usize {
        0
    }
    /// [`Engine::attend`] of the kept keys alone.
    fn attend_plan(
        self,
        _heads: &Heads<'_, Self::Element>,
        _plan: &Plan,
        _room: &mut [Self::Element],
        _to: ViewMut<Self::Element>,
    ) -> bool {
        false
    }
    /// For each row of logits computes the powers 2^((logit − greatest) / [`Engine::UNIT`]), and one divided by their
    /// sum.
    fn softmax(self, rows: usize, columns: usize, attention: &mut Attention<'_, Self::Element>);
    /// Computes the first `columns` columns of powers · b as elements, each row times its factor.
    fn mix(
        self,
        rows: usize,
        columns: usize,
        attention: &mut Attention<'_, Self::Element>,
        b: Packed<Self::Element>,
        c: ViewMut<Self::Element>,
    );
    /// x = norm(x + change), also written as elements. The padding of rows is zero and stays zero.
    fn add_norm(
        self,
        rows: usize,
        norm: Norm<'_>,
        x: ViewMut<f32>,
        change: View<f32>,
        elements: ViewMut<Self::Element>,
    );
}

/// Queries, keys and values of all heads, side by side.
#[derive(Clone, Copy)]
pub(crate) struct Heads<'a, T> {
    /// Number of rows; not padded.
    pub count: usize,
    pub heads: usize,
    /// Width of a head.
    pub size: usize,
    pub queries: View<'a, T>,
    pub keys: View<'a, T>,
    pub values: View<'a, T>,
    /// Multiplicity of each key, rounded to an element; zeros up to a multiple of [`PAD`].
    pub weights: &'a [T],
    /// Greatest magnitude of the multiplicities' logarithms, in the unit of logits.
    pub most_bias: f32,
}

/// Intermediate results of the attention of some queries. Rows of logits and powers are contiguous.
pub(crate) struct Attention<'a, T> {
    pub logits: &'a mut [f32],
    pub powers: &'a mut [T],
    /// One divided by each row's sum of powers.
    pub factors: &'a mut [f32],
    /// Working memory for mixed values, and the zeros that they start from.
    pub sums: &'a mut [f32],
    pub no_bias: &'a [f32],
}

/// Parameters of a layer norm, padded with zeros to the stride of rows.
#[derive(Clone, Copy)]
pub(crate) struct Norm<'a> {
    pub width: usize,
    pub weight: &'a [f32],
    pub bias: &'a [f32],
}

/// Packs a matrix entry by entry.
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

    fn adds_terms<E: Engine>(engine: Option<E>) {
        let Some(engine) = engine else { return };
        for length in [PAD, 3 * PAD, 8 * PAD, 9 * PAD] {
            let table: Vec<f32> = (0..3 * length).map(|place| place as f32 * 0.25 - 7.0).collect();
            let factors = [-1.5, 0.0, 2.0];
            let mut sum: Vec<f32> = (0..length).map(|place| 3.0 - place as f32).collect();
            let term = |row: usize, place: usize| factors[row] * table[row * length + place];
            let expected: Vec<f32> =
                sum.iter().enumerate().map(|(place, sum)| sum + term(0, place) + term(2, place)).collect();
            engine.add_terms(&mut sum, &factors, &table);
            assert_eq!(sum, expected);
        }
    }

    #[test]
    fn every_engine_adds_terms() {
        adds_terms(Some(Scalar));
        #[cfg(any(
            target_arch = "x86_64",
            target_arch = "aarch64",
            all(target_arch = "wasm32", target_feature = "simd128")
        ))]
        adds_terms(Simd128::new());
        #[cfg(target_arch = "x86_64")]
        {
            adds_terms(Avx2::new());
            adds_terms(Avx512::new());
            adds_terms(Avx512Int8::new());
            adds_terms(Amx::new());
        }
    }
}
