//! The number type of the crate, and functions of it that loops can be vectorized with.
//!
//! Everything is computed in single precision. The crate's own tests are compiled in double precision, so that finite
//! differences can check gradients to seven digits; a type parameter would do the same, but would have every kernel
//! compiled in the crates that use it.

/// Floating-point number that matrices consist of: `f32`.
#[cfg(not(test))]
pub type Real = f32;
/// Floating-point number that matrices consist of, in the crate's own tests.
#[cfg(test)]
pub type Real = f64;

/// Matrix by its first number and the distances, in numbers, between consecutive rows and columns.
pub(crate) type MatrixPointer = (*const Real, isize, isize);

/// The nearest number to `value`.
#[inline(always)]
pub(crate) fn rounded(value: f64) -> Real {
    value as Real
}

/// Exact conversion to double precision.
#[inline(always)]
#[allow(clippy::unnecessary_cast)]
pub(crate) fn double(value: Real) -> f64 {
    value as f64
}

/// The greater of two numbers; `other` if either is NaN. One vector instruction, unlike [`f32::max`].
#[inline(always)]
pub(crate) fn max(number: Real, other: Real) -> Real {
    if number > other { number } else { other }
}

/// Logistic function, 1 / (1 + exp(−x)).
#[inline(always)]
pub(crate) fn sigmoid(x: Real) -> Real {
    1.0 / (1.0 + exp(-x))
}

/// Exponential function.
#[cfg(not(test))]
pub(crate) use exp_of_single as exp;

#[cfg(test)]
pub(crate) fn exp(x: Real) -> Real {
    x.exp()
}

/// Exponential function that loops can be vectorized with: a power of two times a polynomial of the rest, with a
/// relative error below 2e-7. Adding a large number rounds the exponent.
#[inline(always)]
pub(crate) fn exp_of_single(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    let x = if x > 88.0 { 88.0 } else { x };
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

/// Computes out (m × n, row-major) = beta · out + alpha · left (m × k) · right (k × n). `out` is given with the
/// distance between consecutive rows. If `beta` is zero, `out` is not read.
///
/// # Safety
///
/// Every number of the three matrices is valid memory, and `out` overlaps neither of the others.
#[cfg(not(test))]
#[allow(unsafe_code)]
pub(crate) unsafe fn multiply(
    (m, n, k): (usize, usize, usize),
    alpha: f32,
    left: MatrixPointer,
    right: MatrixPointer,
    beta: f32,
    (out, out_row): (*mut f32, isize),
) {
    // The kernel prefers columns, so a row-major product is computed as the transposed product of the transposed
    // matrices.
    let is_transposed = out_row > 1;
    let turned = |(data, row, column): MatrixPointer| (data, column, row);
    let (rows, columns, out_column, out_row) = if is_transposed { (n, m, out_row, 1) } else { (m, n, 1, out_row) };
    let (left, right) = if is_transposed { (right, left) } else { (turned(left), turned(right)) };
    // SAFETY: the caller's promise is passed on.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            rows,
            columns,
            k,
            out,
            out_column,
            out_row,
            beta != 0.0,
            left.0,
            left.1,
            left.2,
            right.0,
            right.1,
            right.2,
            beta,
            alpha,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    }
}

/// The same in plain loops.
///
/// # Safety
/// As for the other one.
#[cfg(test)]
#[allow(unsafe_code)]
pub(crate) unsafe fn multiply(
    (m, n, k): (usize, usize, usize),
    alpha: f64,
    left: MatrixPointer,
    right: MatrixPointer,
    beta: f64,
    out: (*mut f64, isize),
) {
    let at = |(start, row, column): MatrixPointer, i: usize, j: usize| {
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

#[cfg(test)]
mod tests {
    use super::exp_of_single as exp;

    #[test]
    fn the_exponential_is_close() {
        for k in -860..=880 {
            let x = k as f32 * 0.1;
            let (near, true_value) = (exp(x), f64::from(x).exp());
            assert!((f64::from(near) / true_value - 1.0).abs() < 3e-7, "exp {x}: {near} {true_value}");
        }
        assert!(exp(-1e30) < 2e-38 && exp(f32::NEG_INFINITY) < 2e-38 && exp(1e9).is_finite());
        assert_eq!(exp(0.0), 1.0);
    }
}
