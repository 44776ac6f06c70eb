//! Table of matrices as one kernel argument, so that one launch can work on all parameters of a network.

use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;

use super::memory::{Memory, Pool};

/// Greatest number of lists of matrices in a table.
pub const LISTS: usize = 64;
/// Number of values per block.
const CHUNK: usize = 1024;

/// Lists of up to four matrices of the same length, in the layout that the kernels read.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Table {
    blocks: [i32; LISTS + 1],
    len: [i32; LISTS],
    /// Fills the gap before the addresses.
    gap: i32,
    at: [[CUdeviceptr; LISTS]; 4],
}

impl Table {
    /// Creates a table whose list `k` holds the `k`-th matrix of each row. Rows have at most [`LISTS`] matrices.
    pub fn new(pool: &Arc<Pool>, rows: &[&[Memory]]) -> Table {
        let mut table = Table { blocks: [0; LISTS + 1], len: [0; LISTS], gap: 0, at: [[0; LISTS]; 4] };
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

/// Number of tables that are kept in the GPU's memory: those of the parameters, gradients and moments of a few networks.
const KEPT: usize = 32;

/// Tables in the GPU's memory, the last used last, for a gang, whose calls have no room for them.
#[derive(Default)]
pub struct Tables(Vec<(Table, Memory)>);

#[allow(unsafe_code)]
impl Tables {
    /// Returns a table's place in the GPU's memory, and uploads it if it is not there.
    pub fn of(&mut self, pool: &Arc<Pool>, table: &Table) -> &Memory {
        let kept = match self.0.iter().rposition(|(kept, _)| kept == table) {
            Some(place) => self.0.remove(place),
            None => {
                // SAFETY: a table has no gaps between its parts, and any bytes can be uploaded.
                let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(table).cast(), size_of::<Table>()) };
                (*table, pool.upload::<u8>(bytes))
            }
        };
        if self.0.len() == KEPT {
            self.0.remove(0);
        }
        self.0.push(kept);
        &self.0[self.0.len() - 1].1
    }
}
