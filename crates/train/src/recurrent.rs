//! The recurrent network on the tape, as `crates/infer/src/recurrent.rs` computes it: an LSTM over the decisions, whose output joins each row.
//!
//! A sample carries its past: the LSTM's state some decisions ago, and the observations since. The pass goes through them again, so that gradients flow back
//! to the first of them and no further (truncated backpropagation through time).

use temponet_grad::{Device, RowNumbers, Segments, Tape, TensorId, Var};
use temponet_infer::multiplicity;

use crate::sample::{Batch, PastBatch, owners, places};
use crate::tape_network::OutputRows;

/// Tensors of the recurrent network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recurrent {
    /// Width of the state.
    width: usize,
    rows: (TensorId, TensorId),
    pool_norm: (TensorId, TensorId),
    input: (TensorId, TensorId),
    state: TensorId,
    join_row: (TensorId, TensorId),
    join_memory: TensorId,
    job_head: (TensorId, TensorId),
}

/// Results of a recurrent network before its idle and value heads.
pub(crate) struct RecurrentOutput<D: Device> {
    /// Second hidden layer of the idle rows, and their places among the output rows.
    pub idle_rows: Var,
    pub idle: RowNumbers<D>,
    /// Outputs of the job rows, and their places.
    pub job_q: Var,
    pub jobs: RowNumbers<D>,
    /// Output and cell state of the LSTM after this decision.
    pub memory: (Var, Var),
}

impl Recurrent {
    /// Finds the tensors of a network whose state has this width.
    pub(crate) fn new(width: usize, id: impl Fn(&str) -> TensorId) -> Recurrent {
        let pair = |name: &str| (id(&format!("{name}.weight")), id(&format!("{name}.bias")));
        Recurrent {
            width,
            rows: pair("rows"),
            pool_norm: pair("pool_norm"),
            input: pair("memory.input"),
            state: id("memory.state.weight"),
            join_row: pair("join.row"),
            join_memory: id("join.memory.weight"),
            job_head: pair("head.job"),
        }
    }

    /// Computes the outputs of a batch from its embedded rows and those of its past.
    pub(crate) fn forward<D: Device>(
        &self,
        tape: &mut Tape<'_, D>,
        batch: &Batch,
        output_rows: &OutputRows,
        x: Var,
        past_x: Option<Var>,
    ) -> RecurrentOutput<D> {
        let samples = batch.segments.len();
        let (hidden, pooled) = self.pool(tape, x, &batch.segments, &batch.bias);
        let mut memory = match (&batch.past, past_x) {
            (Some(past), Some(past_x)) => self.recall(tape, past, past_x),
            _ => [(); 2].map(|()| tape.input(samples, self.width, &vec![0.0; samples * self.width])),
        };
        memory = self.step(tape, pooled, memory);
        let from_memory = tape.linear(memory[0], self.join_memory, None);
        let selected = tape.numbers(&output_rows.rows);
        let rows = tape.gather(hidden, &selected);
        let rows = tape.linear(rows, self.join_row.0, Some(self.join_row.1));
        let owners: Vec<u32> = owners(&output_rows.segments);
        let owners = tape.numbers(&owners);
        let from_memory = tape.gather(from_memory, &owners);
        let joined = tape.add(rows, from_memory);
        let joined = tape.relu(joined);
        let (idle, jobs) = places(&output_rows.segments);
        let (idle, jobs) = (tape.numbers(&idle), tape.numbers(&jobs));
        let (idle_rows, job_rows) = (tape.gather(joined, &idle), tape.gather(joined, &jobs));
        let job_q = tape.linear(job_rows, self.job_head.0, Some(self.job_head.1));
        RecurrentOutput { idle_rows, idle, job_q, jobs, memory: (memory[0], memory[1]) }
    }

    /// Computes the first hidden layer of some rows, and its normalized sum over the rows of each sample.
    fn pool<D: Device>(&self, tape: &mut Tape<'_, D>, x: Var, segments: &Segments, bias: &[f32]) -> (Var, Var) {
        let up = tape.linear(x, self.rows.0, Some(self.rows.1));
        let hidden = tape.relu(up);
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for (row, owner) in owners(segments).into_iter().enumerate() {
            let times = multiplicity(bias[row]) as usize;
            from.extend(std::iter::repeat_n(row as u32, times));
            to.extend(std::iter::repeat_n(owner, times));
        }
        let sums = tape.message_sum(hidden, segments.len(), &from, &to);
        (hidden, tape.norm(sums, None, self.pool_norm.0, self.pool_norm.1))
    }

    /// Goes through the past of each sample, and returns the LSTM's output and cell state after it.
    fn recall<D: Device>(&self, tape: &mut Tape<'_, D>, past: &PastBatch, x: Var) -> [Var; 2] {
        let samples = past.lengths.len();
        let part = |half: usize| -> Vec<f32> {
            let states = past.states.chunks_exact(2 * self.width);
            states.flat_map(|state| &state[half * self.width..(half + 1) * self.width]).copied().collect()
        };
        let mut memory = [0, 1].map(|half| tape.input(samples, self.width, &part(half)));
        if past.rows.segments.is_empty() {
            return memory;
        }
        let (_, pooled) = self.pool(tape, x, &past.rows.segments, &past.rows.bias);
        let firsts: Vec<u32> = Segments::of_lengths(past.lengths.iter().copied()).starts().to_vec();
        for time in 0..past.lengths.iter().copied().max().unwrap_or(0) {
            let (goes_on, rests): (Vec<u32>, Vec<u32>) =
                (0..samples as u32).partition(|sample| past.lengths[*sample as usize] > time);
            let seen: Vec<u32> = goes_on.iter().map(|sample| firsts[*sample as usize] + time as u32).collect();
            let (on, seen) = (tape.numbers(&goes_on), tape.numbers(&seen));
            let pooled = tape.gather(pooled, &seen);
            let before = memory.map(|var| tape.gather(var, &on));
            let after = self.step(tape, pooled, before);
            if rests.is_empty() {
                memory = after;
                continue;
            }
            let rests = tape.numbers(&rests);
            let same = memory.map(|var| tape.gather(var, &rests));
            memory = [0, 1].map(|half| tape.combine(samples, &[(after[half], &on), (same[half], &rests)]));
        }
        memory
    }

    /// Moves the LSTM on by one decision: its output and cell state.
    fn step<D: Device>(&self, tape: &mut Tape<'_, D>, pooled: Var, [output, cell]: [Var; 2]) -> [Var; 2] {
        let input = tape.linear(pooled, self.input.0, Some(self.input.1));
        let state = tape.linear(output, self.state, None);
        let gates = tape.add(input, state);
        let cell = tape.lstm_cell(gates, cell);
        [tape.lstm_output(gates, cell), cell]
    }
}
