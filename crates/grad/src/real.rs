//! Floating-point types: single precision for training, double precision for checking gradients.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

/// Matrix by its first number and the distances, in numbers, between consecutive rows and columns.
pub type MatrixPointer<R> = (*const R, isize, isize);

/// A floating-point number. The functions of `f32` are written so that loops of them compile to vector instructions.
pub trait Real:
    Copy
    + Debug
    + Default
    + PartialOrd
    + Send
    + Sync
    + Sum
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + SubAssign
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;

    /// The nearest number to `value`.
    fn of(value: f64) -> Self;
    /// Exact conversion to double precision.
    fn to_f64(self) -> f64;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Exponential function, vectorizable.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Returns `true` if the number is neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// Total order as of [`f64::total_cmp`]: −0 comes before +0.
    fn total_cmp(&self, other: &Self) -> Ordering;

    /// Computes out (m × n, row-major) = beta · out + alpha · left (m × k) · right (k × n). `out` is given with the distance between consecutive rows. If
    /// `beta` is zero, `out` is not read.
    ///
    /// # Safety
    ///
    /// Every number of the three matrices is valid memory, and `out` overlaps neither of the others.
    #[allow(unsafe_code)]
    unsafe fn multiply(
        shape: (usize, usize, usize),
        alpha: Self,
        left: MatrixPointer<Self>,
        right: MatrixPointer<Self>,
        beta: Self,
        out: (*mut Self, isize),
    );

    /// The greater of two numbers; `other` if either is NaN.
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        if self > other { self } else { other }
    }

    /// Absolute value.
    #[inline(always)]
    fn abs(self) -> Self {
        self.max(-self)
    }

    /// Logistic function, 1 / (1 + exp(−x)).
    #[inline(always)]
    fn sigmoid(self) -> Self {
        Self::ONE / (Self::ONE + (-self).exp())
    }
}

impl Real for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;

    fn of(value: f64) -> f64 {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
    fn sqrt(self) -> f64 {
        f64::sqrt(self)
    }
    fn exp(self) -> f64 {
        f64::exp(self)
    }
    fn ln(self) -> f64 {
        f64::ln(self)
    }
    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }
    fn total_cmp(&self, other: &f64) -> Ordering {
        f64::total_cmp(self, other)
    }

    /// Plain loops: double precision only checks gradients.
    #[allow(unsafe_code)]
    unsafe fn multiply(
        (m, n, k): (usize, usize, usize),
        alpha: f64,
        left: MatrixPointer<f64>,
        right: MatrixPointer<f64>,
        beta: f64,
        out: (*mut f64, isize),
    ) {
        let at = |(start, row, column): MatrixPointer<f64>, i: usize, j: usize| {
            // SAFETY: the caller promises that every number of the matrix is valid.
            unsafe { *start.offset(i as isize * row + j as isize * column) }
        };
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let sum: f64 = (0..k).map(|depth| at(left, i, depth) * at(right, depth, j)).sum();
            // SAFETY: as above.
            let cell = unsafe { &mut *out.0.offset(i as isize * out.1 + j as isize) };
            let before = if beta == 0.0 { 0.0 } else { beta * *cell };
            *cell = before + alpha * sum;
        }
    }
}

impl Real for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;

    #[inline(always)]
    fn of(value: f64) -> f32 {
        value as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn sqrt(self) -> f32 {
        f32::sqrt(self)
    }

    /// A power of two times a polynomial of the rest, with a relative error below 2e-7. Adding a large number rounds the exponent.
    #[inline(always)]
    fn exp(self) -> f32 {
        const ROUND: f32 = 12_582_912.0;
        let x = if self > 88.0 { 88.0 } else { self };
        let x = if x < -87.0 { -87.0 } else { x };
        let shifted = x * std::f32::consts::LOG2_E + ROUND;
        let power = shifted - ROUND;
        // ln 2 in two parts, so that the product of the first with a whole power is exact.
        let rest = x - power * 0.693_359_4 + power * 2.121_944_4e-4;
        let polynomial = 1.987_569_1e-4;
        let polynomial = polynomial * rest + 1.398_2e-3;
        let polynomial = polynomial * rest + 8.333_452e-3;
        let polynomial = polynomial * rest + 4.166_579_6e-2;
        let polynomial = polynomial * rest + 1.666_666_5e-1;
        let polynomial = polynomial * rest + 0.5;
        let fraction = polynomial * rest * rest + rest + 1.0;
        fraction * f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000))
    }

    #[inline(always)]
    fn ln(self) -> f32 {
        f32::ln(self)
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        f32::is_finite(self)
    }
    fn total_cmp(&self, other: &f32) -> Ordering {
        f32::total_cmp(self, other)
    }

    #[allow(unsafe_code)]
    unsafe fn multiply(
        (m, n, k): (usize, usize, usize),
        alpha: f32,
        (left, left_row, left_column): MatrixPointer<f32>,
        (right, right_row, right_column): MatrixPointer<f32>,
        beta: f32,
        (out, out_row): (*mut f32, isize),
    ) {
        let (multiply, one_thread) = (gemm_f32::gemm::f32::get_gemm_fn(), gemm_common::Parallelism::None);
        let read = beta != 0.0;
        // The kernel prefers columns, so a row-major product is computed as the transposed product of the transposed matrices.
        // SAFETY: the caller's promise is passed on.
        unsafe {
            if out_row > 1 {
                multiply(
                    n,
                    m,
                    k,
                    out,
                    out_row,
                    1,
                    read,
                    right,
                    right_row,
                    right_column,
                    left,
                    left_row,
                    left_column,
                    beta,
                    alpha,
                    false,
                    false,
                    false,
                    one_thread,
                );
            } else {
                multiply(
                    m,
                    n,
                    k,
                    out,
                    1,
                    out_row,
                    read,
                    left,
                    left_column,
                    left_row,
                    right,
                    right_column,
                    right_row,
                    beta,
                    alpha,
                    false,
                    false,
                    false,
                    one_thread,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_close() {
        for k in -860..=880 {
            let x = k as f32 * 0.1;
            let (near, true_value) = (Real::exp(x), f64::from(x).exp());
            assert!((f64::from(near) / true_value - 1.0).abs() < 3e-7, "exp {x}: {near} {true_value}");
        }
        assert!(Real::exp(-1e30f32) < 2e-38 && Real::exp(f32::NEG_INFINITY) < 2e-38 && Real::exp(1e9f32).is_finite());
        assert_eq!(Real::exp(0.0f32), 1.0);
    }
}
