//! The feed-forward network of the paper's FF-DQN: the rows stand side by side, each in the slot of its task, and
//! hidden layers with ReLU read all of them.
//!
//! It knows a fixed number of tasks. It is small enough for plain loops over whole rows.

use std::sync::Arc;

use temponet_grad::{Operations, TensorId};
use temponet_infer::{Architecture, BodyKind, Forward, Rows, SLOT, Weights, within};
use temponet_train::{Batch, BodyInput, BodyOutput, TapeBody, owners};

use super::plain::{Embeddings, Linear, PlainHead, rectify};

/// Greatest number of slots.
const MOST_SLOTS: usize = 256;

/// Kind of body of a feed-forward network. Its size is the number of slots.
pub struct FeedForwardKind;

/// Names of the slots, and last that of the idle row.
fn place_names(slots: usize) -> impl Iterator<Item = String> {
    (0..slots).map(|slot| slot.to_string()).chain(["idle".into()])
}

impl BodyKind for FeedForwardKind {
    fn key(&self) -> &'static str {
        "slots"
    }

    fn summary(&self, slots: usize) -> String {
        format!("feed-forward, {slots} slots for tasks")
    }

    fn problem(&self, slots: usize, architecture: &Architecture) -> Option<String> {
        let is_last = |feature: &temponet_infer::Vocabulary| feature.name == SLOT && feature.size == slots;
        within("the number of slots", slots, MOST_SLOTS).or_else(|| {
            let is_lacking = !architecture.job.last().is_some_and(is_last);
            is_lacking.then(|| format!("the last job feature is not {SLOT:?} with {slots} values"))
        })
    }

    fn tensors(&self, slots: usize, architecture: &Architecture) -> Vec<(String, usize, usize)> {
        let (d, f) = (architecture.width, architecture.feed_forward);
        let mut tensors: Vec<_> = place_names(slots).map(|place| (format!("inputs.{place}.weight"), f, d)).collect();
        tensors.push(("inputs.bias".into(), 1, f));
        for layer in 1..architecture.layers {
            tensors.push((format!("hidden.{layer}.weight"), f, f));
            tensors.push((format!("hidden.{layer}.bias"), 1, f));
        }
        for place in place_names(slots) {
            tensors.push((format!("head.{place}.weight"), 1, f));
            tensors.push((format!("head.{place}.bias"), 1, 1));
        }
        tensors
    }

    fn head_width(&self, architecture: &Architecture) -> usize {
        architecture.feed_forward
    }

    fn operations(&self, _slots: usize, architecture: &Architecture, rows: usize) -> usize {
        let (d, f, layers) = (architecture.width, architecture.feed_forward, architecture.layers);
        2 * (rows * (d * f + f) + (layers - 1) * f * f)
    }

    /// The inputs of all slots and of the idle row are summed up.
    fn initial_bound(&self, slots: usize, tensor: &str, columns: usize) -> Option<f32> {
        tensor.starts_with("inputs.").then(|| 1.0 / ((columns * (slots + 1)) as f32).sqrt())
    }

    fn network(&self, slots: usize, weights: &Weights) -> Box<dyn Forward> {
        Box::new(FeedForward::over(Arc::new(Prepared::new(slots, weights))))
    }
}

/// Weights in the order in which the forward pass reads them.
struct Prepared {
    embeddings: Embeddings,
    /// First layer's map of each slot, and last that of the idle row.
    inputs: Vec<Linear>,
    inputs_bias: Vec<f32>,
    hidden: Vec<Linear>,
    heads: Vec<PlainHead>,
}

impl Prepared {
    fn new(slots: usize, weights: &Weights) -> Prepared {
        let shape = &weights.architecture;
        let input =
            |place: String| Linear::of(weights.tensor(&format!("inputs.{place}.weight")), &[], shape.feed_forward);
        Prepared {
            embeddings: Embeddings::new(weights),
            inputs: place_names(slots).map(input).collect(),
            inputs_bias: weights.tensor("inputs.bias").to_vec(),
            hidden: (1..shape.layers).map(|layer| Linear::new(weights, &format!("hidden.{layer}"))).collect(),
            heads: place_names(slots).map(|place| PlainHead::new(weights, &format!("head.{place}"))).collect(),
        }
    }
}

/// Feed-forward network that is ready to run, with its working memory.
struct FeedForward {
    prepared: Arc<Prepared>,
    row: Vec<f32>,
    units: Vec<f32>,
    layer: Vec<f32>,
    next: Vec<f32>,
}

impl FeedForward {
    fn over(prepared: Arc<Prepared>) -> FeedForward {
        let (row, hidden) = (vec![0.0; prepared.embeddings.width], prepared.inputs_bias.clone());
        let units = vec![0.0; prepared.embeddings.units()];
        FeedForward { row, units, next: hidden.clone(), layer: hidden, prepared }
    }
}

