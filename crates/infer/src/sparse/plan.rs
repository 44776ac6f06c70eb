//! The kept keys of a layer as the kernels take them: units of up to 32 keys, and for each group of queries the units
//! that it attends to.
//!
//! Each block begins a unit of its own, so that a unit is packed once for all queries that look into the block. The
//! rows that all queries attend to are in units of their own, and not in those of their blocks. The price is padding: a
//! block of 25 rows takes a unit of 32.

use std::ops::Range;

use super::choice::Choice;
use crate::Sparsity;
use crate::kernels::{GROUP, PAD};

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
    /// Units of each block.
    blocks: Vec<Range<u32>>,
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

    /// Makes the plan of a layer after [`Choice::pick`].
    pub(crate) fn make(&mut self, jobs: usize) {
        let Plan { choice, rows, starts, lists, groups, blocks, .. } = self;
        rows.clear();
        starts.clear();
        starts.push(0);
        // Cuts the rows that have been added since the last unit into units.
        let close = |rows: &[u32], starts: &mut Vec<u32>| {
            let first = starts.len() - 1;
            let begin = starts[first] as usize;
            starts.extend((begin..rows.len()).step_by(PAD).map(|start| (start + PAD).min(rows.len()) as u32));
            first as u32..starts.len() as u32 - 1
        };
        rows.push(0);
        rows.extend_from_slice(choice.representatives());
        let shared = close(rows, starts);
        let mut representatives = choice.representatives().iter().peekable();
        blocks.clear();
        for block in choice.blocks() {
            let is_own = |row: &usize| representatives.next_if(|other| **other as usize == *row).is_none();
            rows.extend(block.rows.clone().filter(is_own).map(|row| row as u32));
            let units = close(rows, starts);
            blocks.push(units);
        }
        lists.clear();
        groups.clear();
        // The idle row attends to all rows.
        lists.extend(0..starts.len() as u32 - 1);
        groups.push(Group { queries: 0..1, units: 0..lists.len(), keys: jobs + 1 });
        for (place, block) in choice.blocks().iter().enumerate() {
            let first = lists.len();
            lists.extend(shared.clone());
            choice.looked_into(place).iter().for_each(|other| lists.extend(blocks[*other as usize].clone()));
            let keys = |unit: &u32| (starts[*unit as usize + 1] - starts[*unit as usize]) as usize;
            let keys = lists[first..].iter().map(keys).sum();
            groups.push(Group { queries: block.rows.clone(), units: first..lists.len(), keys });
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
    /// Returns what it needs at most.
    pub(crate) fn reserve(&mut self, jobs: usize) -> PlanSize {
        let most = (0..=jobs).fold(PlanSize::default(), |most, jobs| most.max(PlanSize::of(jobs)));
        fn reserve<T>(list: &mut Vec<T>, len: usize) {
            list.reserve(len.saturating_sub(list.len()));
        }
        self.choice.reserve(most.chunks, most.blocks, most.looked_into);
        reserve(&mut self.rows, jobs + 1);
        reserve(&mut self.starts, most.units + 1);
        reserve(&mut self.lists, most.lists);
        reserve(&mut self.groups, most.blocks + 1);
        reserve(&mut self.steps, most.steps);
        reserve(&mut self.blocks, most.blocks);
        most
    }
}

/// Upper bounds on the lengths of a plan with the paper's parameters.
#[derive(Clone, Copy, Default)]
pub(crate) struct PlanSize {
    chunks: usize,
    pub blocks: usize,
    looked_into: usize,
    pub units: usize,
    lists: usize,
    steps: usize,
    pub tiles: usize,
    /// Number of units of the longest list.
    pub longest: usize,
}

impl PlanSize {
    fn of(jobs: usize) -> PlanSize {
        let Sparsity { chunk, block, keep, .. } = Sparsity::paper(jobs);
        let chunks = jobs.div_ceil(chunk);
        let by_chunk = chunk.div_ceil(block);
        let (blocks, by_block, shared) = (chunks * by_chunk, block.div_ceil(PAD), (chunks + 1).div_ceil(PAD));
        let units = shared + blocks * by_block;
        let looked_into = by_chunk + keep;
        let list = shared + looked_into * by_block;
        let tiles = blocks * block.div_ceil(GROUP);
        PlanSize {
            chunks,
            blocks,
            looked_into: blocks * looked_into,
            units,
            lists: units + blocks * list,
            steps: units + tiles * list,
            tiles: tiles + 1,
            longest: units,
        }
    }

    fn max(self, other: PlanSize) -> PlanSize {
        PlanSize {
            chunks: self.chunks.max(other.chunks),
            blocks: self.blocks.max(other.blocks),
            looked_into: self.looked_into.max(other.looked_into),
            units: self.units.max(other.units),
            lists: self.lists.max(other.lists),
            steps: self.steps.max(other.steps),
            tiles: self.tiles.max(other.tiles),
            longest: self.longest.max(other.longest),
        }
    }
}
