//! A graph network: message passing over the complete graph of the rows, in place of attention.
//!
//! In each layer a row receives from every row j, itself included, the message max(0, M x_j + e) as many times as there
//! are equal jobs. The vector e is that of the relation between the two rows ([`Relations`]). The sum is normalized, so
//! that its size does not depend on the number of jobs, and is mapped and added to the row as the result of an
//! attention would be. The rest of a layer is that of a Transformer block.
//!
//! Papers: Gilmer et al., "Neural Message Passing for Quantum Chemistry" (2017), with the messages of Hu et al.,
//! "Strategies for Pre-training Graph Neural Networks" (2020).

use std::sync::Arc;

use temponet_grad::{Operations, TensorId, Var};
use temponet_infer::{Architecture, BodyKind, Forward, Rows, Weights};
use temponet_train::{Batch, BodyInput, BodyOutput, TapeBody, places};

use super::plain::{Embeddings, Linear, PlainHead, add_and_norm, multiplicity, rectify};
use super::relations::Relations;

/// Kind of body of a graph network.
pub struct GraphKind;

impl BodyKind for GraphKind {
    fn key(&self) -> &'static str {
        "graph"
    }

    fn summary(&self, _size: usize) -> String {
        "messages over a graph instead of attention".into()
    }

    fn problem(&self, _size: usize, architecture: &Architecture) -> Option<String> {
        let is_lacking = Relations::of(architecture).is_none();
        is_lacking.then(|| "a graph network needs the job features \"due\" and \"core\"".into())
    }

    fn tensors(&self, _size: usize, architecture: &Architecture) -> Vec<(String, usize, usize)> {
        let (d, f) = (architecture.width, architecture.feed_forward);
        let mut tensors = Vec::new();
        for layer in 0..architecture.layers {
            let mut add = |name: &str, rows: usize, columns: usize| {
                tensors.push((format!("layers.{layer}.{name}"), rows, columns));
            };
            for map in ["message", "output"] {
                add(&format!("{map}.weight"), d, d);
                add(&format!("{map}.bias"), 1, d);
            }
            add("relation", Relations::COUNT, d);
            add("feed_forward.up.weight", f, d);
            add("feed_forward.up.bias", 1, f);
            add("feed_forward.down.weight", d, f);
            add("feed_forward.down.bias", 1, d);
            for norm in ["message_norm", "update_norm", "feed_forward_norm"] {
                add(&format!("{norm}.weight"), 1, d);
                add(&format!("{norm}.bias"), 1, d);
            }
        }
        for head in ["job", "idle"] {
            tensors.push((format!("head.{head}.weight"), 1, d));
            tensors.push((format!("head.{head}.bias"), 1, 1));
        }
        tensors
    }

    fn head_width(&self, architecture: &Architecture) -> usize {
        architecture.width
    }

    fn operations(&self, _size: usize, architecture: &Architecture, rows: usize) -> usize {
        let (d, f, layers) = (architecture.width, architecture.feed_forward, architecture.layers);
        (2 * layers * (2 * d * d + 2 * d * f) + 3 * layers * d * rows) * rows
    }

    fn network(&self, _size: usize, weights: &Weights) -> Box<dyn Forward> {
        Box::new(Graph::new(weights))
    }
}

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

/// Why [`Relations::of`] finds the features of a valid architecture.
const RELATED: &str = "a valid graph network has the features of its relations";