impl Forward for FeedForward {
    fn forward(&mut self, rows: &Rows<'_>, q: &mut Vec<f32>) {
        let FeedForward { prepared, row, units, layer, next } = self;
        let (embeddings, slots) = (&prepared.embeddings, prepared.inputs.len() - 1);
        let features = embeddings.features;
        let slot = |place: usize| usize::from(embeddings.token(rows, place)[features - 1]).min(slots - 1);
        layer.copy_from_slice(&prepared.inputs_bias);
        embeddings.idle(rows, row);
        prepared.inputs[slots].add(row, layer);
        let jobs = rows.jobs.len() / features;
        for place in 0..jobs {
            embeddings.job(rows, place, units, row);
            prepared.inputs[slot(place)].add(row, layer);
        }
        rectify(layer);
        for hidden in &prepared.hidden {
            hidden.apply(layer, next);
            rectify(next);
            std::mem::swap(layer, next);
        }
        q.clear();
        q.push(prepared.heads[slots].of(layer));
        q.extend((0..jobs).map(|place| prepared.heads[slot(place)].of(layer)));
    }

    fn again(&self) -> Box<dyn Forward> {
        Box::new(FeedForward::over(self.prepared.clone()))
    }
}

/// Feed-forward network on the tape. It computes what [`FeedForward`] computes.
#[derive(Debug)]
struct FeedForwardOnTape {
    /// Input weights of each task's slot; those of the idle row are apart.
    inputs: Vec<TensorId>,
    idle_input: TensorId,
    inputs_bias: TensorId,
    hidden: Vec<(TensorId, TensorId)>,
    /// Output weight and bias of each task's slot.
    heads: Vec<(TensorId, TensorId)>,
}

/// Finds the tensors of a feed-forward network.
pub(super) fn on_tape(slots: usize, architecture: &Architecture, id: &dyn Fn(&str) -> TensorId) -> Arc<dyn TapeBody> {
    let pair = |name: String| (id(&format!("{name}.weight")), id(&format!("{name}.bias")));
    Arc::new(FeedForwardOnTape {
        inputs: (0..slots).map(|slot| id(&format!("inputs.{slot}.weight"))).collect(),
        idle_input: id("inputs.idle.weight"),
        inputs_bias: id("inputs.bias"),
        hidden: (1..architecture.layers).map(|layer| pair(format!("hidden.{layer}"))).collect(),
        heads: (0..slots).map(|slot| pair(format!("head.{slot}"))).collect(),
    })
}

impl TapeBody for FeedForwardOnTape {
    fn forward(&self, tape: &mut dyn Operations, input: &BodyInput<'_>) -> BodyOutput {
        let BodyInput { batch, output_rows, x, .. } = *input;
        let samples = batch.idle_places.len();
        let idle = tape.gather(x, &batch.idle_places);
        let mut sums = tape.linear(idle, self.idle_input, Some(self.inputs_bias));
        let of_slot = slots_of_rows(batch);
        let sample_of = owners(&batch.segments);
        for (slot, weight) in self.inputs.iter().enumerate() {
            let own = |row: &u32| of_slot[*row as usize] == Some(slot as u32);
            let rows: Vec<u32> = (0..of_slot.len() as u32).filter(own).collect();
            if !rows.is_empty() {
                let part = tape.gather(x, &rows);
                let part = tape.linear(part, *weight, None);
                let to: Vec<u32> = rows.iter().map(|row| sample_of[*row as usize]).collect();
                let from: Vec<u32> = (0..rows.len() as u32).collect();
                let part = tape.message_sum(part, samples, &from, &to);
                sums = tape.add(sums, part);
            }
        }
        let mut layer = tape.relu(sums);
        for (weight, bias) in &self.hidden {
            let up = tape.linear(layer, *weight, Some(*bias));
            layer = tape.relu(up);
        }
        let mut jobs = Vec::new();
        for (slot, (weight, bias)) in self.heads.iter().enumerate() {
            let own = |place: &u32| of_slot[output_rows.rows[*place as usize] as usize] == Some(slot as u32);
            let places: Vec<u32> = (0..output_rows.rows.len() as u32).filter(own).collect();
            if !places.is_empty() {
                let samples: Vec<u32> =
                    places.iter().map(|place| sample_of[output_rows.rows[*place as usize] as usize]).collect();
                let read = tape.gather(layer, &samples);
                jobs.push((tape.linear(read, *weight, Some(*bias)), places));
            }
        }
        BodyOutput { idle_rows: layer, jobs, memory: None }
    }
}

/// Returns the slot of each row's task; idle rows have none.
fn slots_of_rows(batch: &Batch) -> Vec<Option<u32>> {
    let mut slots = vec![None; batch.segments.rows()];
    if let Some(column) = batch.jobs.last() {
        batch.job_places.iter().zip(column).for_each(|(row, slot)| slots[*row as usize] = Some(*slot));
    }
    slots
}
