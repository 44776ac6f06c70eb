//! Row numbers on the GPU, and how rows that go to the same one are brought together so that they are always added in the same order.

use std::sync::{Arc, OnceLock};

use super::memory::{Memory, Pool};

/// Row numbers in the GPU's memory.
pub struct Index {
    rows: Vec<u32>,
    /// One above the greatest.
    end: usize,
    memory: Memory,
    /// Made when rows are first added to the rows with these numbers.
    groups: OnceLock<Option<Groups>>,
}

/// The places of a list by the row number in them.
pub struct Groups {
    /// The places in the order of the groups, then where each group starts and the end, then the row number of each group.
    pub memory: Memory,
    /// How many groups there are.
    pub len: usize,
}

impl Index {
    pub fn new(pool: &Arc<Pool>, rows: &[u32]) -> Index {
        let end = rows.iter().max().map_or(0, |most| *most as usize + 1);
        Index { rows: rows.to_vec(), end, memory: pool.upload(rows), groups: OnceLock::new() }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// How many rows a matrix must have for these numbers.
    pub fn end(&self) -> usize {
        self.end
    }

    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The groups of equal numbers; none if no two are equal.
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
    let starts: Vec<u32> = targets.iter().map(|row| places[*row as usize]).collect();
    let mut order = vec![0u32; rows.len()];
    for (place, row) in rows.iter().enumerate() {
        order[places[*row as usize] as usize] = place as u32;
        places[*row as usize] += 1;
    }
    let len = targets.len();
    let memory = pool.upload(&[order, starts, vec![rows.len() as u32], targets].concat());
    Some(Groups { memory, len })
}
