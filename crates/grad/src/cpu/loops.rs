//! Loops over numbers that compile to vector instructions when they are inlined into `vectorized!`.

use crate::real::{exp, max};
use crate::{AdamRates, Real};

#[inline(always)]
pub fn zip(from: &[Real], out: &mut [Real], each: impl Fn(Real, &mut Real)) {
    for (from, out) in from.iter().zip(out) {
        each(*from, out);
    }
}

#[inline(always)]
pub fn add(from: &[Real], out: &mut [Real]) {
    zip(from, out, |from, out| *out += from);
}

/// Number of partial sums, which vector instructions compute at once. It is fixed, so the order of additions does not
/// depend on the processor.
const LANES: usize = 16;

#[inline(always)]
pub fn dot(left: &[Real], right: &[Real]) -> Real {
    let mut lanes = [0.0; LANES];
    let (left_chunks, right_chunks) = (left.chunks_exact(LANES), right.chunks_exact(LANES));
    let rest = left_chunks.remainder().iter().zip(right_chunks.remainder());
    let rest = rest.fold(0.0, |sum, (left, right)| sum + *left * *right);
    for (left, right) in left_chunks.zip(right_chunks) {
        for lane in 0..LANES {
            lanes[lane] += left[lane] * right[lane];
        }
    }
    halved(lanes, |left, right| left + right) + rest
}

/// Reduction of all numbers with an associative operation whose neutral element is `start`.
#[inline(always)]
fn joined(values: &[Real], start: Real, join: impl Fn(Real, Real) -> Real) -> Real {
    let mut lanes = [start; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder().iter().fold(start, |all, value| join(all, *value));
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = join(lanes[lane], chunk[lane]);
        }
    }
    join(halved(lanes, &join), rest)
}

/// Reduction of the lanes, halving their number in each step.
#[inline(always)]
fn halved(mut lanes: [Real; LANES], join: impl Fn(Real, Real) -> Real) -> Real {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = join(lanes[lane], lanes[lane + half]);
        }
        half /= 2;
    }
    lanes[0]
}

#[inline(always)]
pub fn sum(values: &[Real]) -> Real {
    joined(values, 0.0, |left, right| left + right)
}

#[inline(always)]
pub fn greatest(values: &[Real]) -> Real {
    joined(values, -1e30, max)
}

/// Softmax of each row in place, after adding `bias` to it. The exponentials of all rows are computed in one loop,
/// because single rows may be too short for vector instructions.
#[inline(always)]
pub fn softmax(values: &mut [Real], columns: usize, bias: Option<&[Real]>) {
    for row in values.chunks_exact_mut(columns) {
        if let Some(bias) = bias {
            add(bias, row);
        }
        let most = greatest(row);
        for value in row {
            *value -= most;
        }
    }
    for value in &mut *values {
        *value = exp(*value);
    }
    for row in values.chunks_exact_mut(columns) {
        let factor = 1.0 / sum(row);
        for value in row {
            *value *= factor;
        }
    }
}

#[inline(always)]
pub fn adam(rates: &AdamRates, gradient: &[Real], first: &mut [Real], second: &mut [Real], parameter: &mut [Real]) {
    let (rest1, rest2) = (1.0 - rates.beta1, 1.0 - rates.beta2);
    for (((gradient, first), second), parameter) in gradient.iter().zip(first).zip(second).zip(parameter) {
        *first = rates.beta1 * *first + rest1 * *gradient;
        *second = rates.beta2 * *second + rest2 * *gradient * *gradient;
        let change = rates.step * *first / ((*second * rates.correction).sqrt() + rates.epsilon);
        *parameter = *parameter - rates.decay * *parameter - change;
    }
}
