//! Table of matrices as one kernel argument, so that one launch can work on all parameters of a network.

use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;

use super::memory::{Memory, Pool};

/// Greatest number of lists of matrices in a table.
pub const LISTS: usize = 64;
/// Number of values per block.
const CHUNK: usize = 1024;

/// Lists of up to four matrices of the same length, in the layout that the kernels read.
#[repr(C)]
pub struct Table {
    blocks: [i32; LISTS + 1],
    len: [i32; LISTS],
    at: [[CUdeviceptr; LISTS]; 4],
}

impl Table {
    /// Creates a table whose list `k` holds the `k`-th matrix of each row. Rows have at most [`LISTS`] matrices.
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

    /// Number of blocks that the values of all lists take.
    pub fn blocks(&self) -> usize {
        self.blocks[LISTS] as usize
    }
}
