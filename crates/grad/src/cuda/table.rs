//! Many matrices as one argument of a kernel, so that all parameters of a network take one call and not one each.

use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;

use super::memory::{Memory, Pool};

/// As many lists of matrices go into one table.
pub const LISTS: usize = 64;
/// As many numbers are one block's.
const CHUNK: usize = 1024;

/// Lists of up to four matrices of the same length, as the kernels have it.
#[repr(C)]
pub struct Table {
    blocks: [i32; LISTS + 1],
    len: [i32; LISTS],
    at: [[CUdeviceptr; LISTS]; 4],
}

impl Table {
    /// Of the first, second … of each of these rows of matrices a list; there are at most [`LISTS`].
    pub fn new(pool: &Arc<Pool>, rows: &[&[Memory]]) -> Table {
        let mut table = Table { blocks: [0; LISTS + 1], len: [0; LISTS], at: [[0; LISTS]; 4] };
        let count = rows[0].len();
        for list in 0..count {
            let len = rows[0][list].len();
            assert!(rows.iter().all(|row| row.len() == count && row[list].len() == len));
            table.len[list] = len as i32;
            table.blocks[list + 1] = table.blocks[list] + len.div_ceil(CHUNK) as i32;
            rows.iter().zip(&mut table.at).for_each(|(row, at)| at[list] = row[list].pointer(pool));
        }
        let blocks = table.blocks[count];
        table.blocks[count + 1..].fill(blocks);
        table
    }

    /// Blocks that its numbers take.
    pub fn blocks(&self) -> usize {
        self.blocks[LISTS] as usize
    }
}
