//! Products of bfloat16 numbers by matrix tiles (AMX), in assembly, because Rust has no stable intrinsics for them.
//!
//! There are eight tiles of one kilobyte. Four hold sums, which are independent of each other because the latency of a
//! product is several times its throughput; the other four hold factors. Tiles belong to a thread. They are configured
//! for a pass, reconfigured for its attention, and released after it.
#![allow(unsafe_code, reason = "assembly and a system call")]

use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::bf16::{Product, TILE};

/// One instruction on tiles, given by their numbers. Strides are in bytes. The compiler itself does not use tiles, and
/// keeps these instructions in order.
macro_rules! tile {
    (zero $to:literal) => {
        asm!(concat!("tilezero tmm", $to), options(nostack, nomem, preserves_flags))
    };
    (load $to:literal, $from:expr, $stride:expr) => {
        asm!(concat!("tileloadd tmm", $to, ", [{from} + {stride}]"), from = in(reg) $from, stride = in(reg) $stride,
            options(nostack, readonly, preserves_flags))
    };
    (store $from:literal, $to:expr, $stride:expr) => {
        asm!(concat!("tilestored [{to} + {stride}], tmm", $from), to = in(reg) $to, stride = in(reg) $stride,
            options(nostack, preserves_flags))
    };
    (add $to:literal, $a:literal, $b:literal) => {
        asm!(concat!("tdpbf16ps tmm", $to, ", tmm", $a, ", tmm", $b), options(nostack, nomem, preserves_flags))
    };
}
pub(super) use tile;

/// Stride of a tile whose rows are contiguous, and of a tile whose rows are all the same, in bytes.
pub(super) const LINE: usize = 64;
pub(super) const SAME: usize = 0;

/// Right to compute with tiles: it exists only if the processor has bfloat16 tiles and the operating system lets this
/// process use them.
#[derive(Clone, Copy)]
pub(super) struct Tiles(());

fn has_tiles() -> bool {
    const AMX_BF16: u32 = 1 << 22;
    const AMX_TILE: u32 = 1 << 24;
    // SAFETY: every x86-64 processor has the instruction; for a missing leaf it returns the data of another one.
    #[allow(unused_unsafe)]
    let (leaves, features) = unsafe { (__cpuid(0).eax, __cpuid_count(7, 0).edx) };
    leaves >= 7 && features & AMX_BF16 != 0 && features & AMX_TILE != 0
}

/// Asks Linux for permission to use the tile registers, for all threads of this process.
#[cfg(target_os = "linux")]
fn is_permitted() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const ARCH_REQ_XCOMP_PERM: i64 = 0x1023;
    const TILE_DATA: i64 = 18;
    let result: i64;
    // SAFETY: the system call does not access the memory of this process; it overwrites the two registers that are
    // declared.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => result,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") TILE_DATA,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result == 0
}

#[cfg(not(target_os = "linux"))]
fn is_permitted() -> bool {
    false
}

/// Operand of `ldtilecfg`: eight tiles with rows of 64 bytes.
#[repr(C, align(64))]
pub(super) struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    bytes_per_row: [u16; 16],
    rows: [u8; 16],
}

impl Configuration {
    /// Configuration in which all tiles have sixteen rows.
    pub(super) const WHOLE: &'static Configuration = &Configuration::of(16);

    /// Configuration in which the last four tiles have `rows` rows and the others sixteen.
    pub(super) const fn of(rows: u8) -> Configuration {
        Configuration {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            bytes_per_row: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
            rows: [16, 16, 16, 16, rows, rows, rows, rows, 0, 0, 0, 0, 0, 0, 0, 0],
        }
    }

    /// Configures the tiles of this thread and sets them to zero.
    pub(super) fn load(&self) {
        // SAFETY: this is called only by an engine that exists, so the processor has tiles; the configuration is valid.
        unsafe { asm!("ldtilecfg [{}]", in(reg) self, options(nostack, readonly, preserves_flags)) }
    }
}

