//! Which blocks the queries of a block look into.

use std::ops::Range;

use super::blocks::Block;
use crate::{Rule, Sparsity};

/// The choice of one layer, and its working memory. Nothing is allocated once it has met as many blocks.
#[derive(Default)]
pub(crate) struct Choice {
    rule: Rule,
    blocks: Vec<Block>,
    /// The blocks looked into, in order, for each block of queries, and where each block's begin.
    picked: Vec<u32>,
    starts: Vec<u32>,
    scores: Vec<(f32, u32)>,
}

/// Row of a chunk that stands for it: the middle one, which is of the median deadline.
fn representative(chunk: &Range<usize>) -> usize {
    chunk.start + (chunk.len() - 1) / 2
}

impl Choice {
    /// Cuts the rows into blocks.
    pub(crate) fn cut(&mut self, sparsity: Sparsity, jobs: usize) {
        self.rule = sparsity.rule;
        self.blocks.clear();
        self.blocks.extend(sparsity.all_blocks(jobs));
    }

    /// Reserves memory for this many blocks and for this many that are looked into.
    pub(crate) fn reserve(&mut self, blocks: usize, picked: usize) {
        self.blocks.reserve(blocks.saturating_sub(self.blocks.len()));
        self.picked.reserve(picked.saturating_sub(self.picked.len()));
        self.starts.reserve((blocks + 1).saturating_sub(self.starts.len()));
        self.scores.reserve(blocks.saturating_sub(self.scores.len()));
    }

    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Chooses the blocks. `queries` and `keys` are the sums of the queries and of the keys of each block, `width` numbers that begin `stride` numbers after
    /// those of the block before. A key block's score is the product of its mean key and the sum of the queries, over all heads together. The highest scores
    /// win; of equal ones the earlier block. Blocks of the queries' own chunk need no choice.
    pub(crate) fn pick(&mut self, keep: usize, width: usize, stride: usize, queries: &[f32], keys: &[f32]) {
        self.picked.clear();
        self.starts.clear();
        self.starts.push(0);
        for (place, block) in self.blocks.iter().enumerate() {
            let query = &queries[place * stride..][..width];
            self.scores.clear();
            for (other, key) in self.blocks.iter().enumerate() {
                if self.rule != Rule::Chunks || key.chunk != block.chunk {
                    let score = dot(query, &keys[other * stride..][..width]) / key.rows.len() as f32;
                    self.scores.push((score, other as u32));
                }
            }
            let keep = keep.min(self.scores.len());
            if keep > 0 && keep < self.scores.len() {
                let order = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
                self.scores.select_nth_unstable_by(keep - 1, order);
            }
            let first = self.picked.len();
            self.picked.extend(self.scores[..keep].iter().map(|(_, other)| *other));
            self.picked[first..].sort_unstable();
            self.starts.push(self.picked.len() as u32);
        }
    }

    /// Calls `take` with what the queries of a block look into, in order of rows: the number of a block if it is whole, a chunk if it is the own one, or the
    /// representative of a chunk in which no block is looked into.
    pub(crate) fn each_kept(&self, sparsity: Sparsity, jobs: usize, place: usize, mut take: impl FnMut(Kept)) {
        let mut picked = self.picked[self.starts[place] as usize..self.starts[place + 1] as usize].iter().peekable();
        if self.rule != Rule::Chunks {
            picked.for_each(|block| take(Kept::Block(*block as usize)));
            return;
        }
        for (chunk, rows) in sparsity.chunks(jobs).enumerate() {
            if chunk == self.blocks[place].chunk {
                take(Kept::Chunk(chunk));
                continue;
            }
            let mut is_seen = false;
            while let Some(block) = picked.next_if(|block| self.blocks[**block as usize].chunk == chunk) {
                take(Kept::Block(*block as usize));
                is_seen = true;
            }
            if !is_seen {
                take(Kept::Row(representative(&rows)));
            }
        }
    }
}

/// Something that queries attend to, beside the idle row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Chunk(usize),
    Block(usize),
    Row(usize),
}

/// Product of two rows, with a fixed order of additions that vectors can follow.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0.0; LANES];
    let (whole_a, rest_a) = a.as_chunks::<LANES>();
    let (whole_b, rest_b) = b.as_chunks::<LANES>();
    for (a, b) in whole_a.iter().zip(whole_b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f32>() + rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum::<f32>()
}
