//! The pipeline of [`super::amx_attention`]: from packed queries, keys and values to the attention's result.
//!
//! Three stages run beside each other, on different units of 32 keys and 16 queries: logits by tiles, powers by vectors, and mixing by tiles.
//! None waits for what another has just written. In step `s` of the loop:
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
pub(super) struct ValueTiles {
    pub(super) tiles: usize,
    /// Of a tile.
    pub(super) rows: usize,
}

impl ValueTiles {
    pub(super) fn of(size: usize) -> ValueTiles {
        let tiles = if size < 2 * GROUP { 2 } else { 3 };
        ValueTiles { tiles, rows: (size + 1).div_ceil(tiles) }
    }

    /// Elements of 32 keys' values.
    pub(super) fn block(self) -> usize {
        self.tiles * self.rows * PAD
    }
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
pub(super) struct PackedHeads {
    /// In tiles of sixteen queries, pairs of numbers beside each other.
    pub(super) queries: *mut u16,
    /// As rows.
    pub(super) keys: *mut u16,
    /// In blocks of 32 keys, as columns.
    pub(super) values: *mut u16,
    /// Of one head's tiles of queries.
    pub(super) partial: *mut f32,
    pub(super) shape: ValueTiles,
    /// Of sixteen queries, of each head.
    pub(super) tiles: usize,
    /// Of 32 keys, of each head.
    pub(super) blocks: usize,
    /// Of a head.
    pub(super) size: usize,
    pub(super) units: usize,
    pub(super) to: *mut u16,
    pub(super) to_stride: usize,
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

/// The three stages on their way through all units: see the diagram at the head of this module.
///
/// Tiles 0 and 1 hold logits, 2 queries, 3 keys or powers, 4 to 6 mixed values, and 7 values. `TILES` is the number of tiles of values.
/// The stages are parts of one loop: their tile instructions take turns with vector instructions, so each part is inlined into it.
struct Pipeline<'a, const TILES: usize> {
    heads: &'a PackedHeads,
    powers: PairPowers,
    between: *mut Between,
    /// The unit that each stage works on.
    scored: Unit,
    powered: Unit,
    mixed: Unit,
    /// The last unit of sixteen queries, whose mixed values have just been stored.
    finished: Option<Unit>,
}

/// # Safety
/// The processor has the instructions, and tiles are configured. Units are within what is packed, and a turn is within the ring.
impl<const TILES: usize> Pipeline<'_, TILES> {
    #[inline(always)]
    unsafe fn logits(&self, turn: usize) -> *mut f32 {
        // SAFETY: the ring is there.
        unsafe { (&raw mut (*self.between).logits[turn % RING]).cast() }
    }

    #[inline(always)]
    unsafe fn elements(&self, turn: usize) -> *mut u16 {
        // SAFETY: the ring is there.
        unsafe { (&raw mut (*self.between).powers[turn % RING]).cast() }
    }

    #[inline(always)]
    unsafe fn room(&self, tile: usize) -> *mut f32 {
        // SAFETY: there are two.
        unsafe { (&raw mut (*self.between).mixed[tile % 2]).cast() }
    }

    /// First stage, first half: stores the logits of the unit before, and multiplies sixteen keys with the queries.
    #[inline(always)]
    unsafe fn score_first(&self, is_scoring: bool, is_storing: bool) {
        let unit = self.scored;
        // SAFETY: as the caller says.
        unsafe {
            if is_scoring {
                if unit.block == unit.first {
                    tile!(load 2, self.heads.queries.add((unit.head * self.heads.tiles + unit.tile) * TILE), LINE);
                }
                tile!(load 3, self.heads.keys_of(unit), LINE);
            }
            if is_storing {
                tile!(store 0, self.logits(unit.turn + RING - 1), LINE);
            }
            if is_scoring {
                tile!(load 0, &START, SAME);
                tile!(add 0, 3, 2);
            }
        }
    }

    /// First stage, second half: the same with the unit's other sixteen keys.
    #[inline(always)]
    unsafe fn score_second(&mut self, is_scoring: bool, is_storing: bool) {
        let unit = self.scored;
        // SAFETY: as the caller says.
        unsafe {
            if is_scoring {
                tile!(load 3, self.heads.keys_of(unit).add(TILE), LINE);
            }
            if is_storing {
                tile!(store 1, self.logits(unit.turn + RING - 1).add(TILE / 2), LINE);
            }
            if is_scoring {
                tile!(load 1, &START, SAME);
                tile!(add 1, 3, 2);
                self.scored.next(self.heads);
            }
        }
    }

