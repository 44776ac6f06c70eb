//! An NVIDIA GPU. Matrix products are cuBLAS's, everything else our own kernels, compiled for the card when it is opened. All work is put in one queue;
//! the processor waits for it only where numbers come back. The same input gives the same numbers on the same kind of card.
//!
//! The libraries are looked for at run time, so a program with this device starts on machines that have none of them. Each operation costs a few
//! microseconds to start: small batches are faster on the processor.

mod error;
mod index;
mod launch;
mod layout;
mod losses;
mod memory;
mod recorder;
mod staging;
mod table;

use std::slice;
use std::sync::Arc;

use cudarc::cublas::{CudaBlas, result as blas, sys as blas_sys};
use cudarc::driver::{CudaContext, CudaFunction};

pub use self::error::CudaError;
use self::index::{Groups, Index};
use self::launch::Argument::{At, Float, From, Int, Many, Maybe};
use self::launch::{Argument, Grid, Kernels, launch};
use self::layout::Layouts;
use self::memory::{Failure, Memory, Pool};
pub use self::recorder::Recorder;
use self::table::{LISTS, Table};
use crate::device::AdamRates;
use crate::{AttentionShape, Device, Product, Segments};

/// The widest head of an attention.
const WIDEST_HEAD: usize = 128;
/// Samples of at most so many queries and keys, and heads of at most so many columns, are short: a warp does all of one.
const SHORT: usize = 32;
/// Warps of a block that does short samples: as many as fit into so many bytes of shared memory.
const SHORT_WARPS: usize = 8;
const SHORT_SHARED: usize = 48 << 10;
/// Rows of queries or keys that a block of the attention has.
const TILE: usize = 32;
/// So many rows are summed by one block, and there are at most so many such slices.
const SLICE: (usize, usize) = (128, 256);

/// An NVIDIA GPU, single precision.
pub struct Cuda {
    context: Arc<CudaContext>,
    blas: Arc<CudaBlas>,
    kernels: Kernels,
    /// Its work comes before that of others with a higher number.
    priority: i32,
    pool: Arc<Pool>,
    layouts: Layouts,
}

/// One number in double precision, in the GPU's memory.
pub struct Number(Memory);

/// Fails unless a library can be loaded.
fn require(name: &'static str, is_present: bool) -> Result<(), CudaError> {
    if is_present { Ok(()) } else { Err(CudaError::Library(name)) }
}

#[allow(unsafe_code)]
impl Cuda {
    /// The first GPU of this machine.
    pub fn new() -> Result<Cuda, CudaError> {
        // SAFETY: loading these libraries runs nothing but their own initialisers.
        unsafe {
            require("the NVIDIA driver (libcuda)", cudarc::driver::sys::is_culib_present())?;
            require("the CUDA run-time compiler (libnvrtc)", cudarc::nvrtc::sys::is_culib_present())?;
            require("cuBLAS (libcublas)", cudarc::cublas::sys::is_culib_present())?;
        }
        let context = CudaContext::new(0)?;
        // SAFETY: there is one stream, and memory is never used on another, which `Memory::pointer` checks.
        unsafe { context.disable_event_tracking() };
        let kernels = Kernels::compile(&context)?;
        Cuda::on(context, kernels, 0, Failure::default())
    }

    fn on(context: Arc<CudaContext>, kernels: Kernels, priority: i32, failure: Failure) -> Result<Cuda, CudaError> {
        let stream = context.new_stream_with_priority(priority)?;
        let blas = Arc::new(CudaBlas::new(stream.clone())?);
        Ok(Cuda { context, blas, kernels, priority, pool: Pool::new(stream, failure), layouts: Layouts::default() })
    }

    /// What the card is called.
    pub fn name(&self) -> String {
        self.context.name().unwrap_or_else(|error| format!("unknown ({error})"))
    }

