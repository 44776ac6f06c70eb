//! The engine for vectors of four numbers: SSE2 on x86-64, NEON on AArch64, and WebAssembly's simd128.
//!
//! The loops are those of all engines of single precision (`lanes.rs`); an instruction set is one implementation of
//! [`Lanes`](super::lanes::Lanes) for its vector. SSE2 and NEON belong to their architectures, so this kernel needs no
//! detection there. A WebAssembly module says what it needs when it is compiled: without `-C target-feature=+simd128`
//! the kernel does not exist, and a browser without these instructions would refuse a module that has them.
//!
//! SSE2 has no fused product, no broadcast from memory and sixteen registers. Two units multiply and two add, in vectors
//! of four, and the compiler makes the same instructions of the scalar engine. So little is gained over that one there;
//! NEON and AVX2 multiply and add in one instruction.
#![allow(unsafe_code, reason = "vector instructions on checked pointers")]

use super::lanes::{f32_engine, lanes};
use super::{Attention, Norm, PAD, Packed, PackedMut, View, ViewMut};

/// Engine that exists where the target has vectors of four numbers.
#[derive(Clone, Copy)]
pub(crate) struct Simd128(());

impl Simd128 {
    pub(crate) fn new() -> Option<Simd128> {
        Some(Simd128(()))
    }
}

#[cfg(target_arch = "x86_64")]
mod vector {
    use super::lanes;
    use std::arch::x86_64::*;

    pub type Vector = __m128;
    /// Rows of a product at a time. Four rows of two vectors leave registers for a row of the matrix.
    pub const ROWS: usize = 4;

