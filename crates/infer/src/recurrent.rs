//! The forward pass of a recurrent network: an LSTM over the sequence of decisions. It is a baseline, computed in plain loops.
//!
//! Each row goes through a hidden layer. The sum over all rows, each as many times as it stands for jobs, is normalized and is the input of the LSTM. Its
//! output joins each row in a second hidden layer, which the heads read. The state is zero at the start of a run and changes with each forward pass.
//!
//! Papers: Hochreiter and Schmidhuber, "Long Short-Term Memory" (1997); Hausknecht and Stone, "Deep Recurrent Q-Learning for Partially Observable MDPs"
//! (2015), which puts the LSTM between the encoder and the heads.

use std::sync::Arc;

use crate::graph::{add_and_norm, multiplicity};
use crate::network::Forward;
use crate::plain::{Embeddings, Linear, PlainHead, rectify};
use crate::{Rows, Weights};

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
pub(crate) struct Recurrent {
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
    pub(crate) fn new(weights: &Weights) -> Recurrent {
        let linear = |name: &str| Linear::new(weights, name);
        let without_bias = |name: &str, outputs: usize| {
            Linear::of(weights.tensor(&format!("{name}.weight")), &vec![0.0; outputs], outputs)
        };
        let norm = ["weight", "bias"].map(|part| weights.tensor(&format!("pool_norm.{part}")).to_vec());
        let [weight, bias] = norm;
        let (width, hidden) = (weights.architecture.memory.unwrap_or(0), weights.architecture.feed_forward);
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