    /// Whether matrix products may round their factors to 10 bits, which the card multiplies several times faster. They do not at first.
    pub fn allow_tf32(&mut self, is_allowed: bool) {
        let mode = match is_allowed {
            true => blas_sys::cublasMath_t::CUBLAS_TF32_TENSOR_OP_MATH,
            false => blas_sys::cublasMath_t::CUBLAS_DEFAULT_MATH,
        };
        // SAFETY: the handle lives as long as `blas`.
        self.pool.check(unsafe { blas_sys::cublasSetMathMode(*self.blas.handle(), mode) }.result());
    }

    /// Waits until everything asked for is done.
    pub fn synchronize(&self) {
        self.pool.settle();
    }

    /// To record what is asked of it.
    pub fn recorder(&self) -> Recorder {
        Recorder { pool: self.pool.clone() }
    }

    /// Bytes of the card's memory taken so far. Once a training step has been made, another like it takes no more.
    pub fn memory(&self) -> usize {
        self.pool.taken()
    }

    fn launch(&self, kernel: impl Fn(&Kernels) -> &CudaFunction, grid: Grid, arguments: &[Argument<'_>]) {
        launch(&self.pool, kernel(&self.kernels), grid, arguments);
    }

    /// Starts a kernel for all matrices of these rows, which are of the same lengths.
    fn for_all<const N: usize>(
        &self,
        kernel: impl Fn(&Kernels) -> &CudaFunction,
        rows: [&[Memory]; N],
        arguments: &[Argument<'_>],
    ) {
        for first in (0..rows[0].len()).step_by(LISTS) {
            let table = Table::new(&self.pool, &rows.map(|row| &row[first..row.len().min(first + LISTS)]));
            let arguments = [&[Many(&table)][..], arguments].concat();
            self.launch(&kernel, Grid::blocks(table.blocks()), &arguments);
        }
    }

    /// Sums of all rows of `x` and, if there is a `y`, of x∘y; both are added to what is there.
    fn add_sums(&mut self, x: &Memory, plain: &mut Memory, y: Option<(&Memory, &mut Memory)>) {
        let columns = plain.len();
        let rows = x.len().checked_div(columns).unwrap_or(0);
        let slice = SLICE.0.max(rows.div_ceil(SLICE.1));
        let slices = rows.div_ceil(slice);
        let (y, product) = y.map_or((None, None), |(y, product)| (Some(y), Some(&*product)));
        assert!(y.is_none_or(|y| y.len() == x.len()) && product.is_none_or(|product| product.len() == columns));
        let width = if y.is_some() { 2 * columns } else { columns };
        let parts = self.pool.blank::<f32>(slices * width);
        let grid = Grid { blocks: (columns.div_ceil(32), slices), threads: (32, 8), shared: 0 };
        let arguments = [Int(rows), Int(columns), Int(slice), At(x), Maybe(y), At(&parts)];
        self.launch(|kernels| &kernels.sum_of_rows, grid, &arguments);
        let arguments = [Int(slices), Int(columns), At(&parts), At(plain), Maybe(product)];
        self.launch(|kernels| &kernels.add_slices, Grid::each(width), &arguments);
    }

    /// The sum of numbers in double precision, or its root.
    fn sum_of_parts(&self, parts: &Memory, is_root: bool) -> Number {
        let total = self.pool.blank::<f64>(1);
        let arguments = [Int(parts.len()), Int(usize::from(is_root)), At(parts), At(&total)];
        self.launch(|kernels| &kernels.sum_of_parts, Grid::blocks(1), &arguments);
        Number(total)
    }

    /// The sum of all squares of some matrices, or its root.
    fn squares(&self, buffers: &[Memory], is_root: bool) -> Number {
        let tables: Vec<Table> = buffers.chunks(LISTS).map(|some| Table::new(&self.pool, &[some])).collect();
        let parts = self.pool.blank::<f64>(tables.iter().map(Table::blocks).sum());
        let mut first = 0;
        for table in &tables {
            // In 4-byte numbers.
            let place = From(&parts, 2 * first);
            let grid = Grid::blocks(table.blocks());
            self.launch(|kernels| &kernels.square_sum_of_all, grid, &[Many(table), place]);
            first += table.blocks();
        }
        self.sum_of_parts(&parts, is_root)
    }

    /// A step of Adam; with a norm, of gradients that are scaled down to so much.
    fn adam_with(&self, rates: &AdamRates<f32>, rows: [&[Memory]; 4], clip: Option<(f64, &Number)>) {
        let AdamRates { beta1, beta2, step, correction, epsilon, decay } = *rates;
        let most = clip.map_or(0.0, |(most, _)| most as f32);
        let rates = [beta1, beta2, step, correction, epsilon, decay, most].map(Float);
        let arguments = [&rates[..], &[Maybe(clip.map(|(_, norm)| &norm.0))]].concat();
        self.for_all(|kernels| &kernels.adam_all, rows, &arguments);
    }

    /// How the attention of short samples is computed: a warp for each sample and head, with so many times the rows of queries and of keys in shared
    /// memory. None if a sample is too long. With it the most queries and keys of a sample.
    fn short_grid(shape: AttentionShape<'_>, copies: (usize, usize)) -> Option<(Grid, [Argument<'static>; 2])> {
        let longest = |rows: &Segments| rows.ranges().map(|range| range.len()).max().unwrap_or(0);
        let (queries, keys, size) = (longest(shape.queries), longest(shape.keys), shape.columns / shape.heads);
        if queries > SHORT || keys > SHORT || size > SHORT {
            return None;
        }
        let shared = 4 * (copies.0 * queries + copies.1 * keys) * (size | 1);
        let warps = SHORT_SHARED.checked_div(shared).map_or(SHORT_WARPS, |warps| warps.clamp(1, SHORT_WARPS));
        let blocks = (shape.queries.len() * shape.heads).div_ceil(warps);
        Some((
            Grid { blocks: (blocks, 1), threads: (32 * warps, 1), shared: warps * shared },
            [Int(queries), Int(keys)],
        ))
    }

    /// How an attention is computed: a block for each sample, head and 32 of the rows.
    fn attention_grid(&self, shape: AttentionShape<'_>, rows: &Segments, tiles: usize) -> Grid {
        let size = shape.columns / shape.heads;
        if size > WIDEST_HEAD {
            self.pool.fail(format_args!("a head of {size} columns; its kernels take at most {WIDEST_HEAD}"));
        }
        let width = if size <= 32 { 32 } else { size.next_power_of_two() };
        let longest = rows.ranges().map(|range| range.len()).max().unwrap_or(0);
        Grid {
            blocks: (shape.queries.len() * shape.heads, longest.div_ceil(TILE)),
            threads: (256, 1),
            shared: 4 * (2 * TILE * (width + 4) + tiles * TILE * TILE),
        }
    }
}

impl Device for Cuda {
    type Real = f32;
    type Buffer = Memory;
    type Index = Index;
    type Number = Number;

