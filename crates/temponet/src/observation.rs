//! The ready jobs as rows of the network: equal tokens are one row with a count.

use temponet_infer::{Rows, Sparsity};
use temponet_task::{JobId, SystemView};

use crate::tokenizer::{Scale, Tokenizer};

/// One decision's rows; its buffers are kept from decision to decision.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    idle: [u16; 2],
    /// The tokens of the distinct rows, one after the other.
    tokens: Vec<u16>,
    /// How many jobs each row stands for.
    counts: Vec<u32>,
    /// Attention bias of the idle row and of each row.
    bias: Vec<f32>,
    /// Each ready job and its row, counted from 1; row 0 is idle.
    jobs: Vec<(JobId, u32)>,
    sparsity: Option<Sparsity>,
    /// Share of jobs with less slack than one bin.
    urgent: f32,
    token: Vec<u16>,
    /// An open hash table of rows; an entry counts if it is of this round.
    table: Vec<(u32, u32)>,
    round: u32,
}

impl Observation {
    /// Reads the view. With `by_job`, every job has a row of its own, in deadline order, as sparse attention wants it.
    pub fn read(&mut self, tokenizer: &Tokenizer, scale: &Scale, view: &SystemView<'_>, by_job: bool) {
        self.idle = scale.idle;
        self.tokens.clear();
        self.counts.clear();
        self.jobs.clear();
        self.sparsity = None;
        self.jobs.extend(view.active.iter().map(|id| (*id, 0)));
        if by_job {
            // Ties by the token would be equivariant too; the tie rule of the contract is total and is as good.
            self.jobs.sort_unstable_by_key(|(id, _)| (view.job(*id).deadline, view.job(*id).tie()));
            self.sparsity = Some(Sparsity::paper(self.jobs.len()));
        } else {
            self.prepare_table();
        }
        let mut urgent = 0;
        for place in 0..self.jobs.len() {
            self.token.clear();
            tokenizer.token(view.job(self.jobs[place].0), view.now, scale, &mut self.token);
            urgent += usize::from(tokenizer.is_urgent(&self.token));
            self.jobs[place].1 = if by_job { self.new_row() } else { self.row() };
        }
        self.urgent = urgent as f32 / self.jobs.len().max(1) as f32;
        let width = self.token.len().max(1);
        self.bias.clear();
        self.bias.push(0.0);
        for (token, count) in self.tokens.chunks_exact(width).zip(&self.counts) {
            let reserve = if tokenizer.is_long(token) { tokenizer.long_slack_reserve } else { 0.0 };
            self.bias.push((*count as f32).ln() + reserve);
        }
    }

    fn prepare_table(&mut self) {
        let size = (2 * self.jobs.len()).next_power_of_two().max(64);
        if self.table.len() < size || self.round == u32::MAX {
            self.table.clear();
            self.table.resize(size, (0, 0));
            self.round = 0;
        }
        self.round += 1;
    }

    fn new_row(&mut self) -> u32 {
        self.tokens.extend_from_slice(&self.token);
        self.counts.push(1);
        self.counts.len() as u32
    }

    /// The row of the present token, a new one if there is none.
    fn row(&mut self) -> u32 {
        let hash = self.token.chunks(4).fold(0, |hash, four| {
            let four = four.iter().fold(0, |four, value| four << 16 | u64::from(*value));
            (hash ^ four).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        });
        let mask = self.table.len() - 1;
        let mut place = (hash >> 32) as usize & mask;
        loop {
            let (round, row) = self.table[place];
            if round != self.round {
                let row = self.new_row();
                self.table[place] = (self.round, row);
                return row;
            }
            let width = self.token.len();
            if self.tokens[(row as usize - 1) * width..][..width].iter().eq(&self.token) {
                self.counts[row as usize - 1] += 1;
                return row;
            }
            place = (place + 1) & mask;
        }
    }

    /// What the network reads.
    pub fn rows(&self) -> Rows<'_> {
        Rows { idle: &self.idle, jobs: &self.tokens, bias: &self.bias, sparsity: self.sparsity }
    }

    /// Keeps only half the keys of sparse attention.
    pub fn halve_attention(&mut self) {
        self.sparsity = self.sparsity.map(Sparsity::halved);
    }

    /// Each ready job with its row, counted from 1.
    pub fn jobs(&self) -> &[(JobId, u32)] {
        &self.jobs
    }

    /// The token of a row, counted from 1.
    pub fn token(&self, row: u32) -> &[u16] {
        let width = self.tokens.len() / self.counts.len().max(1);
        &self.tokens[(row as usize - 1) * width..][..width]
    }

    /// Rows without the idle one.
    pub fn distinct(&self) -> usize {
        self.counts.len()
    }

    /// Share of the jobs with less slack than one bin.
    pub fn urgent(&self) -> f32 {
        self.urgent
    }
}
