//! Compilation and launch of the CUDA kernels.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, result};
use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};

use super::CudaError;
use super::memory::{Memory, Pool};
use super::table::Table;

/// Source code of all kernels.
const SOURCE: &str = concat!(include_str!("kernels.cu"), include_str!("attention.cu"), include_str!("losses.cu"));
/// The same for a gang.
const GANG_SOURCE: &str = concat!(
    include_str!("gang_head.cu"),
    include_str!("kernels.cu"),
    include_str!("attention.cu"),
    include_str!("losses.cu"),
    include_str!("gang_tail.cu")
);

/// A kernel. In a gang it works on the calls of many devices.
pub type Kernel = CudaFunction;

/// What only a gang has.
#[derive(Clone)]
pub struct GangKernels {
    pub product: Kernel,
    pub fill_zero: Kernel,
    pub copy_words: Kernel,
}

macro_rules! kernels {
    ($($name:ident),* $(,)?) => {
        /// All kernels by name.
        #[derive(Clone)]
        pub struct Kernels {
            $(pub $name: Kernel,)*
        }

        impl Kernels {
            /// Compiles the kernels for the GPU of a context.
            pub fn compile(context: &Arc<CudaContext>) -> Result<Kernels, CudaError> {
                let module = compile(context, SOURCE)?;
                Ok(Kernels { $($name: module.load_function(stringify!($name))?,)* })
            }

            /// Compiles the kernels of a gang.
            pub fn compile_for_gang(context: &Arc<CudaContext>) -> Result<(Kernels, GangKernels), CudaError> {
                let module = compile(context, GANG_SOURCE)?;
                let load = |name: &str| module.load_function(&format!("gang_{name}"));
                let kernels = Kernels { $($name: load(stringify!($name))?,)* };
                let (product, fill_zero, copy_words) = (load("product")?, load("fill_zero")?, load("copy_words")?);
                Ok((kernels, GangKernels { product, fill_zero, copy_words }))
            }
        }
    };
}

fn compile(context: &Arc<CudaContext>, source: &str) -> Result<Arc<CudaModule>, CudaError> {
    let (major, minor) = context.compute_capability()?;
    let options = vec![format!("--gpu-architecture=compute_{major}{minor}")];
    let compiled = compile_ptx_with_opts(source, CompileOptions { options, ..CompileOptions::default() })?;
    Ok(context.load_module(compiled)?)
}

kernels!(
    adam_all,
    add,
    add_groups,
    add_row,
    add_rows,
    add_slices,
    attention_16,
    attention_32,
    attention_64,
    attention_128,
    attention_backward_keys_16,
    attention_backward_keys_32,
    attention_backward_keys_64,
    attention_backward_keys_128,
    attention_backward_queries_16,
    attention_backward_queries_32,
    attention_backward_queries_64,
    attention_backward_queries_128,
    bootstrap_targets,
    blend_all,
    clear_all,
    imitation_loss,
    layer_norm,
    layer_norm_backward,
    policy_loss,
    regression,
    relu,
    relu_backward,
    scale_all,
    square_sum_of_all,
    sum_of_parts,
    sum_of_rows,
    q_value_loss,
);

/// Attention kernels for heads of one width.
pub struct AttentionKernels<'a> {
    /// Columns that a head is padded to.
    pub width: usize,
    pub forward: &'a Kernel,
    pub backward_queries: &'a Kernel,
    pub backward_keys: &'a Kernel,
}

impl Kernels {
    /// The attention kernels for heads of this many columns; `None` if there are none.
    pub fn attention(&self, columns: usize) -> Option<AttentionKernels<'_>> {
        let (width, [forward, backward_queries, backward_keys]) = match columns {
            0..=16 => (16, [&self.attention_16, &self.attention_backward_queries_16, &self.attention_backward_keys_16]),
            17..=32 => {
                (32, [&self.attention_32, &self.attention_backward_queries_32, &self.attention_backward_keys_32])
            }
            33..=64 => {
                (64, [&self.attention_64, &self.attention_backward_queries_64, &self.attention_backward_keys_64])
            }
            65..=128 => {
                (128, [&self.attention_128, &self.attention_backward_queries_128, &self.attention_backward_keys_128])
            }
            _ => return None,
        };
        Some(AttentionKernels { width, forward, backward_queries, backward_keys })
    }
}

/// Greatest width of heads that count as narrow: a thread has all columns of one.
const NARROW: usize = 32;
/// Number of threads per block for narrow heads, and of heads that one warp computes.
const NARROW_THREADS: usize = 128;
const HEADS_PER_WARP: usize = 4;

impl AttentionKernels<'_> {
    /// Whether heads of this many columns are narrow. The forward pass then keeps one number for each query and head.
    pub fn is_narrow(columns: usize) -> bool {
        columns <= NARROW
    }

    /// Number of queries or keys that a warp or block has at once, for heads of this many columns.
    pub fn tile(columns: usize) -> usize {
        if Self::is_narrow(columns) { 32 / HEADS_PER_WARP } else { WIDE_TILE }
    }

    /// Grid for this many heads and tiles of queries or keys. `squares` is the number of squares of tiles that wide
    /// heads have in shared memory.
    pub fn grid(&self, heads: usize, tiles: usize, squares: usize) -> Grid {
        if Self::is_narrow(self.width) {
            let threads = 32 * tiles * heads.div_ceil(HEADS_PER_WARP);
            return Grid { blocks: (threads.div_ceil(NARROW_THREADS), 1), threads: (NARROW_THREADS, 1), shared: 0 };
        }
        let shared = 4 * (2 * WIDE_TILE * (self.width + 4) + squares * WIDE_TILE * WIDE_TILE);
        Grid { blocks: (tiles, heads), threads: (THREADS, 1), shared }
    }
}