    /// Its work comes first: it is there to act or to judge, and waited for, while this one has a queue to work off.
    fn another(&self) -> Self {
        let (context, kernels, priority) = (self.context.clone(), self.kernels.clone(), self.priority - 1);
        let failure = self.pool.failure().clone();
        Cuda::on(context.clone(), kernels.clone(), priority, failure).unwrap_or_else(|error| {
            // This one's queue will do for a device that is asked nothing any more.
            self.pool.fail(error);
            let (blas, pool) = (self.blas.clone(), self.pool.clone());
            Cuda { context, blas, kernels, priority, pool, layouts: Layouts::default() }
        })
    }

    fn failure(&self) -> Option<String> {
        self.pool.failure().get().cloned()
    }

    fn number(&self, number: &Number) -> f64 {
        number.0.download::<f64>()[0]
    }

    /// One card takes any batch whole.
    fn shard_rows(&self) -> usize {
        usize::MAX
    }

    fn blank(&mut self, len: usize) -> Memory {
        self.pool.blank::<f32>(len)
    }

    fn recycle(&mut self, buffer: Memory) {
        drop(buffer);
    }

    fn upload(&mut self, values: &[f32]) -> Memory {
        self.pool.upload(values)
    }

    fn download(&self, buffer: &Memory) -> Vec<f32> {
        buffer.download()
    }

