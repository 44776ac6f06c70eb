//! The network on the tape, to compute gradients with.
//!
//! It has the same tensors by the same names as the deployed network, and a value head that only training needs. Between the embeddings and
//! the heads there is a Transformer, message passing over a graph, or hidden layers for a fixed number of tasks.

use std::ops::Range;
use std::sync::Arc;

use temponet_grad::{Device, Embedding, KeyLists, RowNumbers, Segments, Tape, TensorId, Tensors, Var};
use temponet_infer::{Architecture, KeptKeys, Sparsity, Weights};

use crate::distinct_rows::DistinctRows;
use crate::feed_forward::FeedForward;
use crate::graph_layers::GraphLayers;
use crate::recurrent::{Recurrent, RecurrentOutput};
use crate::sample::{Batch, places};

/// The network: its architecture and the ids of its tensors.
#[derive(Clone, Debug)]
pub struct TapeNetwork {
    /// Architecture.
    pub architecture: Architecture,
    job_tables: Vec<TensorId>,
    idle_tables: Vec<TensorId>,
    real: Option<Real>,
    body: Body,
    idle_head: Linear,
    value_head: Linear,
    /// Whether attention is the paper's sparse one; `false` unless it is set. The rows of each sample must then be jobs in deadline order.
    pub sparse: bool,
    /// Whether the value head gives the value of a state; `true` unless it is set. Otherwise that of a network with atoms is the output of idling.
    pub dueling: bool,
}

/// Ids of a weight and a bias.
type Linear = (TensorId, TensorId);

/// Part of the network between the embeddings and the heads.
#[derive(Clone, Debug)]
enum Body {
    Transformer(Transformer),
    FeedForward(FeedForward),
    Recurrent(Recurrent),
}

/// Map of a job row's real-valued inputs, through a hidden layer if there is one.
#[derive(Clone, Copy, Debug)]
struct Real {
    inputs: usize,
    hidden: Option<Linear>,
    map: Linear,
}

/// Blocks of the Transformer, and the head that makes Q-values of job rows.
#[derive(Clone, Debug)]
struct Transformer {
    layers: Vec<Layer>,
    job_head: Linear,
    /// Hidden layer and output of the actor, if there is one. The job head is then its critic.
    actor: Option<(Linear, Linear)>,
    /// Heads of the speeds below full speed.
    speed_heads: Vec<Linear>,
    /// Layers of message passing that take the place of the blocks in a graph network.
    graph: Option<GraphLayers>,
}

/// Embedded rows of a batch, the input of the Transformer.
struct Embedded<D: Device> {
    /// One row for each row of the batch, or one for each distinct row.
    x: Var,
    /// Number of the distinct row of each row of the batch, if `x` has only the distinct ones.
    distinct: Option<RowNumbers<D>>,
    /// Numbers of the idle rows in the batch.
    idle_places: RowNumbers<D>,
    /// Numbers of the job rows in the batch.
    job_places: RowNumbers<D>,
}

/// One block of the Transformer.
#[derive(Clone, Copy, Debug)]
struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    attention_norm: Linear,
    up: Linear,
    down: Linear,
    feed_forward_norm: Linear,
}

/// Rows whose outputs are needed, sample by sample, each with its idle row first. The last block of the Transformer computes only these.
#[derive(Clone, Debug)]
pub struct OutputRows {
    /// Numbers of the rows in the batch.
    pub rows: Vec<u32>,
    /// Rows of each sample.
    pub segments: Arc<Segments>,
    /// Number of jobs that each job row among them stands for.
    pub counts: Vec<u32>,
    /// Speed of each row, 0 for full speed and 1 + i for the network's speed `i`. Its output is that of running at this speed. Empty if all run at
    /// full speed.
    pub speeds: Vec<u8>,
}

impl OutputRows {
    /// Selects every row of a batch, at full speed.
    pub fn all(batch: &Batch) -> OutputRows {
        let rows = (0..batch.segments.rows() as u32).collect();
        OutputRows { rows, segments: batch.segments.clone(), counts: batch.counts.clone(), speeds: Vec::new() }
    }