/// Graph network that is ready to run, with its working memory.
struct Graph {
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
    /// Creates a network from weights of a graph network.
    ///
    /// # Panics
    ///
    /// Panics if the architecture is not valid.
    fn new(weights: &Weights) -> Graph {
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
        Graph::over(Arc::new(Prepared {
            embeddings: Embeddings::new(weights),
            relations: Relations::of(shape).expect(RELATED),
            layers: (0..shape.layers).map(layer).collect(),
            job_head: PlainHead::new(weights, "head.job"),
            idle_head: PlainHead::new(weights, "head.idle"),
        }))
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

/// Ids of a weight and a bias.
type TapeLinear = (TensorId, TensorId);

/// Tensors of one layer.
#[derive(Clone, Copy, Debug)]
struct TapeLayer {
    message: TapeLinear,
    relation: TensorId,
    message_norm: TapeLinear,
    output: TapeLinear,
    update_norm: TapeLinear,
    up: TapeLinear,
    down: TapeLinear,
    feed_forward_norm: TapeLinear,
}

/// Graph network on the tape. It computes what [`Graph`] computes.
#[derive(Debug)]
struct GraphOnTape {
    relations: Relations,
    layers: Vec<TapeLayer>,
    job_head: TapeLinear,
}

/// Edges of the graphs of a batch.
struct Edges {
    /// Row and relation of each different message.
    rows: Vec<u32>,
    relations: Vec<u32>,
    /// For each edge its message and the row that receives it. A row that stands for several jobs has as many edges.
    from: Vec<u32>,
    to: Vec<u32>,
}

/// Finds the tensors of a graph network.
pub(super) fn on_tape(_size: usize, architecture: &Architecture, id: &dyn Fn(&str) -> TensorId) -> Arc<dyn TapeBody> {
    let pair = |name: &str| (id(&format!("{name}.weight")), id(&format!("{name}.bias")));
    let layer = |layer: usize| {
        let pair = |name: &str| pair(&format!("layers.{layer}.{name}"));
        TapeLayer {
            message: pair("message"),
            relation: id(&format!("layers.{layer}.relation")),
            message_norm: pair("message_norm"),
            output: pair("output"),
            update_norm: pair("update_norm"),
            up: pair("feed_forward.up"),
            down: pair("feed_forward.down"),
            feed_forward_norm: pair("feed_forward_norm"),
        }
    };
    let layers = (0..architecture.layers).map(layer).collect();
    let relations = Relations::of(architecture).expect(RELATED);
    Arc::new(GraphOnTape { relations, layers, job_head: pair("head.job") })
}

impl TapeBody for GraphOnTape {
    fn forward(&self, tape: &mut dyn Operations, input: &BodyInput<'_>) -> BodyOutput {
        let x = self.layers(tape, input.batch, input.x);
        let (idle, jobs) = places(&input.output_rows.segments);
        let [idle_rows, job_rows] = [&idle, &jobs].map(|places| {
            let rows: Vec<u32> = places.iter().map(|place| input.output_rows.rows[*place as usize]).collect();
            tape.gather(x, &rows)
        });
        let job_q = tape.linear(job_rows, self.job_head.0, Some(self.job_head.1));
        BodyOutput { idle_rows, jobs: vec![(job_q, jobs)], memory: None }
    }
}

impl GraphOnTape {
    /// Computes the last rows of a batch from its embedded rows.
    fn layers(&self, tape: &mut dyn Operations, batch: &Batch, mut x: Var) -> Var {
        let edges = Edges::of(self.relations, batch);
        for layer in &self.layers {
            let own = tape.linear(x, layer.message.0, Some(layer.message.1));
            let own = tape.gather(own, &edges.rows);
            let relation = tape.table_rows(layer.relation, &edges.relations);
            let message = tape.add(own, relation);
            let message = tape.relu(message);
            let sums = tape.message_sum(message, batch.segments.rows(), &edges.from, &edges.to);
            let sums = tape.norm(sums, None, layer.message_norm.0, layer.message_norm.1);
            let change = tape.linear(sums, layer.output.0, Some(layer.output.1));
            x = tape.norm(x, Some(change), layer.update_norm.0, layer.update_norm.1);
            let up = tape.linear(x, layer.up.0, Some(layer.up.1));
            let hidden = tape.relu(up);
            let change = tape.linear(hidden, layer.down.0, Some(layer.down.1));
            x = tape.norm(x, Some(change), layer.feed_forward_norm.0, layer.feed_forward_norm.1);
        }
        x
    }
}

impl Edges {
    fn of(relations: Relations, batch: &Batch) -> Edges {
        let features = batch.jobs.len();
        let mut tokens = vec![0u16; batch.segments.rows() * features];
        for (feature, values) in batch.jobs.iter().enumerate() {
            let places = batch.job_places.iter().zip(values);
            places.for_each(|(row, value)| tokens[*row as usize * features + feature] = *value as u16);
        }
        let mut edges = Edges { rows: Vec::new(), relations: Vec::new(), from: Vec::new(), to: Vec::new() };
        for own in batch.segments.ranges() {
            let token = |row: usize| (row > own.start).then(|| &tokens[row * features..(row + 1) * features]);
            for source in own.clone() {
                let times = multiplicity(batch.bias[source]) as usize;
                // Number of the source's message with each relation, once it is needed.
                let mut messages = [None; Relations::COUNT];
                for target in own.clone() {
                    let relation = relations.between(token(source), token(target));
                    let message = *messages[relation].get_or_insert_with(|| {
                        edges.rows.push(source as u32);
                        edges.relations.push(relation as u32);
                        edges.rows.len() as u32 - 1
                    });
                    edges.from.extend(std::iter::repeat_n(message, times));
                    edges.to.extend(std::iter::repeat_n(target as u32, times));
                }
            }
        }
        edges
    }
}
