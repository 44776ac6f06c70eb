//! The feed-forward network on the tape, the paper's FF-DQN: the rows of a sample stand side by side, each in the slot of its task, and
//! hidden layers read all of them.

use temponet_grad::{Device, RowNumbers, Tape, TensorId, Var};

use crate::sample::{Batch, owners};
use crate::tape_network::OutputRows;

/// Tensors of the feed-forward network.
#[derive(Clone, Debug)]
pub(crate) struct FeedForward {
    /// Input weights of each task's slot; those of the idle row are apart.
    inputs: Vec<TensorId>,
    idle_input: TensorId,
    inputs_bias: TensorId,
    hidden: Vec<(TensorId, TensorId)>,
    /// Output weight and bias of each task's slot.
    heads: Vec<(TensorId, TensorId)>,
}

/// Q-values of some rows, and their positions among the output rows.
type Numbers<D> = (Var, RowNumbers<D>);

impl FeedForward {
    /// Finds the tensors of a network with this many slots and hidden layers.
    pub(crate) fn new(slots: usize, layers: usize, id: impl Fn(&str) -> TensorId) -> FeedForward {
        let pair = |name: String| (id(&format!("{name}.weight")), id(&format!("{name}.bias")));
        FeedForward {
            inputs: (0..slots).map(|slot| id(&format!("inputs.{slot}.weight"))).collect(),
            idle_input: id("inputs.idle.weight"),
            inputs_bias: id("inputs.bias"),
            hidden: (1..layers).map(|layer| pair(format!("hidden.{layer}"))).collect(),
            heads: (0..slots).map(|slot| pair(format!("head.{slot}"))).collect(),
        }
    }

    /// Computes the last hidden layer, one row for each sample, and from it the Q-values of the job rows among the output rows, slot by
    /// slot.
    pub(crate) fn forward<D: Device>(
        &self,
        tape: &mut Tape<'_, D>,
        batch: &Batch,
        output_rows: &OutputRows,
        x: Var,
    ) -> (Var, Vec<Numbers<D>>) {
        let samples = batch.idle_places.len();
        let idle_places = tape.numbers(&batch.idle_places);
        let idle = tape.gather(x, &idle_places);
        let mut sums = tape.linear(idle, self.idle_input, Some(self.inputs_bias));
        let of_slot = slots_of_rows(batch);
        let sample_of = owners(&batch.segments);
        for (slot, weight) in self.inputs.iter().enumerate() {
            let own = |row: &u32| of_slot[*row as usize] == Some(slot as u32);
            let rows: Vec<u32> = (0..of_slot.len() as u32).filter(own).collect();
            if !rows.is_empty() {
                let numbers = tape.numbers(&rows);
                let part = tape.gather(x, &numbers);
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
        let mut numbers = Vec::new();
        for (slot, (weight, bias)) in self.heads.iter().enumerate() {
            let own = |place: &u32| of_slot[output_rows.rows[*place as usize] as usize] == Some(slot as u32);
            let places: Vec<u32> = (0..output_rows.rows.len() as u32).filter(own).collect();
            if !places.is_empty() {
                let samples: Vec<u32> =
                    places.iter().map(|place| sample_of[output_rows.rows[*place as usize] as usize]).collect();
                let samples = tape.numbers(&samples);
                let read = tape.gather(layer, &samples);
                numbers.push((tape.linear(read, *weight, Some(*bias)), tape.numbers(&places)));
            }
        }
        (layer, numbers)
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
