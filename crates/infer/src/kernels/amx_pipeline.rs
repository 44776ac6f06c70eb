//! The pipeline of [`super::amx_attention`]: from packed queries, keys and values to the result of the attention.
//!
//! The work is cut into units of 32 keys and 16 queries. Three stages run side by side on different units, so that none
//! waits for what another has just written: logits by tiles, powers by vectors, and mixing of values by tiles. In step
//! `s` of the loop:
//!
//! ```text
//!           tiles                        vectors                      tiles
//!   ┌───────────────────┐  logits  ┌──────────────────┐  powers  ┌──────────────────────┐  mixed   ┌────────────┐
//!   │ score: unit s     │ ───────▶ │ power: unit s-2  │ ───────▶ │ mix: unit s-4        │ ───────▶ │ finish:    │
//!   │ logits = keys · q │ ring of  │ powers of two of │ ring of  │ += values · powers   │ after a  │ 16 queries │
//!   │ (tiles 0, 1, 2, 3)│ 4 units  │ the logits       │ 4 units  │ (tiles 3, 4 to 6, 7) │ query's  │ divided by │
//!   └───────────────────┘          └──────────────────┘          └──────────────────────┘ last key │ their sums │
//!                                                                 ▲ at the end of a chunk │        └────────────┘
//!                                                                 └──── partial sums ◀────┘
//! ```
#![allow(unsafe_code, reason = "assembly on checked memory")]

use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;
use std::ops::Range;

use super::amx::{LINE, SAME, tile};
use super::bf16::{self, FRACTIONS, TILE};
use super::{GROUP, PAD};
use crate::sparse::plan::Step;

/// Number of blocks of 32 keys that all queries attend to before the next blocks are taken: as many as stay in the
/// nearest cache.
const CHUNK: usize = 7;
/// Number of units whose logits and powers are buffered between the stages.
const RING: usize = 4;
/// Number of steps after the logits of a unit at which its powers are computed, and at which its values are mixed.
const POWERS_LATER: usize = 2;
const MIXED_LATER: usize = 4;

/// Initial value of the logits. It is the sum of 128 times the exponent of one, which makes whole numbers the bit
/// patterns of elements except for [`bf16::EXCESS`]; 2^15, which leaves eight bits of fraction below the whole number;
/// and one half of the last bit of the whole number, which rounds.
#[repr(C, align(64))]
struct Start([f32; 16]);
static START: Start = Start([(1 << 15) as f32 + (127 * FRACTIONS) as f32 + 0.5; 16]);

/// Layout of values in tiles: one row per column of a head, one row of multiplicities, and up to whole tiles rows of
/// arbitrary content, whose sums are never read.
#[derive(Clone, Copy)]
pub(super) struct ValueTiles {
    pub(super) tiles: usize,
    /// Number of rows per tile.
    pub(super) rows: usize,
}

impl ValueTiles {
    pub(super) fn of(size: usize) -> ValueTiles {
        let tiles = if size < 2 * GROUP { 2 } else { 3 };
        ValueTiles { tiles, rows: (size + 1).div_ceil(tiles) }
    }

    /// Number of elements of the values of 32 keys.
    pub(super) fn block(self) -> usize {
        self.tiles * self.rows * PAD
    }
}

/// Powers of two of logits as the tiles leave them: bits 8 to 23 are the element's bit pattern, except for the excess
/// of its fraction.
#[derive(Clone, Copy)]
struct PairPowers {
    excess: __m512i,
    /// Byte permutation that moves those bits to the upper half of each number.
    up: __m512i,
}

impl PairPowers {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
    fn new() -> PairPowers {
        // SAFETY: the array has 512 bits.
        let excess = unsafe { _mm512_loadu_si512(bf16::EXCESS.as_ptr().cast()) };
        PairPowers {
            excess,
            up: _mm512_broadcast_i32x4(_mm_setr_epi32(0x0201_0000, 0x0605_0000, 0x0a09_0000, 0x0e0d_0000)),
        }
    }