/// Sums of a block before they are taken: 32 rows of 32, or 16 rows of 64.
#[repr(C, align(64))]
struct Sums([f32; 1024]);

impl Tiles {
    /// Returns the right if the processor has bfloat16 tiles and the operating system lets this process use them.
    pub(super) fn new() -> Option<Tiles> {
        (has_tiles() && is_permitted()).then_some(Tiles(()))
    }

    pub(super) fn begin(self) {
        Configuration::WHOLE.load();
    }

    pub(super) fn end(self) {
        // SAFETY: the right exists, so the processor has tiles.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) }
    }

    /// c = a·b + bias, with sums in single precision.
    ///
    /// # Safety
    /// All pointers must be valid for the product's rows and columns; rows must be a multiple of [`super::GROUP`].
    pub(super) unsafe fn multiply(self, product: &Product, bias: *const f32, c: *mut f32, c_stride: usize) {
        let mut before: Option<Stored> = None;
        for block in Blocks::of(product) {
            // SAFETY: blocks are within the product, which the caller guarantees, and tiles are configured.
            unsafe {
                block.start(product, bias.add(block.column), before);
                for step in 1..product.depth / 32 {
                    block.add_product(product, step);
                }
            }
            let to = c.wrapping_add(block.row * c_stride + block.column);
            before = Some(Stored { block, to, stride: c_stride });
        }
        if let Some(before) = before {
            // SAFETY: the caller's guarantees are passed on.
            unsafe { before.store() };
        }
    }

    /// Calls `take` with each row, each 32nd column, and the 32 sums from there on, which include the bias if there is
    /// one. The columns of a row come in order. Must be inlined into a function with the target features.
    ///
    /// # Safety
    /// All pointers must be valid for the product's rows and columns; rows must be a multiple of [`super::GROUP`].
    #[inline(always)]
    pub(super) unsafe fn each_sum(
        self,
        product: &Product,
        bias: Option<*const f32>,
        mut take: impl FnMut(usize, usize, __m512, __m512),
    ) {
        // The sums of the previous block are taken between the products of a block, so that neither waits for the
        // other.
        let mut sums = MaybeUninit::<Sums>::uninit();
        let sums = sums.as_mut_ptr().cast::<f32>();
        let mut before: Option<Stored> = None;
        let mut blocks = Blocks::of(product);
        loop {
            let block = blocks.next();
            let steps = if block.is_some() { product.depth / 32 } else { 1 };
            // SAFETY: blocks are within the product, which the caller guarantees; `sums` holds the sums of a block;
            // tiles are configured.
            unsafe {
                match (block, before) {
                    (Some(block), _) => {
                        let bias = bias.map_or(ZEROS.0.as_ptr(), |bias| bias.add(block.column));
                        block.start(product, bias, before);
                    }
                    (None, Some(before)) => before.store(),
                    (None, None) => return,
                }
            }
            let (rows, columns) = before.map_or((0, 32), |before| before.block.shape.size());
            let some = rows.div_ceil(steps);
            for step in 1..=steps {
                if let Some(block) = block
                    && step < steps
                {
                    // SAFETY: the caller's guarantees are passed on.
                    unsafe { block.add_product(product, step) };
                }
                let Some(Stored { block: before, .. }) = before else { continue };
                for row in (step - 1) * some..(step * some).min(rows) {
                    for column in (0..columns).step_by(32) {
                        // SAFETY: the previous block has stored rows × columns sums there.
                        unsafe {
                            let from = sums.add(row * columns + column);
                            let (left, right) = (_mm512_load_ps(from), _mm512_load_ps(from.add(16)));
                            take(before.row + row, before.column + column, left, right);
                        }
                    }
                }
            }
            before = block.map(|block| Stored { block, to: sums, stride: block.shape.size().1 });
        }
    }
}

/// Zeros that sums without a bias start from.
#[repr(C, align(64))]
struct Zeros([f32; 64]);
static ZEROS: Zeros = Zeros([0.0; 64]);

/// Destination of a block's sums.
#[derive(Clone, Copy)]
struct Stored {
    block: Block,
    to: *mut f32,
    stride: usize,
}

