//! What a network reads.

/// The rows of one forward pass: the idle row first, then the jobs' in any order (by deadline for sparse attention).
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// One value per idle feature.
    pub idle: &'a [u16],
    /// One value per job feature, row after row.
    pub jobs: &'a [u16],
    /// The real numbers of each job, row after row; empty if the network has no such input.
    pub real: &'a [f32],
    /// Added to the attention logits of each row as a key, the idle row first. A row that stands for c equal ones has ln c:
    /// that is exactly attention over c rows.
    pub bias: &'a [f32],
    /// Restricts who attends to whom; none is dense attention.
    pub sparsity: Option<Sparsity>,
}

impl Rows<'_> {
    /// How many jobs there are, where a job has so many features and so many real numbers.
    pub(crate) fn count(&self, features: usize, inputs: usize) -> usize {
        self.jobs.len().checked_div(features).unwrap_or_else(|| self.real.len() / inputs.max(1))
    }
}

/// The paper's sparse attention over rows in deadline order: all keys of the own chunk, and of every block of other chunks the few with
/// the highest scores. The idle row attends to all, and all attend to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sparsity {
    /// Rows per chunk.
    pub chunk: usize,
    /// Rows per block.
    pub block: usize,
    /// Keys kept per query and block.
    pub keep: usize,
}

impl Sparsity {
    /// The paper's parameters for n jobs: ⌈ln n⌉ chunks, blocks of ⌈√n⌉, and k = max(1, ⌊0.1·B⌋) up to 100 jobs, ⌊log₂ B⌋ + 1 above.
    pub fn paper(jobs: usize) -> Sparsity {
        let n = jobs.max(1) as f64;
        let chunks = (n.ln().ceil() as usize).max(1);
        let block = n.sqrt().ceil() as usize;
        let keep = if jobs <= 100 { (block / 10).max(1) } else { block.ilog2() as usize + 1 };
        Sparsity { chunk: jobs.max(1).div_ceil(chunks), block, keep }
    }

    /// How many keys a query of so many jobs keeps, counted from 1 as rows are; 0 is the idle row, which is kept always.
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

    /// Half the keys per block, at least one: the mitigation under overload.
    pub fn halved(self) -> Sparsity {
        Sparsity { keep: (self.keep / 2).max(1), ..self }
    }
}