    /// Powers of the logits of two consecutive keys, interleaved in pairs. This is assembly because the compiler
    /// chooses slower instructions.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
    fn of(self, even: __m512i, odd: __m512i) -> __m512i {
        const UPPER_HALVES: u64 = 0xcccc_cccc_cccc_cccc;
        const LOWER_BYTES: u64 = 0x5555_5555_5555_5555;
        let power;
        // SAFETY: the instructions do not access memory.
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

/// Packed queries, keys and values of all heads, and the destination of the result.
pub(super) struct PackedHeads {
    /// Queries in tiles of sixteen, with pairs of numbers adjacent.
    pub(super) queries: *mut u16,
    /// Keys as rows.
    pub(super) keys: *mut u16,
    /// Values in blocks of 32 keys, as columns.
    pub(super) values: *mut u16,
    /// Partial sums of each tile of queries of one head, between chunks of keys.
    pub(super) partial: *mut f32,
    pub(super) shape: ValueTiles,
    /// Number of tiles of sixteen queries per head.
    pub(super) tiles: usize,
    /// Number of blocks of 32 keys per head.
    pub(super) blocks: usize,
    /// Width of a head.
    pub(super) size: usize,
    /// Number of units.
    pub(super) units: usize,
    pub(super) to: *mut u16,
    pub(super) to_stride: usize,
}

/// Position of a stage in the sequence of units.
pub(super) trait Walk: Copy {
    fn next(&mut self, of: &PackedHeads);
    /// Place in the ring.
    fn turn(&self) -> usize;
    /// Number of the tile of queries among the packed ones.
    fn queries(&self, of: &PackedHeads) -> usize;
    /// Number of the block of 32 keys among the packed ones.
    fn keys(&self, of: &PackedHeads) -> usize;
    /// Number of the tile of queries, whose partial sums and mixed values have a place by it.
    fn tile(&self) -> usize;
    /// First row of the result of the tile, and its first column.
    fn target(&self, of: &PackedHeads) -> (usize, usize);
    /// Whether this unit is the tile's first of this chunk of keys, and whether it is the first of all.
    fn begins(&self) -> bool;
    fn is_first(&self) -> bool;
    /// Whether this unit is the tile's last of this chunk of keys, and whether that chunk is the last.
    fn ends(&self) -> bool;
    fn is_last_chunk(&self, of: &PackedHeads) -> bool;
}

/// Unit of work of dense attention. Units are ordered by head, chunk of keys, tile of queries, and block of keys within
/// the chunk.
#[derive(Clone, Copy)]
pub(super) struct Unit {
    head: usize,
    tile: usize,
    block: usize,
    /// First block of the chunk, and the end of the chunk.
    first: usize,
    end: usize,
    /// Place in the ring.
    turn: usize,
}

impl Unit {
    pub(super) fn first(of: &PackedHeads) -> Unit {
        Unit { head: 0, tile: 0, block: 0, first: 0, end: CHUNK.min(of.blocks), turn: 0 }
    }
}

impl Walk for Unit {
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

    #[inline(always)]
    fn turn(&self) -> usize {
        self.turn
    }

    #[inline(always)]
    fn queries(&self, of: &PackedHeads) -> usize {
        self.head * of.tiles + self.tile
    }

    #[inline(always)]
    fn keys(&self, of: &PackedHeads) -> usize {
        self.head * of.blocks + self.block
    }

    #[inline(always)]
    fn tile(&self) -> usize {
        self.tile
    }

    #[inline(always)]
    fn target(&self, of: &PackedHeads) -> (usize, usize) {
        (self.tile * GROUP, self.head * of.size)
    }

    #[inline(always)]
    fn begins(&self) -> bool {
        self.block == self.first
    }

    #[inline(always)]
    fn is_first(&self) -> bool {
        self.block == 0
    }

    #[inline(always)]
    fn ends(&self) -> bool {
        self.block + 1 == self.end
    }

    #[inline(always)]
    fn is_last_chunk(&self, of: &PackedHeads) -> bool {
        self.end == of.blocks
    }
}

/// Position in a list of steps. The heads are packed one at a time, and all keys of a tile follow each other.
#[derive(Clone, Copy)]
pub(super) struct Listed<'a> {
    steps: &'a [Step],
    step: Step,
    place: usize,
}

impl Listed<'_> {
    pub(super) fn first(steps: &[Step]) -> Listed<'_> {
        Listed { steps, step: steps.first().copied().unwrap_or_default(), place: 0 }
    }
}

