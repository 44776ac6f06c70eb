//! Attention of small heads by matrix tiles, from logits to mixed values in one loop, so that powers never leave the
//! nearest cache. This module packs the queries, keys and values; [`super::amx_pipeline`] has the loop.
//!
//! Everything is transposed: a tile of logits has sixteen keys as rows and sixteen queries as columns. So keys are
//! multiplied in the layout that they have in memory, interleaving two rows of powers gives the layout of the next
//! product, and the sums of a query's powers are one more row of values, which consists of ones. A key that stands for
//! several equal ones has its multiplicity in that row, and as a factor of its values.
#![allow(unsafe_code, reason = "assembly on checked memory")]

use std::arch::x86_64::*;

use super::amx::Configuration;
use super::amx_pipeline::{PackedHeads, Unit, ValueTiles};
use super::bf16::{self, FRACTIONS, TILE, narrow};
use super::{GROUP, Heads, PAD, ViewMut};

/// Greatest exponent of a power of two for which sums over any number of rows, and mixed values unless they are huge,
/// stay finite.
pub(super) const MODERATE: f32 = 100.0;
/// Greatest width of a head: the depth of a tile.
pub(super) const WIDEST: usize = 32;
/// Elements of working memory for packed queries, keys and values, and for partial sums.
pub(super) fn room(heads: usize, size: usize, rows: usize) -> usize {
    let rows = rows.next_multiple_of(PAD);
    let block = ValueTiles::of(size).block();
    // Partial sums are in single precision, two elements each, for tiles of half as many queries as a block has keys.
    if size > WIDEST { 0 } else { heads * (2 * rows * WIDEST + rows / PAD * block) + rows / GROUP * block }
}

/// See [`super::Engine::attend`]. The processor must have tiles and what [`bf16::Bf16`] needs.
pub(super) fn attend(heads: &Heads<'_, u16>, room: &mut [u16], mut to: ViewMut<u16>) -> bool {
    let Heads { count, heads: number, size, weights, .. } = *heads;
    if size > WIDEST {
        return false;
    }
    let (tiles, blocks, shape) = (count.div_ceil(GROUP), count.div_ceil(PAD), ValueTiles::of(size));
    assert!(room.len() >= self::room(number, size, count) && weights.len() >= blocks * PAD, "room for all heads");
    let (queries, rest) = room.split_at_mut(number * blocks * 2 * TILE);
    let (keys, rest) = rest.split_at_mut(number * blocks * 2 * TILE);
    let (values, partial) = rest.split_at_mut(number * blocks * shape.block());
    let packed = PackedHeads {
        queries: queries.as_mut_ptr(),
        keys: keys.as_mut_ptr(),
        values: values.as_mut_ptr(),
        partial: partial.as_mut_ptr().cast(),
        shape,
        tiles,
        blocks,
        size,
        units: number * tiles * blocks,
        to_stride: to.stride,
        to: to.pointer(tiles * GROUP, number * size),
    };
    let [queries, keys, values] =
        [heads.queries, heads.keys, heads.values].map(|view| (view.pointer(count, number * size), view.stride));
    for head in 0..number {
        let own = [queries, keys, values].map(|(from, stride)| HeadRows {
            from: from.wrapping_add(head * size),
            stride,
            count,
            mask: bf16::lanes(size),
        });
        // SAFETY: the processor has the instructions; the views hold all rows, and the working memory has room for
        // them.
        let most = unsafe { packed.pack(head, own, weights) };
        if most + heads.most_bias > MODERATE * FRACTIONS as f32 || most.is_nan() {
            return false;
        }
    }
    Configuration::of(shape.rows as u8).load();
    // SAFETY: the processor has the instructions; everything has been packed, tiles are configured, and `to` has room
    // for the result.
    unsafe {
        match shape.tiles {
            2 => packed.attend::<Unit, 2>(Unit::first(&packed)),
            _ => packed.attend::<Unit, 3>(Unit::first(&packed)),
        }
    }
    Configuration::WHOLE.load();
    true
}

/// Query, key or value rows of a head.
#[derive(Clone, Copy)]
struct HeadRows {
    from: *const u16,
    stride: usize,
    count: usize,
    mask: u32,
}

impl HeadRows {
    /// Loads N rows from `first` on; zeros beyond the last row.
    ///
    /// # Safety
    /// The processor must have the instructions. All rows below `count` must be within the view, each with the columns
    /// of the mask.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
    unsafe fn load<const N: usize>(self, first: usize) -> [__m512i; N] {
        let mut rows = [_mm512_setzero_si512(); N];
        let from = self.from.wrapping_add(first * self.stride);
        let load = |place: usize| {
            // SAFETY: the row is within the view, and masked lanes are not read.
            unsafe { _mm512_maskz_loadu_epi16(self.mask, from.wrapping_add(place * self.stride).cast()) }
        };
        // In most cases all rows exist, which is faster.
        if first + N <= self.count {
            rows.iter_mut().enumerate().for_each(|(place, row)| *row = load(place));
        } else {
            let left = self.count.saturating_sub(first);
            rows.iter_mut().enumerate().take(left).for_each(|(place, row)| *row = load(place));
        }
        rows
    }
}