impl Stored {
    /// # Safety
    /// The destination must hold the block, whose sums must be in the tiles.
    #[inline(always)]
    unsafe fn store(self) {
        // SAFETY: the caller's guarantees are passed on.
        unsafe { self.block.store(self.to, self.stride) };
    }
}

/// Block of a product. Its sums are in the first four tiles.
#[derive(Clone, Copy)]
struct Block {
    shape: Shape,
    row: usize,
    column: usize,
}

/// Shape of a block: rows by columns, in tiles.
#[derive(Clone, Copy)]
enum Shape {
    TwoByTwo,
    OneByFour,
    OneByTwo,
}

impl Shape {
    /// Number of rows and columns.
    fn size(self) -> (usize, usize) {
        match self {
            Shape::TwoByTwo => (32, 32),
            Shape::OneByFour => (16, 64),
            Shape::OneByTwo => (16, 32),
        }
    }
}

/// Iterator over all blocks of a product: first pairs of row tiles, 32 columns after 32, then the last tile of rows if
/// their number is odd.
struct Blocks {
    rows: usize,
    columns: usize,
    /// Number of rows in pairs of tiles.
    paired: usize,
    row: usize,
    column: usize,
    last_column: usize,
}

impl Blocks {
    #[inline(always)]
    fn of(product: &Product) -> Blocks {
        let Product { rows, columns, .. } = *product;
        Blocks { rows, columns, paired: rows / 32 * 32, row: 0, column: 0, last_column: 0 }
    }
}

impl Iterator for Blocks {
    type Item = Block;

    #[inline(always)]
    fn next(&mut self) -> Option<Block> {
        if self.paired > 0 && self.column < self.columns {
            let block = Block { shape: Shape::TwoByTwo, row: self.row, column: self.column };
            self.row += 32;
            if self.row == self.paired {
                (self.row, self.column) = (0, self.column + 32);
            }
            return Some(block);
        }
        if self.paired == self.rows || self.last_column == self.columns {
            return None;
        }
        let shape = if self.columns - self.last_column < 64 { Shape::OneByTwo } else { Shape::OneByFour };
        let block = Block { shape, row: self.paired, column: self.last_column };
        self.last_column += shape.size().1;
        Some(block)
    }
}

/// # Safety
/// Tiles must be configured, and all pointers must be valid for the block.
impl Block {
    /// Stores the sums of the previous block, and starts those of this one with the bias and the first products. This
    /// is done tile by tile, because storing a sum right after its last product would wait for it.
    ///
    /// # Safety
    /// As for the block; the bias must have as many numbers as the block has columns, and the destination of `before`
    /// must hold its block.
    #[inline(always)]
    unsafe fn start(&self, product: &Product, bias: *const f32, before: Option<Stored>) {
        // SAFETY: the caller's guarantees are passed on.
        unsafe {
            match (self.shape, before) {
                (Shape::TwoByTwo, Some(before)) if matches!(before.block.shape, Shape::TwoByTwo) => {
                    self.start_after(product, bias, before);
                }
                _ => {
                    if let Some(before) = before {
                        before.store();
                    }
                    self.set(bias);
                    self.add_product(product, 0);
                }
            }
        }
    }

