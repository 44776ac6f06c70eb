//! The kept keys of a layer as the kernels take them: units of up to 32 keys, and for each group of queries the units that it attends to.
//!
//! A chunk, a block, and the single rows of a group each begin a unit of their own, so that a unit is packed once for all queries that attend to it. The
//! price is padding: a chunk of 86 rows takes three units, a block of 25 rows one.

use std::ops::Range;

use super::choice::{Choice, Kept};
use crate::kernels::{GROUP, PAD};
use crate::{Rule, Sparsity};

/// Queries that attend to the same keys.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Rows of the queries.
    pub queries: Range<usize>,
    /// Range of the group's units in [`Plan::lists`].
    pub units: Range<usize>,
    /// Number of keys in these units.
    pub keys: usize,
}

/// A tile of up to [`GROUP`] queries of a group, and one of the group's units.
#[derive(Clone, Copy, Default)]
pub(crate) struct Step {
    /// Number of the tile, and the row of its first query.
    pub tile: u32,
    pub row: u32,
    /// Number of the unit.
    pub unit: u32,
    /// Whether this is the tile's first and its last unit.
    pub is_first: bool,
    pub is_last: bool,
}

/// Units of keys and groups of queries of one layer. Its memory is reused.
#[derive(Default)]
pub(crate) struct Plan {
    choice: Choice,
    /// Rows of the keys of all units, and where each unit's begin.
    rows: Vec<u32>,
    starts: Vec<u32>,
    /// Units of each group.
    pub lists: Vec<u32>,
    pub groups: Vec<Group>,
    /// All tiles of queries, each with all its units.
    pub steps: Vec<Step>,
    tiles: usize,
    /// Units of each chunk, and of each block.
    chunks: Vec<Range<u32>>,
    blocks: Vec<Range<u32>>,
    /// Single rows of a group.
    single: Vec<u32>,
    /// Greatest number of units of a group.
    longest: usize,
}

impl Plan {
    pub(crate) fn choice(&mut self) -> &mut Choice {
        &mut self.choice
    }

    /// Number of units.
    pub(crate) fn units(&self) -> usize {
        self.starts.len() - 1
    }

    /// Greatest number of units that a group attends to.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Rows of the keys of a unit: 1 to 32.
    pub(crate) fn rows(&self, unit: usize) -> &[u32] {
        &self.rows[self.starts[unit] as usize..self.starts[unit + 1] as usize]
    }

    /// Number of tiles of queries. Each group begins one of its own.
    pub(crate) fn tiles(&self) -> usize {
        self.tiles
    }

    fn push_unit(&mut self, rows: Range<usize>) {
        self.rows.extend(rows.map(|row| row as u32));
        self.starts.push(self.rows.len() as u32);
    }

    /// Cuts rows into units and returns these.
    fn push_units(&mut self, rows: Range<usize>) -> Range<u32> {
        let first = self.units() as u32;
        for start in rows.clone().step_by(PAD) {
            self.push_unit(start..(start + PAD).min(rows.end));
        }
        first..self.units() as u32
    }

    /// Makes the plan of a layer after [`Choice::pick`].
    pub(crate) fn make(&mut self, sparsity: Sparsity, jobs: usize) {
        self.rows.clear();
        self.starts.clear();
        self.starts.push(0);
        self.lists.clear();
        self.groups.clear();
        self.chunks.clear();
        self.blocks.clear();
        if sparsity.rule == Rule::Chunks {
            for rows in sparsity.chunks(jobs) {
                let units = self.push_units(rows);
                self.chunks.push(units);
            }
        }
        for place in 0..self.choice.blocks().len() {
            let rows = self.choice.blocks()[place].rows.clone();
            let units = self.push_units(rows);
            self.blocks.push(units);
        }
        // The idle row attends to all rows: to all chunks, or to all blocks if there are no chunks.
        self.push_unit(0..1);
        let idle = self.units() as u32 - 1;
        let all = if self.chunks.is_empty() { 0..idle } else { 0..self.chunks.last().map_or(0, |units| units.end) };
        self.lists.extend(all);
        self.lists.push(idle);
        self.groups.push(Group { queries: 0..1, units: 0..self.lists.len(), keys: jobs + 1 });
        for place in 0..self.choice.blocks().len() {
            self.push_group(sparsity, jobs, place);
        }
        self.longest = self.groups.iter().map(|group| group.units.len()).max().unwrap_or(0);
        self.make_steps();
    }

