//! Attention of small heads by matrix tiles, from logits to mixed values in one loop, so that powers never leave the nearest cache.
//!
//! Everything is the other way round: a tile of logits has sixteen keys as rows and sixteen queries as columns. Keys are multiplied as they
//! lie, two rows of powers beside each other are what the next product wants, and a query's sum of powers is one more row of values, of ones.
//! A key that stands for several has that number there, and as a factor of its values.
//!
//! Three stages run beside each other, on different units of 32 keys and 16 queries: logits by tiles, powers by vectors, and mixing by tiles.
//! None waits for what another has just written.
#![allow(unsafe_code, reason = "assembly on checked memory")]

use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::amx::{Configuration, LINE, SAME, tile};
use super::bf16::{self, FRACTIONS, TILE, narrow};
use super::{GROUP, Heads, PAD, ViewMut};

/// In powers of two: two to this power, times any number of rows, is still a number; so are mixed values, unless they are huge.
const MODERATE: f32 = 100.0;
/// The widest head: a tile's depth.
const WIDEST: usize = 32;
/// Blocks of 32 keys that all queries see before the next ones: as many as stay in the nearest cache.
const CHUNK: usize = 7;
/// Units that are between their stages.
const RING: usize = 4;
/// How many units later a unit's powers are computed, and its values mixed.
const POWERS_LATER: usize = 2;
const MIXED_LATER: usize = 4;

/// What logits start from: 128 times the exponent of one, so that whole numbers are elements but for [`bf16::EXCESS`]; 2^15, so that eight
/// bits of fraction follow them; and a half of the last, to round.
#[repr(C, align(64))]
struct Start([f32; 16]);
static START: Start = Start([(1 << 15) as f32 + (127 * FRACTIONS) as f32 + 0.5; 16]);

/// How values lie in tiles: as many rows as a head is wide, one of ones, and up to whole tiles whatever was there, for sums that nobody reads.
#[derive(Clone, Copy)]
struct ValueTiles {
    tiles: usize,
    /// Of a tile.
    rows: usize,
}

impl ValueTiles {
    fn of(size: usize) -> ValueTiles {
        let tiles = if size < 2 * GROUP { 2 } else { 3 };
        ValueTiles { tiles, rows: (size + 1).div_ceil(tiles) }
    }

    /// Elements of 32 keys' values.
    fn block(self) -> usize {
        self.tiles * self.rows * PAD
    }
}

/// Elements that packed queries, keys and values need.
pub(super) fn room(heads: usize, size: usize, rows: usize) -> usize {
    let rows = rows.next_multiple_of(PAD);
    let block = ValueTiles::of(size).block();
    // Sums are single numbers, which are two elements, of half as many queries as a block has keys.
    if size > WIDEST { 0 } else { heads * (2 * rows * WIDEST + rows / PAD * block) + rows / GROUP * block }
}

/// See [`super::Engine::attend`]. The processor has tiles and what [`bf16::Bf16`] needs.
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
        // SAFETY: the processor has the instructions; all rows are there, and room for them.
        let most = unsafe { packed.pack(head, own, weights) };
        if most + heads.most_bias > MODERATE * FRACTIONS as f32 || most.is_nan() {
            return false;
        }
    }
    Configuration::of(shape.rows as u8).load();
    // SAFETY: the processor has the instructions; everything has been packed, and there is room for the result.
    unsafe {
        match shape.tiles {
            2 => packed.attend::<2>(),
            _ => packed.attend::<3>(),
        }
    }
    Configuration::WHOLE.load();
    true
}

/// Rows of a head.
#[derive(Clone, Copy)]
struct HeadRows {
    from: *const u16,
    stride: usize,
    count: usize,
    mask: u32,
}

impl HeadRows {
    /// Some of them, from the first one on; zeros where there is none.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
    unsafe fn load<const N: usize>(self, first: usize) -> [__m512i; N] {
        let mut rows = [_mm512_setzero_si512(); N];
        let from = self.from.wrapping_add(first * self.stride);
        let load = |place: usize| {
            // SAFETY: the row is there, and masked lanes are not read.
            unsafe { _mm512_maskz_loadu_epi16(self.mask, from.wrapping_add(place * self.stride).cast()) }
        };
        // Most often all of them, which takes no counting.
        if first + N <= self.count {
            rows.iter_mut().enumerate().for_each(|(place, row)| *row = load(place));
        } else {
            let left = self.count.saturating_sub(first);
            rows.iter_mut().enumerate().take(left).for_each(|(place, row)| *row = load(place));
        }
        rows
    }
}