    /// Does the same where both blocks are two by two tiles, alternating between them.
    ///
    /// # Safety
    /// As for [`Block::start`]; both blocks must be [`Shape::TwoByTwo`].
    #[inline(always)]
    unsafe fn start_after(&self, product: &Product, bias: *const f32, before: Stored) {
        let Product { a, a_stride, b, depth, .. } = *product;
        let (a, b) = (a.wrapping_add(self.row * a_stride), b.wrapping_add(self.column * depth));
        let (a_below, c, c_below) =
            (a.wrapping_add(16 * a_stride), before.to, before.to.wrapping_add(16 * before.stride));
        // Strides in bytes.
        let (a_stride, c_stride) = (2 * a_stride, 4 * before.stride);
        // SAFETY: this reads the block's rows of a, columns of b and bias, and writes the previous block.
        unsafe {
            tile!(load 4, a, a_stride);
            tile!(load 6, b, LINE);
            tile!(store 0, c, c_stride);
            tile!(load 0, bias, SAME);
            tile!(add 0, 4, 6);
            tile!(load 7, b.wrapping_add(TILE), LINE);
            tile!(store 1, c.wrapping_add(16), c_stride);
            tile!(load 1, bias.wrapping_add(16), SAME);
            tile!(add 1, 4, 7);
            tile!(load 5, a_below, a_stride);
            tile!(store 2, c_below, c_stride);
            tile!(load 2, bias, SAME);
            tile!(add 2, 5, 6);
            tile!(store 3, c_below.wrapping_add(16), c_stride);
            tile!(load 3, bias.wrapping_add(16), SAME);
            tile!(add 3, 5, 7);
        }
    }

    /// Sets every row of the sums to the bias.
    ///
    /// # Safety
    /// The bias must have as many numbers as the block has columns, and tiles must be configured.
    #[inline(always)]
    unsafe fn set(&self, bias: *const f32) {
        // SAFETY: this reads as many numbers as the block has columns.
        unsafe {
            tile!(load 0, bias, SAME);
            tile!(load 1, bias.wrapping_add(16), SAME);
            match self.shape {
                Shape::TwoByTwo => {
                    tile!(load 2, bias, SAME);
                    tile!(load 3, bias.wrapping_add(16), SAME);
                }
                Shape::OneByFour => {
                    tile!(load 2, bias.wrapping_add(32), SAME);
                    tile!(load 3, bias.wrapping_add(48), SAME);
                }
                Shape::OneByTwo => {}
            }
        }
    }

    /// Adds the products of 32 columns of a and 32 rows of b.
    ///
    /// # Safety
    /// The product must have the rows, columns and depth of the block and the step, and tiles must be configured.
    #[inline(always)]
    unsafe fn add_product(&self, product: &Product, step: usize) {
        let Product { a, a_stride, b, depth, .. } = *product;
        let a = a.wrapping_add(self.row * a_stride + 32 * step);
        let b = b.wrapping_add(self.column * depth + 2 * TILE * step);
        let (below, next) = (a.wrapping_add(16 * a_stride), b.wrapping_add(32 * depth));
        // Strides in bytes.
        let a_stride = 2 * a_stride;
        // SAFETY: this reads the block's rows of a and columns of b.
        unsafe {
            tile!(load 4, a, a_stride);
            tile!(load 6, b, LINE);
            tile!(add 0, 4, 6);
            tile!(load 7, b.wrapping_add(TILE), LINE);
            tile!(add 1, 4, 7);
            match self.shape {
                Shape::TwoByTwo => {
                    tile!(load 5, below, a_stride);
                    tile!(add 2, 5, 6);
                    tile!(add 3, 5, 7);
                }
                Shape::OneByFour => {
                    tile!(load 5, next, LINE);
                    tile!(add 2, 4, 5);
                    tile!(load 6, next.wrapping_add(TILE), LINE);
                    tile!(add 3, 4, 6);
                }
                Shape::OneByTwo => {}
            }
        }
    }

    /// # Safety
    /// The destination must hold the block, whose sums must be in the tiles.
    #[inline(always)]
    unsafe fn store(&self, c: *mut f32, c_stride: usize) {
        let below = c.wrapping_add(16 * c_stride);
        // Strides in bytes.
        let c_stride = 4 * c_stride;
        // SAFETY: this writes the block.
        unsafe {
            tile!(store 0, c, c_stride);
            tile!(store 1, c.wrapping_add(16), c_stride);
            match self.shape {
                Shape::TwoByTwo => {
                    tile!(store 2, below, c_stride);
                    tile!(store 3, below.wrapping_add(16), c_stride);
                }
                Shape::OneByFour => {
                    tile!(store 2, c.wrapping_add(32), c_stride);
                    tile!(store 3, c.wrapping_add(48), c_stride);
                }
                Shape::OneByTwo => {}
            }
        }
    }
}
