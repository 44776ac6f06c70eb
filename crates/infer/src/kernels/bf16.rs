//! Products of bfloat16: everything but the product itself, which [`super::avx512_bf16`] and [`super::amx`] add.
//!
//! A packed matrix is a sequence of tiles of a kilobyte: 32 deep, 16 columns, two numbers of a column beside each other. A panel is two
//! tiles wide. Both ways to multiply take it like that.
#![allow(unsafe_code, reason = "vector instructions on checked pointers")]

use std::arch::x86_64::*;
use std::mem::transmute;

use super::avx512::Avx512;
use super::{Engine, GROUP, Norm, PAD, Packed, PackedMut, View, ViewMut, lanes};

/// A way to multiply.
pub(crate) trait Multiplier: Copy + Send + Sync + 'static {
    fn begin(self) {}
    fn end(self) {}
    /// c = a·b + bias, single precision.
    ///
    /// # Safety
    /// All of the product's rows and columns are there, rows a multiple of [`GROUP`].
    unsafe fn multiply(self, product: &Product<f32>);
    /// c = max(0, a·b + bias), as elements.
    ///
    /// # Safety
    /// The same.
    unsafe fn multiply_relu(self, product: &Product<u16>);
}

/// What is multiplied; strides in numbers.
pub(crate) struct Product<C> {
    pub rows: usize,
    pub a: *const u16,
    pub a_stride: usize,
    pub b: *const u16,
    pub depth: usize,
    pub columns: usize,
    pub bias: *const f32,
    pub c: *mut C,
    pub c_stride: usize,
}

/// The engine; exists only where the processor has AVX-512 BF16 besides what [`Avx512`] needs.
#[derive(Clone, Copy)]
pub(crate) struct Bf16<M> {
    plain: Avx512,
    multiplier: M,
}

impl<M> Bf16<M> {
    pub(crate) fn with(multiplier: M) -> Option<Bf16<M>> {
        let plain = Avx512::new()?;
        is_x86_feature_detected!("avx512bf16").then_some(Bf16 { plain, multiplier })
    }
}

/// Numbers in a tile.
const TILE: usize = 32 * 16;

impl<M: Multiplier> Engine for Bf16<M> {
    type Element = u16;
    const DEPTH: usize = 32;
    const COLUMNS: usize = 32;

    /// To nearest, ties to even.
    fn element(value: f32) -> u16 {
        let bits = value.to_bits();
        ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
    }

    fn place(depth: usize, row: usize, column: usize) -> usize {
        let tile = column / 32 * (depth / 32) * 2 + row / 32 * 2 + column % 32 / 16;
        tile * TILE + row % 32 / 2 * 32 + column % 16 * 2 + row % 2
    }

    fn begin(self) {
        self.multiplier.begin();
    }

    fn end(self) {
        self.multiplier.end();
    }

    fn multiply(self, rows: usize, a: View<u16>, b: Packed<u16>, bias: &[f32], mut c: ViewMut<f32>) {
        let product = product(rows, a, b, bias, &mut c);
        // SAFETY: `product` checks the bounds.
        unsafe { self.multiplier.multiply(&product) }
    }

    fn multiply_relu(self, rows: usize, a: View<u16>, b: Packed<u16>, bias: &[f32], mut c: ViewMut<u16>) {
        let product = product(rows, a, b, bias, &mut c);
        // SAFETY: `product` checks the bounds.
        unsafe { self.multiplier.multiply_relu(&product) }
    }

    fn add(self, sum: &mut [f32], other: &[f32]) {
        self.plain.add(sum, other);
    }

    fn add_scaled(self, sum: &mut [f32], other: &[f32], factor: f32) {
        self.plain.add_scaled(sum, other, factor);
    }

