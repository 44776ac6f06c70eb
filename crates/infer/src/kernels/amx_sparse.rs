//! Attention of kept keys by matrix tiles: the loop of [`super::amx_pipeline`] over the units of a [`Plan`] instead of
//! over all keys.
//!
//! The heads are computed one after the other, because the units of one head fit in a cache where those of all heads do
//! not.
#![allow(unsafe_code, reason = "assembly on checked memory")]

use std::arch::x86_64::*;

use super::amx::Configuration;
use super::amx_attention::{MODERATE, WIDEST, greatest, scale, store};
use super::amx_pipeline::{Listed, PackedHeads, ValueTiles};
use super::bf16::{self, FRACTIONS, TILE};
use super::{GROUP, Heads, PAD, ViewMut};
use crate::sparse::plan::Plan;

/// Elements of working memory for the packed queries, keys and values of one head.
pub(super) fn room(size: usize, tiles: usize, units: usize) -> usize {
    if size > WIDEST { 0 } else { tiles * TILE + units * (2 * TILE + ValueTiles::of(size).block()) }
}

/// See [`super::Engine::attend_plan`]. The processor must have tiles and what [`bf16::Bf16`] needs.
pub(super) fn attend(heads: &Heads<'_, u16>, plan: &Plan, room: &mut [u16], mut to: ViewMut<u16>) -> bool {
    let Heads { count, heads: number, size, weights, .. } = *heads;
    let (tiles, units, shape) = (plan.tiles(), plan.units(), ValueTiles::of(size));
    if size > WIDEST || self::room(size, tiles, units) > room.len() {
        return false;
    }
    assert!(weights.len() >= count, "a weight for every key");
    let is_within = (0..units).all(|unit| {
        let rows = plan.rows(unit);
        rows.len() <= PAD && rows.iter().all(|row| (*row as usize) < count)
    });
    assert!(is_within && plan.groups.iter().all(|group| group.queries.end <= count), "rows of the plan");
    let steps = &plan.steps[..];
    let last = plan.groups.last().map_or(0, |group| group.queries.start + group.queries.len().next_multiple_of(GROUP));
    let (queries, rest) = room.split_at_mut(tiles * TILE);
    let (keys, values) = rest.split_at_mut(units * 2 * TILE);
    let target = to.pointer(last.max(GROUP), number * size);
    let rows = [heads.queries, heads.keys, heads.values].map(|view| (view.pointer(count, number * size), view.stride));
    for head in 0..number {
        let packed = PackedHeads {
            queries: queries.as_mut_ptr(),
            keys: keys.as_mut_ptr(),
            values: values.as_mut_ptr(),
            partial: std::ptr::null_mut(),
            shape,
            tiles,
            blocks: units,
            size,
            units: steps.len(),
            to_stride: to.stride,
            to: target.wrapping_add(head * size),
        };
        let mask = bf16::lanes(size);
        let own = rows.map(|(from, stride)| PlannedRows { from: from.wrapping_add(head * size), stride, mask });
        // SAFETY: the processor has the instructions; all rows of the plan are within the views, and the working memory
        // has room for them.
        let most = unsafe { pack(&packed, plan, own, weights) };
        if most + heads.most_bias > MODERATE * FRACTIONS as f32 || most.is_nan() {
            return false;
        }
        Configuration::of(shape.rows as u8).load();
        // SAFETY: the processor has the instructions; everything has been packed, tiles are configured, and `to` has
        // room for the result.
        unsafe {
            match shape.tiles {
                2 => packed.attend::<Listed<'_>, 2>(Listed::first(steps)),
                _ => packed.attend::<Listed<'_>, 3>(Listed::first(steps)),
            }
        }
        Configuration::WHOLE.load();
    }
    true
}

/// Query, key or value rows of a head.
#[derive(Clone, Copy)]
struct PlannedRows {
    from: *const u16,
    stride: usize,
    mask: u32,
}

impl PlannedRows {
    /// # Safety
    /// The row must be within the view.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
    unsafe fn row(self, number: usize) -> __m512i {
        // SAFETY: the caller guarantees the row; masked lanes are not read.
        unsafe { _mm512_maskz_loadu_epi16(self.mask, self.from.wrapping_add(number * self.stride).cast()) }
    }
}

/// Packs the queries and the units of one head. Returns an upper bound of all products of a query and a key.
///
/// # Safety
/// The rows of the plan must be within the views, and the working memory must have room for them.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
unsafe fn pack(packed: &PackedHeads, plan: &Plan, [queries, keys, values]: [PlannedRows; 3], weights: &[u16]) -> f32 {
    let mut most = [_mm512_setzero_si512(); 2];
    let (mut tile, mut rows) = (0, [_mm512_setzero_si512(); GROUP]);
    for group in &plan.groups {
        for first in group.queries.clone().step_by(GROUP) {
            for (place, row) in rows.iter_mut().enumerate() {
                // SAFETY: the caller guarantees the rows of the plan.
                let is_row = first + place < group.queries.end;
                *row = if is_row { unsafe { queries.row(first + place) } } else { _mm512_setzero_si512() };
            }
            most[0] = greatest(most[0], &rows);
            bf16::transpose(&mut rows);
            // SAFETY: the caller guarantees the room.
            unsafe { store(&rows, packed.queries.add(tile * TILE)) };
            tile += 1;
        }
    }
    let mut rows = [_mm512_setzero_si512(); PAD];
    for unit in 0..plan.units() {
        let (numbers, mut own) = (plan.rows(unit), [0; PAD]);
        let mut is_scaled = false;
        for (place, row) in rows.iter_mut().enumerate() {
            let mut key = _mm512_setzero_si512();
            *row = key;
            if let Some(number) = numbers.get(place).map(|number| *number as usize) {
                own[place] = weights[number];
                is_scaled |= own[place] != bf16::ONE;
                // SAFETY: the caller guarantees the rows of the plan.
                (key, *row) = unsafe { (keys.row(number), values.row(number)) };
                most[1] = greatest(most[1], &[key]);
            }
            // SAFETY: the caller guarantees the room.
            unsafe { store(&[key], packed.keys.add(unit * 2 * TILE + place * PAD)) };
        }
        if is_scaled {
            scale(&mut rows, &own);
        }
        // SAFETY: the caller guarantees the room.
        unsafe { packed.pack_values(unit, &rows, &own) };
    }
    let [queries, keys] = most.map(|most| bf16::pairs(most));
    _mm512_reduce_add_ps(_mm512_dpbf16_ps(_mm512_setzero_ps(), queries, keys))
}
