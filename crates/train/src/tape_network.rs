//! The network on the tape, to compute gradients with.
//!
//! It has the same tensors by the same names as the deployed network, and a value head that only training needs.
//! Between the embeddings and the heads there is a Transformer, or a body that another crate has registered.

use std::sync::Arc;

use temponet_grad::{Device, Embedding, RowNumbers, Segments, Staged, Tape, TensorId, Tensors, Var};
use temponet_infer::{Architecture, Body, Weights};

use crate::distinct_rows::DistinctRows;
use crate::sample::{Batch, places};
use crate::tape_body::{BodyInput, BodyOutput, TapeBody, tape_body};
use crate::tape_transformer::{Embedded, Transformer};

/// The network: its architecture and the ids of its tensors.
#[derive(Clone, Debug)]
pub struct TapeNetwork {
    /// Architecture.
    pub architecture: Architecture,
    job_tables: Vec<TensorId>,
    idle_tables: Vec<TensorId>,
    real: Option<Real>,
    body: BodyOnTape,
    pub(crate) idle_head: Linear,
    pub(crate) value_head: Linear,
    /// Whether attention is the paper's sparse one; `false` unless it is set. The rows of each sample must then be jobs
    /// in deadline order.
    pub sparse: bool,
    /// Whether the value head gives the value of a state; `true` unless it is set. Otherwise that of a network with
    /// atoms is the output of idling.
    pub dueling: bool,
}

/// Ids of a weight and a bias.
pub(crate) type Linear = (TensorId, TensorId);

/// Part of the network between the embeddings and the heads.
#[derive(Clone, Debug)]
enum BodyOnTape {
    Transformer(Transformer),
    Other(Arc<dyn TapeBody>),
}

/// Map of a job row's real-valued inputs, through a hidden layer if there is one.
#[derive(Clone, Copy, Debug)]
struct Real {
    inputs: usize,
    hidden: Option<Linear>,
    map: Linear,
}

/// Rows whose outputs are needed, sample by sample, each with its idle row first. The last block of the Transformer
/// computes only these.
#[derive(Clone, Debug)]
pub struct OutputRows {
    /// Numbers of the rows in the batch.
    pub rows: Vec<u32>,
    /// Rows of each sample.
    pub segments: Arc<Segments>,
    /// Number of jobs that each job row among them stands for.
    pub counts: Vec<u32>,
    /// Speed of each row, 0 for full speed and 1 + i for the network's speed `i`. Its output is that of running at this
    /// speed. Empty if all run at full speed.
    pub speeds: Vec<u8>,
}

impl OutputRows {
    /// Selects every row of a batch, at full speed.
    pub fn all(batch: &Batch<'_>) -> OutputRows {
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
    pub fn of<'a>(batch: &Batch<'_>, others: impl Iterator<Item = &'a [u32]>) -> OutputRows {
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
    /// Q-value, or logit, of each output row, at its speed. A network with atoms has a logit for each of them, here and
    /// in the value.
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
    /// Puts weights on a device; returns the network and its parameters. A value head that the weights lack starts at
    /// zero.
    ///
    /// # Panics
    ///
    /// Panics if the crate that registered the body has not called [`crate::register_tape_body`].
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
        let real = architecture.real.map(|real| Real {
            inputs: real.inputs,
            hidden: (real.hidden > 0).then(|| pair("embed.real.hidden")),
            map: pair("embed.real"),
        });
        let body = match architecture.body {
            Body::Transformer(_) => BodyOnTape::Transformer(Transformer::new(&architecture, pair)),
            Body::Other(body) => {
                let make = tape_body(body.key()).expect("a body is registered for training together with its kind");
                BodyOnTape::Other(make(body.size, &architecture, &id))
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
        let has_value = self.dueling || self.architecture.atoms().is_none();
        for (name, ..) in self.architecture.training_tensors().into_iter().filter(|_| has_value) {
            weights.set_tensor(&name, values(&name));
        }
        weights
    }

    /// Maps the outputs by changing the heads: each job output q to `job.0` · q + `job.1`, the idle output to the
    /// constant `idle`, and the value v to `value.0` · v + `value.1`. A positive scale keeps the order of the jobs.
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
    pub fn forward<D: Device>(
        &self,
        tape: &mut Tape<'_, D>,
        batch: &Batch<'_>,
        output_rows: &OutputRows,
    ) -> TapeOutput {
        self.forward_with(tape, batch, output_rows, None)
    }

    /// Computes the outputs of a batch whose real-valued inputs may be written already.
    pub(crate) fn forward_with<D: Device>(
        &self,
        tape: &mut Tape<'_, D>,
        batch: &Batch<'_>,
        output_rows: &OutputRows,
        real: Option<Box<dyn Staged>>,
    ) -> TapeOutput {
        let (idle_places, job_places) = (tape.numbers(&batch.idle_places), tape.numbers(&batch.job_places));
        if let (BodyOnTape::Transformer(transformer), true) = (&self.body, tape.device().shares_rows())
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
        let (x, real) = self.embed_batch(tape, batch, (&idle_places, &job_places), real);
        let body = match &self.body {
            BodyOnTape::Transformer(transformer) => {
                let embedded = Embedded { x, distinct: None, idle_places, job_places };
                return TapeOutput { real, ..self.transform(tape, batch, output_rows, embedded, transformer) };
            }
            BodyOnTape::Other(body) => body,
        };
        let past = batch.past.as_ref().filter(|past| !past.rows.segments.is_empty()).map(|past| {
            let [idle, jobs] = [&past.rows.idle_places, &past.rows.job_places].map(|rows| tape.numbers(rows));
            self.embed_batch(tape, &past.rows, (&idle, &jobs), None).0
        });
        let BodyOutput { idle_rows, jobs, memory } = body.forward(tape, &BodyInput { batch, output_rows, x, past });
        let idle_q = tape.linear(idle_rows, self.idle_head.0, Some(self.idle_head.1));
        let parts = [(idle_q, places(&output_rows.segments).0)].into_iter().chain(jobs);
        let parts: Vec<_> = parts.map(|(q, places)| (q, tape.numbers(&places))).collect();
        let parts: Vec<_> = parts.iter().map(|(q, places)| (*q, places)).collect();
        let q = tape.combine(output_rows.rows.len(), &parts);
        let value = tape.linear(idle_rows, self.value_head.0, Some(self.value_head.1));
        TapeOutput { q, value, critic: None, gains: Vec::new(), real, memory }
    }

    /// Embeds the rows of a batch, whose idle rows and job rows have these numbers.
    fn embed_batch<D: Device>(
        &self,
        tape: &mut Tape<'_, D>,
        batch: &Batch<'_>,
        (idle_places, job_places): (&RowNumbers<D>, &RowNumbers<D>),
        written: Option<Box<dyn Staged>>,
    ) -> (Var, Option<Var>) {
        let rows = batch.segments.rows();
        let x = self.embed(tape, rows, (&batch.idle, idle_places), (&batch.jobs, job_places));
        let Some(real) = self.real else { return (x, None) };
        let inputs = match written {
            Some(written) => tape.input_staged(batch.job_places.len(), real.inputs, written),
            None => tape.input_filled(batch.job_places.len(), real.inputs, &mut |out| batch.write_real(out)),
        };
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
}
