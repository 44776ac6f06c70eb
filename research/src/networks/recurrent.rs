//! A recurrent network: an LSTM over the sequence of decisions, whose output joins each row.
//!
//! Each row goes through a hidden layer. The sum over all rows, each as many times as it stands for jobs, is normalized
//! and is the input of the LSTM. Its output joins each row in a second hidden layer, which the heads read. The state is
//! zero at the start of a run and changes with each forward pass.
//!
//! Papers: Hochreiter and Schmidhuber, "Long Short-Term Memory" (1997); Hausknecht and Stone, "Deep Recurrent
//! Q-Learning for Partially Observable MDPs" (2015), which puts the LSTM between the encoder and the heads.

use std::sync::Arc;

use temponet_grad::{Operations, Segments, TensorId, Var};
use temponet_infer::{Architecture, BodyKind, Forward, Rows, Weights, within};
use temponet_train::{BodyInput, BodyOutput, PastBatch, TapeBody, owners, places};

use super::lstm::{CellOutput, CellState};
use super::plain::{Embeddings, Linear, PlainHead, add_and_norm, multiplicity, rectify};

/// Kind of body of a recurrent network. Its size is the width of the state.
pub struct RecurrentKind;

impl BodyKind for RecurrentKind {
    fn key(&self) -> &'static str {
        "memory"
    }

    fn summary(&self, width: usize) -> String {
        format!("LSTM of width {width} instead of attention")
    }

    fn problem(&self, width: usize, _architecture: &Architecture) -> Option<String> {
        within("memory", width, 1024)
    }

    fn tensors(&self, width: usize, architecture: &Architecture) -> Vec<(String, usize, usize)> {
        let (d, f) = (architecture.width, architecture.feed_forward);
        let tensors = [
            ("rows.weight", f, d),
            ("rows.bias", 1, f),
            ("pool_norm.weight", 1, f),
            ("pool_norm.bias", 1, f),
            ("memory.input.weight", 4 * width, f),
            ("memory.input.bias", 1, 4 * width),
            ("memory.state.weight", 4 * width, width),
            ("join.row.weight", f, f),
            ("join.row.bias", 1, f),
            ("join.memory.weight", f, width),
            ("head.job.weight", 1, f),
            ("head.job.bias", 1, 1),
            ("head.idle.weight", 1, f),
            ("head.idle.bias", 1, 1),
        ];
        tensors.into_iter().map(|(name, rows, columns)| (name.into(), rows, columns)).collect()
    }

    fn head_width(&self, architecture: &Architecture) -> usize {
        architecture.feed_forward
    }

    fn operations(&self, width: usize, architecture: &Architecture, rows: usize) -> usize {
        let (d, f) = (architecture.width, architecture.feed_forward);
        2 * (rows * (d * f + f * f) + 4 * width * (f + width) + width * f)
    }

    fn network(&self, width: usize, weights: &Weights) -> Box<dyn Forward> {
        Box::new(Recurrent::new(width, weights))
    }
}

/// Weights of a recurrent network.
struct Prepared {
    embeddings: Embeddings,
    rows: Linear,
    pool_norm: (Vec<f32>, Vec<f32>),
    /// Maps of the pooled rows and of the last output to the four gates.
    input: Linear,
    state: Linear,
    /// Maps of a row and of the output to the second hidden layer.
    join_row: Linear,
    join_memory: Linear,
    job_head: PlainHead,
    idle_head: PlainHead,
}

/// Recurrent network that is ready to run, with its state and its working memory.
struct Recurrent {
    prepared: Arc<Prepared>,
    /// Output and cell state of the LSTM.
    output: Vec<f32>,
    cell: Vec<f32>,
    row: Vec<f32>,
    units: Vec<f32>,
    /// First hidden layer of all rows.
    hidden: Vec<f32>,
    pooled: Vec<f32>,
    gates: Vec<f32>,
    /// What the memory adds to the second hidden layer of each row, and that layer of one row.
    memory: Vec<f32>,
    joined: Vec<f32>,
}

