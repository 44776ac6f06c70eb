//! Products of bfloat16 by matrix tiles (AMX), in assembly, because Rust has no stable intrinsics for them.
//!
//! Eight tiles of a kilobyte: four sums, which are independent of each other, since one product takes the time of three to arrive; the others
//! for what is multiplied. Tiles belong to the thread, are configured for one pass and released after it.
#![allow(unsafe_code, reason = "assembly and a system call")]

use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::bf16::{Bf16, Multiplier, Product};

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

/// What `ldtilecfg` reads: eight tiles of sixteen rows of 64 bytes.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    bytes_per_row: [u16; 16],
    rows: [u8; 16],
}

static CONFIGURATION: Configuration = Configuration {
    palette: 1,
    start_row: 0,
    reserved: [0; 14],
    bytes_per_row: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
    rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
};

/// Sums on their way to becoming something else: 32 rows of 32, or 16 of 64.
#[repr(C, align(64))]
struct Sums([f32; 1024]);

impl Multiplier for Tiles {
    fn begin(self) {
        // SAFETY: the engine exists, so the processor has tiles; the configuration is a valid one.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &CONFIGURATION, options(nostack, readonly, preserves_flags)) }
    }

    fn end(self) {
        // SAFETY: the engine exists, so the processor has tiles.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) }
    }

