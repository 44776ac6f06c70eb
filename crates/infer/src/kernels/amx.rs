//! Products of bfloat16 by matrix tiles (AMX), in assembly, because Rust has no stable intrinsics for them.
//!
//! Eight tiles of a kilobyte: four sums, which are independent of each other, since one product takes the time of three to arrive; the others
//! for what is multiplied. Tiles belong to the thread, are configured for a pass, again for its attention, and released after it.
#![allow(unsafe_code, reason = "assembly and a system call")]

use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::bf16::{Bf16, Multiplier, Product, TILE};
use super::{Heads, ViewMut, amx_attention};

/// One instruction on tiles, by their numbers; strides are in bytes. The compiler itself does not use tiles, and keeps these in order.
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

/// The stride of a tile whose rows follow each other, and of one whose rows are all the same.
pub(super) const LINE: usize = 64;
pub(super) const SAME: usize = 0;

/// Multiplies by tiles. Only a part of [`Amx`], which checks the processor.
#[derive(Clone, Copy)]
pub(crate) struct Tiles(());

/// The engine.
pub(crate) type Amx = Bf16<Tiles>;

impl Amx {
    /// Only where the processor has tiles of bfloat16 and the system lets this process use them.
    pub(crate) fn new() -> Option<Amx> {
        if !has_tiles() || !is_permitted() {
            return None;
        }
        Bf16::with(Tiles(()))
    }
}

fn has_tiles() -> bool {
    const AMX_BF16: u32 = 1 << 22;
    const AMX_TILE: u32 = 1 << 24;
    // SAFETY: every x86-64 processor has the instruction, and those without the leaf answer with another's.
    #[allow(unused_unsafe)]
    let (leaves, features) = unsafe { (__cpuid(0).eax, __cpuid_count(7, 0).edx) };
    leaves >= 7 && features & AMX_BF16 != 0 && features & AMX_TILE != 0
}

/// Asks Linux for the tiles' registers, for all threads of this process.
#[cfg(target_os = "linux")]
fn is_permitted() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const ARCH_REQ_XCOMP_PERM: i64 = 0x1023;
    const TILE_DATA: i64 = 18;
    let result: i64;
    // SAFETY: the system call reads no memory of ours; it overwrites the two registers that are named.
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

/// What `ldtilecfg` reads: eight tiles of rows of 64 bytes.
#[repr(C, align(64))]
pub(super) struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    bytes_per_row: [u16; 16],
    rows: [u8; 16],
}

impl Configuration {
    /// Of tiles that are all whole.
    pub(super) const WHOLE: &'static Configuration = &Configuration::of(16);

    /// The last four tiles have so many rows, the others sixteen.
    pub(super) const fn of(rows: u8) -> Configuration {
        Configuration {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            bytes_per_row: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
            rows: [16, 16, 16, 16, rows, rows, rows, rows, 0, 0, 0, 0, 0, 0, 0, 0],
        }
    }

    /// Of this thread, until it is released. All tiles are zeros then.
    pub(super) fn load(&self) {
        // SAFETY: only an engine that exists comes here, so the processor has tiles; the configuration is a valid one.
        unsafe { asm!("ldtilecfg [{}]", in(reg) self, options(nostack, readonly, preserves_flags)) }
    }
}

/// Sums on their way to becoming something else: 32 rows of 32, or 16 of 64.
#[repr(C, align(64))]
struct Sums([f32; 1024]);

impl Multiplier for Tiles {
    fn begin(self) {
        Configuration::WHOLE.load();
    }

    fn end(self) {
        // SAFETY: the engine exists, so the processor has tiles.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) }
    }

    fn attention_room(heads: usize, size: usize, rows: usize) -> usize {
        amx_attention::room(heads, size, rows)
    }

    fn attend(self, heads: &Heads<'_, u16>, room: &mut [u16], to: ViewMut<u16>) -> bool {
        amx_attention::attend(heads, room, to)
    }

    unsafe fn multiply(self, product: &Product, bias: *const f32, c: *mut f32, c_stride: usize) {
        let mut before: Option<Stored> = None;
        for block in Blocks::of(product) {
            // SAFETY: blocks are within the product, which the caller has checked, and tiles are configured.
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
            // SAFETY: as above.
            unsafe { before.store() };
        }
    }

