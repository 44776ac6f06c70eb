//! Layer norms of sixteen rows at a time in AVX-512, for engines with bfloat16 elements. The divisions and square
//! roots, one per row, are computed for all sixteen rows at once. The variance is the mean square minus the squared
//! mean, whose rounding error is smaller than that of bfloat16 elements.
#![allow(unsafe_code, reason = "vector instructions on checked pointers")]

use std::arch::x86_64::*;

use super::bf16::narrow;
use super::{GROUP, Norm};
use crate::reference::EPSILON;

/// Sums of sixteen vectors, as one vector.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
fn sums(rows: &[__m512; GROUP]) -> __m512 {
    let add = |a, b| _mm512_add_ps(a, b);
    // First four rows interleaved in every quarter of a vector, then the sums of quarters.
    let mut fours = [_mm512_setzero_ps(); 4];
    for (four, r) in fours.iter_mut().zip(rows.chunks_exact(4)) {
        let left = add(_mm512_unpacklo_ps(r[0], r[1]), _mm512_unpackhi_ps(r[0], r[1]));
        let right = add(_mm512_unpacklo_ps(r[2], r[3]), _mm512_unpackhi_ps(r[2], r[3]));
        let (left, right) = (_mm512_castps_pd(left), _mm512_castps_pd(right));
        let (low, high) = (_mm512_unpacklo_pd(left, right), _mm512_unpackhi_pd(left, right));
        *four = add(_mm512_castpd_ps(low), _mm512_castpd_ps(high));
    }
    let quarters = |a, b| add(_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b));
    quarters(quarters(fours[0], fours[1]), quarters(fours[2], fours[3]))
}

/// See [`super::Engine::add_norm`].
///
/// # Safety
/// All pointers must be valid for `rows` rows, a multiple of [`GROUP`]; `stride` must be a multiple of 32, and the norm
/// must have as many parameters.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub(crate) unsafe fn add_norm(
    rows: usize,
    stride: usize,
    norm: Norm<'_>,
    x: *mut f32,
    change: *const f32,
    to: *mut u16,
    (change_stride, to_stride): (usize, usize),
) {
    let width = _mm512_set1_ps(norm.width as f32);
    for first in (0..rows).step_by(GROUP) {
        let (mut totals, mut squares) = ([_mm512_setzero_ps(); GROUP], [_mm512_setzero_ps(); GROUP]);
        for (place, (totals, squares)) in totals.iter_mut().zip(&mut squares).enumerate() {
            let (x, change) =
                (x.wrapping_add((first + place) * stride), change.wrapping_add((first + place) * change_stride));
            let (mut total, mut square) = ([_mm512_setzero_ps(); 2], [_mm512_setzero_ps(); 2]);
            for column in (0..stride).step_by(32) {
                for half in 0..2 {
                    // SAFETY: the row has `stride` columns.
                    unsafe {
                        let at = column + 16 * half;
                        let sum = _mm512_add_ps(_mm512_loadu_ps(x.add(at)), _mm512_loadu_ps(change.add(at)));
                        _mm512_storeu_ps(x.add(at), sum);
                        total[half] = _mm512_add_ps(total[half], sum);
                        square[half] = _mm512_fmadd_ps(sum, sum, square[half]);
                    }
                }
            }
            (*totals, *squares) = (_mm512_add_ps(total[0], total[1]), _mm512_add_ps(square[0], square[1]));
        }
        let mean = _mm512_div_ps(sums(&totals), width);
        let variance = _mm512_fnmadd_ps(mean, mean, _mm512_div_ps(sums(&squares), width));
        let variance = _mm512_max_ps(variance, _mm512_setzero_ps());
        let deviation = _mm512_sqrt_ps(_mm512_add_ps(variance, _mm512_set1_ps(EPSILON)));
        let scale = _mm512_div_ps(_mm512_set1_ps(1.0), deviation);
        let (mut scales, mut shifts) = ([0.0f32; GROUP], [0.0f32; GROUP]);
        // SAFETY: both arrays have 512 bits.
        unsafe {
            _mm512_storeu_ps(scales.as_mut_ptr(), scale);
            _mm512_storeu_ps(shifts.as_mut_ptr(), _mm512_fnmadd_ps(mean, scale, _mm512_setzero_ps()));
        }
        for (place, (scale, shift)) in scales.into_iter().zip(shifts).enumerate() {
            let (x, to) = (x.wrapping_add((first + place) * stride), to.wrapping_add((first + place) * to_stride));
            let (scale, shift) = (_mm512_set1_ps(scale), _mm512_set1_ps(shift));
            for column in (0..stride).step_by(32) {
                // SAFETY: the row has `stride` columns.
                unsafe {
                    let scaled = |at: usize| {
                        let (weight, bias) = (norm.weight.as_ptr().add(at), norm.bias.as_ptr().add(at));
                        let gap = _mm512_fmadd_ps(_mm512_loadu_ps(x.add(at)), scale, shift);
                        _mm512_fmadd_ps(gap, _mm512_loadu_ps(weight), _mm512_loadu_ps(bias))
                    };
                    let (low, high) = (scaled(column), scaled(column + 16));
                    _mm512_storeu_ps(x.add(column), low);
                    _mm512_storeu_ps(x.add(column + 16), high);
                    _mm512_storeu_si512(to.add(column).cast(), narrow(low, high));
                }
            }
        }
    }
}