    fn index(&mut self, rows: &[u32]) -> Index {
        Index::new(&self.pool, rows)
    }

    fn clear(&mut self, out: &mut Memory) {
        out.clear();
    }

    fn copy(&mut self, from: &Memory, out: &mut Memory) {
        out.copy_from(from);
    }

    fn add(&mut self, from: &Memory, out: &mut Memory) {
        let n = out.len();
        assert_eq!(from.len(), n);
        self.launch(|kernels| &kernels.add, Grid::each(n), &[Int(n), At(from), At(out)]);
    }

    fn blend(&mut self, share: f32, from: &Memory, out: &mut Memory) {
        self.blend_all(share, slice::from_ref(from), slice::from_mut(out));
    }

    fn scale(&mut self, factor: f32, out: &mut Memory) {
        self.scale_all(factor, slice::from_mut(out));
    }

    fn square_sum(&mut self, buffer: &Memory) -> f64 {
        self.square_sum_of_all(slice::from_ref(buffer))
    }

    fn clear_all(&mut self, out: &mut [Memory]) {
        self.for_all(|kernels| &kernels.clear_all, [out], &[]);
    }

    fn scale_all(&mut self, factor: f32, out: &mut [Memory]) {
        self.for_all(|kernels| &kernels.scale_all, [out], &[Float(factor)]);
    }

    fn blend_all(&mut self, share: f32, from: &[Memory], out: &mut [Memory]) {
        self.for_all(|kernels| &kernels.blend_all, [from, out], &[Float(share)]);
    }

    fn square_sum_of_all(&mut self, buffers: &[Memory]) -> f64 {
        self.number(&self.squares(buffers, false))
    }

    fn adam_all(
        &mut self,
        rates: &AdamRates<f32>,
        gradients: &[Memory],
        first: &mut [Memory],
        second: &mut [Memory],
        parameters: &mut [Memory],
    ) {
        self.adam_with(rates, [gradients, first, second, parameters], None);
    }

    fn clipped_adam_all(
        &mut self,
        most: f64,
        rates: &AdamRates<f32>,
        gradients: &mut [Memory],
        first: &mut [Memory],
        second: &mut [Memory],
        parameters: &mut [Memory],
    ) -> Number {
        let norm = self.squares(gradients, true);
        self.adam_with(rates, [gradients, first, second, parameters], Some((most, &norm)));
        norm
    }

    #[allow(unsafe_code)]
    fn product(&mut self, product: Product, left: &Memory, right: &Memory, out: &mut Memory) {
        let Product { m, n, k, left_transposed, right_transposed, accumulate } = product;
        assert!(left.len() == m * k && right.len() == k * n && out.len() == m * n);
        if k == 0 && !accumulate {
            out.clear();
        }
        if m == 0 || n == 0 || k == 0 {
            return;
        }
        let operation = |is_transposed| match is_transposed {
            true => blas_sys::cublasOperation_t::CUBLAS_OP_T,
            false => blas_sys::cublasOperation_t::CUBLAS_OP_N,
        };
        let beta = if accumulate { 1.0 } else { 0.0 };
        let pointer = |memory: &Memory| memory.pointer(&self.pool);
        if self.pool.ask(|| Ok(())).is_none() {
            return;
        }
        // cuBLAS stores columns one after the other: what it takes for matrices are their transposes, and outᵀ = rightᵀ · leftᵀ.
        // SAFETY: the matrices are as large as they are said to be, as was just checked.
        let result = unsafe {
            blas::sgemm(
                *self.blas.handle(),
                operation(right_transposed),
                operation(left_transposed),
                n as i32,
                m as i32,
                k as i32,
                &1.0,
                pointer(right) as *const f32,
                if right_transposed { k } else { n } as i32,
                pointer(left) as *const f32,
                if left_transposed { m } else { k } as i32,
                &beta,
                pointer(out) as *mut f32,
                n as i32,
            )
        };
        self.pool.check(result);
    }

