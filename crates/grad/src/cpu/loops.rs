//! Loops over numbers that compile to vector instructions when they are inlined into `vectorized!`.

use crate::{AdamRates, Real};

#[inline(always)]
pub fn zip<R: Real>(from: &[R], out: &mut [R], each: impl Fn(R, &mut R)) {
    for (from, out) in from.iter().zip(out) {
        each(*from, out);
    }
}

#[inline(always)]
pub fn add<R: Real>(from: &[R], out: &mut [R]) {
    zip(from, out, |from, out| *out += from);
}

/// Number of partial sums, which vector instructions compute at once. It is fixed, so the order of additions does not depend on the processor.
const LANES: usize = 16;

#[inline(always)]
pub fn dot<R: Real>(left: &[R], right: &[R]) -> R {
    let mut lanes = [R::ZERO; LANES];
    let (left_chunks, right_chunks) = (left.chunks_exact(LANES), right.chunks_exact(LANES));
    let rest = left_chunks.remainder().iter().zip(right_chunks.remainder());
    let rest = rest.fold(R::ZERO, |sum, (left, right)| sum + *left * *right);
    for (left, right) in left_chunks.zip(right_chunks) {
        for lane in 0..LANES {
            lanes[lane] += left[lane] * right[lane];
        }
    }
    halved(lanes, |left, right| left + right) + rest
}

/// Reduction of all numbers with an associative operation whose neutral element is `start`.
#[inline(always)]
fn joined<R: Real>(values: &[R], start: R, join: impl Fn(R, R) -> R) -> R {
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
fn halved<R: Real>(mut lanes: [R; LANES], join: impl Fn(R, R) -> R) -> R {
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
pub fn sum<R: Real>(values: &[R]) -> R {
    joined(values, R::ZERO, |left, right| left + right)
}

#[inline(always)]
pub fn greatest<R: Real>(values: &[R]) -> R {
    joined(values, R::of(-1e30), R::max)
}

/// Softmax of each row in place, after adding `bias` to it. The exponentials of all rows are computed in one loop, because single rows may be too short for
/// vector instructions.
#[inline(always)]
pub fn softmax<R: Real>(values: &mut [R], columns: usize, bias: Option<&[R]>) {
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
        *value = value.exp();
    }
    for row in values.chunks_exact_mut(columns) {
        let factor = R::ONE / sum(row);
        for value in row {
            *value = *value * factor;
        }
    }
}

#[inline(always)]
pub fn adam<R: Real>(rates: &AdamRates<R>, gradient: &[R], first: &mut [R], second: &mut [R], parameter: &mut [R]) {
    let (rest1, rest2) = (R::ONE - rates.beta1, R::ONE - rates.beta2);
    for (((gradient, first), second), parameter) in gradient.iter().zip(first).zip(second).zip(parameter) {
        *first = rates.beta1 * *first + rest1 * *gradient;
        *second = rates.beta2 * *second + rest2 * *gradient * *gradient;
        let change = rates.step * *first / ((*second * rates.correction).sqrt() + rates.epsilon);
        *parameter = *parameter - rates.decay * *parameter - change;
    }
}
