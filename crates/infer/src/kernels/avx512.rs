//! The engine for AVX-512 in single precision, with vectors of sixteen numbers.
#![allow(unsafe_code, reason = "vector instructions on checked pointers")]

use std::arch::x86_64::*;

use super::lanes::{f32_engine, lanes};
use super::{Attention, Norm, PAD, Packed, PackedMut, View, ViewMut};

/// Engine that exists only if the processor has AVX-512 F, BW, DQ and VL.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    pub(crate) fn new() -> Option<Avx512> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        has.then_some(Avx512(()))
    }
}

lanes! { __m512, 16;
    fn load(from: *const f32) -> Self { _mm512_loadu_ps(from) }
    fn store(to: *mut f32, v: Self) { _mm512_storeu_ps(to, v) }
    fn splat(value: f32) -> Self { _mm512_set1_ps(value) }
    fn add(a: Self, b: Self) -> Self { _mm512_add_ps(a, b) }
    fn sub(a: Self, b: Self) -> Self { _mm512_sub_ps(a, b) }
    fn mul(a: Self, b: Self) -> Self { _mm512_mul_ps(a, b) }
    fn mul_add(a: Self, b: Self, c: Self) -> Self { _mm512_fmadd_ps(a, b, c) }
    fn max(a: Self, b: Self) -> Self { _mm512_max_ps(a, b) }
    fn round(v: Self) -> Self { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(v) }
    fn power(whole: Self) -> Self {
        let exponent = _mm512_add_epi32(_mm512_cvtps_epi32(whole), _mm512_set1_epi32(127));
        _mm512_castsi512_ps(_mm512_slli_epi32::<23>(exponent))
    }
    fn sum(v: Self) -> f32 { _mm512_reduce_add_ps(v) }
    fn greatest(v: Self) -> f32 { _mm512_reduce_max_ps(v) }
}

f32_engine!(Avx512, __m512, 8, [#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]]);