    fn add_row(&mut self, row: &Memory, out: &mut Memory) {
        let (n, columns) = (out.len(), row.len());
        assert!(n == 0 || n.is_multiple_of(columns));
        self.launch(|kernels| &kernels.add_row, Grid::each(n), &[Int(n), Int(columns), At(row), At(out)]);
    }

    fn add_sum_of_rows(&mut self, x: &Memory, out: &mut Memory) {
        self.add_sums(x, out, None);
    }

    fn relu(&mut self, x: &Memory, out: &mut Memory) {
        let n = out.len();
        assert_eq!(x.len(), n);
        self.launch(|kernels| &kernels.relu, Grid::each(n), &[Int(n), At(x), At(out)]);
    }

    fn relu_backward(&mut self, x: &Memory, gradient: Memory) -> Memory {
        let n = gradient.len();
        assert_eq!(x.len(), n);
        let dx = self.zeros(n);
        self.launch(|kernels| &kernels.relu_backward, Grid::each(n), &[Int(n), At(x), At(&gradient), At(&dx)]);
        self.recycle(gradient);
        dx
    }

    fn add_rows(
        &mut self,
        (count, columns): (usize, usize),
        x: &Memory,
        from: Option<&Index>,
        out: &mut Memory,
        to: Option<&Index>,
    ) {
        let fits = |list: Option<&Index>, matrix: &Memory| {
            list.is_none_or(|list| list.len() == count) && list.map_or(count, Index::end) * columns <= matrix.len()
        };
        assert!(fits(from, x) && fits(to, out));
        let from = Maybe(from.map(Index::memory));
        if let Some(groups) = to.and_then(|to| to.groups(&self.pool)) {
            let Groups { memory, len, chunks } = groups;
            let (order, of_chunks) = (From(memory, 0), From(memory, count));
            let (of_groups, targets) = (From(memory, count + chunks + 1), From(memory, count + chunks + len + 2));
            let nothing = Maybe(None);
            if chunks == len {
                let arguments = [Int(columns), At(x), from, At(out), order, of_chunks, targets];
                self.launch(|kernels| &kernels.add_groups, Grid::groups(*len, count, columns), &arguments);
            } else {
                let parts = self.pool.blank::<f32>(chunks * columns);
                let arguments = [Int(columns), At(x), from, At(&parts), order, of_chunks, nothing];
                self.launch(|kernels| &kernels.add_groups, Grid::groups(*chunks, count, columns), &arguments);
                let arguments = [Int(columns), At(&parts), nothing, At(out), nothing, of_groups, targets];
                self.launch(|kernels| &kernels.add_groups, Grid::groups(*len, *chunks, columns), &arguments);
            }
        } else {
            let n = count * columns;
            let arguments = [Int(n), Int(columns), At(x), from, At(out), Maybe(to.map(Index::memory))];
            self.launch(|kernels| &kernels.add_rows, Grid::each(n), &arguments);
        }
    }

    fn layer_norm(
        &mut self,
        x: &Memory,
        change: Option<&Memory>,
        weight: &Memory,
        bias: &Memory,
        normal: &mut Memory,
        scales: &mut Memory,
        out: &mut Memory,
    ) {
        let (rows, columns) = (scales.len(), weight.len());
        assert!([x, normal, out].iter().all(|matrix| matrix.len() == rows * columns) && bias.len() == columns);
        assert!(change.is_none_or(|change| change.len() == x.len()));
        let arguments =
            [Int(rows), Int(columns), At(x), Maybe(change), At(weight), At(bias), At(normal), At(scales), At(out)];
        self.launch(|kernels| &kernels.layer_norm, Grid::warps(rows), &arguments);
    }

    fn layer_norm_backward(
        &mut self,
        normal: &Memory,
        scales: &Memory,
        weight: &Memory,
        dy: &Memory,
        dx: &mut Memory,
        dweight: &mut Memory,
        dbias: &mut Memory,
    ) {
        let (rows, columns) = (scales.len(), weight.len());
        assert!([normal, dy, dx].iter().all(|matrix| matrix.len() == rows * columns));
        assert!(dweight.len() == columns && dbias.len() == columns);
        let arguments = [Int(rows), Int(columns), At(normal), At(scales), At(weight), At(dy), At(dx)];
        self.launch(|kernels| &kernels.layer_norm_backward, Grid::warps(rows), &arguments);
        self.add_sums(dy, dbias, Some((normal, dweight)));
    }