impl Walk for Listed<'_> {
    #[inline(always)]
    fn next(&mut self, _of: &PackedHeads) {
        self.place += 1;
        if let Some(step) = self.steps.get(self.place) {
            self.step = *step;
        }
    }

    #[inline(always)]
    fn turn(&self) -> usize {
        self.place % RING
    }

    #[inline(always)]
    fn queries(&self, _of: &PackedHeads) -> usize {
        self.step.tile as usize
    }

    #[inline(always)]
    fn keys(&self, _of: &PackedHeads) -> usize {
        self.step.unit as usize
    }

    #[inline(always)]
    fn tile(&self) -> usize {
        self.step.tile as usize
    }

    #[inline(always)]
    fn target(&self, _of: &PackedHeads) -> (usize, usize) {
        (self.step.row as usize, 0)
    }

    #[inline(always)]
    fn begins(&self) -> bool {
        self.step.is_first
    }

    #[inline(always)]
    fn is_first(&self) -> bool {
        self.step.is_first
    }

    #[inline(always)]
    fn ends(&self) -> bool {
        self.step.is_last
    }

    #[inline(always)]
    fn is_last_chunk(&self, _of: &PackedHeads) -> bool {
        true
    }
}

/// Buffers between the stages. They start at a page, so that their placement in the cache is always the same.
#[repr(C, align(4096))]
struct Between {
    /// Logits and powers of units: 32 keys by 16 queries.
    logits: [[f32; TILE]; RING],
    powers: [[u16; TILE]; RING],
    /// Mixed values of sixteen queries and their sums of powers, used in turn.
    mixed: [[f32; 3 * GROUP * GROUP]; 2],
}

/// State of the three stages while they run through all units. See the diagram in the module's documentation.
///
/// Tiles 0 and 1 hold logits, 2 queries, 3 keys or powers, 4 to 6 mixed values, and 7 values. `TILES` is the number of
/// tiles of values. Each stage is divided into parts that are inlined into one loop, where tile instructions alternate
/// with vector instructions.
struct Pipeline<'a, W, const TILES: usize> {
    heads: &'a PackedHeads,
    powers: PairPowers,
    between: *mut Between,
    /// Unit that each stage works on.
    scored: W,
    powered: W,
    mixed: W,
    /// Last unit of sixteen queries, whose mixed values were stored in the step before.
    finished: Option<W>,
    /// Number of elements of a block of values and of a tile of values, and of sums in a tile of mixed values. They are
    /// copied here so that the loop need not reload them.
    value_block: usize,
    value_tile: usize,
    mixed_tile: usize,
}

