//! An NVIDIA GPU as a device. cuBLAS computes matrix products; our own kernels, which are compiled for the GPU when it
//! is opened, compute everything else. All work is queued on one stream, and the CPU waits for it only where values are
//! downloaded. The same input gives the same numbers on the same model of GPU.
//!
//! The CUDA libraries are loaded at run time, so a program with this device starts on machines without them. Starting
//! an operation takes a few microseconds, so small batches are faster on the CPU.

mod error;
mod gang;
mod index;
mod launch;
mod layout;
mod lender;
mod losses;
mod memory;
mod operations;
mod recorder;
mod staging;
mod table;

use std::sync::{Arc, Mutex, PoisonError};

use cudarc::cublas::{CudaBlas, sys as blas_sys};
use cudarc::driver::CudaContext;

pub use self::error::CudaError;
use self::gang::{Gang, Seat};
use self::launch::Argument::{At, Float, From, Int, Many, Maybe};
use self::launch::{Argument, AttentionKernels, GangKernels, Grid, Kernel, Kernels, launch};
use self::layout::Layouts;
use self::lender::Lender;
use self::memory::{Failure, Memory, Pool};
pub use self::recorder::Recorder;
use self::table::{LISTS, Table, Tables};
use crate::{AdamRates, AttentionShape};

/// Least number of rows that one block sums, and greatest number of such slices.
const SLICE: (usize, usize) = (128, 256);

/// An NVIDIA GPU as a device in single precision.
pub struct Cuda {
    context: Arc<CudaContext>,
    blas: Arc<CudaBlas>,
    kernels: Kernels,
    /// Priority of the stream. Streams with lower numbers go first.
    priority: i32,
    /// Whether matrix products may round their factors to TF32.
    tf32: bool,
    pool: Arc<Pool>,
    lender: Arc<Lender>,
    layouts: Layouts,
    /// What a device of a gang has besides.
    gang: Option<OfGang>,
}

/// What only a device of a gang has.
struct OfGang {
    kernels: GangKernels,
    tables: Mutex<Tables>,
}

/// Scalar in double precision in the GPU's memory.
pub struct Number(Memory);

/// Returns an error unless a library can be loaded.
fn require(name: &'static str, is_present: bool) -> Result<(), CudaError> {
    if is_present { Ok(()) } else { Err(CudaError::Library(name)) }
}

#[allow(unsafe_code)]
impl Cuda {
    /// Opens the first GPU of this machine and compiles the kernels for it.
    pub fn new() -> Result<Cuda, CudaError> {
        // SAFETY: loading these libraries runs nothing but their own initializers.
        unsafe {
            require("the NVIDIA driver (libcuda)", cudarc::driver::sys::is_culib_present())?;
            require("the CUDA run-time compiler (libnvrtc)", cudarc::nvrtc::sys::is_culib_present())?;
            require("cuBLAS (libcublas)", cudarc::cublas::sys::is_culib_present())?;
        }
        let context = CudaContext::new(0)?;
        // SAFETY: there is one stream, and memory is never used on another, which `Memory::pointer` checks.
        unsafe { context.disable_event_tracking() };
        // A thread that waits for the GPU leaves its core to the environments.
        context.set_blocking_synchronize()?;
        let kernels = Kernels::compile(&context)?;
        Cuda::on(context, kernels, 0, Failure::default())
    }

    fn on(context: Arc<CudaContext>, kernels: Kernels, priority: i32, failure: Failure) -> Result<Cuda, CudaError> {
        let stream = context.new_stream_with_priority(priority)?;
        let blas = Arc::new(CudaBlas::new(stream.clone())?);
        let pool = Pool::new(stream, None, failure);
        let (lender, layouts) = (Lender::new(context.clone()), Layouts::default());
        Ok(Cuda { context, blas, kernels, priority, tf32: false, pool, lender, layouts, gang: None })
    }

    /// A device of a new gang. Further devices made of it belong to the gang, too: they compute together, each with
    /// memory of its own, which is faster for many small networks at once. Matrix products never round their factors
    /// there.
    pub fn gang(&self) -> Result<Cuda, CudaError> {
        let (kernels, own) = Kernels::compile_for_gang(&self.context)?;
        let stream = self.context.new_stream()?;
        let gang = Gang::new(stream, self.pool.failure().clone(), own.fill_zero.clone(), own.copy_words.clone());
        Ok(self.seated(kernels, own, &gang))
    }

    /// A device in a gang.
    fn seated(&self, kernels: Kernels, own: GangKernels, gang: &Arc<Gang>) -> Cuda {
        let seat = Seat::new(gang.clone());
        Cuda {
            context: self.context.clone(),
            blas: self.blas.clone(),
            kernels,
            priority: self.priority,
            tf32: false,
            pool: Pool::new(gang.stream().clone(), Some(seat), self.pool.failure().clone()),
            lender: self.lender.clone(),
            layouts: Layouts::default(),
            gang: Some(OfGang { kernels: own, tables: Mutex::default() }),
        }
    }

