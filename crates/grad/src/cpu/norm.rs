//! Layer norm, forward and backward.

use super::loops::{dot, sum, zip};
use crate::Real;
use crate::real::rounded;

/// Term added to the variance.
const EPSILON: f64 = 1e-5;

#[inline(always)]
pub fn forward(x: &mut [Real], weight: &[Real], bias: &[Real], scales: &mut [Real], out: &mut [Real]) {
    let columns = weight.len();
    let share = rounded(1.0 / columns as f64);
    let rows = x.chunks_exact_mut(columns).zip(out.chunks_exact_mut(columns)).zip(scales);
    for ((x, out), scale) in rows {
        let mean = sum(x) * share;
        x.iter_mut().for_each(|value| *value -= mean);
        *scale = 1.0 / (dot(x, x) * share + rounded(EPSILON)).sqrt();
        for (((x, out), weight), bias) in x.iter_mut().zip(out).zip(weight).zip(bias) {
            *x *= *scale;
            *out = *x * *weight + *bias;
        }
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn backward(
    normal: &[Real],
    scales: &[Real],
    weight: &[Real],
    dy: &[Real],
    dx: &mut [Real],
    dweight: &mut [Real],
    dbias: &mut [Real],
) {
    let columns = weight.len();
    let share = rounded(1.0 / columns as f64);
    let rows = normal.chunks_exact(columns).zip(dy.chunks_exact(columns)).zip(dx.chunks_exact_mut(columns));
    let mut dnormal = vec![0.0; columns];
    for (((normal, dy), dx), scale) in rows.zip(scales) {
        zip(dy, dbias, |dy, dbias| *dbias += dy);
        for ((((dy, normal), weight), dweight), dnormal) in
            dy.iter().zip(normal).zip(weight).zip(&mut *dweight).zip(&mut dnormal)
        {
            *dweight += *dy * *normal;
            *dnormal = *dy * *weight;
        }
        let (mean, along) = (sum(&dnormal) * share, dot(&dnormal, normal) * share);
        for ((dnormal, normal), dx) in dnormal.iter().zip(normal).zip(dx) {
            *dx = *scale * (*dnormal - mean - *normal * along);
        }
    }
}
