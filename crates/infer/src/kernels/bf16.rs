//! Engine with bfloat16 elements: everything but the products in tiles and the attention, which [`super::amx`] adds.
//!
//! A packed matrix is a sequence of tiles of one kilobyte: 32 rows deep and 16 columns wide, with two consecutive
//! numbers of a column adjacent. A panel is two tiles wide.
#![allow(unsafe_code, reason = "vector instructions on checked pointers")]

use std::arch::x86_64::*;
use std::mem::transmute;

use super::amx::Tiles;
use super::avx512::Avx512;
use super::{
    Attention, Engine, GROUP, Heads, Map, Norm, OwnPacked, PAD, Packed, PackedMut, View, ViewMut, amx_attention,
    amx_sparse, lanes, norm,
};
use crate::sparse::plan::Plan;

/// Operands of a product. Strides count numbers.
pub(crate) struct Product {
    pub rows: usize,
    pub a: *const u16,
    pub a_stride: usize,
    pub b: *const u16,
    pub depth: usize,
    pub columns: usize,
}

/// Engine with bfloat16 products in tiles. It exists only if the processor has tiles, AVX-512 BF16 and VBMI, and what
/// [`Avx512`] needs.
#[derive(Clone, Copy)]
pub(crate) struct Amx {
    plain: Avx512,
    tiles: Tiles,
}

impl Amx {
    /// Returns the engine if the processor has the instructions and the operating system lets this process use tiles.
    pub(crate) fn new() -> Option<Amx> {
        let plain = Avx512::new()?;
        let has = is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512vbmi");
        Tiles::new().filter(|_| has).map(|tiles| Amx { plain, tiles })
    }
}

/// The number one as an element.
pub(super) const ONE: u16 = 0x3f80;

/// Number of elements in a tile.
pub(super) const TILE: usize = 32 * 16;

impl Engine for Amx {
    type Element = u16;
    type Matrix = OwnPacked<u16>;
    const DEPTH: usize = 32;
    const COLUMNS: usize = 32;
    const UNIT: f32 = FRACTIONS as f32;

    /// Rounds to nearest, ties to even.
    fn element(value: f32) -> u16 {
        let bits = value.to_bits();
        ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
    }

    fn place(depth: usize, row: usize, column: usize) -> usize {
        let tile = column / 32 * (depth / 32) * 2 + row / 32 * 2 + column % 32 / 16;
        tile * TILE + row % 32 / 2 * 32 + column % 16 * 2 + row % 2
    }

    fn begin(self) {
        self.tiles.begin();
    }

    fn end(self) {
        self.tiles.end();
    }

    fn multiply(self, rows: usize, a: View<u16>, b: Packed<u16>, bias: &[f32], mut c: ViewMut<f32>) {
        let product = product(rows, a, b);
        assert!(bias.len() >= b.columns, "a bias for every column");
        let (to, stride) = (c.pointer(rows, b.columns), c.stride);
        // SAFETY: the bounds are checked above and by `product`.
        unsafe { self.tiles.multiply(&product, bias.as_ptr(), to, stride) }
    }

    fn matrix(inputs: usize, outputs: usize, entry: impl Fn(usize, usize) -> f32) -> OwnPacked<u16> {
        OwnPacked::new::<Self>(inputs, outputs, entry)
    }

    fn apply(self, rows: usize, a: View<u16>, map: Map<'_, OwnPacked<u16>>, _room: &mut [u16], c: ViewMut<f32>) {
        self.multiply(rows, a, map.matrix.view(), map.bias, c);
    }

    fn apply_elements(
        self,
        rows: usize,
        a: View<u16>,
        map: Map<'_, OwnPacked<u16>>,
        relu: bool,
        _room: &mut [u16],
        mut c: ViewMut<u16>,
    ) {
        let product = product(rows, a, map.matrix.view());
        assert!(map.bias.len() >= product.columns, "a bias for every column");
        let (bias, to, stride) = (map.bias.as_ptr(), c.pointer(rows, product.columns), c.stride);
        // SAFETY: the engine exists, so the processor has the instructions; the bounds are checked above and by
        // `product`.
        unsafe {
            match relu {
                true => multiply_elements::<true>(self.tiles, &product, bias, to, stride),
                false => multiply_elements::<false>(self.tiles, &product, bias, to, stride),
            }
        }
    }