    /// Sets the speed of the selected job rows, sample by sample. Idle rows have full speed.
    pub fn at_speeds<'a>(mut self, speeds: impl Iterator<Item = &'a [u8]>) -> OutputRows {
        self.speeds = speeds.flat_map(|own| std::iter::once(0).chain(own.iter().copied())).collect();
        assert_eq!(self.speeds.len(), self.rows.len());
        self
    }

    /// Selects the idle row of each sample and some of its other rows, which are numbered from the sample's first row.
    pub fn of<'a>(batch: &Batch, others: impl Iterator<Item = &'a [u32]>) -> OutputRows {
        let (mut rows, mut lengths, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for (sample, (range, others)) in batch.segments.ranges().zip(others).enumerate() {
            rows.push(range.start as u32);
            rows.extend(others.iter().map(|row| range.start as u32 + row));
            lengths.push(1 + others.len());
            // This sample and all before it have one idle row each, which has no count.
            counts.extend(others.iter().map(|row| batch.counts[range.start - sample + *row as usize - 1]));
        }
        OutputRows { rows, segments: Arc::new(Segments::of_lengths(lengths)), counts, speeds: Vec::new() }
    }
}

/// Outputs of a forward pass on the tape.
#[derive(Clone, Debug)]
pub struct TapeOutput {
    /// Q-value, or logit, of each output row, at its speed. A network with atoms has a logit for each of them, here and in the value.
    pub q: Var,
    /// Value of each sample's state.
    pub value: Var,
    /// Q-value of each output row by the critic; `None` for a network without an actor.
    pub critic: Option<Var>,
    /// Gain of each speed below full speed over full speed, for each job row among the output rows.
    pub gains: Vec<Var>,
    /// Real-valued inputs of all job rows of the batch; `None` for a network without them.
    pub real: Option<Var>,
    /// Output and cell state of a recurrent network's LSTM after each sample; `None` for other networks.
    pub memory: Option<(Var, Var)>,
}

/// Affine map of a network's outputs; see [`TapeNetwork::map_outputs`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutputMap {
    /// Scale and shift of the job outputs.
    pub job: (f32, f32),
    /// Constant that replaces the idle output.
    pub idle: f32,
    /// Scale and shift of the value.
    pub value: (f32, f32),
}

/// Name of the value head's tensors.
const VALUE_HEAD: &str = "head.value";

impl TapeNetwork {
    /// Puts weights on a device; returns the network and its parameters. A value head that the weights lack starts at zero.
    pub fn new<D: Device>(device: &mut D, weights: &Weights) -> (TapeNetwork, Tensors<D>) {
        let architecture = weights.architecture.clone();
        let mut tensors = Tensors::default();
        for (name, rows, columns) in architecture.tensors() {
            tensors.add(device, &name, rows, columns, weights.tensor(&name));
        }
        for (name, rows, columns) in architecture.training_tensors() {
            let mut values = weights.tensor(&name).to_vec();
            values.resize(rows * columns, 0.0);
            tensors.add(device, &name, rows, columns, &values);
        }
        let id = |name: &str| tensors.find(name).expect("every tensor of the architecture was just added");
        let pair = |name: &str| (id(&format!("{name}.weight")), id(&format!("{name}.bias")));
        let tables = |kind: &str, features: &[temponet_infer::Vocabulary]| {
            features.iter().map(|feature| id(&format!("embed.{kind}.{}", feature.name))).collect()
        };
        let layer = |layer: usize| {
            let pair = |name: &str| pair(&format!("layers.{layer}.{name}"));
            Layer {
                query: pair("attention.query"),
                key: pair("attention.key"),
                value: pair("attention.value"),
                output: pair("attention.output"),
                attention_norm: pair("attention_norm"),
                up: pair("feed_forward.up"),
                down: pair("feed_forward.down"),
                feed_forward_norm: pair("feed_forward_norm"),
            }
        };
        let real = architecture.real.map(|real| Real {
            inputs: real.inputs,
            hidden: (real.hidden > 0).then(|| pair("embed.real.hidden")),
            map: pair("embed.real"),
        });
        let body = match architecture.slots {
            Some(slots) => Body::FeedForward(FeedForward::new(slots, architecture.layers, id)),
            None if architecture.memory.is_some() => {
                Body::Recurrent(Recurrent::new(architecture.memory.unwrap_or_default(), id))
            }
            None => {
                let graph = architecture.graph.then(|| GraphLayers::new(&architecture, id));
                let layers = (0..architecture.layers).filter(|_| graph.is_none()).map(layer).collect();
                let actor = architecture.actor.map(|_| (pair("head.actor.hidden"), pair("head.actor")));
                let speed_heads = (0..architecture.speeds).map(|speed| pair(&format!("head.speed.{speed}"))).collect();
                Body::Transformer(Transformer { layers, job_head: pair("head.job"), actor, speed_heads, graph })
            }
        };
        let network = TapeNetwork {
            real,
            job_tables: tables("job", &architecture.job),
            idle_tables: tables("idle", &architecture.idle),
            body,
            idle_head: pair("head.idle"),
            value_head: pair(VALUE_HEAD),
            architecture,
            sparse: false,
            dueling: true,
        };
        (network, tensors)
    }