    #[inline(always)]
    unsafe fn each_sum(
        self,
        product: &Product,
        bias: Option<*const f32>,
        mut take: impl FnMut(usize, usize, __m512, __m512),
    ) {
        // Between the products of a block are taken the sums of the one before, so that neither waits for the other.
        let mut sums = MaybeUninit::<Sums>::uninit();
        let sums = sums.as_mut_ptr().cast::<f32>();
        let mut before: Option<Stored> = None;
        let mut blocks = Blocks::of(product);
        loop {
            let block = blocks.next();
            let steps = if block.is_some() { product.depth / 32 } else { 1 };
            // SAFETY: blocks are within the product, which the caller has checked; a block's sums fit; tiles are configured.
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
                    // SAFETY: as above.
                    unsafe { block.add_product(product, step) };
                }
                let Some(Stored { block: before, .. }) = before else { continue };
                for row in (step - 1) * some..(step * some).min(rows) {
                    for column in (0..columns).step_by(32) {
                        // SAFETY: that block has stored rows × columns sums there.
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

/// What sums start from that have no bias.
#[repr(C, align(64))]
struct Zeros([f32; 64]);
static ZEROS: Zeros = Zeros([0.0; 64]);

/// Where a block's sums go.
#[derive(Clone, Copy)]
struct Stored {
    block: Block,
    to: *mut f32,
    stride: usize,
}

impl Stored {
    /// # Safety
    /// There is room for the block, whose sums are in the tiles.
    #[inline(always)]
    unsafe fn store(self) {
        // SAFETY: as above.
        unsafe { self.block.store(self.to, self.stride) };
    }
}

/// A block of a product, whose sums are in the first four tiles.
#[derive(Clone, Copy)]
struct Block {
    shape: Shape,
    row: usize,
    column: usize,
}

/// Rows by columns, in tiles.
#[derive(Clone, Copy)]
enum Shape {
    TwoByTwo,
    OneByFour,
    OneByTwo,
}

impl Shape {
    /// Rows and columns.
    fn size(self) -> (usize, usize) {
        match self {
            Shape::TwoByTwo => (32, 32),
            Shape::OneByFour => (16, 64),
            Shape::OneByTwo => (16, 32),
        }
    }
}

/// All blocks of a product: columns after columns, and last the rows that have no second tile.
struct Blocks {
    rows: usize,
    columns: usize,
    /// Rows in pairs of tiles.
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
/// Tiles are configured, and the block's part of whatever is named is there.
impl Block {
    /// Stores the sums of the block before, and has those of this one: the bias, and the first products. One tile after the other, since a
    /// sum that is stored right after its last product waits for it.
    #[inline(always)]
    unsafe fn start(&self, product: &Product, bias: *const f32, before: Option<Stored>) {
        // SAFETY: as the caller says.
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

    #[inline(always)]
    unsafe fn start_after(&self, product: &Product, bias: *const f32, before: Stored) {
        let Product { a, a_stride, b, depth, .. } = *product;
        let (a, b) = (a.wrapping_add(self.row * a_stride), b.wrapping_add(self.column * depth));
        let (a_below, c, c_below) =
            (a.wrapping_add(16 * a_stride), before.to, before.to.wrapping_add(16 * before.stride));
        // In bytes.
        let (a_stride, c_stride) = (2 * a_stride, 4 * before.stride);
        // SAFETY: reads the block's rows of a, columns of b and bias, and writes the block before.
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

    /// Every row starts as the bias.
    #[inline(always)]
    unsafe fn set(&self, bias: *const f32) {
        // SAFETY: reads as many numbers as the block has columns.
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

    /// Adds the products of 32 columns of a and rows of b.
    #[inline(always)]
    unsafe fn add_product(&self, product: &Product, step: usize) {
        let Product { a, a_stride, b, depth, .. } = *product;
        let a = a.wrapping_add(self.row * a_stride + 32 * step);
        let b = b.wrapping_add(self.column * depth + 2 * TILE * step);
        let (below, next) = (a.wrapping_add(16 * a_stride), b.wrapping_add(32 * depth));
        // In bytes.
        let a_stride = 2 * a_stride;
        // SAFETY: reads the block's rows of a and columns of b.
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

    #[inline(always)]
    unsafe fn store(&self, c: *mut f32, c_stride: usize) {
        let below = c.wrapping_add(16 * c_stride);
        // In bytes.
        let c_stride = 4 * c_stride;
        // SAFETY: writes the block.
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