/// The greater magnitudes; as whole numbers, they are in the same order.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
fn greatest(most: __m512i, rows: &[__m512i]) -> __m512i {
    let magnitude = _mm512_set1_epi16(0x7fff);
    rows.iter().fold(most, |most, row| _mm512_max_epu16(most, _mm512_and_si512(*row, magnitude)))
}

impl PackedHeads {
    /// One head's rows; gives what no query times a key is more than: the greatest magnitudes of each column, whichever rows they are in.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
    unsafe fn pack(&self, head: usize, [queries, keys, values]: [HeadRows; 3], weights: &[u16]) -> f32 {
        let mut most = [_mm512_setzero_si512(); 2];
        // SAFETY: rows are loaded where they are, and stored where there is room for them.
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
                if weights.iter().any(|weight| *weight != bf16::ONE) {
                    let numbers = weights.iter().map(|weight| f32::from_bits(u32::from(*weight) << 16));
                    rows.iter_mut().zip(numbers).for_each(|(row, weight)| *row = scaled(*row, weight));
                }
                self.pack_values(head, block, &rows, weights);
            }
        }
        let [queries, keys] = most.map(|most| bf16::pairs(most));
        _mm512_reduce_add_ps(_mm512_dpbf16_ps(_mm512_setzero_ps(), queries, keys))
    }

    /// 32 keys' values as columns, and the keys' weights as one more row.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
    unsafe fn pack_values(&self, head: usize, block: usize, rows: &[__m512i; PAD], weights: &[u16; PAD]) {
        // Pairs of keys: the first sixteen columns of each, and the others.
        let (mut left, mut right) = ([_mm512_setzero_si512(); GROUP], [_mm512_setzero_si512(); GROUP]);
        for (pair, keys) in rows.chunks_exact(2).enumerate() {
            (left[pair], right[pair]) = bf16::interleave(keys[0], keys[1]);
        }
        bf16::transpose(&mut left);
        bf16::transpose(&mut right);
        // SAFETY: a block has room for as many rows as a head is wide and one more.
        unsafe {
            let to = self.values.add((head * self.blocks + block) * self.shape.block());
            store(&left[..self.size.min(GROUP)], to);
            store(&right[..self.size.saturating_sub(GROUP)], to.add(TILE));
            to.add(self.size * PAD).copy_from_nonoverlapping(weights.as_ptr(), PAD);
        }
    }
}

/// Rows of 32 elements.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
unsafe fn store(rows: &[__m512i], to: *mut u16) {
    for (place, row) in rows.iter().enumerate() {
        // SAFETY: there is room for them.
        unsafe { _mm512_storeu_si512(to.add(place * PAD).cast(), *row) };
    }
}

/// Elements times a number.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
fn scaled(elements: __m512i, factor: f32) -> __m512i {
    let factor = _mm512_set1_ps(factor);
    let wide = |half| _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(half)));
    let low = wide(_mm512_castsi512_si256(elements));
    let high = wide(_mm512_extracti64x4_epi64::<1>(elements));
    narrow(_mm512_mul_ps(low, factor), _mm512_mul_ps(high, factor))
}

/// Powers of two of logits as tiles leave them: bits 8 to 23 are the element, but for the excess of its fraction.
#[derive(Clone, Copy)]
struct PairPowers {
    excess: __m512i,
    /// Brings those bits to the upper half of each number.
    up: __m512i,
}

impl PairPowers {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
    fn new() -> PairPowers {
        // SAFETY: they are 512 bits.
        let excess = unsafe { _mm512_loadu_si512(bf16::EXCESS.as_ptr().cast()) };
        PairPowers {
            excess,
            up: _mm512_broadcast_i32x4(_mm_setr_epi32(0x0201_0000, 0x0605_0000, 0x0a09_0000, 0x0e0d_0000)),
        }
    }