    fn make_steps(&mut self) {
        self.steps.clear();
        self.tiles = 0;
        for group in &self.groups {
            let units = &self.lists[group.units.clone()];
            for row in group.queries.clone().step_by(GROUP) {
                let tile = self.tiles as u32;
                self.steps.extend(units.iter().enumerate().map(|(place, unit)| Step {
                    tile,
                    row: row as u32,
                    unit: *unit,
                    is_first: place == 0,
                    is_last: place + 1 == units.len(),
                }));
                self.tiles += 1;
            }
        }
    }

    /// Reserves memory for the paper's parameters and up to this many jobs, so that later plans allocate nothing.
    pub(crate) fn reserve(&mut self, jobs: usize) {
        let mut most = PlanSize::default();
        (0..=jobs).for_each(|jobs| most = most.max(PlanSize::of(jobs)));
        fn reserve<T>(list: &mut Vec<T>, len: usize) {
            list.reserve(len.saturating_sub(list.len()));
        }
        let PlanSize { blocks, chunks, units, lists, steps, .. } = most;
        self.choice.reserve(blocks, blocks * (usize::BITS as usize).min(blocks));
        reserve(&mut self.rows, 2 * jobs + 1 + (blocks + 1) * (chunks + 1));
        reserve(&mut self.starts, units + 1);
        reserve(&mut self.lists, lists);
        reserve(&mut self.groups, blocks + 1);
        reserve(&mut self.steps, steps);
        reserve(&mut self.chunks, chunks);
        reserve(&mut self.blocks, blocks);
        reserve(&mut self.single, chunks + 1);
    }

    fn push_group(&mut self, sparsity: Sparsity, jobs: usize, place: usize) {
        let (first, mut single) = (self.lists.len(), std::mem::take(&mut self.single));
        single.clear();
        single.push(0);
        let (lists, chunks, blocks) = (&mut self.lists, &self.chunks, &self.blocks);
        self.choice.each_kept(sparsity, jobs, place, |kept| match kept {
            Kept::Chunk(chunk) => lists.extend(chunks[chunk].clone()),
            Kept::Block(block) => lists.extend(blocks[block].clone()),
            Kept::Row(row) => single.push(row as u32),
        });
        for rows in single.chunks(PAD) {
            self.lists.push(self.units() as u32);
            self.rows.extend_from_slice(rows);
            self.starts.push(self.rows.len() as u32);
        }
        self.single = single;
        let keys = self.lists[first..].iter().map(|unit| self.rows(*unit as usize).len()).sum();
        let queries = self.choice.blocks()[place].rows.clone();
        self.groups.push(Group { queries, units: first..self.lists.len(), keys });
    }
}

/// Upper bounds on the lengths of a plan with the paper's parameters.
#[derive(Clone, Copy, Default)]
pub(crate) struct PlanSize {
    pub blocks: usize,
    pub chunks: usize,
    pub units: usize,
    pub lists: usize,
    pub steps: usize,
    pub tiles: usize,
    /// Units of the longest list.
    pub longest: usize,
}

impl PlanSize {
    pub(crate) fn of(jobs: usize) -> PlanSize {
        let Sparsity { chunk, block, keep, .. } = Sparsity::paper(jobs);
        let chunks = jobs.div_ceil(chunk);
        let blocks = chunks * chunk.div_ceil(block);
        let (by_chunk, by_block, single) = (chunk.div_ceil(PAD), block.div_ceil(PAD), (chunks + 1).div_ceil(PAD));
        let all = chunks * by_chunk + 1;
        let units = all + blocks * (by_block + single);
        let list = by_chunk + keep * by_block + single;
        let tiles = blocks * block.div_ceil(GROUP);
        PlanSize {
            blocks,
            chunks,
            units,
            lists: all + blocks * list,
            steps: all + tiles * list,
            tiles: tiles + 1,
            longest: all.max(list),
        }
    }

    pub(crate) fn max(self, other: PlanSize) -> PlanSize {
        PlanSize {
            blocks: self.blocks.max(other.blocks),
            chunks: self.chunks.max(other.chunks),
            units: self.units.max(other.units),
            lists: self.lists.max(other.lists),
            steps: self.steps.max(other.steps),
            tiles: self.tiles.max(other.tiles),
            longest: self.longest.max(other.longest),
        }
    }
}