    lanes! { Vector, 4;
        fn load(from: *const f32) -> Self { _mm_loadu_ps(from) }
        fn store(to: *mut f32, v: Self) { _mm_storeu_ps(to, v) }
        fn splat(value: f32) -> Self { _mm_set1_ps(value) }
        fn add(a: Self, b: Self) -> Self { _mm_add_ps(a, b) }
        fn sub(a: Self, b: Self) -> Self { _mm_sub_ps(a, b) }
        fn mul(a: Self, b: Self) -> Self { _mm_mul_ps(a, b) }
        fn mul_add(a: Self, b: Self, c: Self) -> Self { _mm_add_ps(_mm_mul_ps(a, b), c) }
        fn max(a: Self, b: Self) -> Self { _mm_max_ps(a, b) }
        // To the nearest whole number: powers are of numbers from −127 to 0, which an integer holds.
        fn round(v: Self) -> Self { _mm_cvtepi32_ps(_mm_cvtps_epi32(v)) }
        fn power(whole: Self) -> Self {
            let exponent = _mm_add_epi32(_mm_cvtps_epi32(whole), _mm_set1_epi32(127));
            _mm_castsi128_ps(_mm_slli_epi32::<23>(exponent))
        }
        fn sum(v: Self) -> f32 {
            let two = _mm_add_ps(v, _mm_movehl_ps(v, v));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
        fn greatest(v: Self) -> f32 {
            let two = _mm_max_ps(v, _mm_movehl_ps(v, v));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod vector {
    use super::lanes;
    use std::arch::aarch64::*;

    pub type Vector = float32x4_t;
    /// Rows of a product at a time: sixteen sums of thirty-two registers.
    pub const ROWS: usize = 8;

    lanes! { Vector, 4;
        fn load(from: *const f32) -> Self { vld1q_f32(from) }
        fn store(to: *mut f32, v: Self) { vst1q_f32(to, v) }
        fn splat(value: f32) -> Self { vdupq_n_f32(value) }
        fn add(a: Self, b: Self) -> Self { vaddq_f32(a, b) }
        fn sub(a: Self, b: Self) -> Self { vsubq_f32(a, b) }
        fn mul(a: Self, b: Self) -> Self { vmulq_f32(a, b) }
        fn mul_add(a: Self, b: Self, c: Self) -> Self { vfmaq_f32(c, a, b) }
        // The instruction for a maximum gives NaN where either is.
        fn max(a: Self, b: Self) -> Self { vbslq_f32(vcgtq_f32(a, b), a, b) }
        fn round(v: Self) -> Self { vrndnq_f32(v) }
        fn power(whole: Self) -> Self {
            vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(vcvtnq_s32_f32(whole), vdupq_n_s32(127))))
        }
        fn sum(v: Self) -> f32 { vaddvq_f32(v) }
        fn greatest(v: Self) -> f32 { vmaxnmvq_f32(v) }
    }
}

#[cfg(target_arch = "wasm32")]
mod vector {
    use super::lanes;
    use std::arch::wasm32::*;

    /// Numbers of a vector; the type of WebAssembly says nothing of them.
    #[derive(Clone, Copy)]
    pub struct Vector(v128);
    /// Rows of a product at a time. Most machines that run WebAssembly have sixteen registers for it.
    pub const ROWS: usize = 4;

    lanes! { Vector, 4;
        fn load(from: *const f32) -> Self { Vector(v128_load(from.cast())) }
        fn store(to: *mut f32, v: Self) { v128_store(to.cast(), v.0) }
        fn splat(value: f32) -> Self { Vector(f32x4_splat(value)) }
        fn add(a: Self, b: Self) -> Self { Vector(f32x4_add(a.0, b.0)) }
        fn sub(a: Self, b: Self) -> Self { Vector(f32x4_sub(a.0, b.0)) }
        fn mul(a: Self, b: Self) -> Self { Vector(f32x4_mul(a.0, b.0)) }
        fn mul_add(a: Self, b: Self, c: Self) -> Self { Vector(f32x4_add(f32x4_mul(a.0, b.0), c.0)) }
        // The first argument where that of the comparison fails, as with NaN.
        fn max(a: Self, b: Self) -> Self { Vector(f32x4_pmax(b.0, a.0)) }
        fn round(v: Self) -> Self { Vector(f32x4_nearest(v.0)) }
        fn power(whole: Self) -> Self {
            Vector(i32x4_shl(i32x4_add(i32x4_trunc_sat_f32x4(whole.0), i32x4_splat(127)), 23))
        }
        fn sum(v: Self) -> f32 {
            let two = f32x4_add(v.0, i32x4_shuffle::<2, 3, 0, 1>(v.0, v.0));
            f32x4_extract_lane::<0>(two) + f32x4_extract_lane::<1>(two)
        }
        fn greatest(v: Self) -> f32 {
            let two = f32x4_pmax(v.0, i32x4_shuffle::<2, 3, 0, 1>(v.0, v.0));
            f32x4_extract_lane::<0>(two).max(f32x4_extract_lane::<1>(two))
        }
    }
}

use vector::{ROWS, Vector};

f32_engine!(Simd128, Vector, ROWS, []);

#[cfg(test)]
mod tests {
    use super::super::lanes::Lanes;
    use super::Vector;

    /// Applies an operation to four numbers each.
    fn apply(a: [f32; 4], b: [f32; 4], operation: unsafe fn(Vector, Vector) -> Vector) -> [f32; 4] {
        let mut result = [0.0; 4];
        // SAFETY: the engine exists on this target, and all arrays have four numbers.
        unsafe {
            let made = operation(Vector::load(a.as_ptr()), Vector::load(b.as_ptr()));
            Vector::store(result.as_mut_ptr(), made);
        }
        result
    }

    #[test]
    fn operations_are_those_of_single_numbers() {
        let (a, b) = ([1.5, -2.0, 3.25, f32::NAN], [0.5, 7.0, -3.25, 4.0]);
        assert_eq!(apply(a, b, |a, b| unsafe { Vector::sub(a, b) })[..3], [1.0, -9.0, 6.5]);
        assert_eq!(apply(a, b, |a, b| unsafe { Vector::max(a, b) }), [1.5, 7.0, 3.25, 4.0], "b where a is NaN");
        assert!(apply(b, a, |a, b| unsafe { Vector::max(a, b) })[3].is_nan(), "b where b is NaN");
        let rounded = apply([-126.5, -0.5, -1.5, -2.51], b, |a, _| unsafe { Vector::round(a) });
        assert_eq!(rounded, [-126.0, 0.0, -2.0, -3.0]);
        let powers = apply([0.0, -1.0, -126.0, -127.0], b, |a, _| unsafe { Vector::power(a) });
        assert_eq!(powers, [1.0, 0.5, f32::MIN_POSITIVE, 0.0]);
        // SAFETY: the array has four numbers.
        let (sum, greatest) = unsafe {
            let v = Vector::load([1.0, 8.0, 2.0, -4.0].as_ptr());
            (Vector::sum(v), Vector::greatest(v))
        };
        assert_eq!((sum, greatest), (7.0, 8.0));
    }
}