/// Greatest magnitudes of each column. Without their signs, elements have the same order as integers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
pub(super) fn greatest(most: __m512i, rows: &[__m512i]) -> __m512i {
    let magnitude = _mm512_set1_epi16(0x7fff);
    rows.iter().fold(most, |most, row| _mm512_max_epu16(most, _mm512_and_si512(*row, magnitude)))
}

impl PackedHeads {
    /// Packs the rows of one head. Returns an upper bound of all products of a query and a key: the product of the
    /// greatest magnitudes of each column.
    ///
    /// # Safety
    /// The processor must have the instructions. The rows must be within their views, with a weight for each key, and
    /// the working memory must have room for them.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
    unsafe fn pack(&self, head: usize, [queries, keys, values]: [HeadRows; 3], weights: &[u16]) -> f32 {
        let mut most = [_mm512_setzero_si512(); 2];
        // SAFETY: the rows are within the views, and the working memory has room for them.
        unsafe {
            for tile in 0..self.tiles {
                let mut rows = queries.load::<GROUP>(tile * GROUP);
                most[0] = greatest(most[0], &rows);
                bf16::transpose(&mut rows);
                store(&rows, self.queries.add((head * self.tiles + tile) * TILE));
            }
            for tile in 0..2 * self.blocks {
                let rows = keys.load::<GROUP>(tile * GROUP);
                most[1] = greatest(most[1], &rows);
                store(&rows, self.keys.add((head * 2 * self.blocks + tile) * TILE));
            }
            for (block, weights) in weights.as_chunks::<PAD>().0.iter().enumerate().take(self.blocks) {
                let mut rows = values.load::<PAD>(block * PAD);
                scale(&mut rows, weights);
                self.pack_values(head * self.blocks + block, &rows, weights);
            }
        }
        let [queries, keys] = most.map(|most| bf16::pairs(most));
        _mm512_reduce_add_ps(_mm512_dpbf16_ps(_mm512_setzero_ps(), queries, keys))
    }

    /// Packs the values of 32 keys, which are block `place` of all, as columns, and the keys' multiplicities as one
    /// more row.
    ///
    /// # Safety
    /// The working memory must have room for the block.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
    pub(super) unsafe fn pack_values(&self, place: usize, rows: &[__m512i; PAD], weights: &[u16; PAD]) {
        // Pairs of keys: the first sixteen columns of each, and the other sixteen.
        let (mut left, mut right) = ([_mm512_setzero_si512(); GROUP], [_mm512_setzero_si512(); GROUP]);
        for (pair, keys) in rows.chunks_exact(2).enumerate() {
            (left[pair], right[pair]) = bf16::interleave(keys[0], keys[1]);
        }
        bf16::transpose(&mut left);
        bf16::transpose(&mut right);
        // SAFETY: a block has room for the width of a head plus one rows.
        unsafe {
            let to = self.values.add(place * self.shape.block());
            store(&left[..self.size.min(GROUP)], to);
            store(&right[..self.size.saturating_sub(GROUP)], to.add(TILE));
            to.add(self.size * PAD).copy_from_nonoverlapping(weights.as_ptr(), PAD);
        }
    }
}

/// Multiplies values by the multiplicities of their keys.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
pub(super) fn scale(rows: &mut [__m512i; PAD], weights: &[u16; PAD]) {
    if weights.iter().any(|weight| *weight != bf16::ONE) {
        let numbers = weights.iter().map(|weight| f32::from_bits(u32::from(*weight) << 16));
        rows.iter_mut().zip(numbers).for_each(|(row, weight)| *row = scaled(*row, weight));
    }
}

/// Stores rows of 32 elements.
///
/// # Safety
/// The processor must have the instructions. `to` must have room for 32 elements of each row.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
pub(super) unsafe fn store(rows: &[__m512i], to: *mut u16) {
    for (place, row) in rows.iter().enumerate() {
        // SAFETY: the caller guarantees the room.
        unsafe { _mm512_storeu_si512(to.add(place * PAD).cast(), *row) };
    }
}

/// Product of elements and a number.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
fn scaled(elements: __m512i, factor: f32) -> __m512i {
    let factor = _mm512_set1_ps(factor);
    let wide = |half| _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(half)));
    let low = wide(_mm512_castsi512_si256(elements));
    let high = wide(_mm512_extracti64x4_epi64::<1>(elements));
    narrow(_mm512_mul_ps(low, factor), _mm512_mul_ps(high, factor))
}
