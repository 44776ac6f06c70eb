//! The forward pass of a graph network: message passing over the complete graph of the rows. It is a baseline, computed in plain loops.
//!
//! In each layer a row receives from every row j, itself included, the message max(0, M x_j + e) as many times as there are equal jobs. The vector e is that
//! of the relation between the two rows ([`Relations`]). The sum is normalized, so that its size does not depend on the number of jobs, and is mapped and
//! added to the row as the result of an attention would be. The rest of a layer is that of a Transformer block.
//!
//! Papers: Gilmer et al., "Neural Message Passing for Quantum Chemistry" (2017), with the messages of Hu et al., "Strategies for Pre-training Graph Neural
//! Networks" (2020).

use std::sync::Arc;

use crate::network::Forward;
use crate::plain::{Embeddings, Linear, PlainHead, rectify};
use crate::reference::EPSILON;
use crate::{Relations, Rows, Weights};

/// Weights of a layer.
struct Layer {
    message: Linear,
    /// Vector of each relation.
    relation: Vec<f32>,
    message_norm: (Vec<f32>, Vec<f32>),
    output: Linear,
    update_norm: (Vec<f32>, Vec<f32>),
    up: Linear,
    down: Linear,
    feed_forward_norm: (Vec<f32>, Vec<f32>),
}

/// Weights of a graph network.
struct Prepared {
    embeddings: Embeddings,
    relations: Relations,
    layers: Vec<Layer>,
    job_head: PlainHead,
    idle_head: PlainHead,
}

/// Graph network that is ready to run, with its working memory.
pub(crate) struct Graph {
    prepared: Arc<Prepared>,
    /// All rows, their messages before the relation is added, and the sums of messages.
    x: Vec<f32>,
    messages: Vec<f32>,
    sums: Vec<f32>,
    /// Hidden units of the real-valued inputs and of the feed-forward part, and a change of a row.
    units: Vec<f32>,
    hidden: Vec<f32>,
    change: Vec<f32>,
}

impl Graph {
    /// Creates a network from weights of a graph network; `None` if its jobs lack a feature that relations are read from.
    pub(crate) fn new(weights: &Weights) -> Option<Graph> {
        let shape = &weights.architecture;
        let layer = |layer: usize| {
            let linear = |name: &str| Linear::new(weights, &format!("layers.{layer}.{name}"));
            let tensor = |name: &str| weights.tensor(&format!("layers.{layer}.{name}")).to_vec();
            let norm = |name: &str| (tensor(&format!("{name}.weight")), tensor(&format!("{name}.bias")));
            Layer {
                message: linear("message"),
                relation: tensor("relation"),
                message_norm: norm("message_norm"),
                output: linear("output"),
                update_norm: norm("update_norm"),
                up: linear("feed_forward.up"),
                down: linear("feed_forward.down"),
                feed_forward_norm: norm("feed_forward_norm"),
            }
        };
        Some(Graph::over(Arc::new(Prepared {
            embeddings: Embeddings::new(weights),
            relations: Relations::of(shape)?,
            layers: (0..shape.layers).map(layer).collect(),
            job_head: PlainHead::new(weights, "head.job"),
            idle_head: PlainHead::new(weights, "head.idle"),
        })))
    }

    fn over(prepared: Arc<Prepared>) -> Graph {
        let units = vec![0.0; prepared.embeddings.units()];
        let hidden = prepared.layers.first().map_or(0, |layer| layer.up.bias.len());
        let change = vec![0.0; prepared.embeddings.width];
        let (x, messages, sums) = (Vec::new(), Vec::new(), Vec::new());
        Graph { x, messages, sums, units, hidden: vec![0.0; hidden], change, prepared }
    }

    /// Sums up the messages that each row receives.
    fn exchange(&mut self, layer: &Layer, rows: &Rows<'_>) {
        let Graph { prepared, x, messages, sums, .. } = self;
        let width = prepared.embeddings.width;
        let own = x.chunks_exact(width).zip(messages.chunks_exact_mut(width));
        own.for_each(|(row, message)| layer.message.apply(row, message));
        let token = |row: usize| (row > 0).then(|| prepared.embeddings.token(rows, row - 1));
        for (target, sum) in sums.chunks_exact_mut(width).enumerate() {
            sum.fill(0.0);
            for (source, message) in messages.chunks_exact(width).enumerate() {
                let relation = prepared.relations.between(token(source), token(target));
                let relation = &layer.relation[relation * width..][..width];
                let times = multiplicity(rows.bias.get(source).copied().unwrap_or(0.0));
                let terms = message.iter().zip(relation);
                sum.iter_mut().zip(terms).for_each(|(sum, (a, b))| *sum += times * (a + b).max(0.0));
            }
        }
    }
}

/// Number of equal jobs that a row with this attention bias stands for.
pub fn multiplicity(bias: f32) -> f32 {
    bias.exp().round()
}

/// Adds `change` to a row, if there is one, and normalizes it.
pub(crate) fn add_and_norm(row: &mut [f32], change: Option<&[f32]>, (weight, bias): &(Vec<f32>, Vec<f32>)) {
    if let Some(change) = change {
        row.iter_mut().zip(change).for_each(|(row, change)| *row += change);
    }
    let mean = row.iter().sum::<f32>() / row.len() as f32;
    let variance = row.iter().map(|value| (value - mean) * (value - mean)).sum::<f32>() / row.len() as f32;
    let scale = 1.0 / (variance + EPSILON).sqrt();
    let parameters = weight.iter().zip(bias);
    row.iter_mut().zip(parameters).for_each(|(value, (weight, bias))| *value = (*value - mean) * scale * weight + bias);
}

impl Forward for Graph {
    fn forward(&mut self, rows: &Rows<'_>, q: &mut Vec<f32>) {
        let prepared = self.prepared.clone();
        let (embeddings, width) = (&prepared.embeddings, prepared.embeddings.width);
        let count = embeddings.count(rows) + 1;
        for buffer in [&mut self.x, &mut self.messages, &mut self.sums] {
            buffer.resize(count * width, 0.0);
        }
        for (place, row) in self.x.chunks_exact_mut(width).enumerate() {
            match place {
                0 => embeddings.idle(rows, row),
                _ => embeddings.job(rows, place - 1, &mut self.units, row),
            }
        }
        for layer in &prepared.layers {
            self.exchange(layer, rows);
            for (row, sum) in self.x.chunks_exact_mut(width).zip(self.sums.chunks_exact_mut(width)) {
                add_and_norm(sum, None, &layer.message_norm);
                layer.output.apply(sum, &mut self.change);
                add_and_norm(row, Some(&self.change), &layer.update_norm);
                layer.up.apply(row, &mut self.hidden);
                rectify(&mut self.hidden);
                layer.down.apply(&self.hidden, &mut self.change);
                add_and_norm(row, Some(&self.change), &layer.feed_forward_norm);
            }
        }
        let (idle, jobs) = self.x.split_at(width);
        q.clear();
        q.push(prepared.idle_head.of(idle));
        q.extend(jobs.chunks_exact(width).map(|row| prepared.job_head.of(row)));
    }

    fn again(&self) -> Box<dyn Forward> {
        Box::new(Graph::over(self.prepared.clone()))
    }
}
