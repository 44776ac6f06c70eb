//! Products of bfloat16 by matrix tiles (AMX), in assembly, because Rust has no stable intrinsics for them.
//!
//! Eight tiles of a kilobyte: four sums, which start from the bias and are independent of each other, since one product takes the time of
//! three to arrive; the others for what is multiplied. Tiles belong to the thread, are configured for one pass and released after it.
#![allow(unsafe_code, reason = "assembly and a system call")]

use std::arch::asm;
use std::arch::x86_64::*;

use super::bf16::{Bf16, Multiplier, Product, narrow};

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

/// Sums on their way to becoming elements: 32 rows of 32, or 16 of 64.
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

    unsafe fn multiply(self, product: &Product<f32>) {
        // SAFETY: blocks are within the product, which the caller has checked.
        unsafe { each_block(product, |_, _, c, block| block.run(c, product.c_stride)) }
    }

    unsafe fn multiply_relu(self, product: &Product<u16>) {
        // A block becomes elements while the next one is on its way.
        let mut sums = [Sums([0.0; 1024]), Sums([0.0; 1024])];
        let mut before: Option<(usize, usize, *mut u16)> = None;
        let mut turn = 0;
        // SAFETY: blocks are within the product, which the caller has checked; a block's sums fit.
        unsafe {
            each_block(product, |rows, columns, c, block| {
                block.run(sums[turn].0.as_mut_ptr(), columns);
                turn = 1 - turn;
                if let Some((rows, columns, c)) = before.replace((rows, columns, c)) {
                    relu(rows, columns, &sums[turn], c, product.c_stride);
                }
            });
            if let Some((rows, columns, c)) = before {
                relu(rows, columns, &sums[1 - turn], c, product.c_stride);
            }
        }
    }
}

/// A block of a product: 32 rows by 32 columns, 16 by 64, or 16 by 32.
struct Block {
    shape: Shape,
    a: *const u16,
    /// In bytes; so `b_next`, from one panel to the next.
    a_stride: usize,
    b: *const u16,
    b_next: usize,
    steps: usize,
    bias: *const f32,
}

#[derive(Clone, Copy)]
enum Shape {
    TwoByTwo,
    OneByFour,
    OneByTwo,
}

/// Gives `run` every block with its size and its place.
#[inline(always)]
unsafe fn each_block<C>(product: &Product<C>, mut run: impl FnMut(usize, usize, *mut C, Block)) {
    let Product { rows, a, a_stride, b, depth, columns, bias, c, c_stride } = *product;
    let mut visit = |shape: Shape, row: usize, column: usize| {
        let (rows, columns) = match shape {
            Shape::TwoByTwo => (32, 32),
            Shape::OneByFour => (16, 64),
            Shape::OneByTwo => (16, 32),
        };
        // SAFETY: row and column are within the product.
        let (a, b, bias, c) =
            unsafe { (a.add(row * a_stride), b.add(column * depth), bias.add(column), c.add(row * c_stride + column)) };
        let block = Block { shape, a, a_stride: 2 * a_stride, b, b_next: 64 * depth, steps: depth / 32, bias };
        run(rows, columns, c, block);
    };
    let paired = rows / 32 * 32;
    for column in (0..columns).step_by(32) {
        for row in (0..paired).step_by(32) {
            visit(Shape::TwoByTwo, row, column);
        }
    }
    if paired < rows {
        let wide = columns / 64 * 64;
        for column in (0..wide).step_by(64) {
            visit(Shape::OneByFour, paired, column);
        }
        if wide < columns {
            visit(Shape::OneByTwo, paired, wide);
        }
    }
}

