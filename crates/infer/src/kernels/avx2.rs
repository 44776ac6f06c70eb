//! The engine for AVX2 and FMA, with vectors of eight numbers.
#![allow(unsafe_code, reason = "vector instructions on checked pointers")]

use std::arch::x86_64::*;

use super::lanes::{f32_engine, lanes};
use super::{Attention, Norm, PAD, Packed, PackedMut, View, ViewMut};

/// Engine that exists only if the processor has AVX2 and FMA.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn new() -> Option<Avx2> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(Avx2(()))
    }
}

lanes! { __m256, 8;
    fn load(from: *const f32) -> Self { _mm256_loadu_ps(from) }
    fn store(to: *mut f32, v: Self) { _mm256_storeu_ps(to, v) }
    fn splat(value: f32) -> Self { _mm256_set1_ps(value) }
    fn add(a: Self, b: Self) -> Self { _mm256_add_ps(a, b) }
    fn sub(a: Self, b: Self) -> Self { _mm256_sub_ps(a, b) }
    fn mul(a: Self, b: Self) -> Self { _mm256_mul_ps(a, b) }
    fn mul_add(a: Self, b: Self, c: Self) -> Self { _mm256_fmadd_ps(a, b, c) }
    fn max(a: Self, b: Self) -> Self { _mm256_max_ps(a, b) }
    fn round(v: Self) -> Self { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(v) }
    fn power(whole: Self) -> Self {
        let exponent = _mm256_add_epi32(_mm256_cvtps_epi32(whole), _mm256_set1_epi32(127));
        _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponent))
    }
    fn sum(v: Self) -> f32 {
        let four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
    }
    fn greatest(v: Self) -> f32 {
        let four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
        let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
    }
}

f32_engine!(Avx2, __m256, 4, [#[target_feature(enable = "avx2,fma")]]);