    /// Returns the weights: those to deploy, and those that only training needs.
    pub fn weights<D: Device>(&self, device: &D, tensors: &Tensors<D>) -> Weights {
        let values = |name: &str| tensors.find(name).map(|id| tensors.values(device, id)).unwrap_or_default();
        let mut weights = Weights::new(self.architecture.clone(), |name, _, _| values(name));
        let has_value = self.dueling || self.architecture.atoms.is_none();
        for (name, ..) in self.architecture.training_tensors().into_iter().filter(|_| has_value) {
            weights.set_tensor(&name, values(&name));
        }
        weights
    }

    /// Maps the outputs by changing the heads: each job output q to `job.0` · q + `job.1`, the idle output to the constant `idle`, and the
    /// value v to `value.0` · v + `value.1`. A positive scale keeps the order of the jobs.
    pub fn map_outputs<D: Device>(&self, device: &mut D, tensors: &mut Tensors<D>, map: &OutputMap) {
        for id in tensors.ids() {
            let name = tensors.name(id);
            let Some(head) = name.strip_prefix("head.") else { continue };
            let (scale, shift) = match head.split('.').next() {
                Some("idle") => (0.0, map.idle),
                Some("value") => map.value,
                // Gains are differences of job outputs.
                Some("speed") => (map.job.0, 0.0),
                _ => map.job,
            };
            let shift = if name.ends_with(".bias") { shift } else { 0.0 };
            let values: Vec<f32> = tensors.values(device, id).iter().map(|value| scale * value + shift).collect();
            tensors.set(device, id, &values);
        }
    }

    /// Computes the outputs of a batch.
    pub fn forward<D: Device>(&self, tape: &mut Tape<'_, D>, batch: &Batch, output_rows: &OutputRows) -> TapeOutput {
        let (idle_places, job_places) = (tape.numbers(&batch.idle_places), tape.numbers(&batch.job_places));
        if let (Body::Transformer(transformer), true) = (&self.body, tape.device().shares_rows())
            && transformer.graph.is_none()
            && let Some(distinct) = DistinctRows::of(batch)
        {
            let (idle, jobs): (Vec<u32>, Vec<u32>) =
                ((0..distinct.idle_rows as u32).collect(), (distinct.idle_rows as u32..distinct.rows as u32).collect());
            let (idle, jobs) = (tape.numbers(&idle), tape.numbers(&jobs));
            let x = self.embed(tape, distinct.rows, (&distinct.idle, &idle), (&distinct.jobs, &jobs));
            let distinct = tape.numbers(&distinct.of_rows);
            let embedded = Embedded { x, distinct: Some(distinct), idle_places, job_places };
            return self.transform(tape, batch, output_rows, embedded, transformer);
        }
        let (x, real) = self.embed_batch(tape, batch, (&idle_places, &job_places));
        match &self.body {
            Body::Recurrent(body) => {
                let past = batch.past.as_ref().filter(|past| !past.rows.segments.is_empty()).map(|past| {
                    let [idle, jobs] = [&past.rows.idle_places, &past.rows.job_places].map(|rows| tape.numbers(rows));
                    self.embed_batch(tape, &past.rows, (&idle, &jobs)).0
                });
                let found = body.forward(tape, batch, output_rows, x, past);
                let RecurrentOutput { idle_rows, idle, job_q, jobs, memory } = found;
                let idle_q = tape.linear(idle_rows, self.idle_head.0, Some(self.idle_head.1));
                let q = tape.combine(output_rows.rows.len(), &[(idle_q, &idle), (job_q, &jobs)]);
                let value = tape.linear(idle_rows, self.value_head.0, Some(self.value_head.1));
                TapeOutput { q, value, critic: None, gains: Vec::new(), real, memory: Some(memory) }
            }
            Body::Transformer(transformer) => {
                let embedded = Embedded { x, distinct: None, idle_places, job_places };
                TapeOutput { real, ..self.transform(tape, batch, output_rows, embedded, transformer) }
            }
            Body::FeedForward(body) => {
                let (idle_rows, jobs) = body.forward(tape, batch, output_rows, x);
                let idle = tape.numbers(&places(&output_rows.segments).0);
                let idle_q = tape.linear(idle_rows, self.idle_head.0, Some(self.idle_head.1));
                let parts: Vec<_> =
                    [(idle_q, &idle)].into_iter().chain(jobs.iter().map(|(q, places)| (*q, places))).collect();
                let q = tape.combine(output_rows.rows.len(), &parts);
                let value = tape.linear(idle_rows, self.value_head.0, Some(self.value_head.1));
                TapeOutput { q, value, critic: None, gains: Vec::new(), real, memory: None }
            }
        }
    }

