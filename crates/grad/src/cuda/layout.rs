//! Cache of uploaded sample layouts, so that the segments of a batch are uploaded once for all operations of a step.

use std::sync::Arc;

use super::launch::Argument::{self, From, Int};
use super::memory::{Memory, Pool};
use crate::Segments;

/// Number of layouts that are kept: enough for the forward and backward passes of a few networks over one batch.
const KEPT: usize = 16;

/// Samples of an attention on the GPU.
pub struct Layout {
    queries: Segments,
    keys: Segments,
    /// Number of rows of a tile.
    tile: usize,
    /// The first query of each sample, the first key of each, and the running sum of queries × keys; then the tiles of
    /// queries and those of keys, each a sample and its first row there.
    memory: Memory,
    /// Number of tiles of queries and of keys.
    pub tiles: (usize, usize),
}

impl Layout {
    fn new(pool: &Arc<Pool>, queries: &Segments, keys: &Segments, tile: usize) -> Layout {
        let mut words = [queries.starts(), keys.starts()].concat();
        let (mut query_tiles, mut key_tiles, mut offset) = (Vec::new(), Vec::new(), 0u64);
        for (sample, (queries, keys)) in (0..).zip(queries.ranges().zip(keys.ranges())) {
            let (queries, keys) = (queries.len(), keys.len());
            // If the offset overflows 32 bits, there is no memory for that many attention weights either.
            words.push(offset as u32);
            offset += queries as u64 * keys as u64;
            query_tiles.extend((0..queries).step_by(tile).flat_map(|first| [sample, first as u32]));
            key_tiles.extend((0..keys).step_by(tile).flat_map(|first| [sample, first as u32]));
        }
        let tiles = (query_tiles.len() / 2, key_tiles.len() / 2);
        [query_tiles, key_tiles].into_iter().for_each(|list| words.extend(list));
        Layout { queries: queries.clone(), keys: keys.clone(), tile, memory: pool.upload(&words), tiles }
    }

    /// Number of samples and where they are, as arguments of a kernel.
    pub fn samples(&self) -> [Argument<'_>; 2] {
        [Int(self.queries.len()), From(&self.memory, 0)]
    }

    /// The list of tiles of queries as an argument of a kernel.
    pub fn query_tiles(&self) -> Argument<'_> {
        From(&self.memory, 3 * self.queries.len() + 2)
    }

    /// The list of tiles of keys as an argument of a kernel.
    pub fn key_tiles(&self) -> Argument<'_> {
        From(&self.memory, 3 * self.queries.len() + 2 + 2 * self.tiles.0)
    }
}

/// Recently used layouts, most recent last.
#[derive(Default)]
pub struct Layouts(Vec<Layout>);

impl Layouts {
    /// Returns the layout of these samples in tiles of this many rows, and uploads it if it is not cached.
    pub fn of(&mut self, pool: &Arc<Pool>, queries: &Segments, keys: &Segments, tile: usize) -> &Layout {
        assert_eq!(queries.len(), keys.len());
        let is_same = |layout: &Layout| layout.tile == tile && layout.queries == *queries && layout.keys == *keys;
        let layout = match self.0.iter().rposition(is_same) {
            Some(place) => self.0.remove(place),
            None => Layout::new(pool, queries, keys, tile),
        };
        if self.0.len() == KEPT {
            self.0.remove(0);
        }
        self.0.push(layout);
        &self.0[self.0.len() - 1]
    }
}
