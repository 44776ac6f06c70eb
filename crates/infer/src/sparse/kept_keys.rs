//! Lists of kept keys in compressed form.

use std::ops::Range;

use super::choice::Choice;
use crate::Sparsity;

/// The rows that each block of queries attends to: lists one after the other, and where each begins (compressed sparse
/// rows). The first list is that of the idle row, which attends to all rows. The queries of a block share a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptKeys {
    queries: Vec<Range<usize>>,
    starts: Vec<usize>,
    rows: Vec<u32>,
}

impl KeptKeys {
    /// Chooses the keys of a layer. `query_sums` and `key_sums` are the sums of the queries and of the keys of each of
    /// [`Sparsity::blocks`], `width` numbers each, all heads together.
    ///
    /// # Panics
    ///
    /// Panics if there are fewer sums than blocks.
    pub fn choose(sparsity: Sparsity, jobs: usize, width: usize, query_sums: &[f32], key_sums: &[f32]) -> KeptKeys {
        let mut choice = Choice::default();
        choice.cut(sparsity, jobs);
        choice.pick(sparsity.keep, width, width, query_sums, key_sums);
        let idle = std::iter::once(0..1);
        let mut kept =
            KeptKeys { queries: idle.collect(), starts: vec![0, jobs + 1], rows: (0..=jobs as u32).collect() };
        for (place, block) in choice.blocks().iter().enumerate() {
            let looked_into = |other: &usize| choice.looked_into(place).contains(&(*other as u32));
            let is_representative = |row: &u32| choice.representatives().contains(row);
            kept.rows.push(0);
            for (other, keys) in choice.blocks().iter().enumerate() {
                let rows = keys.rows.start as u32..keys.rows.end as u32;
                kept.rows.extend(rows.filter(|row| looked_into(&other) || is_representative(row)));
            }
            kept.queries.push(block.rows.clone());
            kept.starts.push(kept.rows.len());
        }
        kept
    }

    /// Each block of queries, by its rows, with the rows that it attends to, in ascending order.
    pub fn lists(&self) -> impl Iterator<Item = (Range<usize>, &[u32])> {
        let lists = self.starts.windows(2).map(|pair| &self.rows[pair[0]..pair[1]]);
        self.queries.iter().cloned().zip(lists)
    }

    /// Number of pairs of a query and a kept key.
    pub fn pairs(&self) -> usize {
        self.lists().map(|(queries, rows)| queries.len() * rows.len()).sum()
    }
}