/// Number of queries or keys that a block has at once, for wide heads.
const WIDE_TILE: usize = 32;

/// Default number of threads per block.
pub const THREADS: usize = 256;

/// Number of blocks and threads of a launch.
#[derive(Clone, Copy)]
pub struct Grid {
    pub blocks: (usize, usize),
    pub threads: (usize, usize),
    /// Bytes of shared memory per block.
    pub shared: usize,
}

impl Grid {
    /// One thread for each of `count` items.
    pub fn each(count: usize) -> Grid {
        Grid { blocks: (count.div_ceil(THREADS), 1), threads: (THREADS, 1), shared: 0 }
    }

    /// One warp for each of `count` items.
    pub fn warps(count: usize) -> Grid {
        Grid::each(32 * count)
    }

    /// One block for each group of rows and each 32 or 128 columns. A block has as many rows of threads as leave each
    /// thread a few rows to add.
    pub fn groups(groups: usize, rows: usize, columns: usize) -> Grid {
        let deep = (rows / groups / 4).clamp(1, 16).next_power_of_two();
        let wide = if deep > 1 { 32 } else { 128 };
        Grid { blocks: (groups, columns.div_ceil(wide)), threads: (wide, deep), shared: 0 }
    }

    /// One block for each 64 × 64 numbers of a matrix product.
    pub fn squares(rows: usize, columns: usize) -> Grid {
        Grid { blocks: (columns.div_ceil(64), rows.div_ceil(64)), threads: (THREADS, 1), shared: 0 }
    }

    /// `count` blocks of the default number of threads.
    pub fn blocks(count: usize) -> Grid {
        Grid { blocks: (count, 1), threads: (THREADS, 1), shared: 0 }
    }
}

/// Argument of a kernel.
#[derive(Clone, Copy)]
pub enum Argument<'a> {
    /// An integer.
    Int(usize),
    Float(f32),
    /// A buffer.
    At(&'a Memory),
    /// A buffer from an offset on, which counts 4-byte numbers.
    From(&'a Memory, usize),
    /// An optional buffer; null if there is none.
    Maybe(Option<&'a Memory>),
    /// A table of matrices, passed by value.
    Many(&'a Table),
}

impl Argument<'_> {
    /// The argument in the 8 bytes that a call of a gang has for it.
    fn word(&self, pool: &Arc<Pool>) -> u64 {
        match self {
            Argument::Int(value) => *value as u64,
            Argument::Float(value) => u64::from(value.to_bits()),
            Argument::At(memory) => memory.pointer(pool),
            Argument::From(memory, first) => memory.pointer(pool) + 4 * *first as CUdeviceptr,
            Argument::Maybe(memory) => memory.map_or(0, |memory| memory.pointer(pool)),
            Argument::Many(_) => unreachable!("in a gang, tables are in the GPU's memory"),
        }
    }
}

/// Storage of a kernel parameter during the launch.
#[repr(C)]
union Parameter {
    int: i32,
    float: f32,
    pointer: CUdeviceptr,
}

/// Starts a kernel, unless the grid is empty. The caller must pass the arguments that the kernel takes, and buffers
/// that are large enough for what it reads and writes.
#[allow(unsafe_code)]
pub fn launch(pool: &Arc<Pool>, kernel: &Kernel, grid: Grid, arguments: &[Argument<'_>]) {
    let Grid { blocks, threads, shared } = grid;
    if blocks.0 == 0 || blocks.1 == 0 {
        return;
    }
    if blocks.0 > i32::MAX as usize || blocks.1 > 65_535 {
        return pool.fail(format_args!("{blocks:?} blocks are too many for it; smaller batches have fewer"));
    }
    if let Some(seat) = pool.seat() {
        return seat.call(kernel, grid, arguments.iter().map(|argument| argument.word(pool)));
    }
    let mut parameters: Vec<Parameter> = arguments
        .iter()
        .map(|argument| match argument {
            Argument::Int(value) => Parameter { int: *value as i32 },
            Argument::Float(value) => Parameter { float: *value },
            Argument::At(memory) => Parameter { pointer: memory.pointer(pool) },
            Argument::From(memory, first) => Parameter { pointer: memory.pointer(pool) + 4 * *first as CUdeviceptr },
            Argument::Many(_) => Parameter { int: 0 },
            Argument::Maybe(memory) => Parameter { pointer: memory.map_or(0, |memory| memory.pointer(pool)) },
        })
        .collect();
    let mut pointers: Vec<*mut c_void> = parameters
        .iter_mut()
        .zip(arguments)
        .map(|(parameter, argument)| match argument {
            // The launch copies the table and does not change it.
            Argument::Many(table) => std::ptr::from_ref(*table).cast_mut().cast(),
            _ => std::ptr::from_mut(parameter).cast(),
        })
        .collect();
    // SAFETY: the pointers are valid until the call returns, which copies the parameters; the caller promises that they
    // fit the kernel.
    pool.ask(|| unsafe {
        result::launch_kernel(
            kernel.cu_function(),
            (blocks.0 as u32, blocks.1 as u32, 1),
            (threads.0 as u32, threads.1 as u32, 1),
            shared as u32,
            pool.stream().cu_stream(),
            &mut pointers,
        )
    });
}
