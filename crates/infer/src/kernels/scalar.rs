//! The portable engine: vectors are arrays, which the compiler turns into the vector instructions of the target.
#![allow(unsafe_code, reason = "the loops over vectors work on checked pointers")]

use super::lanes::{f32_engine, lanes};
use super::{Attention, Norm, PAD, Packed, PackedMut, View, ViewMut};

/// Engine in plain Rust.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

#[derive(Clone, Copy)]
struct Array([f32; 8]);

impl Array {
    #[inline(always)]
    fn zip(self, other: Array, of: impl Fn(f32, f32) -> f32) -> Array {
        Array(std::array::from_fn(|lane| of(self.0[lane], other.0[lane])))
    }
}

/// Adding and subtracting this number rounds numbers of a magnitude up to four million to whole numbers.
const ROUNDER: f32 = 12_582_912.0;

lanes! { Array, 8;
    fn load(from: *const f32) -> Self { Array(from.cast::<[f32; 8]>().read_unaligned()) }
    fn store(to: *mut f32, v: Self) { to.cast::<[f32; 8]>().write_unaligned(v.0) }
    fn splat(value: f32) -> Self { Array([value; 8]) }
    fn add(a: Self, b: Self) -> Self { a.zip(b, |a, b| a + b) }
    fn sub(a: Self, b: Self) -> Self { a.zip(b, |a, b| a - b) }
    fn mul(a: Self, b: Self) -> Self { a.zip(b, |a, b| a * b) }
    fn mul_add(a: Self, b: Self, c: Self) -> Self { a.zip(b, |a, b| a * b).zip(c, |a, b| a + b) }
    fn max(a: Self, b: Self) -> Self { a.zip(b, |a, b| if a > b { a } else { b }) }
    fn round(v: Self) -> Self { Array(v.0.map(|value| (value + ROUNDER) - ROUNDER)) }
    fn power(whole: Self) -> Self { Array(whole.0.map(|whole| f32::from_bits(((whole + 127.0) as u32) << 23))) }
    fn sum(v: Self) -> f32 { let [a, b, c, d, e, f, g, h] = v.0; ((a + b) + (c + d)) + ((e + f) + (g + h)) }
    fn greatest(v: Self) -> f32 { v.0.into_iter().fold(f32::NEG_INFINITY, f32::max) }
}

f32_engine!(Scalar, Array, 2, []);