/// # Safety
/// The processor must have the instructions, and tiles must be configured. Units must be within the packed heads.
impl<W: Walk, const TILES: usize> Pipeline<'_, W, TILES> {
    /// Logits of the unit that has this turn.
    ///
    /// # Safety
    /// `between` must be valid.
    #[inline(always)]
    unsafe fn logits(&self, turn: usize) -> *mut f32 {
        // SAFETY: `between` is valid, and the index is within the ring.
        unsafe { (&raw mut (*self.between).logits[turn % RING]).cast() }
    }

    /// Powers of the unit that has this turn.
    ///
    /// # Safety
    /// `between` must be valid.
    #[inline(always)]
    unsafe fn elements(&self, turn: usize) -> *mut u16 {
        // SAFETY: `between` is valid, and the index is within the ring.
        unsafe { (&raw mut (*self.between).powers[turn % RING]).cast() }
    }

    /// Mixed values of a tile of queries.
    ///
    /// # Safety
    /// `between` must be valid.
    #[inline(always)]
    unsafe fn room(&self, tile: usize) -> *mut f32 {
        // SAFETY: `between` is valid, and there are two buffers.
        unsafe { (&raw mut (*self.between).mixed[tile % 2]).cast() }
    }

    /// Values of the keys of the unit that is mixed.
    #[inline(always)]
    fn values(&self) -> *const u16 {
        self.heads.values.wrapping_add(self.mixed.keys(self.heads) * self.value_block)
    }

    /// Packed keys of a unit.
    #[inline(always)]
    fn keys(&self, unit: W) -> *const u16 {
        self.heads.keys.wrapping_add(unit.keys(self.heads) * 2 * TILE)
    }

    /// First stage, first half: stores the logits of the previous unit, and multiplies sixteen keys by the queries.
    ///
    /// # Safety
    /// As for the pipeline; the tiles of the previous unit must hold its logits if they are to be stored.
    #[inline(always)]
    unsafe fn score_first(&self, is_scoring: bool, is_storing: bool) {
        let unit = self.scored;
        // SAFETY: the caller's guarantees are passed on.
        unsafe {
            if is_scoring {
                if unit.begins() {
                    tile!(load 2, self.heads.queries.add(unit.queries(self.heads) * TILE), LINE);
                }
                tile!(load 3, self.keys(unit), LINE);
            }
            if is_storing {
                tile!(store 0, self.logits(unit.turn() + RING - 1), LINE);
            }
            if is_scoring {
                tile!(load 0, &START, SAME);
                tile!(add 0, 3, 2);
            }
        }
    }

    /// First stage, second half: the same for the other sixteen keys, then moves on to the next unit.
    ///
    /// # Safety
    /// As for [`Pipeline::score_first`], which must have been called.
    #[inline(always)]
    unsafe fn score_second(&mut self, is_scoring: bool, is_storing: bool) {
        let unit = self.scored;
        // SAFETY: the caller's guarantees are passed on.
        unsafe {
            if is_scoring {
                tile!(load 3, self.keys(unit).add(TILE), LINE);
            }
            if is_storing {
                tile!(store 1, self.logits(unit.turn() + RING - 1).add(TILE / 2), LINE);
            }
            if is_scoring {
                tile!(load 1, &START, SAME);
                tile!(add 1, 3, 2);
                self.scored.next(self.heads);
            }
        }
    }

    /// Second stage: powers of two of the logits of some pairs of keys.
    ///
    /// # Safety
    /// As for the pipeline; the logits of the unit must have been stored, and the pairs must be within it.
    #[inline(always)]
    unsafe fn power(&self, pairs: Range<usize>) {
        // SAFETY: a unit has sixteen pairs of keys.
        unsafe {
            let (from, to) = (self.logits(self.powered.turn()), self.elements(self.powered.turn()));
            for pair in pairs {
                let even = _mm512_load_si512(from.add(32 * pair).cast());
                let odd = _mm512_load_si512(from.add(32 * pair + 16).cast());
                _mm512_store_si512(to.add(32 * pair).cast(), self.powers.of(even, odd));
            }
        }
    }

    /// Third stage, first tile of values: starts or resumes the sums, loads the powers and multiplies.
    ///
    /// # Safety
    /// As for the pipeline; the powers of the unit must have been stored.
    #[inline(always)]
    unsafe fn mix_first(&self) {
        let (unit, mixed_tile) = (self.mixed, self.mixed_tile);
        // SAFETY: the caller's guarantees are passed on.
        unsafe {
            if unit.is_first() {
                tile!(zero 4);
                tile!(zero 5);
                tile!(zero 6);
            } else if unit.begins() {
                let from = self.heads.partial(unit.tile());
                tile!(load 4, from, LINE);
                tile!(load 5, from.add(mixed_tile), LINE);
                if TILES == 3 {
                    tile!(load 6, from.add(2 * mixed_tile), LINE);
                }
            }
            tile!(load 3, self.elements(unit.turn()), LINE);
            tile!(load 7, self.values(), LINE);
            tile!(add 4, 7, 3);
        }
    }

    /// Third stage, second tile of values.
    ///
    /// # Safety
    /// As for [`Pipeline::mix_first`], which must have been called.
    #[inline(always)]
    unsafe fn mix_second(&self) {
        // SAFETY: the caller's guarantees are passed on.
        unsafe {
            tile!(load 7, self.values().add(self.value_tile), LINE);
            tile!(add 5, 7, 3);
        }
    }

    /// Third stage, third tile of values, if there is one.
    ///
    /// # Safety
    /// As for [`Pipeline::mix_first`], which must have been called.
    #[inline(always)]
    unsafe fn mix_third(&self) {
        if TILES == 3 {
            // SAFETY: the caller's guarantees are passed on.
            unsafe {
                tile!(load 7, self.values().add(2 * self.value_tile), LINE);
                tile!(add 6, 7, 3);
            }
        }
    }

    /// Third stage, end: stores the sums after the last block of a chunk, and moves on to the next unit.
    ///
    /// # Safety
    /// As for the pipeline; the sums of the unit must be in the tiles.
    #[inline(always)]
    unsafe fn store_mixed(&mut self) {
        let (unit, mixed_tile) = (self.mixed, self.mixed_tile);
        if unit.ends() {
            let is_whole = unit.is_last_chunk(self.heads);
            // SAFETY: the caller's guarantees are passed on.
            unsafe {
                let to = if is_whole { self.room(unit.tile()) } else { self.heads.partial(unit.tile()) };
                tile!(store 4, to, LINE);
                tile!(store 5, to.add(mixed_tile), LINE);
                if TILES == 3 {
                    tile!(store 6, to.add(2 * mixed_tile), LINE);
                }
            }
            self.finished = is_whole.then_some(unit);
        }
        self.mixed.next(self.heads);
    }

    /// Writes the result of sixteen queries whose mixed values were stored in the step before, if there are any.
    ///
    /// # Safety
    /// As for the pipeline; the destination must have room for the result.
    #[inline(always)]
    unsafe fn finish_before(&mut self) {
        if let Some(unit) = self.finished.take() {
            // SAFETY: the caller's guarantees are passed on.
            unsafe { self.heads.finish(unit, self.room(unit.tile())) };
        }
    }
}