    /// Name of the GPU.
    pub fn name(&self) -> String {
        self.context.name().unwrap_or_else(|error| format!("unknown ({error})"))
    }

    /// Allows or forbids TF32: matrix products then round their factors to 10 bits of mantissa, which the GPU
    /// multiplies several times faster. Forbidden by default; further devices made of this one do the same.
    pub fn allow_tf32(&mut self, is_allowed: bool) {
        if self.gang.is_some() {
            return;
        }
        self.tf32 = is_allowed;
        let mode = match is_allowed {
            true => blas_sys::cublasMath_t::CUBLAS_TF32_TENSOR_OP_MATH,
            false => blas_sys::cublasMath_t::CUBLAS_DEFAULT_MATH,
        };
        // SAFETY: the handle lives as long as `blas`.
        self.pool.check(unsafe { blas_sys::cublasSetMathMode(*self.blas.handle(), mode) }.result());
    }

    /// Waits until all queued work is done.
    pub fn synchronize(&self) {
        self.pool.settle();
    }

    /// Returns a recorder of the work that is queued on this device.
    pub fn recorder(&self) -> Recorder {
        Recorder { pool: self.pool.clone() }
    }

    /// Bytes of GPU memory allocated so far. A training step like an earlier one allocates no more.
    pub fn memory(&self) -> usize {
        self.pool.taken()
    }

    /// Hands a table to kernels, as an argument of theirs.
    fn with_table<T>(&self, table: &Table, work: impl FnOnce(Argument<'_>) -> T) -> T {
        match &self.gang {
            Some(own) => {
                let mut tables = own.tables.lock().unwrap_or_else(PoisonError::into_inner);
                work(At(tables.of(&self.pool, table)))
            }
            None => work(Many(table)),
        }
    }

    fn launch(&self, kernel: impl Fn(&Kernels) -> &Kernel, grid: Grid, arguments: &[Argument<'_>]) {
        launch(&self.pool, kernel(&self.kernels), grid, arguments);
    }

    /// Starts a kernel for lists of matrices: list `k` holds the `k`-th matrix of each row. All matrices of a list have
    /// the same length.
    fn for_all<const N: usize>(
        &self,
        kernel: impl Fn(&Kernels) -> &Kernel,
        rows: [&[Memory]; N],
        arguments: &[Argument<'_>],
    ) {
        for first in (0..rows[0].len()).step_by(LISTS) {
            let table = Table::new(&self.pool, &rows.map(|row| &row[first..row.len().min(first + LISTS)]));
            self.with_table(&table, |at| {
                self.launch(&kernel, Grid::blocks(table.blocks()), &[&[at][..], arguments].concat());
            });
        }
    }

    /// Adds the sum of the rows of `x` to `plain` and, if `y` is given, the sum of the rows of x∘y to the vector beside
    /// it.
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

    /// Sum of numbers in double precision, or its square root.
    fn sum_of_parts(&self, parts: &Memory, is_root: bool) -> Number {
        let total = self.pool.blank::<f64>(1);
        let arguments = [Int(parts.len()), Int(usize::from(is_root)), At(parts), At(&total)];
        self.launch(|kernels| &kernels.sum_of_parts, Grid::blocks(1), &arguments);
        Number(total)
    }

    /// Sum of the squares of all numbers of some matrices, or its square root.
    fn squares(&self, buffers: &[Memory], is_root: bool) -> Number {
        let tables: Vec<Table> = buffers.chunks(LISTS).map(|some| Table::new(&self.pool, &[some])).collect();
        let parts = self.pool.blank::<f64>(tables.iter().map(Table::blocks).sum());
        let mut first = 0;
        for table in &tables {
            // Offsets count 4-byte numbers.
            let place = From(&parts, 2 * first);
            let grid = Grid::blocks(table.blocks());
            self.with_table(table, |at| self.launch(|kernels| &kernels.square_sum_of_all, grid, &[at, place]));
            first += table.blocks();
        }
        self.sum_of_parts(&parts, is_root)
    }

    /// One step of Adam. `clip` is the greatest norm and the gradients' norm, by which they are scaled down.
    fn adam_with(&self, rates: &AdamRates, rows: [&[Memory]; 4], clip: Option<(f64, &Number)>) {
        let AdamRates { beta1, beta2, step, correction, epsilon, decay } = *rates;
        let most = clip.map_or(0.0, |(most, _)| most as f32);
        let rates = [beta1, beta2, step, correction, epsilon, decay, most].map(Float);
        let arguments = [&rates[..], &[Maybe(clip.map(|(_, norm)| &norm.0))]].concat();
        self.for_all(|kernels| &kernels.adam_all, rows, &arguments);
    }

    /// The attention kernels for a shape. Records a failure if its heads are too wide.
    fn attention_kernels<'a>(
        pool: &Pool,
        kernels: &'a Kernels,
        shape: AttentionShape<'_>,
    ) -> Option<AttentionKernels<'a>> {
        let columns = shape.columns / shape.heads;
        let found = kernels.attention(columns);
        if found.is_none() {
            pool.fail(format_args!("a head of {columns} columns; its kernels take at most 128"));
        }
        found
    }
}
