//! The input of a forward pass.

/// Input of one forward pass: the idle row, then one row per job in any order. Sparse attention needs them in order of
/// deadline.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Value of each idle feature.
    pub idle: &'a [u16],
    /// Value of each job feature, in row-major order.
    pub jobs: &'a [u16],
    /// Real-valued inputs of each job, in row-major order; empty if the network has none.
    pub real: &'a [f32],
    /// Bias of each row, the idle row first, which is added to its attention logits as a key. A row that stands for c
    /// equal rows has the bias ln c, which is exactly attention over c rows.
    pub bias: &'a [f32],
    /// Sparse attention, or `None` for dense attention.
    pub sparsity: Option<Sparsity>,
}

impl Rows<'_> {
    /// Number of jobs, given the numbers of features and of real-valued inputs per job.
    pub fn count(&self, features: usize, inputs: usize) -> usize {
        self.jobs.len().checked_div(features).unwrap_or_else(|| self.real.len() / inputs.max(1))
    }
}

/// Which keys sparse attention keeps. In all rules the idle row attends to all rows, and all rows attend to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The paper's: all keys of the query's own chunk, all keys of the `keep` best blocks of other chunks, and of every
    /// chunk one representative, its middle row. Blocks are chosen by the means of their keys, for all queries of a
    /// block together.
    #[default]
    Chunks,
    /// Rival without chunks: all keys of the `keep` best blocks, and nothing of the others.
    BlockDrop,
    /// Rival without chunks and blocks: of all keys the `keep` with the highest logits, for each query and head. All
    /// keys are scored.
    TopKeys,
}

/// Parameters of sparse attention over rows in deadline order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sparsity {
    /// Which keys are kept.
    pub rule: Rule,
    /// Number of rows per chunk.
    pub chunk: usize,
    /// Number of rows per block. Blocks do not cross the border of a chunk.
    pub block: usize,
    /// Number of blocks that are looked into; of keys with [`Rule::TopKeys`].
    pub keep: usize,
}

impl Sparsity {
    /// The paper's parameters for n = `jobs`: ⌈ln n⌉ chunks, blocks of ⌈√n⌉, and k = max(1, ⌊0.1·B⌋) up to 100 jobs,
    /// ⌊log₂ B⌋ + 1 above.
    pub fn paper(jobs: usize) -> Sparsity {
        let n = jobs.max(1) as f64;
        let chunks = (n.ln().ceil() as usize).max(1);
        let block = n.sqrt().ceil() as usize;
        let keep = if jobs <= 100 { (block / 10).max(1) } else { block.ilog2() as usize + 1 };
        Sparsity { rule: Rule::Chunks, chunk: jobs.max(1).div_ceil(chunks), block, keep }
    }

    /// Half as many blocks, but at least one: the paper's mitigation under overload.
    pub fn halved(self) -> Sparsity {
        Sparsity { keep: (self.keep / 2).max(1), ..self }
    }
}

/// What the attention of a forward pass has read, counted while it computes, over all heads and layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttentionWork {
    /// Number of pairs of a query and a key that were scored, without padding.
    pub pairs: u64,
    /// Bytes of keys and values that were read: once to pack them, once for each group of queries that is computed
    /// together, and keys once more where they are summed up.
    pub bytes: u64,
}