    fn add(self, sum: &mut [f32], other: &[f32]) {
        self.plain.add(sum, other);
    }

    fn sum_rows(self, rows: usize, from: View<u16>, sum: &mut [f32]) {
        assert!(sum.len().is_multiple_of(PAD), "padded rows");
        let (pointer, stride) = (from.pointer(rows, sum.len()), from.stride);
        // SAFETY: the engine exists, so the processor has the instructions; the bounds are checked above.
        unsafe { sum_rows(rows, pointer, stride, sum) }
    }

    fn add_terms(self, sum: &mut [f32], factors: &[f32], table: &[f32]) {
        self.plain.add_terms(sum, factors, table);
    }

    fn convert(self, from: &[f32], to: &mut [u16]) {
        assert!(from.len() == to.len() && from.len().is_multiple_of(PAD), "padded rows");
        // SAFETY: the engine exists, so the processor has the instructions; the bounds are checked above.
        unsafe { convert(from.len(), from.as_ptr(), to.as_mut_ptr()) }
    }

    fn pack_keys(self, rows: usize, columns: usize, from: View<u16>, mut to: PackedMut<u16>) {
        let (depth, padded) = (to.depth, to.columns);
        assert!(rows <= padded && columns <= depth && depth % 32 == 0 && padded % 32 == 0, "room for the keys");
        let from = (from.pointer(rows, columns), from.stride);
        // SAFETY: the engine exists, so the processor has the instructions; the bounds are checked above.
        unsafe { pack_keys(rows, columns, from, depth, padded, to.pointer()) }
    }

    fn pack_values(self, rows: usize, columns: usize, from: View<u16>, mut to: PackedMut<u16>) {
        let (depth, padded) = (to.depth, to.columns);
        assert!(rows <= depth && columns <= padded && depth % 32 == 0 && padded % 32 == 0, "room for the values");
        let from = (from.pointer(rows, columns), from.stride);
        // SAFETY: the engine exists, so the processor has the instructions; the bounds are checked above.
        unsafe { pack_values(rows, columns, from, depth, padded, to.pointer()) }
    }

    fn softmax(self, rows: usize, columns: usize, attention: &mut Attention<'_, u16>) {
        let Attention { logits, powers, factors, .. } = attention;
        assert!(columns.is_multiple_of(PAD), "padded rows");
        assert!(logits.len() >= rows * columns && powers.len() >= rows * columns, "all rows");
        // SAFETY: the engine exists, so the processor has the instructions; the bounds are checked above.
        unsafe { softmax(columns, logits.as_ptr(), powers.as_mut_ptr(), &mut factors[..rows]) }
    }

    fn attention_room(heads: usize, size: usize, rows: usize) -> usize {
        amx_attention::room(heads, size, rows)
    }

    fn attend(self, heads: &Heads<'_, u16>, room: &mut [u16], to: ViewMut<u16>) -> bool {
        amx_attention::attend(heads, room, to)
    }

    fn plan_room(size: usize, tiles: usize, units: usize) -> usize {
        amx_sparse::room(size, tiles, units)
    }

    fn attend_plan(self, heads: &Heads<'_, u16>, plan: &Plan, room: &mut [u16], to: ViewMut<u16>) -> bool {
        amx_sparse::attend(heads, plan, room, to)
    }

    fn mix(self, rows: usize, columns: usize, attention: &mut Attention<'_, u16>, b: Packed<u16>, mut c: ViewMut<u16>) {
        let product = product(rows, View { data: attention.powers, stride: b.depth }, b);
        let (to, stride) = (c.pointer(rows, columns), c.stride);
        // SAFETY: the engine exists, so the processor has the instructions; the bounds are checked by the views and by
        // `product`.
        unsafe { mix(self.tiles, &product, columns, &attention.factors[..rows], to, stride) }
    }

    fn add_norm(self, rows: usize, own: Norm<'_>, mut x: ViewMut<f32>, change: View<f32>, mut to: ViewMut<u16>) {
        let stride = x.stride;
        assert!(
            rows.is_multiple_of(GROUP)
                && stride.is_multiple_of(PAD)
                && own.weight.len() == stride
                && own.bias.len() == stride,
            "a padded norm"
        );
        let (x, change_from) = (x.pointer(rows, stride), change.pointer(rows, stride));
        let elements = to.pointer(rows, stride);
        let strides = (change.stride, to.stride);
        // SAFETY: the engine exists, so the processor has the instructions; the bounds are checked above.
        unsafe { norm::add_norm(rows, stride, own, x, change_from, elements, strides) }
    }
}

