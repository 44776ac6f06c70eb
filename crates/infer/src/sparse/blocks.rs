//! Chunks and blocks of rows.

use std::ops::Range;

use crate::{Rule, Sparsity};

/// Block of consecutive job rows within one chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Rows, counted from 1, because row 0 is the idle row.
    pub rows: Range<usize>,
    /// Number of the chunk.
    pub chunk: usize,
}

impl Sparsity {
    /// Length of a chunk; all jobs are one chunk where the rule knows none.
    pub(crate) fn chunk_len(self, jobs: usize) -> usize {
        if self.rule == Rule::Chunks { self.chunk.max(1) } else { jobs.max(1) }
    }

    /// The rows of each chunk, in order.
    pub(crate) fn chunks(self, jobs: usize) -> impl Iterator<Item = Range<usize>> {
        let chunk = self.chunk_len(jobs);
        (0..jobs).step_by(chunk).map(move |start| 1 + start..1 + (start + chunk.min(jobs - start)))
    }

    /// The blocks of all chunks, in order. The last block of a chunk may be shorter.
    pub(crate) fn all_blocks(self, jobs: usize) -> impl Iterator<Item = Block> {
        let block = self.block.max(1);
        self.chunks(jobs).enumerate().flat_map(move |(chunk, rows)| {
            let end = rows.end;
            rows.step_by(block).map(move |start| Block { rows: start..start + block.min(end - start), chunk })
        })
    }

    /// Ranges of the rows of all blocks, in order. Row 0, the idle row, is in none.
    pub fn blocks(self, jobs: usize) -> Vec<Range<usize>> {
        self.all_blocks(jobs).map(|block| block.rows).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_all_jobs_and_stay_in_their_chunk() {
        for (jobs, chunk, block) in [(0, 3, 2), (1, 5, 9), (13, 5, 2), (600, 86, 25), (20, 0, 0), (7, usize::MAX, 3)] {
            for rule in [Rule::Chunks, Rule::BlockDrop] {
                let sparsity = Sparsity { rule, chunk, block, keep: 1 };
                let mut next = 1;
                for Block { rows, chunk } in sparsity.all_blocks(jobs) {
                    assert_eq!(rows.start, next);
                    assert!(!rows.is_empty() && rows.len() <= block.max(1));
                    let of = |row: usize| (row - 1) / sparsity.chunk_len(jobs);
                    assert!(of(rows.start) == chunk && of(rows.end - 1) == chunk, "{sparsity:?}: {rows:?}");
                    next = rows.end;
                }
                assert_eq!(next, jobs + 1, "{sparsity:?}");
            }
        }
        let lengths: Vec<usize> = Sparsity::paper(600).blocks(600).iter().map(ExactSizeIterator::len).collect();
        assert_eq!(lengths[..5], [25, 25, 25, 11, 25]);
    }
}