    unsafe fn multiply(self, product: &Product, bias: *const f32, c: *mut f32, c_stride: usize) {
        for block in Blocks::of(product) {
            // SAFETY: blocks are within the product, which the caller has checked, and tiles are configured.
            unsafe {
                block.start(bias.add(block.column));
                block.add_products(product);
                block.store(c.add(block.row * c_stride + block.column), c_stride);
            }
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
        let mut sums = [const { MaybeUninit::<Sums>::uninit() }; 2];
        let mut before: Option<Block> = None;
        let mut blocks = Blocks::of(product);
        let mut turn = 0;
        loop {
            let block = blocks.next();
            if block.is_none() && before.is_none() {
                return;
            }
            let steps = if block.is_some() { product.depth / 32 } else { 0 };
            let (rows, columns) = before.map_or((0, 32), |before| before.shape.size());
            let some = rows.div_ceil(steps + 1);
            let (from, to) = (sums[1 - turn].as_ptr().cast::<f32>(), sums[turn].as_mut_ptr().cast::<f32>());
            for step in 0..=steps {
                if let Some(block) = block {
                    // SAFETY: blocks are within the product, which the caller has checked; a block's sums fit; tiles are configured.
                    unsafe {
                        if step == 0 {
                            match bias {
                                Some(bias) => block.start(bias.add(block.column)),
                                None => block.start_from_zero(),
                            }
                        }
                        if step < steps {
                            block.add_product(product, step);
                        } else {
                            block.store(to, block.shape.size().1);
                        }
                    }
                }
                let Some(before) = before else { continue };
                for row in step * some..((step + 1) * some).min(rows) {
                    for column in (0..columns).step_by(32) {
                        // SAFETY: that block has stored rows × columns sums there.
                        unsafe {
                            let from = from.add(row * columns + column);
                            let (left, right) = (_mm512_load_ps(from), _mm512_load_ps(from.add(16)));
                            take(before.row + row, before.column + column, left, right);
                        }
                    }
                }
            }
            turn = 1 - turn;
            before = block;
        }
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

/// What these do is done in tiles, which the compiler itself does not use.
///
/// # Safety
/// Tiles are configured, and the block's part of whatever is named is there.
impl Block {
    #[inline(always)]
    unsafe fn start_from_zero(&self) {
        // SAFETY: touches no memory.
        unsafe {
            asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                options(nostack, nomem, preserves_flags)
            );
        }
    }

    /// Every row starts as the bias.
    #[inline(always)]
    unsafe fn start(&self, bias: *const f32) {
        // SAFETY: reads as many numbers as the block has columns.
        unsafe {
            match self.shape {
                Shape::TwoByTwo => asm!(
                    "tileloadd tmm0, [{bias} + {zero}]",
                    "tileloadd tmm1, [{bias} + {zero} + 64]",
                    "tileloadd tmm2, [{bias} + {zero}]",
                    "tileloadd tmm3, [{bias} + {zero} + 64]",
                    bias = in(reg) bias, zero = in(reg) 0usize,
                    options(nostack, readonly, preserves_flags),
                ),
                Shape::OneByFour => asm!(
                    "tileloadd tmm0, [{bias} + {zero}]",
                    "tileloadd tmm1, [{bias} + {zero} + 64]",
                    "tileloadd tmm2, [{bias} + {zero} + 128]",
                    "tileloadd tmm3, [{bias} + {zero} + 192]",
                    bias = in(reg) bias, zero = in(reg) 0usize,
                    options(nostack, readonly, preserves_flags),
                ),
                Shape::OneByTwo => asm!(
                    "tileloadd tmm0, [{bias} + {zero}]",
                    "tileloadd tmm1, [{bias} + {zero} + 64]",
                    bias = in(reg) bias, zero = in(reg) 0usize,
                    options(nostack, readonly, preserves_flags),
                ),
            }
        }
    }

    #[inline(always)]
    unsafe fn add_products(&self, product: &Product) {
        for step in 0..product.depth / 32 {
            // SAFETY: the step is within the depth.
            unsafe { self.add_product(product, step) };
        }
    }

    /// Adds the products of 32 columns of a and rows of b.
    #[inline(always)]
    unsafe fn add_product(&self, product: &Product, step: usize) {
        let Product { a, a_stride, b, depth, .. } = *product;
        let a = a.wrapping_add(self.row * a_stride + 32 * step);
        let b = b.wrapping_add(self.column * depth + 1024 * step);
        // In bytes.
        let (a_stride, panel) = (2 * a_stride, 64 * depth);
        // SAFETY: reads the block's rows of a and columns of b.
        unsafe {
            match self.shape {
                Shape::TwoByTwo => asm!(
                    "tileloadd tmm4, [{a} + {a_stride}]",
                    "tileloadd tmm6, [{b} + {b_stride}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm7, [{b} + {b_stride} + 1024]",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    "tileloadd tmm5, [{below} + {a_stride}]",
                    "tdpbf16ps tmm2, tmm5, tmm6",
                    "tdpbf16ps tmm3, tmm5, tmm7",
                    a = in(reg) a,
                    below = in(reg) a.wrapping_byte_add(16 * a_stride),
                    a_stride = in(reg) a_stride,
                    b = in(reg) b,
                    b_stride = in(reg) 64usize,
                    options(nostack, readonly, preserves_flags),
                ),
                Shape::OneByFour => asm!(
                    "tileloadd tmm4, [{a} + {a_stride}]",
                    "tileloadd tmm5, [{b} + {b_stride}]",
                    "tdpbf16ps tmm0, tmm4, tmm5",
                    "tileloadd tmm6, [{b} + {b_stride} + 1024]",
                    "tdpbf16ps tmm1, tmm4, tmm6",
                    "tileloadd tmm7, [{next} + {b_stride}]",
                    "tdpbf16ps tmm2, tmm4, tmm7",
                    "tileloadd tmm5, [{next} + {b_stride} + 1024]",
                    "tdpbf16ps tmm3, tmm4, tmm5",
                    a = in(reg) a,
                    a_stride = in(reg) a_stride,
                    b = in(reg) b,
                    next = in(reg) b.wrapping_byte_add(panel),
                    b_stride = in(reg) 64usize,
                    options(nostack, readonly, preserves_flags),
                ),
                Shape::OneByTwo => asm!(
                    "tileloadd tmm4, [{a} + {a_stride}]",
                    "tileloadd tmm6, [{b} + {b_stride}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm7, [{b} + {b_stride} + 1024]",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    a = in(reg) a,
                    a_stride = in(reg) a_stride,
                    b = in(reg) b,
                    b_stride = in(reg) 64usize,
                    options(nostack, readonly, preserves_flags),
                ),
            }
        }
    }

    #[inline(always)]
    unsafe fn store(&self, c: *mut f32, c_stride: usize) {
        let c_stride = 4 * c_stride;
        // SAFETY: writes the block.
        unsafe {
            match self.shape {
                Shape::TwoByTwo => asm!(
                    "tilestored [{c} + {c_stride}], tmm0",
                    "tilestored [{c} + {c_stride} + 64], tmm1",
                    "tilestored [{below} + {c_stride}], tmm2",
                    "tilestored [{below} + {c_stride} + 64], tmm3",
                    c = in(reg) c,
                    below = in(reg) c.wrapping_byte_add(16 * c_stride),
                    c_stride = in(reg) c_stride,
                    options(nostack, preserves_flags),
                ),
                Shape::OneByFour => asm!(
                    "tilestored [{c} + {c_stride}], tmm0",
                    "tilestored [{c} + {c_stride} + 64], tmm1",
                    "tilestored [{c} + {c_stride} + 128], tmm2",
                    "tilestored [{c} + {c_stride} + 192], tmm3",
                    c = in(reg) c, c_stride = in(reg) c_stride,
                    options(nostack, preserves_flags),
                ),
                Shape::OneByTwo => asm!(
                    "tilestored [{c} + {c_stride}], tmm0",
                    "tilestored [{c} + {c_stride} + 64], tmm1",
                    c = in(reg) c, c_stride = in(reg) c_stride,
                    options(nostack, preserves_flags),
                ),
            }
        }
    }
}