    /// Of one key's logits and of the next one's, in pairs. In assembly, because the compiler takes slower instructions for the same.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
    fn of(self, even: __m512i, odd: __m512i) -> __m512i {
        const UPPER_HALVES: u64 = 0xcccc_cccc_cccc_cccc;
        const LOWER_BYTES: u64 = 0x5555_5555_5555_5555;
        let power;
        // SAFETY: touches no memory.
        unsafe {
            asm!(
                "vpsrld {power}, {even}, 8",
                "vpshufb {power}{{{upper}}}, {odd}, {up}",
                "vpsrlw {excess}, {power}, 1",
                "vpermb {excess}{{{lower}}}{{z}}, {excess}, {table}",
                "vpsubw {power}, {power}, {excess}",
                power = out(zmm_reg) power,
                excess = out(zmm_reg) _,
                even = in(zmm_reg) even,
                odd = in(zmm_reg) odd,
                up = in(zmm_reg) self.up,
                table = in(zmm_reg) self.excess,
                upper = in(kreg) UPPER_HALVES,
                lower = in(kreg) LOWER_BYTES,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        power
    }
}

/// All heads, packed.
struct PackedHeads {
    /// In tiles of sixteen queries, pairs of numbers beside each other.
    queries: *mut u16,
    /// As rows.
    keys: *mut u16,
    /// In blocks of 32 keys, as columns.
    values: *mut u16,
    /// Of one head's tiles of queries.
    partial: *mut f32,
    shape: ValueTiles,
    /// Of sixteen queries, of each head.
    tiles: usize,
    /// Of 32 keys, of each head.
    blocks: usize,
    /// Of a head.
    size: usize,
    units: usize,
    to: *mut u16,
    to_stride: usize,
}

/// Where a stage is: a chunk of a head's keys, all queries one tile after the other, and for each the keys of the chunk.
#[derive(Clone, Copy)]
struct Unit {
    head: usize,
    tile: usize,
    block: usize,
    /// The chunk's first block, and where it ends.
    first: usize,
    end: usize,
    turn: usize,
}

impl Unit {
    fn first(of: &PackedHeads) -> Unit {
        Unit { head: 0, tile: 0, block: 0, first: 0, end: CHUNK.min(of.blocks), turn: 0 }
    }

    #[inline(always)]
    fn next(&mut self, of: &PackedHeads) {
        self.turn = (self.turn + 1) % RING;
        self.block += 1;
        if self.block == self.end {
            self.tile += 1;
            if self.tile == of.tiles {
                self.tile = 0;
                if self.end == of.blocks {
                    (self.head, self.end) = (self.head + 1, 0);
                }
                (self.first, self.end) = (self.end, of.blocks.min(self.end + CHUNK));
            }
            self.block = self.first;
        }
    }
}

/// What is between the stages, at the start of a page, so that it lies the same way each time.
#[repr(C, align(4096))]
struct Between {
    /// Of units: 32 keys by 16 queries.
    logits: [[f32; TILE]; RING],
    powers: [[u16; TILE]; RING],
    /// Of sixteen queries, one after the other: rows of values, and of sums.
    mixed: [[f32; 3 * GROUP * GROUP]; 2],
}

impl PackedHeads {
    /// Tiles 0 and 1 are logits, 2 queries, 3 keys or powers, 4 to 6 what is mixed, 7 values.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
    unsafe fn attend<const TILES: usize>(&self) {
        let powers = PairPowers::new();
        let mut between = MaybeUninit::<Between>::uninit();
        let between = between.as_mut_ptr();
        let block = self.shape.block();
        // In numbers: as much as a tile of values, and of what is mixed.
        let (value_tile, mixed_tile) = (self.shape.rows * PAD, self.shape.rows * GROUP);
        let [mut scored, mut powered, mut mixed] = [Unit::first(self); 3];
        let mut finished: Option<Unit> = None;
        for step in 0..=self.units + MIXED_LATER {
            let (is_scoring, is_storing) = (step < self.units, (1..=self.units).contains(&step));
            let is_powering = (POWERS_LATER..self.units + POWERS_LATER).contains(&step);
            let is_mixing = (MIXED_LATER..self.units + MIXED_LATER).contains(&step);
            // SAFETY: units are within what is packed, and a turn within the ring. Tiles are configured.
            unsafe {
                let logits = |turn: usize| (&raw mut (*between).logits[turn % RING]).cast::<f32>();
                let elements = |turn: usize| (&raw mut (*between).powers[turn % RING]).cast::<u16>();
                let (from, to) = (logits(powered.turn), elements(powered.turn));
                let power = |pairs: std::ops::Range<usize>| {
                    if !is_powering {
                        return;
                    }
                    for pair in pairs {
                        let even = _mm512_load_si512(from.add(32 * pair).cast());
                        let odd = _mm512_load_si512(from.add(32 * pair + 16).cast());
                        _mm512_store_si512(to.add(32 * pair).cast(), powers.of(even, odd));
                    }
                };
                let values = self.values.wrapping_add((mixed.head * self.blocks + mixed.block) * block);
                if is_mixing {
                    if mixed.block == 0 {
                        tile!(zero 4);
                        tile!(zero 5);
                        tile!(zero 6);
                    } else if mixed.block == mixed.first {
                        let from = self.partial(mixed.tile);
                        tile!(load 4, from, LINE);
                        tile!(load 5, from.add(mixed_tile), LINE);
                        if TILES == 3 {
                            tile!(load 6, from.add(2 * mixed_tile), LINE);
                        }
                    }
                    tile!(load 3, elements(mixed.turn), LINE);
                    tile!(load 7, values, LINE);
                    tile!(add 4, 7, 3);
                }
                power(0..4);
                if is_mixing {
                    tile!(load 7, values.add(value_tile), LINE);
                    tile!(add 5, 7, 3);
                }
                power(4..8);
                if is_mixing && TILES == 3 {
                    tile!(load 7, values.add(2 * value_tile), LINE);
                    tile!(add 6, 7, 3);
                }
                power(8..12);
                let before = logits(scored.turn + RING - 1);
                let keys = self.keys.wrapping_add((scored.head * self.blocks + scored.block) * 2 * TILE);
                if is_scoring {
                    if scored.block == scored.first {
                        tile!(load 2, self.queries.add((scored.head * self.tiles + scored.tile) * TILE), LINE);
                    }
                    tile!(load 3, keys, LINE);
                }
                if is_storing {
                    tile!(store 0, before, LINE);
                }
                if is_scoring {
                    tile!(load 0, &START, SAME);
                    tile!(add 0, 3, 2);
                }
                power(12..16);
                if is_scoring {
                    tile!(load 3, keys.add(TILE), LINE);
                }
                if is_storing {
                    tile!(store 1, before.add(TILE / 2), LINE);
                }
                if is_scoring {
                    tile!(load 1, &START, SAME);
                    tile!(add 1, 3, 2);
                    scored.next(self);
                }
                if is_powering {
                    powered.next(self);
                }
                let room = |tile: usize| (&raw mut (*between).mixed[tile % 2]).cast::<f32>();
                if let Some(unit) = finished.take() {
                    self.finish(unit, room(unit.tile));
                }
                if is_mixing {
                    if mixed.block + 1 == mixed.end {
                        let is_whole = mixed.end == self.blocks;
                        let to = if is_whole { room(mixed.tile) } else { self.partial(mixed.tile) };
                        tile!(store 4, to, LINE);
                        tile!(store 5, to.add(mixed_tile), LINE);
                        if TILES == 3 {
                            tile!(store 6, to.add(2 * mixed_tile), LINE);
                        }
                        finished = is_whole.then_some(mixed);
                    }
                    mixed.next(self);
                }
            }
        }
    }

    /// Where sixteen queries' mixed values wait for the next chunk.
    fn partial(&self, tile: usize) -> *mut f32 {
        self.partial.wrapping_add(tile * self.shape.tiles * self.shape.rows * GROUP)
    }

    /// Sixteen queries' mixed values, divided by their sums, as rows of elements.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
    unsafe fn finish(&self, unit: Unit, from: *const f32) {
        let row = |place: usize| {
            // SAFETY: so many rows were mixed: a head's width and one, for the sums.
            unsafe { _mm512_loadu_ps(from.add(place * GROUP)) }
        };
        let factor = _mm512_div_ps(_mm512_set1_ps(1.0), row(self.size));
        let mut pairs = [_mm512_setzero_si512(); GROUP];
        for (place, pairs) in pairs.iter_mut().enumerate().take(self.size.div_ceil(2)) {
            let [even, odd] = [2 * place, 2 * place + 1].map(|place| _mm512_mul_ps(row(place), factor));
            *pairs = bf16::narrow_pairs(even, odd);
        }
        bf16::transpose(&mut pairs);
        for (place, query) in pairs.into_iter().enumerate() {
            let to = self.to.wrapping_add((unit.tile * GROUP + place) * self.to_stride + unit.head * self.size);
            // SAFETY: the row is there, and masked lanes are not written.
            unsafe { _mm512_mask_storeu_epi16(to.cast(), bf16::lanes(self.size), query) };
        }
    }
}