impl Recurrent {
    /// Creates a network from weights of a recurrent network.
    fn new(width: usize, weights: &Weights) -> Recurrent {
        let linear = |name: &str| Linear::new(weights, name);
        let without_bias = |name: &str, outputs: usize| {
            Linear::of(weights.tensor(&format!("{name}.weight")), &vec![0.0; outputs], outputs)
        };
        let norm = ["weight", "bias"].map(|part| weights.tensor(&format!("pool_norm.{part}")).to_vec());
        let [weight, bias] = norm;
        let hidden = weights.architecture.feed_forward;
        Recurrent::over(Arc::new(Prepared {
            embeddings: Embeddings::new(weights),
            rows: linear("rows"),
            pool_norm: (weight, bias),
            input: linear("memory.input"),
            state: without_bias("memory.state", 4 * width),
            join_row: linear("join.row"),
            join_memory: without_bias("join.memory", hidden),
            job_head: PlainHead::new(weights, "head.job"),
            idle_head: PlainHead::new(weights, "head.idle"),
        }))
    }

    fn over(prepared: Arc<Prepared>) -> Recurrent {
        let (width, hidden) = (prepared.state.bias.len() / 4, prepared.rows.bias.len());
        Recurrent {
            output: vec![0.0; width],
            cell: vec![0.0; width],
            row: vec![0.0; prepared.embeddings.width],
            units: vec![0.0; prepared.embeddings.units()],
            hidden: Vec::new(),
            pooled: vec![0.0; hidden],
            gates: vec![0.0; 4 * width],
            memory: vec![0.0; hidden],
            joined: vec![0.0; hidden],
            prepared,
        }
    }

    /// Moves the state on by one decision, from the pooled rows.
    fn step(&mut self) {
        let Recurrent { prepared, output, cell, pooled, gates, .. } = self;
        prepared.input.apply(pooled, gates);
        prepared.state.add(output, gates);
        let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
        let width = cell.len();
        for (unit, (output, cell)) in output.iter_mut().zip(cell).enumerate() {
            let gate = |part: usize| gates[part * width + unit];
            *cell = sigmoid(gate(1)) * *cell + sigmoid(gate(0)) * gate(2).tanh();
            *output = sigmoid(gate(3)) * cell.tanh();
        }
    }
}

impl Forward for Recurrent {
    fn forward(&mut self, rows: &Rows<'_>, q: &mut Vec<f32>) {
        let prepared = self.prepared.clone();
        let (embeddings, width) = (&prepared.embeddings, self.pooled.len());
        let count = embeddings.count(rows) + 1;
        self.hidden.resize(count * width, 0.0);
        self.pooled.fill(0.0);
        for (place, hidden) in self.hidden.chunks_exact_mut(width).enumerate() {
            match place {
                0 => embeddings.idle(rows, &mut self.row),
                _ => embeddings.job(rows, place - 1, &mut self.units, &mut self.row),
            }
            prepared.rows.apply(&self.row, hidden);
            rectify(hidden);
            let times = multiplicity(rows.bias.get(place).copied().unwrap_or(0.0));
            self.pooled.iter_mut().zip(&*hidden).for_each(|(sum, unit)| *sum += times * unit);
        }
        add_and_norm(&mut self.pooled, None, &prepared.pool_norm);
        self.step();
        prepared.join_memory.apply(&self.output, &mut self.memory);
        q.clear();
        for (place, hidden) in self.hidden.chunks_exact(width).enumerate() {
            prepared.join_row.apply(hidden, &mut self.joined);
            self.joined.iter_mut().zip(&self.memory).for_each(|(sum, memory)| *sum += memory);
            rectify(&mut self.joined);
            q.push(if place == 0 { &prepared.idle_head } else { &prepared.job_head }.of(&self.joined));
        }
    }

    fn reset(&mut self) {
        self.output.fill(0.0);
        self.cell.fill(0.0);
    }

    fn again(&self) -> Box<dyn Forward> {
        Box::new(Recurrent::over(self.prepared.clone()))
    }
}

