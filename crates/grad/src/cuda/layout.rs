//! Where each sample's rows are, uploaded once for all operations of a step.

use std::sync::Arc;

use super::memory::{Memory, Pool};
use crate::Segments;

/// So many layouts are remembered: those of a few networks' forward and backward passes over one batch.
const KEPT: usize = 16;

/// The samples of an attention on the GPU: where their queries start, where their keys do, and the products of both added up.
pub struct Layout {
    queries: Segments,
    keys: Segments,
    pub memory: Memory,
}

/// Layouts lately used, the latest last.
#[derive(Default)]
pub struct Layouts(Vec<Layout>);

impl Layouts {
    /// The layout of these samples.
    pub fn of(&mut self, pool: &Arc<Pool>, queries: &Segments, keys: &Segments) -> &Layout {
        assert_eq!(queries.len(), keys.len());
        let layout = match self.0.iter().rposition(|layout| layout.queries == *queries && layout.keys == *keys) {
            Some(place) => self.0.remove(place),
            None => {
                let mut words = [queries.starts(), keys.starts()].concat();
                let mut offset = 0u64;
                for (queries, keys) in queries.ranges().zip(keys.ranges()) {
                    // Where this does not fit, there is no memory for so many attention weights either.
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