    fn attention(
        &mut self,
        shape: AttentionShape<'_>,
        q: &Memory,
        k: &Memory,
        v: &Memory,
        bias: Option<&Memory>,
        weights: &mut Memory,
        out: &mut Memory,
    ) {
        let AttentionShape { queries, keys, heads, columns } = shape;
        assert!([q, out].iter().all(|matrix| matrix.len() == queries.rows() * columns));
        assert!([k, v].iter().all(|matrix| matrix.len() == keys.rows() * columns));
        assert!(weights.len() == shape.weights() && bias.is_none_or(|bias| bias.len() == keys.rows()));
        let by_queries = self.attention_grid(shape, queries, 1);
        let layout = &self.layouts.of(&self.pool, queries, keys).memory;
        let common = [Int(queries.len()), At(layout), Int(heads), Int(columns), Float(scale_of(shape))];
        let own = [At(q), At(k), At(v), Maybe(bias), At(weights), At(out)];
        if let Some((grid, longest)) = Cuda::short_grid(shape, (1, 2)) {
            let arguments = [&common[..], &longest[..], &own[..]].concat();
            return launch(&self.pool, &self.kernels.attention_short, grid, &arguments);
        }
        launch(&self.pool, &self.kernels.attention, by_queries, &[&common[..], &own[..]].concat());
    }

    fn attention_backward(
        &mut self,
        shape: AttentionShape<'_>,
        q: &Memory,
        k: &Memory,
        v: &Memory,
        weights: &Memory,
        dy: &Memory,
        dq: &mut Memory,
        dk: &mut Memory,
        dv: &mut Memory,
    ) {
        let AttentionShape { queries, keys, heads, columns } = shape;
        assert!([q, dy, dq].iter().all(|matrix| matrix.len() == queries.rows() * columns));
        assert!([k, v, dk, dv].iter().all(|matrix| matrix.len() == keys.rows() * columns));
        assert_eq!(weights.len(), shape.weights());
        let (by_queries, by_keys) = (self.attention_grid(shape, queries, 1), self.attention_grid(shape, keys, 2));
        let layout = &self.layouts.of(&self.pool, queries, keys).memory;
        let common = [Int(queries.len()), At(layout), Int(heads), Int(columns)];
        let scale = [Float(scale_of(shape))];
        if let Some((grid, longest)) = Cuda::short_grid(shape, (2, 2)) {
            let own = [At(q), At(k), At(v), At(weights), At(dy), At(dq), At(dk), At(dv)];
            let arguments = [&common[..], &scale[..], &longest[..], &own[..]].concat();
            return launch(&self.pool, &self.kernels.attention_short_backward, grid, &arguments);
        }
        let dlogits = self.pool.blank::<f32>(weights.len());
        let own = [scale[0], At(k), At(v), At(weights), At(dy), At(&dlogits), At(dq)];
        let arguments = [&common[..], &own[..]].concat();
        launch(&self.pool, &self.kernels.attention_backward_queries, by_queries, &arguments);
        let own = [At(q), At(weights), At(dy), At(&dlogits), At(dk), At(dv)];
        let arguments = [&common[..], &own[..]].concat();
        launch(&self.pool, &self.kernels.attention_backward_keys, by_keys, &arguments);
    }

    fn adam(
        &mut self,
        rates: &AdamRates<f32>,
        gradient: &Memory,
        first: &mut Memory,
        second: &mut Memory,
        parameter: &mut Memory,
    ) {
        let (first, second) = (slice::from_mut(first), slice::from_mut(second));
        self.adam_all(rates, slice::from_ref(gradient), first, second, slice::from_mut(parameter));
    }
}

/// What an attention's products are multiplied by.
fn scale_of(shape: AttentionShape<'_>) -> f32 {
    (1.0 / ((shape.columns / shape.heads) as f64).sqrt()) as f32
}
