//! Cache of uploaded sample layouts, so that the segments of a batch are uploaded once for all operations of a step.

use std::sync::Arc;

use super::launch::Argument::{self, From, Int};
use super::memory::{Memory, Pool};
use crate::Segments;

/// Number of layouts that are kept: enough for the forward and backward passes of a few networks over one batch.
const KEPT: usize = 16;
/// Limit of short samples: with at most this many queries, keys and columns per head, one warp computes one head of one
/// sample.
pub const SHORT: usize = 32;
/// Number of query or key rows per block of the attention kernels for long samples.
pub const TILE: usize = 32;

/// Samples of an attention on the GPU, divided into short and long ones.
pub struct Layout {
    queries: Segments,
    keys: Segments,
    /// Whether all samples count as long, because the heads are wide.
    has_wide_heads: bool,
    /// The first query of each sample, the first key of each, and the running sum of queries × keys; then the short
    /// samples; then the tiles of queries of the long ones and those of keys, each a sample and its first row there.
    memory: Memory,
    /// Number of short samples.
    pub shorts: usize,
    /// Greatest number of queries and of keys of a short sample.
    pub longest_short: (usize, usize),
    /// Number of tiles of queries and of keys of the long samples.
    pub tiles: (usize, usize),
}

impl Layout {
    fn new(pool: &Arc<Pool>, queries: &Segments, keys: &Segments, has_wide_heads: bool) -> Layout {
        let mut words = [queries.starts(), keys.starts()].concat();
        let (mut shorts, mut query_tiles, mut key_tiles) = (Vec::new(), Vec::new(), Vec::new());
        let (mut longest_short, mut offset) = ((0, 0), 0u64);
        for (sample, (queries, keys)) in (0..).zip(queries.ranges().zip(keys.ranges())) {
            let (queries, keys) = (queries.len(), keys.len());
            // If the offset overflows 32 bits, there is no memory for that many attention weights either.
            words.push(offset as u32);
            offset += queries as u64 * keys as u64;
            if has_wide_heads || queries.max(keys) > SHORT {
                query_tiles.extend((0..queries).step_by(TILE).flat_map(|first| [sample, first as u32]));
                key_tiles.extend((0..keys).step_by(TILE).flat_map(|first| [sample, first as u32]));
            } else {
                shorts.push(sample);
                longest_short = (longest_short.0.max(queries), longest_short.1.max(keys));
            }
        }
        let (count, tiles) = (shorts.len(), (query_tiles.len() / 2, key_tiles.len() / 2));
        [shorts, query_tiles, key_tiles].into_iter().for_each(|list| words.extend(list));
        let (queries, keys, memory) = (queries.clone(), keys.clone(), pool.upload(&words));
        Layout { queries, keys, has_wide_heads, memory, shorts: count, longest_short, tiles }
    }

    /// Number of samples and where they are, as arguments of a kernel.
    pub fn samples(&self) -> [Argument<'_>; 2] {
        [Int(self.queries.len()), From(&self.memory, 0)]
    }

    /// The list of short samples as an argument of a kernel.
    pub fn short_list(&self) -> Argument<'_> {
        From(&self.memory, 3 * self.queries.len() + 2)
    }

    /// The list of tiles of queries as an argument of a kernel.
    pub fn query_tiles(&self) -> Argument<'_> {
        From(&self.memory, 3 * self.queries.len() + 2 + self.shorts)
    }

    /// The list of tiles of keys as an argument of a kernel.
    pub fn key_tiles(&self) -> Argument<'_> {
        From(&self.memory, 3 * self.queries.len() + 2 + self.shorts + 2 * self.tiles.0)
    }
}

/// Recently used layouts, most recent last.
#[derive(Default)]
pub struct Layouts(Vec<Layout>);

impl Layouts {
    /// Returns the layout of these samples, and uploads it if it is not cached.
    pub fn of(&mut self, pool: &Arc<Pool>, queries: &Segments, keys: &Segments, has_wide_heads: bool) -> &Layout {
        assert_eq!(queries.len(), keys.len());
        let is_same = |layout: &Layout| {
            layout.has_wide_heads == has_wide_heads && layout.queries == *queries && layout.keys == *keys
        };
        let layout = match self.0.iter().rposition(is_same) {
            Some(place) => self.0.remove(place),
            None => Layout::new(pool, queries, keys, has_wide_heads),
        };
        if self.0.len() == KEPT {
            self.0.remove(0);
        }
        self.0.push(layout);
        &self.0[self.0.len() - 1]
    }
}
