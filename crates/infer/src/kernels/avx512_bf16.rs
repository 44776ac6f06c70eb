//! Products of bfloat16 numbers by the dot-product instruction of AVX-512.
#![allow(unsafe_code, reason = "vector instructions on checked pointers")]

use std::arch::x86_64::*;

use super::bf16::{Bf16, Multiplier, Product, pairs};

/// Multiplies pairs of numbers, sixteen columns at a time. Can only be created as part of [`Avx512Bf16`], which checks the processor.
#[derive(Clone, Copy)]
pub(crate) struct Pairs(());

/// Engine with bfloat16 products in vectors.
pub(crate) type Avx512Bf16 = Bf16<Pairs>;

impl Avx512Bf16 {
    pub(crate) fn new() -> Option<Avx512Bf16> {
        Bf16::with(Pairs(()))
    }
}

/// Number of rows that are multiplied at a time.
const ROWS: usize = 8;

impl Multiplier for Pairs {
    unsafe fn multiply(self, product: &Product, bias: *const f32, c: *mut f32, c_stride: usize) {
        // SAFETY: the engine exists, so the processor has the instructions; the caller guarantees the product.
        unsafe { multiply(self, product, bias, c, c_stride) }
    }

    #[inline(always)]
    unsafe fn each_sum(
        self,
        product: &Product,
        bias: Option<*const f32>,
        mut take: impl FnMut(usize, usize, __m512, __m512),
    ) {
        let Product { rows, a, a_stride, b, depth, columns } = *product;
        // SAFETY: the caller guarantees all rows and columns, which are multiples of ROWS and of 32.
        unsafe {
            for column in (0..columns).step_by(32) {
                let panel = b.add(column * depth);
                let first = bias.map(|bias| bias.add(column));
                let start = first
                    .map_or([_mm512_setzero_ps(); 2], |bias| [_mm512_loadu_ps(bias), _mm512_loadu_ps(bias.add(16))]);
                for row in (0..rows).step_by(ROWS) {
                    let mut sums = [start; ROWS];
                    for pair in 0..depth / 2 {
                        let b = panel.add(pair / 16 * 1024 + pair % 16 * 32);
                        let load = |from: *const u16| pairs(_mm512_loadu_si512(from.cast()));
                        let (left, right) = (load(b), load(b.add(512)));
                        for (place, sums) in sums.iter_mut().enumerate() {
                            let a = a.add((row + place) * a_stride + 2 * pair).cast::<i32>().read_unaligned();
                            let a = pairs(_mm512_set1_epi32(a));
                            *sums = [_mm512_dpbf16_ps(sums[0], a, left), _mm512_dpbf16_ps(sums[1], a, right)];
                        }
                    }
                    for (place, [left, right]) in sums.into_iter().enumerate() {
                        take(row + place, column, left, right);
                    }
                }
            }
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn multiply(pairs: Pairs, product: &Product, bias: *const f32, c: *mut f32, c_stride: usize) {
    // SAFETY: the caller guarantees all rows and columns.
    unsafe {
        pairs.each_sum(product, Some(bias), |row, column, left, right| {
            let to = c.add(row * c_stride + column);
            _mm512_storeu_ps(to, left);
            _mm512_storeu_ps(to.add(16), right);
        });
    }
}