    /// Embeds the rows of a batch, whose idle rows and job rows have these numbers.
    fn embed_batch<D: Device>(
        &self,
        tape: &mut Tape<'_, D>,
        batch: &Batch,
        (idle_places, job_places): (&RowNumbers<D>, &RowNumbers<D>),
    ) -> (Var, Option<Var>) {
        let rows = batch.segments.rows();
        let x = self.embed(tape, rows, (&batch.idle, idle_places), (&batch.jobs, job_places));
        let Some(real) = self.real else { return (x, None) };
        let inputs = tape.input(batch.job_places.len(), real.inputs, &batch.real);
        let numbers = match real.hidden {
            Some((weight, bias)) => {
                let up = tape.linear(inputs, weight, Some(bias));
                tape.relu(up)
            }
            None => inputs,
        };
        let embedded = tape.linear_by_inputs(numbers, real.map.0, Some(real.map.1));
        let in_place = tape.combine(rows, &[(embedded, job_places)]);
        (tape.add(x, in_place), Some(inputs))
    }

    /// Sums the embeddings of idle and job rows, from the values of each feature and the numbers of the rows.
    fn embed<D: Device>(
        &self,
        tape: &mut Tape<'_, D>,
        rows: usize,
        (idle, idle_places): (&[Vec<u32>], &RowNumbers<D>),
        (jobs, job_places): (&[Vec<u32>], &RowNumbers<D>),
    ) -> Var {
        let mut tables: Vec<Embedding<'_, D>> = Vec::new();
        for (table, values) in self.idle_tables.iter().zip(idle) {
            tables.push((*table, values, Some(idle_places)));
        }
        for (table, values) in self.job_tables.iter().zip(jobs) {
            tables.push((*table, values, Some(job_places)));
        }
        tape.embedding(rows, &tables)
    }

    /// Computes the blocks of the Transformer and the heads.
    fn transform<D: Device>(
        &self,
        tape: &mut Tape<'_, D>,
        batch: &Batch,
        output_rows: &OutputRows,
        embedded: Embedded<D>,
        transformer: &Transformer,
    ) -> TapeOutput {
        let Embedded { mut x, mut distinct, idle_places, job_places } = embedded;
        let layers = &transformer.layers;
        let bias = tape.input(batch.segments.rows(), 1, &batch.bias);
        // A row can be selected at several speeds, so its number alone does not tell.
        let is_whole = output_rows.rows.len() == batch.segments.rows() && output_rows.speeds.is_empty();
        for (place, layer) in layers.iter().enumerate() {
            // The choice of blocks rests on all queries.
            let is_narrow = place + 1 == layers.len() && !is_whole && !self.sparse;
            let mut k = tape.linear(x, layer.key.0, Some(layer.key.1));
            let mut v = tape.linear(x, layer.value.0, Some(layer.value.1));
            let mut q = (!is_narrow).then(|| tape.linear(x, layer.query.0, Some(layer.query.1)));
            if let Some(distinct) = distinct.take() {
                [x, k, v] = [x, k, v].map(|var| tape.gather(var, &distinct));
                q = q.map(|q| tape.gather(q, &distinct));
            }
            let mut queries = &batch.segments;
            if is_narrow {
                let selected = tape.numbers(&output_rows.rows);
                x = tape.gather(x, &selected);
                queries = &output_rows.segments;
            }
            let q = q.unwrap_or_else(|| tape.linear(x, layer.query.0, Some(layer.query.1)));
            let heads = self.architecture.heads;
            let mixed = match self.sparse {
                true => {
                    let lists = kept_keys(tape, &batch.segments, q, k);
                    tape.attention_to(q, k, v, &lists, heads, Some(bias))
                }
                false => tape.attention(q, k, v, queries, &batch.segments, heads, Some(bias)),
            };
            let change = tape.linear(mixed, layer.output.0, Some(layer.output.1));
            x = tape.norm(x, Some(change), layer.attention_norm.0, layer.attention_norm.1);
            let up = tape.linear(x, layer.up.0, Some(layer.up.1));
            let hidden = tape.relu(up);
            let change = tape.linear(hidden, layer.down.0, Some(layer.down.1));
            x = tape.norm(x, Some(change), layer.feed_forward_norm.0, layer.feed_forward_norm.1);
        }
        if let Some(graph) = &transformer.graph {
            x = graph.forward(tape, batch, x);
        }
        if (self.sparse || transformer.graph.is_some()) && !is_whole {
            let selected = tape.numbers(&output_rows.rows);
            x = tape.gather(x, &selected);
        }
        let (idle, jobs) = if is_whole {
            (idle_places, job_places)
        } else {
            let (idle, jobs) = places(&output_rows.segments);
            (tape.numbers(&idle), tape.numbers(&jobs))
        };
        let (idle_rows, job_rows) = (tape.gather(x, &idle), tape.gather(x, &jobs));
        self.heads(tape, output_rows, transformer, (idle_rows, &idle), (job_rows, &jobs))
    }

