//! The input of a forward pass.

/// Input of one forward pass: the idle row, then one row per job in any order. Sparse attention needs them in order of deadline.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Value of each idle feature.
    pub idle: &'a [u16],
    /// Value of each job feature, in row-major order.
    pub jobs: &'a [u16],
    /// Real-valued inputs of each job, in row-major order; empty if the network has none.
    pub real: &'a [f32],
    /// Bias of each row, the idle row first, which is added to its attention logits as a key. A row that stands for c equal rows has the bias ln c, which is
    /// exactly attention over c rows.
    pub bias: &'a [f32],
    /// Sparse attention, or `None` for dense attention.
    pub sparsity: Option<Sparsity>,
}

impl Rows<'_> {
    /// Number of jobs, given the numbers of features and of real-valued inputs per job.
    pub(crate) fn count(&self, features: usize, inputs: usize) -> usize {
        self.jobs.len().checked_div(features).unwrap_or_else(|| self.real.len() / inputs.max(1))
    }
}

/// The paper's sparse attention over rows in deadline order. A query attends to all keys of its own chunk, and in each block to the `keep` keys of other
/// chunks with the highest logits. The idle row attends to all rows, and all rows attend to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sparsity {
    /// Number of rows per chunk.
    pub chunk: usize,
    /// Number of rows per block.
    pub block: usize,
    /// Number of keys kept per query and block.
    pub keep: usize,
}

impl Sparsity {
    /// The paper's parameters for n = `jobs`: ⌈ln n⌉ chunks, blocks of ⌈√n⌉, and k = max(1, ⌊0.1·B⌋) up to 100 jobs, ⌊log₂ B⌋ + 1 above.
    pub fn paper(jobs: usize) -> Sparsity {
        let n = jobs.max(1) as f64;
        let chunks = (n.ln().ceil() as usize).max(1);
        let block = n.sqrt().ceil() as usize;
        let keep = if jobs <= 100 { (block / 10).max(1) } else { block.ilog2() as usize + 1 };
        Sparsity { chunk: jobs.max(1).div_ceil(chunks), block, keep }
    }

    /// Number of keys that a query attends to. `query` is its row: 0 for the idle row, and 1 to `jobs` for jobs.
    pub fn kept(self, query: usize, jobs: usize) -> usize {
        if query == 0 {
            return jobs + 1;
        }
        let (chunk, block) = (self.chunk.max(1), self.block.max(1));
        let own = (query - 1) / chunk;
        let is_own = |job: &usize| job / chunk == own;
        let others = |start: usize| (start..jobs.min(start + block)).filter(|job| !is_own(job)).count();
        1 + (0..jobs).filter(is_own).count()
            + (0..jobs).step_by(block).map(|start| others(start).min(self.keep)).sum::<usize>()
    }

    /// Half as many keys per block, but at least one: the paper's mitigation under overload.
    pub fn halved(self) -> Sparsity {
        Sparsity { keep: (self.keep / 2).max(1), ..self }
    }
}
