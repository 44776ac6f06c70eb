//! Loops over numbers that compile to vector instructions.

use crate::device::AdamRates;
use crate::{Activation, Real};

#[inline(always)]
pub fn zip<R: Real>(from: &[R], out: &mut [R], each: impl Fn(R, &mut R)) {
    for (from, out) in from.iter().zip(out) {
        each(*from, out);
    }
}

#[inline(always)]
pub fn zip2<R: Real>(left: &[R], right: &[R], out: &mut [R], each: impl Fn(R, R, &mut R)) {
    for ((left, right), out) in left.iter().zip(right).zip(out) {
        each(*left, *right, out);
    }
}

#[inline(always)]
pub fn add<R: Real>(from: &[R], out: &mut [R]) {
    zip(from, out, |from, out| *out += from);
}

/// Sums are made in this many parts, so that they can be made at once; the order does not depend on the processor.
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

/// All numbers joined two by two, beginning with `start`.
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

/// The lanes joined by halves.
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

/// Softmax in place of each row, a bias added to it first. All rows' exponentials are taken together: rows may be too short for vector instructions.
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
pub fn softmax_backward<R: Real>(y: &[R], dy: &[R], dx: &mut [R]) {
    let mean = dot(y, dy);
    zip2(y, dy, dx, |y, dy, dx| *dx += y * (dy - mean));
}

/// √(2/π) and the cubic term of GELU's approximation.
const GELU: (f64, f64) = (0.797_884_560_802_865_4, 0.044_715);

#[inline(always)]
pub fn activate<R: Real>(activation: Activation, x: &[R], out: &mut [R]) {
    match activation {
        Activation::Relu => zip(x, out, |x, out| *out = x.max(R::ZERO)),
        Activation::Tanh => zip(x, out, |x, out| *out = x.tanh()),
        Activation::Gelu => {
            let (scale, cubic, half) = (R::of(GELU.0), R::of(GELU.1), R::of(0.5));
            zip(x, out, |x, out| *out = half * x * (R::ONE + (scale * (x + cubic * x * x * x)).tanh()));
        }
    }
}

/// From the gradient by what came out to that by what went in, in place.
#[inline(always)]
pub fn activate_backward<R: Real>(activation: Activation, x: &[R], gradient: &mut [R]) {
    match activation {
        Activation::Relu => zip(x, gradient, |x, dy| *dy = if x > R::ZERO { *dy } else { R::ZERO }),
        Activation::Tanh => zip(x, gradient, |x, dy| {
            let y = x.tanh();
            *dy = *dy * (R::ONE - y * y);
        }),
        Activation::Gelu => {
            let (scale, cubic, half) = (R::of(GELU.0), R::of(GELU.1), R::of(0.5));
            zip(x, gradient, |x, dy| {
                let y = (scale * (x + cubic * x * x * x)).tanh();
                let slope = scale * (R::ONE + R::of(3.0) * cubic * x * x);
                *dy = *dy * half * (R::ONE + y + x * (R::ONE - y * y) * slope);
            });
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
