//! Cache of uploaded sample layouts, so that the segments of a batch are uploaded once for all operations of a step.

use std::sync::Arc;

use super::memory::{Memory, Pool};
use crate::Segments;

/// Number of layouts that are kept: enough for the forward and backward passes of a few networks over one batch.
const KEPT: usize = 16;

/// Samples of an attention on the GPU: the first query of each, the first key of each, and the running sum of queries ×
/// keys.
pub struct Layout {
    queries: Segments,
    keys: Segments,
    pub memory: Memory,
}

/// Recently used layouts, most recent last.
#[derive(Default)]
pub struct Layouts(Vec<Layout>);

impl Layouts {
    /// Returns the layout of these samples, and uploads it if it is not cached.
    pub fn of(&mut self, pool: &Arc<Pool>, queries: &Segments, keys: &Segments) -> &Layout {
        assert_eq!(queries.len(), keys.len());
        let layout = match self.0.iter().rposition(|layout| layout.queries == *queries && layout.keys == *keys) {
            Some(place) => self.0.remove(place),
            None => {
                let mut words = [queries.starts(), keys.starts()].concat();
                let mut offset = 0u64;
                for (queries, keys) in queries.ranges().zip(keys.ranges()) {
                    // If the offset overflows 32 bits, there is no memory for that many attention weights either.
                    words.push(offset as u32);
                    offset += queries.len() as u64 * keys.len() as u64;
                }
                Layout { queries: queries.clone(), keys: keys.clone(), memory: pool.upload(&words) }
            }
        };
        if self.0.len() == KEPT {
            self.0.remove(0);
        }
        self.0.push(layout);
        &self.0[self.0.len() - 1]
    }
}