    /// Second stage: powers of two of some pairs of keys' logits.
    #[inline(always)]
    unsafe fn power(&self, pairs: Range<usize>) {
        // SAFETY: a unit has sixteen pairs.
        unsafe {
            let (from, to) = (self.logits(self.powered.turn), self.elements(self.powered.turn));
            for pair in pairs {
                let even = _mm512_load_si512(from.add(32 * pair).cast());
                let odd = _mm512_load_si512(from.add(32 * pair + 16).cast());
                _mm512_store_si512(to.add(32 * pair).cast(), self.powers.of(even, odd));
            }
        }
    }

    /// Third stage, first tile of values: begins or takes up the sums, loads the powers and multiplies.
    #[inline(always)]
    unsafe fn mix_first(&self) {
        let (unit, mixed_tile) = (self.mixed, self.heads.shape.rows * GROUP);
        // SAFETY: as the caller says.
        unsafe {
            if unit.block == 0 {
                tile!(zero 4);
                tile!(zero 5);
                tile!(zero 6);
            } else if unit.block == unit.first {
                let from = self.heads.partial(unit.tile);
                tile!(load 4, from, LINE);
                tile!(load 5, from.add(mixed_tile), LINE);
                if TILES == 3 {
                    tile!(load 6, from.add(2 * mixed_tile), LINE);
                }
            }
            tile!(load 3, self.elements(unit.turn), LINE);
            tile!(load 7, self.heads.values_of(unit), LINE);
            tile!(add 4, 7, 3);
        }
    }

    /// Third stage, second tile of values.
    #[inline(always)]
    unsafe fn mix_second(&self) {
        // SAFETY: as the caller says.
        unsafe {
            tile!(load 7, self.heads.values_of(self.mixed).add(self.heads.shape.rows * PAD), LINE);
            tile!(add 5, 7, 3);
        }
    }

    /// Third stage, third tile of values, if there is one.
    #[inline(always)]
    unsafe fn mix_third(&self) {
        if TILES == 3 {
            // SAFETY: as the caller says.
            unsafe {
                tile!(load 7, self.heads.values_of(self.mixed).add(2 * self.heads.shape.rows * PAD), LINE);
                tile!(add 6, 7, 3);
            }
        }
    }

    /// Third stage, end: stores the sums after the last keys of a chunk, and goes on to the next unit.
    #[inline(always)]
    unsafe fn store_mixed(&mut self) {
        let (unit, mixed_tile) = (self.mixed, self.heads.shape.rows * GROUP);
        if unit.block + 1 == unit.end {
            let is_whole = unit.end == self.heads.blocks;
            // SAFETY: as the caller says.
            unsafe {
                let to = if is_whole { self.room(unit.tile) } else { self.heads.partial(unit.tile) };
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

    /// Gives the result for sixteen queries whose mixed values were stored a step ago, if there are any.
    #[inline(always)]
    unsafe fn finish_before(&mut self) {
        if let Some(unit) = self.finished.take() {
            // SAFETY: as the caller says.
            unsafe { self.heads.finish(unit, self.room(unit.tile)) };
        }
    }
}

impl PackedHeads {
    /// # Safety
    /// Everything has been packed, there is room for the result, and tiles are configured for the shape of the values.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")]
    pub(super) unsafe fn attend<const TILES: usize>(&self) {
        let mut between = MaybeUninit::<Between>::uninit();
        let [scored, powered, mixed] = [Unit::first(self); 3];
        let mut pipeline = Pipeline::<TILES> {
            heads: self,
            powers: PairPowers::new(),
            between: between.as_mut_ptr(),
            scored,
            powered,
            mixed,
            finished: None,
        };
        for step in 0..=self.units + MIXED_LATER {
            let (is_scoring, is_storing) = (step < self.units, (1..=self.units).contains(&step));
            let is_powering = (POWERS_LATER..self.units + POWERS_LATER).contains(&step);
            let is_mixing = (MIXED_LATER..self.units + MIXED_LATER).contains(&step);
            // SAFETY: every stage is at one of the units, and the caller has seen to the rest.
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

    /// The 32 keys of a unit.
    #[inline(always)]
    fn keys_of(&self, unit: Unit) -> *const u16 {
        self.keys.wrapping_add((unit.head * self.blocks + unit.block) * 2 * TILE)
    }

    /// The values of a unit's keys.
    #[inline(always)]
    fn values_of(&self, unit: Unit) -> *const u16 {
        self.values.wrapping_add((unit.head * self.blocks + unit.block) * self.shape.block())
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