impl PackedHeads {
    /// Computes the attention of all units, from `first` on.
    ///
    /// # Safety
    /// All units must be packed, the destination must have room for the result, and tiles must be configured for the
    /// layout of the values.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
    pub(super) unsafe fn attend<W: Walk, const TILES: usize>(&self, first: W) {
        let mut between = MaybeUninit::<Between>::uninit();
        let [scored, powered, mixed] = [first; 3];
        let mut pipeline = Pipeline::<W, TILES> {
            heads: self,
            powers: PairPowers::new(),
            between: between.as_mut_ptr(),
            scored,
            powered,
            mixed,
            finished: None,
            value_block: self.shape.block(),
            value_tile: self.shape.rows * PAD,
            mixed_tile: self.shape.rows * GROUP,
        };
        for step in 0..=self.units + MIXED_LATER {
            let (is_scoring, is_storing) = (step < self.units, (1..=self.units).contains(&step));
            let is_powering = (POWERS_LATER..self.units + POWERS_LATER).contains(&step);
            let is_mixing = (MIXED_LATER..self.units + MIXED_LATER).contains(&step);
            // SAFETY: each running stage is at one of the units; the caller guarantees the rest.
            unsafe {
                if is_mixing {
                    pipeline.mix_first();
                }
                if is_powering {
                    pipeline.power(0..4);
                }
                if is_mixing {
                    pipeline.mix_second();
                }
                if is_powering {
                    pipeline.power(4..8);
                }
                if is_mixing {
                    pipeline.mix_third();
                }
                if is_powering {
                    pipeline.power(8..12);
                }
                pipeline.score_first(is_scoring, is_storing);
                if is_powering {
                    pipeline.power(12..16);
                }
                pipeline.score_second(is_scoring, is_storing);
                if is_powering {
                    pipeline.powered.next(self);
                }
                pipeline.finish_before();
                if is_mixing {
                    pipeline.store_mixed();
                }
            }
        }
    }

    /// Partial sums of a tile of queries.
    fn partial(&self, tile: usize) -> *mut f32 {
        self.partial.wrapping_add(tile * self.shape.tiles * self.shape.rows * GROUP)
    }

    /// Divides the mixed values of sixteen queries by their sums of powers and writes them as rows of elements.
    ///
    /// # Safety
    /// The processor must have the instructions. `from` must hold the mixed values and the sums of sixteen queries, and
    /// the destination must have room for the result.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
    unsafe fn finish(&self, unit: impl Walk, from: *const f32) {
        let row = |place: usize| {
            // SAFETY: there are as many rows as a head is wide, and one more for the sums.
            unsafe { _mm512_loadu_ps(from.add(place * GROUP)) }
        };
        let factor = _mm512_div_ps(_mm512_set1_ps(1.0), row(self.size));
        let mut pairs = [_mm512_setzero_si512(); GROUP];
        for (place, pairs) in pairs.iter_mut().enumerate().take(self.size.div_ceil(2)) {
            let [even, odd] = [2 * place, 2 * place + 1].map(|place| _mm512_mul_ps(row(place), factor));
            *pairs = bf16::narrow_pairs(even, odd);
        }
        bf16::transpose(&mut pairs);
        let (row, column) = unit.target(self);
        for (place, query) in pairs.into_iter().enumerate() {
            let to = self.to.wrapping_add((row + place) * self.to_stride + column);
            // SAFETY: the row is within the destination, and masked lanes are not written.
            unsafe { _mm512_mask_storeu_epi16(to.cast(), bf16::lanes(self.size), query) };
        }
    }
}
