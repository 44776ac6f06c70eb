//! Row numbers on the GPU. Where several rows are added to the same row, their places are grouped, so that they are
//! always added in the same order.

use std::sync::{Arc, OnceLock};

use super::memory::{Memory, Pool};

/// Row numbers in the GPU's memory.
pub struct Index {
    rows: Vec<u32>,
    /// One more than the greatest row number.
    end: usize,
    memory: Memory,
    /// Groups of equal row numbers, computed when rows are first added to the rows with these numbers.
    groups: OnceLock<Option<Groups>>,
}

/// Places of a list, grouped by the row number in them. A group is summed in chunks, so that one large group does not
/// take longer than several small ones.
pub struct Groups {
    /// Four lists, one after the other: the places in the order of the groups; the start of each chunk in that list,
    /// and its end; the first chunk of each group, and the number of chunks; the row number of each group.
    pub memory: Memory,
    /// Number of groups.
    pub len: usize,
    /// Number of chunks of all groups.
    pub chunks: usize,
}

/// Greatest number of rows per chunk.
const CHUNK: usize = 128;

impl Index {
    pub fn new(pool: &Arc<Pool>, rows: &[u32]) -> Index {
        let end = rows.iter().max().map_or(0, |most| *most as usize + 1);
        Index { rows: rows.to_vec(), end, memory: pool.upload(rows), groups: OnceLock::new() }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Least number of rows of a matrix that has rows with all these numbers.
    pub fn end(&self) -> usize {
        self.end
    }

    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Groups of equal row numbers; `None` if no two are equal.
    pub fn groups(&self, pool: &Arc<Pool>) -> Option<&Groups> {
        self.groups.get_or_init(|| group(pool, &self.rows, self.end)).as_ref()
    }
}

fn group(pool: &Arc<Pool>, rows: &[u32], end: usize) -> Option<Groups> {
    if rows.is_sorted_by(|left, right| left < right) {
        return None;
    }
    let mut places = vec![0u32; end + 1];
    rows.iter().for_each(|row| places[*row as usize + 1] += 1);
    let targets: Vec<u32> = (0..end as u32).filter(|row| places[*row as usize + 1] > 0).collect();
    if targets.len() == rows.len() {
        return None;
    }
    (0..end).for_each(|row| places[row + 1] += places[row]);
    let (mut chunks, mut groups) = (Vec::new(), Vec::new());
    for row in &targets {
        groups.push(chunks.len() as u32);
        let range = places[*row as usize]..places[*row as usize + 1];
        chunks.extend(range.step_by(CHUNK));
    }
    groups.push(chunks.len() as u32);
    let mut order = vec![0u32; rows.len()];
    for (place, row) in rows.iter().enumerate() {
        order[places[*row as usize] as usize] = place as u32;
        places[*row as usize] += 1;
    }
    let (len, count) = (targets.len(), chunks.len());
    chunks.push(rows.len() as u32);
    let memory = pool.upload(&[order, chunks, groups, targets].concat());
    Some(Groups { memory, len, chunks: count })
}