fn product(rows: usize, a: View<u16>, b: Packed<u16>) -> Product {
    let (depth, columns) = (b.depth, b.columns);
    assert!(rows.is_multiple_of(GROUP) && depth % 32 == 0 && columns % 32 == 0, "whole tiles");
    Product { rows, a: a.pointer(rows, depth), a_stride: a.stride, b: b.pointer(), depth, columns }
}

/// Elements as the operand type of the dot-product instruction.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn pairs(elements: __m512i) -> __m512bh {
    // SAFETY: both types are 512 bits of numbers.
    unsafe { transmute::<__m512i, __m512bh>(elements) }
}

/// Rounds two vectors to 32 elements.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub(crate) fn narrow(low: __m512, high: __m512) -> __m512i {
    // SAFETY: both types are 512 bits of numbers.
    unsafe { transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, low)) }
}

/// Mask of the first `count` of 32 lanes.
pub(super) fn lanes(count: usize) -> u32 {
    ((1u64 << count.min(32)) - 1) as u32
}

/// c = a·b + bias, or max(·, 0) of it, as elements.
///
/// # Safety
/// The processor must have the instructions. All pointers must be valid for the rows and columns of the product.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn multiply_elements<const RELU: bool>(
    tiles: Tiles,
    product: &Product,
    bias: *const f32,
    c: *mut u16,
    c_stride: usize,
) {
    // SAFETY: the caller guarantees all rows and columns.
    unsafe {
        tiles.each_sum(product, Some(bias), |row, column, left, right| {
            let sums = narrow(left, right);
            // The sign bit of an element is also that of a 16-bit integer.
            let sums = if RELU { _mm512_max_epi16(sums, _mm512_setzero_si512()) } else { sums };
            _mm512_storeu_si512(c.add(row * c_stride + column).cast(), sums);
        });
    }
}

/// c = a·b with each row multiplied by its factor, as elements.
///
/// # Safety
/// The processor must have the instructions. `a` and `b` must be valid for the product, `factors` must have a number
/// for each row, and `c` must have room for `columns` columns of each.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn mix(tiles: Tiles, product: &Product, columns: usize, factors: &[f32], c: *mut u16, c_stride: usize) {
    // SAFETY: the caller guarantees all rows, each with a factor, and `columns` columns; no others are written.
    unsafe {
        tiles.each_sum(product, None, |row, column, left, right| {
            let factor = _mm512_set1_ps(*factors.get_unchecked(row));
            let sums = narrow(_mm512_mul_ps(left, factor), _mm512_mul_ps(right, factor));
            let to = c.wrapping_add(row * c_stride + column);
            _mm512_mask_storeu_epi16(to.cast(), lanes(columns.saturating_sub(column)), sums);
        });
    }
}

/// Converts numbers to elements.
///
/// # Safety
/// The processor must have the instructions. Both must have `count` numbers, a multiple of 32.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn convert(count: usize, from: *const f32, to: *mut u16) {
    for place in (0..count).step_by(32) {
        // SAFETY: the caller guarantees `count` numbers, a multiple of 32.
        unsafe {
            let narrow = narrow(_mm512_loadu_ps(from.add(place)), _mm512_loadu_ps(from.add(place + 16)));
            _mm512_storeu_si512(to.add(place).cast(), narrow);
        }
    }
}

/// Sums up rows of elements.
///
/// # Safety
/// The processor must have the instructions. Each row must have as many elements as the sum has numbers.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn sum_rows(rows: usize, from: *const u16, stride: usize, sum: &mut [f32]) {
    for (place, to) in sum.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let mut sums = [_mm512_setzero_ps(); 2];
        for row in 0..rows {
            // SAFETY: the caller guarantees the rows and as many columns as the sum has.
            let both = unsafe { _mm512_loadu_si512(from.add(row * stride + 32 * place).cast()) };
            let wide = |half| _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(half)));
            sums[0] = _mm512_add_ps(sums[0], wide(_mm512_castsi512_si256(both)));
            sums[1] = _mm512_add_ps(sums[1], wide(_mm512_extracti64x4_epi64::<1>(both)));
        }
        // SAFETY: there is room for 32 numbers.
        unsafe {
            _mm512_storeu_ps(to.as_mut_ptr(), sums[0]);
            _mm512_storeu_ps(to.as_mut_ptr().add(16), sums[1]);
        }
    }
}