impl Block {
    /// Stores the sums at `c`.
    ///
    /// # Safety
    /// Tiles are configured; the block's part of a, b, bias and c is there.
    #[inline(always)]
    unsafe fn run(&self, c: *mut f32, c_stride: usize) {
        let c_stride = 4 * c_stride;
        // SAFETY: reads and writes only the block; the compiler itself uses no tiles.
        unsafe {
            match self.shape {
                Shape::TwoByTwo => asm!(
                    "tileloadd tmm0, [{bias} + {zero}]",
                    "tileloadd tmm1, [{bias} + {zero} + 64]",
                    "tileloadd tmm2, [{bias} + {zero}]",
                    "tileloadd tmm3, [{bias} + {zero} + 64]",
                    "2:",
                    "tileloadd tmm4, [{a} + {a_stride}]",
                    "tileloadd tmm6, [{b} + {b_stride}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm7, [{b} + {b_stride} + 1024]",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    "tileloadd tmm5, [{below} + {a_stride}]",
                    "tdpbf16ps tmm2, tmm5, tmm6",
                    "tdpbf16ps tmm3, tmm5, tmm7",
                    "add {a}, 64",
                    "add {below}, 64",
                    "add {b}, 2048",
                    "dec {steps}",
                    "jnz 2b",
                    "tilestored [{c} + {c_stride}], tmm0",
                    "tilestored [{c} + {c_stride} + 64], tmm1",
                    "tilestored [{c_below} + {c_stride}], tmm2",
                    "tilestored [{c_below} + {c_stride} + 64], tmm3",
                    bias = in(reg) self.bias,
                    zero = in(reg) 0usize,
                    a = inout(reg) self.a => _,
                    below = inout(reg) self.a.wrapping_byte_add(16 * self.a_stride) => _,
                    a_stride = in(reg) self.a_stride,
                    b = inout(reg) self.b => _,
                    b_stride = in(reg) 64usize,
                    steps = inout(reg) self.steps => _,
                    c = in(reg) c,
                    c_below = in(reg) c.wrapping_byte_add(16 * c_stride),
                    c_stride = in(reg) c_stride,
                    options(nostack),
                ),
                Shape::OneByFour => asm!(
                    "tileloadd tmm0, [{bias} + {zero}]",
                    "tileloadd tmm1, [{bias} + {zero} + 64]",
                    "tileloadd tmm2, [{bias} + {zero} + 128]",
                    "tileloadd tmm3, [{bias} + {zero} + 192]",
                    "2:",
                    "tileloadd tmm4, [{a} + {a_stride}]",
                    "tileloadd tmm5, [{b} + {b_stride}]",
                    "tdpbf16ps tmm0, tmm4, tmm5",
                    "tileloadd tmm6, [{b} + {b_stride} + 1024]",
                    "tdpbf16ps tmm1, tmm4, tmm6",
                    "tileloadd tmm7, [{next} + {b_stride}]",
                    "tdpbf16ps tmm2, tmm4, tmm7",
                    "tileloadd tmm5, [{next} + {b_stride} + 1024]",
                    "tdpbf16ps tmm3, tmm4, tmm5",
                    "add {a}, 64",
                    "add {b}, 2048",
                    "add {next}, 2048",
                    "dec {steps}",
                    "jnz 2b",
                    "tilestored [{c} + {c_stride}], tmm0",
                    "tilestored [{c} + {c_stride} + 64], tmm1",
                    "tilestored [{c} + {c_stride} + 128], tmm2",
                    "tilestored [{c} + {c_stride} + 192], tmm3",
                    bias = in(reg) self.bias,
                    zero = in(reg) 0usize,
                    a = inout(reg) self.a => _,
                    a_stride = in(reg) self.a_stride,
                    b = inout(reg) self.b => _,
                    next = inout(reg) self.b.wrapping_byte_add(self.b_next) => _,
                    b_stride = in(reg) 64usize,
                    steps = inout(reg) self.steps => _,
                    c = in(reg) c,
                    c_stride = in(reg) c_stride,
                    options(nostack),
                ),
                Shape::OneByTwo => asm!(
                    "tileloadd tmm0, [{bias} + {zero}]",
                    "tileloadd tmm1, [{bias} + {zero} + 64]",
                    "2:",
                    "tileloadd tmm4, [{a} + {a_stride}]",
                    "tileloadd tmm6, [{b} + {b_stride}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm7, [{b} + {b_stride} + 1024]",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    "add {a}, 64",
                    "add {b}, 2048",
                    "dec {steps}",
                    "jnz 2b",
                    "tilestored [{c} + {c_stride}], tmm0",
                    "tilestored [{c} + {c_stride} + 64], tmm1",
                    bias = in(reg) self.bias,
                    zero = in(reg) 0usize,
                    a = inout(reg) self.a => _,
                    a_stride = in(reg) self.a_stride,
                    b = inout(reg) self.b => _,
                    b_stride = in(reg) 64usize,
                    steps = inout(reg) self.steps => _,
                    c = in(reg) c,
                    c_stride = in(reg) c_stride,
                    options(nostack),
                ),
            }
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn relu(rows: usize, columns: usize, sums: &Sums, c: *mut u16, c_stride: usize) {
    let zero = _mm512_setzero_si512();
    for row in 0..rows {
        for column in (0..columns).step_by(32) {
            // SAFETY: rows × columns sums are there, and the caller has checked c.
            unsafe {
                let from = sums.0.as_ptr().add(row * columns + column);
                let narrow = narrow(_mm512_load_ps(from), _mm512_load_ps(from.add(16)));
                // As whole numbers, elements have the same signs.
                _mm512_storeu_si512(c.add(row * c_stride + column).cast(), _mm512_max_epi16(narrow, zero));
            }
        }
    }
}