    fn convert(self, rows: usize, columns: usize, from: View<f32>, factors: Option<&[f32]>, to: ViewMut<u16>) {
        assert!(rows > 0 && factors.is_none_or(|factors| factors.len() >= rows), "a factor for every row");
        let within = |len: usize, stride: usize| (rows - 1) * stride + columns <= len;
        assert!(within(from.data.len(), from.stride) && within(to.data.len(), to.stride), "rows within the view");
        let strides = (from.stride, to.stride);
        // SAFETY: the engine exists, so the processor has the instructions; the bounds are checked above.
        unsafe { convert(rows, columns, from.data.as_ptr(), factors, to.data.as_mut_ptr(), strides) }
    }

    fn pack_keys(self, rows: usize, columns: usize, from: View<f32>, mut to: PackedMut<u16>) {
        let (depth, padded) = (to.depth, to.columns);
        assert!(rows <= padded && columns <= depth && depth % 32 == 0 && padded % 32 == 0, "room for the keys");
        assert!(rows == 0 || from.data.len() >= (rows - 1) * from.stride + columns, "rows within the view");
        // SAFETY: the engine exists, so the processor has the instructions; the bounds are checked above.
        unsafe { pack_keys(rows, columns, from.data.as_ptr(), from.stride, depth, padded, to.pointer()) }
    }

    fn pack_values(self, rows: usize, columns: usize, from: View<f32>, mut to: PackedMut<u16>) {
        let (depth, padded) = (to.depth, to.columns);
        assert!(rows <= depth && columns <= padded && depth % 32 == 0 && padded % 32 == 0, "room for the values");
        assert!(rows == 0 || from.data.len() >= (rows - 1) * from.stride + columns, "rows within the view");
        // SAFETY: the engine exists, so the processor has the instructions; the bounds are checked above.
        unsafe { pack_values(rows, columns, from.data.as_ptr(), from.stride, depth, padded, to.pointer()) }
    }

    fn softmax(self, rows: usize, columns: usize, logits: View<f32>, mut powers: ViewMut<u16>, factors: &mut [f32]) {
        assert!(columns.is_multiple_of(PAD), "padded rows");
        let (from, to) = (logits.pointer(rows, columns), powers.pointer(rows, columns));
        let strides = (logits.stride, powers.stride);
        // SAFETY: the engine exists, so the processor has the instructions; the bounds are checked above.
        unsafe { softmax(columns, from, to, strides, &mut factors[..rows]) }
    }

    fn add_norm(self, rows: usize, norm: Norm<'_>, mut x: ViewMut<f32>, change: View<f32>, mut to: ViewMut<u16>) {
        let stride = x.stride;
        assert!(
            stride.is_multiple_of(PAD) && norm.weight.len() == stride && norm.bias.len() == stride,
            "a padded norm"
        );
        let (x, change_from) = (x.pointer(rows, stride), change.pointer(rows, stride));
        let elements = to.pointer(rows, stride);
        let strides = (change.stride, to.stride);
        // SAFETY: the engine exists, so the processor has the instructions; the bounds are checked above.
        unsafe { add_norm(rows, stride, norm, x, change_from, elements, strides) }
    }
}

fn product<C>(rows: usize, a: View<u16>, b: Packed<u16>, bias: &[f32], c: &mut ViewMut<'_, C>) -> Product<C> {
    let (depth, columns) = (b.depth, b.columns);
    assert!(rows.is_multiple_of(GROUP) && depth % 32 == 0 && columns % 32 == 0 && bias.len() >= columns, "whole tiles");
    let (a_stride, c_stride) = (a.stride, c.stride);
    Product {
        rows,
        a: a.pointer(rows, depth),
        a_stride,
        b: b.pointer(),
        depth,
        columns,
        bias: bias.as_ptr(),
        c: c.pointer(rows, columns),
        c_stride,
    }
}

/// Two vectors as 32 elements.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub(crate) fn narrow(low: __m512, high: __m512) -> __m512i {
    // SAFETY: both are 512 bits of numbers.
    unsafe { transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, low)) }
}