/// Packs keys as columns of a matrix; zeros beyond the last row and column.
///
/// # Safety
/// The processor must have the instructions. `from` must have `rows` rows of `columns` elements, and `to` room for
/// `depth` · `padded` elements.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn pack_keys(
    rows: usize,
    columns: usize,
    (from, stride): (*const u16, usize),
    depth: usize,
    padded: usize,
    to: *mut u16,
) {
    for group in 0..padded / 16 {
        for part in 0..depth / 32 {
            let mask = lanes(columns.saturating_sub(part * 32));
            let mut tile = [_mm512_setzero_si512(); 16];
            for (place, pairs) in tile.iter_mut().enumerate().take(rows.saturating_sub(group * 16)) {
                let from = from.wrapping_add((group * 16 + place) * stride + part * 32);
                // SAFETY: the row is within the matrix, and masked lanes are not read.
                *pairs = unsafe { _mm512_maskz_loadu_epi16(mask, from.cast()) };
            }
            transpose(&mut tile);
            for (place, pairs) in tile.into_iter().enumerate() {
                let at = (group / 2 * (depth / 32) * 2 + part * 2 + group % 2) * TILE + place * 32;
                // SAFETY: the place is within depth × padded numbers.
                unsafe { _mm512_storeu_si512(to.add(at).cast(), pairs) }
            }
        }
    }
}

/// Transposes a 16 × 16 matrix of pairs of elements.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub(super) fn transpose(rows: &mut [__m512i; 16]) {
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

/// Packs values as rows of a matrix; zeros beyond the last row and column.
///
/// # Safety
/// The processor must have the instructions. `from` must have `rows` rows of `columns` elements, and `to` room for
/// `depth` · `padded` elements.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn pack_values(
    rows: usize,
    columns: usize,
    (from, stride): (*const u16, usize),
    depth: usize,
    padded: usize,
    to: *mut u16,
) {
    for panel in 0..padded / 32 {
        for pair in 0..depth / 2 {
            let load = |row: usize| {
                let left = if row < rows { columns.saturating_sub(panel * 32) } else { 0 };
                // SAFETY: the row is within the matrix if any lane is read, and masked lanes are not read.
                unsafe { _mm512_maskz_loadu_epi16(lanes(left), from.wrapping_add(row * stride + panel * 32).cast()) }
            };
            let (even, odd) = (load(2 * pair), load(2 * pair + 1));
            let (left, right) = interleave(even, odd);
            let at = (panel * (depth / 32) + pair / 16) * 2 * TILE + in_packs(pair % 16) * 32;
            // SAFETY: both places are within depth × padded numbers.
            unsafe {
                _mm512_storeu_si512(to.add(at).cast(), left);
                _mm512_storeu_si512(to.add(at + TILE).cast(), right);
            }
        }
    }
}

/// Interleaves two rows to pairs of an even and an odd element: the first sixteen columns, and the other sixteen.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub(super) fn interleave(even: __m512i, odd: __m512i) -> (__m512i, __m512i) {
    // The instructions interleave the low halves and the high halves within quarters of a vector.
    let (low, high) = (_mm512_unpacklo_epi16(even, odd), _mm512_unpackhi_epi16(even, odd));
    let first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    let second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    (_mm512_permutex2var_epi64(low, first, high), _mm512_permutex2var_epi64(low, second, high))
}

/// Rounds sixteen numbers of one row and sixteen of the next to elements, interleaved in pairs.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub(super) fn narrow_pairs(even: __m512, odd: __m512) -> __m512i {
    static ORDER: [u16; 32] = {
        let (mut order, mut place) = ([0; 32], 0);
        while place < 32 {
            order[place as usize] = place % 2 * 16 + place / 2;
            place += 1;
        }
        order
    };
    // SAFETY: the array has 512 bits.
    let order = unsafe { _mm512_loadu_si512(ORDER.as_ptr().cast()) };
    _mm512_permutexvar_epi16(order, narrow(even, odd))
}

