//! Attention to listed keys alone: queries read only the rows that they keep.
//!
//! It consists of operations that every device has: the listed rows of keys and values are gathered, and each group of
//! queries attends to its own. So it computes the same on a GPU, and gradients flow back through the lists. Which rows
//! are listed is the caller's choice and has no gradient.

use std::sync::Arc;

use crate::{Device, Real, Segments, Tape, Var};

/// For each group of consecutive queries the rows that it attends to, one list after the other (compressed sparse
/// rows).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyLists {
    queries: Arc<Segments>,
    keys: Arc<Segments>,
    rows: Vec<u32>,
}

impl KeyLists {
    /// Lists from pairs of the number of queries of a group and the rows that it attends to. The groups follow each
    /// other.
    pub fn new<I: IntoIterator<Item = u32>>(groups: impl IntoIterator<Item = (usize, I)>) -> KeyLists {
        let (mut queries, mut keys, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for (count, list) in groups {
            let first = rows.len();
            rows.extend(list);
            queries.push(count);
            keys.push(rows.len() - first);
        }
        let segments = |lengths| Arc::new(Segments::of_lengths(lengths));
        KeyLists { queries: segments(queries), keys: segments(keys), rows }
    }

    /// Number of pairs of a query and a key that are scored, for each head.
    pub fn pairs(&self) -> usize {
        self.queries.ranges().zip(self.keys.ranges()).map(|(queries, keys)| queries.len() * keys.len()).sum()
    }
}

impl<D: Device> Tape<'_, D> {
    /// Multi-head softmax attention of each group of queries to its listed rows of `k` and `v`; see
    /// [`Tape::attention`]. `bias` has one number per row of `k`.
    pub fn attention_to(&mut self, q: Var, k: Var, v: Var, lists: &KeyLists, heads: usize, bias: Option<Var>) -> Var {
        let numbers = self.numbers(&lists.rows);
        let [k, v] = [k, v].map(|var| self.gather(var, &numbers));
        let bias = bias.map(|bias| self.gather(bias, &numbers));
        self.attention(q, k, v, &lists.queries, &lists.keys, heads, bias)
    }

    /// Sums of the rows of each segment of consecutive rows, one after the other. They are for a choice: no gradient
    /// flows through them. Waits for the device. Row `k` of the segments is row `rows[k]` of `x`.
    pub fn segment_sums(&mut self, x: Var, segments: &Segments, rows: &[u32]) -> Vec<Real> {
        let to: Vec<u32> = (0..).zip(segments.ranges()).flat_map(|(place, range)| vec![place; range.len()]).collect();
        let sums = self.message_sum(x, segments.len(), rows, &to);
        self.values(sums)
    }
}