/// Recurrent network on the tape. It computes what [`Recurrent`] computes.
///
/// A sample carries its past: the LSTM's state some decisions ago, and the observations since. The pass goes through
/// them again, so that gradients flow back to the first of them and no further (truncated backpropagation through
/// time).
#[derive(Debug)]
struct RecurrentOnTape {
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

/// Finds the tensors of a recurrent network.
pub(super) fn on_tape(width: usize, _architecture: &Architecture, id: &dyn Fn(&str) -> TensorId) -> Arc<dyn TapeBody> {
    let pair = |name: &str| (id(&format!("{name}.weight")), id(&format!("{name}.bias")));
    Arc::new(RecurrentOnTape {
        width,
        rows: pair("rows"),
        pool_norm: pair("pool_norm"),
        input: pair("memory.input"),
        state: id("memory.state.weight"),
        join_row: pair("join.row"),
        join_memory: id("join.memory.weight"),
        job_head: pair("head.job"),
    })
}

impl TapeBody for RecurrentOnTape {
    fn forward(&self, tape: &mut dyn Operations, input: &BodyInput<'_>) -> BodyOutput {
        let BodyInput { batch, output_rows, x, past } = *input;
        let samples = batch.segments.len();
        let (hidden, pooled) = self.pool(tape, x, &batch.segments, &batch.bias);
        let mut memory = match (&batch.past, past) {
            (Some(past), Some(past_x)) => self.recall(tape, past, past_x),
            _ => [(); 2].map(|()| tape.input(samples, self.width, &vec![0.0; samples * self.width])),
        };
        memory = self.step(tape, samples, pooled, memory);
        let from_memory = tape.linear(memory[0], self.join_memory, None);
        let rows = tape.gather(hidden, &output_rows.rows);
        let rows = tape.linear(rows, self.join_row.0, Some(self.join_row.1));
        let from_memory = tape.gather(from_memory, &owners(&output_rows.segments));
        let joined = tape.add(rows, from_memory);
        let joined = tape.relu(joined);
        let (idle, jobs) = places(&output_rows.segments);
        let (idle_rows, job_rows) = (tape.gather(joined, &idle), tape.gather(joined, &jobs));
        let job_q = tape.linear(job_rows, self.job_head.0, Some(self.job_head.1));
        BodyOutput { idle_rows, jobs: vec![(job_q, jobs)], memory: Some((memory[0], memory[1])) }
    }
}

impl RecurrentOnTape {
    /// Computes the first hidden layer of some rows, and its normalized sum over the rows of each sample.
    fn pool(&self, tape: &mut dyn Operations, x: Var, segments: &Segments, bias: &[f32]) -> (Var, Var) {
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
    fn recall(&self, tape: &mut dyn Operations, past: &PastBatch, x: Var) -> [Var; 2] {
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
            let pooled = tape.gather(pooled, &seen);
            let before = memory.map(|var| tape.gather(var, &goes_on));
            let after = self.step(tape, goes_on.len(), pooled, before);
            if rests.is_empty() {
                memory = after;
                continue;
            }
            let same = memory.map(|var| tape.gather(var, &rests));
            memory = [0, 1].map(|half| tape.combine(samples, &[(after[half], &goes_on), (same[half], &rests)]));
        }
        memory
    }

    /// Moves the LSTMs of some samples on by one decision: their outputs and cell states.
    fn step(&self, tape: &mut dyn Operations, samples: usize, pooled: Var, [output, cell]: [Var; 2]) -> [Var; 2] {
        let input = tape.linear(pooled, self.input.0, Some(self.input.1));
        let state = tape.linear(output, self.state, None);
        let gates = tape.add(input, state);
        let (shape, width) = ((samples, self.width), self.width);
        let cell = tape.on_processor(&[gates, cell], shape, Arc::new(CellState { width }));
        [tape.on_processor(&[gates, cell], shape, Arc::new(CellOutput { width })), cell]
    }
}