    /// Computes the heads of a Transformer from the last rows, which are given with their places among the output rows.
    fn heads<D: Device>(
        &self,
        tape: &mut Tape<'_, D>,
        output_rows: &OutputRows,
        transformer: &Transformer,
        (idle_rows, idle): (Var, &RowNumbers<D>),
        (job_rows, jobs): (Var, &RowNumbers<D>),
    ) -> TapeOutput {
        let Transformer { job_head, actor, speed_heads, .. } = transformer;
        let rows = output_rows.rows.len();
        let idle_q = tape.linear(idle_rows, self.idle_head.0, Some(self.idle_head.1));
        let job_q = tape.linear(job_rows, job_head.0, Some(job_head.1));
        let logits = actor.map(|(hidden, output)| {
            let up = tape.linear(job_rows, hidden.0, Some(hidden.1));
            let hidden = tape.relu(up);
            tape.linear(hidden, output.0, Some(output.1))
        });
        let value = match self.dueling || self.architecture.atoms.is_none() {
            true => tape.linear(idle_rows, self.value_head.0, Some(self.value_head.1)),
            false => idle_q,
        };
        let mut parts = vec![(idle_q, idle), (logits.unwrap_or(job_q), jobs)];
        let mut gains = Vec::new();
        let mut places = Vec::new();
        if output_rows.speeds.is_empty() {
            gains.extend(speed_heads.iter().map(|head| tape.linear(job_rows, head.0, Some(head.1))));
        } else {
            // Place of each output row among the job rows.
            let (_, job_places) = crate::sample::places(&output_rows.segments);
            for (speed, head) in (1..).zip(speed_heads) {
                let own = (0..).zip(&job_places).filter(|(_, place)| output_rows.speeds[**place as usize] == speed);
                let (from, to): (Vec<u32>, Vec<u32>) = own.map(|(job, place)| (job, *place)).unzip();
                if !from.is_empty() {
                    let from = tape.numbers(&from);
                    let slow = tape.gather(job_rows, &from);
                    places.push((tape.linear(slow, head.0, Some(head.1)), tape.numbers(&to)));
                }
            }
        }
        parts.extend(places.iter().map(|(gain, places)| (*gain, places)));
        let q = tape.combine(rows, &parts);
        let critic = logits.map(|_| tape.combine(rows, &[(idle_q, idle), (job_q, jobs)]));
        TapeOutput { q, value, critic, gains, real: None, memory: None }
    }
}

/// Chooses the keys that the queries of each sample attend to, as the deployed network does: by the sums of the queries and keys of each block.
fn kept_keys<D: Device>(tape: &mut Tape<'_, D>, samples: &Segments, q: Var, k: Var) -> KeyLists {
    let width = tape.shape(q).1;
    let sparsity = |sample: &Range<usize>| (Sparsity::paper(sample.len() - 1), sample.len() - 1);
    let (mut rows, mut lengths) = (Vec::new(), Vec::new());
    for sample in samples.ranges() {
        let (sparsity, jobs) = sparsity(&sample);
        lengths.extend(sparsity.blocks(jobs).iter().map(ExactSizeIterator::len));
        rows.extend(sample.start as u32 + 1..sample.end as u32);
    }
    let blocks = Segments::of_lengths(lengths);
    let [queries, keys] = [q, k].map(|var| tape.segment_sums(var, &blocks, &rows));
    let (mut groups, mut first) = (Vec::new(), 0);
    for sample in samples.ranges() {
        let (sparsity, jobs) = sparsity(&sample);
        let kept = KeptKeys::choose(sparsity, jobs, width, &queries[first * width..], &keys[first * width..]);
        first += sparsity.blocks(jobs).len();
        let own = kept.lists().map(|(queries, rows)| (queries.len(), rows.iter().map(|row| sample.start as u32 + row)));
        groups.extend(own.map(|(queries, rows)| (queries, rows.collect::<Vec<u32>>())));
    }
    KeyLists::new(groups)
}