/// The first so many of sixteen lanes.
fn lanes(count: usize) -> u16 {
    ((1u32 << count.min(16)) - 1) as u16
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn convert(
    rows: usize,
    columns: usize,
    from: *const f32,
    factors: Option<&[f32]>,
    to: *mut u16,
    (from_stride, to_stride): (usize, usize),
) {
    for column in (0..columns).step_by(32) {
        let (left, right) = (lanes(columns - column), lanes((columns - column).saturating_sub(16)));
        let both = u32::from(left) | u32::from(right) << 16;
        for row in 0..rows {
            let factor = _mm512_set1_ps(factors.map_or(1.0, |factors| factors[row]));
            // SAFETY: masked lanes are not read or written, the others are within rows and columns.
            unsafe {
                let from = from.add(row * from_stride + column);
                let low = _mm512_maskz_loadu_ps(left, from);
                let high = _mm512_maskz_loadu_ps(right, from.wrapping_add(16));
                let narrow = narrow(_mm512_mul_ps(low, factor), _mm512_mul_ps(high, factor));
                _mm512_mask_storeu_epi16(to.add(row * to_stride + column).cast(), both, narrow);
            }
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn pack_keys(
    rows: usize,
    columns: usize,
    from: *const f32,
    stride: usize,
    depth: usize,
    padded: usize,
    to: *mut u16,
) {
    for group in 0..padded / 16 {
        for part in 0..depth / 32 {
            let left = columns.saturating_sub(part * 32);
            let mut tile = [_mm512_setzero_si512(); 16];
            for (place, pairs) in tile.iter_mut().enumerate().take(rows.saturating_sub(group * 16)) {
                let from = from.wrapping_add((group * 16 + place) * stride + part * 32);
                // SAFETY: the row is there, and masked lanes are not read.
                *pairs = unsafe {
                    let low = _mm512_maskz_loadu_ps(lanes(left), from);
                    let high = _mm512_maskz_loadu_ps(lanes(left.saturating_sub(16)), from.wrapping_add(16));
                    narrow(low, high)
                };
            }
            transpose(&mut tile);
            for (place, pairs) in tile.into_iter().enumerate() {
                let at = (group / 2 * (depth / 32) * 2 + part * 2 + group % 2) * TILE + place * 32;
                // SAFETY: it is within depth × padded numbers.
                unsafe { _mm512_storeu_si512(to.add(at).cast(), pairs) }
            }
        }
    }
}

/// Sixteen rows of sixteen pairs become sixteen columns of them.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
fn transpose(rows: &mut [__m512i; 16]) {
    let r = *rows;
    let mut fours = r;
    for g in (0..16).step_by(4) {
        let (a, b) = (_mm512_unpacklo_epi32(r[g], r[g + 1]), _mm512_unpackhi_epi32(r[g], r[g + 1]));
        let (c, d) = (_mm512_unpacklo_epi32(r[g + 2], r[g + 3]), _mm512_unpackhi_epi32(r[g + 2], r[g + 3]));
        fours[g] = _mm512_unpacklo_epi64(a, c);
        fours[g + 1] = _mm512_unpackhi_epi64(a, c);
        fours[g + 2] = _mm512_unpacklo_epi64(b, d);
        fours[g + 3] = _mm512_unpackhi_epi64(b, d);
    }
    for j in 0..4 {
        let even = _mm512_shuffle_i32x4::<0x88>(fours[j], fours[4 + j]);
        let even_after = _mm512_shuffle_i32x4::<0x88>(fours[8 + j], fours[12 + j]);
        let odd = _mm512_shuffle_i32x4::<0xdd>(fours[j], fours[4 + j]);
        let odd_after = _mm512_shuffle_i32x4::<0xdd>(fours[8 + j], fours[12 + j]);
        rows[j] = _mm512_shuffle_i32x4::<0x88>(even, even_after);
        rows[8 + j] = _mm512_shuffle_i32x4::<0xdd>(even, even_after);
        rows[4 + j] = _mm512_shuffle_i32x4::<0x88>(odd, odd_after);
        rows[12 + j] = _mm512_shuffle_i32x4::<0xdd>(odd, odd_after);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn pack_values(
    rows: usize,
    columns: usize,
    from: *const f32,
    stride: usize,
    depth: usize,
    padded: usize,
    to: *mut u16,
) {
    let order: [u16; 32] = std::array::from_fn(|place| (place / 2 + place % 2 * 16) as u16);
    // SAFETY: an array of 512 bits.
    let order = unsafe { _mm512_loadu_si512(order.as_ptr().cast()) };
    for pair in 0..depth / 2 {
        for group in 0..padded / 16 {
            let load = |row: usize| {
                let left = if row < rows { columns.saturating_sub(group * 16) } else { 0 };
                // SAFETY: the row is there if any lane is read, and masked lanes are not.
                unsafe { _mm512_maskz_loadu_ps(lanes(left), from.wrapping_add(row * stride + group * 16)) }
            };
            let pairs = _mm512_permutexvar_epi16(order, narrow(load(2 * pair), load(2 * pair + 1)));
            let at = (group / 2 * (depth / 32) * 2 + pair / 16 * 2 + group % 2) * TILE + pair % 16 * 32;
            // SAFETY: it is within depth × padded numbers.
            unsafe { _mm512_storeu_si512(to.add(at).cast(), pairs) }
        }
    }
}

/// The fraction that powers of two are computed from needs no more terms than eight significant bits show.
const POWER: [f32; 4] = [0.078_967_26, 0.224_693_16, 0.696_324_8, 0.999_900_3];

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn softmax(
    columns: usize,
    logits: *const f32,
    powers: *mut u16,
    (logits_stride, powers_stride): (usize, usize),
    factors: &mut [f32],
) {
    for (row, factor) in factors.iter_mut().enumerate() {
        // SAFETY: the caller has checked the rows, and the columns, a multiple of 32.
        unsafe {
            let (logits, powers) = (logits.add(row * logits_stride), powers.add(row * powers_stride));
            let most = _mm512_set1_ps(lanes::greatest::<__m512>(columns, logits));
            let power = |from: *const f32| {
                // Numbers below the normal ones would be slow, and this is as good as nothing beside the greatest.
                let x = _mm512_max_ps(_mm512_set1_ps(-100.0), _mm512_sub_ps(_mm512_loadu_ps(from), most));
                let rest = _mm512_reduce_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(x);
                let mut power = _mm512_set1_ps(POWER[0]);
                for coefficient in &POWER[1..] {
                    power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(*coefficient));
                }
                _mm512_scalef_ps(power, x)
            };
            let mut sums = [_mm512_setzero_ps(); 2];
            for column in (0..columns).step_by(32) {
                let (low, high) = (power(logits.add(column)), power(logits.add(column + 16)));
                sums = [_mm512_add_ps(sums[0], low), _mm512_add_ps(sums[1], high)];
                _mm512_storeu_si512(powers.add(column).cast(), narrow(low, high));
            }
            *factor = 1.0 / _mm512_reduce_add_ps(_mm512_add_ps(sums[0], sums[1]));
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn add_norm(
    rows: usize,
    stride: usize,
    norm: Norm<'_>,
    x: *mut f32,
    change: *const f32,
    to: *mut u16,
    (change_stride, to_stride): (usize, usize),
) {
    for row in 0..rows {
        // SAFETY: the caller has checked the bounds of all rows.
        unsafe {
            let (x, to) = (x.add(row * stride), to.add(row * to_stride));
            lanes::add_norm_row::<__m512>(stride, norm, x, change.add(row * change_stride));
            for column in (0..stride).step_by(32) {
                let narrow = narrow(_mm512_loadu_ps(x.add(column)), _mm512_loadu_ps(x.add(column + 16)));
                _mm512_storeu_si512(to.add(column).cast(), narrow);
            }
        }
    }
}
