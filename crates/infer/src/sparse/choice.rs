//! Which blocks the queries of a block look into.

use super::blocks::Block;
use crate::{Rule, Sparsity};

/// The choice of one layer, and its working memory. Nothing is allocated once it has met as many blocks.
#[derive(Default)]
pub(crate) struct Choice {
    rule: Rule,
    blocks: Vec<Block>,
    /// The row of each chunk that stands for it, in order.
    representatives: Vec<u32>,
    /// The blocks looked into, in order, for each block of queries, and where each block's begin.
    looked_into: Vec<u32>,
    starts: Vec<u32>,
    scores: Vec<(f32, u32)>,
}

impl Choice {
    /// Cuts the rows into blocks.
    pub(crate) fn cut(&mut self, sparsity: Sparsity, jobs: usize) {
        self.rule = sparsity.rule;
        self.blocks.clear();
        self.blocks.extend(sparsity.all_blocks(jobs));
        self.representatives.clear();
        if sparsity.rule == Rule::Chunks {
            // The middle row, which is of the chunk's median deadline.
            let middle = |chunk: std::ops::Range<usize>| (chunk.start + (chunk.len() - 1) / 2) as u32;
            self.representatives.extend(sparsity.chunks(jobs).map(middle));
        }
    }

    /// Reserves memory for this many chunks and blocks, and blocks that are looked into.
    pub(crate) fn reserve(&mut self, chunks: usize, blocks: usize, looked_into: usize) {
        self.representatives.reserve(chunks.saturating_sub(self.representatives.len()));
        self.blocks.reserve(blocks.saturating_sub(self.blocks.len()));
        self.looked_into.reserve(looked_into.saturating_sub(self.looked_into.len()));
        self.starts.reserve((blocks + 1).saturating_sub(self.starts.len()));
        self.scores.reserve(blocks.saturating_sub(self.scores.len()));
    }

    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Rows that all queries attend to, in order, beside the idle row.
    pub(crate) fn representatives(&self) -> &[u32] {
        &self.representatives
    }

    /// The blocks that the queries of a block look into, in order.
    pub(crate) fn looked_into(&self, place: usize) -> &[u32] {
        &self.looked_into[self.starts[place] as usize..self.starts[place + 1] as usize]
    }

    /// Chooses the blocks. `queries` and `keys` are the sums of the queries and of the keys of each block, `width`
    /// numbers that begin `stride` numbers after those of the block before. A key block's score is the product of its
    /// mean key and the sum of the queries, over all heads together. The highest scores win; of equal ones the earlier
    /// block. The blocks of the queries' own chunk need no choice.
    pub(crate) fn pick(&mut self, keep: usize, width: usize, stride: usize, queries: &[f32], keys: &[f32]) {
        self.looked_into.clear();
        self.starts.clear();
        self.starts.push(0);
        for (place, block) in self.blocks.iter().enumerate() {
            let query = &queries[place * stride..][..width];
            let first = self.looked_into.len();
            self.scores.clear();
            for (other, key) in self.blocks.iter().enumerate() {
                if self.rule == Rule::Chunks && key.chunk == block.chunk {
                    self.looked_into.push(other as u32);
                } else {
                    let score = dot(query, &keys[other * stride..][..width]) / key.rows.len() as f32;
                    self.scores.push((score, other as u32));
                }
            }
            let keep = keep.min(self.scores.len());
            if keep > 0 && keep < self.scores.len() {
                let order = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
                self.scores.select_nth_unstable_by(keep - 1, order);
            }
            self.looked_into.extend(self.scores[..keep].iter().map(|(_, other)| *other));
            self.looked_into[first..].sort_unstable();
            self.starts.push(self.looked_into.len() as u32);
        }
    }
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