/// Place of one of sixteen pairs of keys. Instructions pack two vectors by quarters, four numbers of the first and four
/// of the second. The powers and the values of keys are both in this order, so it does not change their sums.
fn in_packs(pair: usize) -> usize {
    pair % 8 / 2 * 4 + pair / 8 * 2 + pair % 2
}

/// Unit of logits: this many double the attention weight. It is the number of fractions between two powers of two that
/// an element can hold.
pub(super) const FRACTIONS: usize = 128;

/// By how much the fraction k/64 of an exponent exceeds the fraction of its power of two, in units of an element's last
/// bit.
pub(super) static EXCESS: [u8; 64] = excess();

const fn excess() -> [u8; 64] {
    // 2^(1/128). `power` runs through every other power of it: the middle of the two fractions that share an entry.
    const ROOT: f64 = 1.005_429_900_903_7;
    let (mut excess, mut power, mut k) = ([0; 64], 1.002_711_275_050_2, 0);
    while k < 64 {
        excess[k] = (FRACTIONS as f64 * (1.0 - power) + 2.0 * k as f64 + 1.0) as u8;
        (power, k) = (power * ROOT * ROOT, k + 1);
    }
    excess
}

/// Powers of two as elements, 32 at a time. Elements have eight significant bits, so exponents are rounded to multiples
/// of 1/128. The rounded exponent, as a whole number, is already the element's bit pattern except for a small excess of
/// the fraction, since 2^f is nearly 1 + f for f from 0 to 1.
#[derive(Clone, Copy)]
struct Powers {
    excess: __m512i,
}

impl Powers {
    /// Offset of the logits: the exponent of the number one.
    const ONE: f32 = (127 * FRACTIONS) as f32;

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
    fn new() -> Powers {
        // SAFETY: the array has 512 bits.
        Powers { excess: unsafe { _mm512_loadu_si512(EXCESS.as_ptr().cast()) } }
    }

    /// Powers of logits, in the order of [`in_packs`]. Powers that are too small become zero.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
    fn of(self, left: __m512, right: __m512) -> __m512i {
        let both = _mm512_packus_epi32(_mm512_cvtps_epi32(left), _mm512_cvtps_epi32(right));
        const LOWER_BYTES: u64 = 0x5555_5555_5555_5555;
        let excess = _mm512_permutexvar_epi8(_mm512_srli_epi16::<1>(both), self.excess);
        // The excess is never greater than the fraction, so the subtraction does not borrow from the exponent.
        _mm512_mask_sub_epi8(both, LOWER_BYTES, both, excess)
    }
}

/// Adds the sum of each pair of elements to `sums`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
fn add_pairs(sums: __m512, elements: __m512i) -> __m512 {
    _mm512_dpbf16_ps(sums, pairs(elements), pairs(_mm512_set1_epi16(ONE as i16)))
}

/// Powers of two of rows of logits as elements, and one divided by the sum of each row.
///
/// # Safety
/// The processor must have the instructions. `logits` and `to` must have `columns` columns, a multiple of 32, for each
/// factor.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
unsafe fn softmax(columns: usize, logits: *const f32, to: *mut u16, factors: &mut [f32]) {
    let powers = Powers::new();
    for (row, factor) in factors.iter_mut().enumerate() {
        // SAFETY: the caller guarantees the rows, and the columns, a multiple of 32.
        unsafe {
            let (logits, to) = (logits.add(row * columns), to.add(row * columns));
            let shift = _mm512_set1_ps(Powers::ONE - lanes::greatest::<__m512>(columns, logits));
            let mut total = _mm512_setzero_ps();
            for column in (0..columns).step_by(32) {
                let left = _mm512_add_ps(_mm512_loadu_ps(logits.add(column)), shift);
                let right = _mm512_add_ps(_mm512_loadu_ps(logits.add(column + 16)), shift);
                let power = powers.of(left, right);
                total = add_pairs(total, power);
                _mm512_storeu_si512(to.add(column).cast(), power);
            }
            *factor = 1.0 / _mm512_reduce_add_ps(total);
        }
    }
}
