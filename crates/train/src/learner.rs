//! A network with its optimizer.
//!
//! Batches are cut into shards, which are computed in parallel. Shards depend on the batch alone, and their gradients
//! are added in order, so the number of threads does not change the result.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use temponet::stages::best_speed;
use temponet_grad::{Adam, AdamSettings, Device, Loss, Staged, Stager, Tape, Tensors, Var};
use temponet_infer::Weights;

use crate::parallel::par_map;
use crate::returns::mean_returns;
use crate::sample::{Batch, SampleView};
use crate::tape_network::{OutputMap, OutputRows, TapeNetwork, TapeOutput};
use crate::updates::StepSize;

/// Outputs of a network for several samples.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    q: Vec<f32>,
    /// Start of each sample's Q-values, and the end of the last.
    starts: Vec<usize>,
    /// Output of the value head for each sample.
    pub value: Vec<f32>,
    /// Q-values by the critic, laid out as `q`; empty for a network without an actor.
    critic: Vec<f32>,
    /// Gains of each speed below full speed, for the job rows of all samples.
    gains: Vec<Vec<f32>>,
    /// State of a recurrent network after each sample; empty for other networks.
    memory: Vec<Vec<f32>>,
}

impl Outputs {
    /// Returns a sample's outputs, one for each output row, the idle row first.
    pub fn q(&self, sample: usize) -> &[f32] {
        &self.q[self.starts[sample]..self.starts[sample + 1]]
    }

    /// Returns a sample's Q-values by the critic, one for each output row, the idle row first; empty for a network
    /// without an actor.
    pub fn critic(&self, sample: usize) -> &[f32] {
        self.critic.get(self.starts[sample]..self.starts[sample + 1]).unwrap_or(&[])
    }

    /// Returns the state of a recurrent network after a sample: the output and then the cell state of its LSTM. Empty
    /// for other networks.
    pub fn memory(&self, sample: usize) -> &[f32] {
        self.memory.get(sample).map_or(&[], Vec::as_slice)
    }

    /// Returns the best speed of a sample's job row, which is counted from 1, and its gain over full speed: 0 for full
    /// speed, 1 + i for the network's speed `i`.
    pub fn best_speed(&self, sample: usize, row: u32) -> (u8, f32) {
        // Each sample before has an idle row, which has no gains.
        let place = self.starts[sample] - sample + row as usize - 1;
        best_speed(self.gains.iter().map(|gains| gains[place]))
    }

    fn push(&mut self, shard: ShardValues) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        let before = self.q.len();
        self.starts.extend(shard.rows.segments.ranges().map(|range| before + range.end));
        self.q.extend(shard.q);
        self.value.extend(shard.value);
        self.critic.extend(shard.critic);
        self.memory.extend(shard.memory);
        self.gains.resize(shard.gains.len(), Vec::new());
        self.gains.iter_mut().zip(shard.gains).for_each(|(all, own)| all.extend(own));
    }
}

/// Outputs of one shard.
struct ShardValues {
    rows: OutputRows,
    q: Vec<f32>,
    value: Vec<f32>,
    critic: Vec<f32>,
    gains: Vec<Vec<f32>>,
    memory: Vec<Vec<f32>>,
}

/// Loss of one sample, and its gradient with respect to the value head's output. The gradient with respect to the rows'
/// outputs is written elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct SampleLoss {
    /// Loss.
    pub loss: f64,
    /// Gradient with respect to the value.
    pub by_value: f32,
}

/// One shard of a batch after its forward pass, to compute a loss from.
pub struct ShardOutput<'a> {
    /// Index of the shard.
    pub shard: usize,
    /// Samples of the batch that are in the shard.
    pub range: Range<usize>,
    /// Rows of those samples that have outputs.
    pub rows: &'a OutputRows,
    /// Outputs on the tape.
    pub output: TapeOutput,
}

/// An update that the device may still be computing.
pub struct PendingUpdate<D: Device> {
    /// Loss of each shard.
    losses: Vec<D::Number>,
    /// Norm of the gradient before clipping.
    norm: D::Number,
    /// Loss that is known already.
    known: f64,
}

impl<D: Device> PendingUpdate<D> {
    /// The same update with a loss that is known already, in addition to that of the shards.
    pub fn plus(self, loss: f64) -> PendingUpdate<D> {
        PendingUpdate { known: self.known + loss, ..self }
    }
}

/// Figures of one update, or their means over several.
#[derive(Clone, Copy, Debug, Default)]
pub struct UpdateFigures {
    /// Mean loss of the samples.
    pub loss: f64,
    /// Norm of the gradient before clipping.
    pub norm: f64,
}

/// A network that learns: its parameters, its optimizer, and the devices that compute its gradients.
pub struct Learner<D: Device> {
    /// The network.
    pub network: TapeNetwork,
    /// Parameters.
    pub parameters: Tensors<D>,
    /// Optimizer.
    pub adam: Adam<D>,
    /// Device of the parameters.
    device: D,
    /// Gradients of each shard; the first ones become the sum.
    gradients: Vec<Tensors<D>>,
    spares: Spares<D>,
}

/// Devices of the threads that compute shards. Whoever computes one borrows a device whose memory the shard before it
/// has just used, which is faster than memory of its own for each shard.
struct Spares<D>(Mutex<Vec<D>>);

impl<D: Device> Spares<D> {
    /// Does some work with a device of the same kind as this one.
    fn lend<T>(&self, kind: &D, work: impl FnOnce(&mut D) -> T) -> T {
        let idle = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let mut device = kept.unwrap_or_else(|| kind.another());
        let result = work(&mut device);
        idle().push(device);
        result
    }
}

/// Samples whose losses one thread of the processor computes at a time. Fewer are not worth sharing, because the other
/// threads may be busy simulating.
const SAMPLES_PER_TASK: usize = 1024;

/// Rows of each sample whose outputs are needed, besides the idle row; `None` selects all rows.
pub type NeededRows<'a> = Option<NeededRowsOf<'a>>;

/// Rows of each sample whose outputs are needed, besides the idle row, and the speed of each; no speeds select full
/// speed.
#[derive(Clone, Copy, Debug)]
pub struct NeededRowsOf<'a> {
    /// Rows of each sample.
    pub rows: &'a [&'a [u32]],
    /// Speeds of each sample's rows; see [`OutputRows::speeds`].
    pub speeds: Option<&'a [&'a [u8]]>,
}

/// Samples of one shard, gathered for the device.
pub struct Shard<'a> {
    /// Samples of the batch that are in the shard.
    range: Range<usize>,
    batch: Batch<'a>,
    rows: OutputRows,
    /// Real-valued inputs of the job rows, if the device wants them apart.
    real: Option<Box<dyn Staged>>,
}

/// Cuts samples into shards as a device wants them, and gathers these.
pub struct Gathering {
    /// [`Device::shard_rows`].
    shard_rows: usize,
    /// [`Device::most_pairs`].
    most_pairs: usize,
    /// [`Device::stager`].
    stager: Option<Stager>,
}

impl Gathering {
    /// Cuts samples into shards: consecutive samples with about as many rows as the device wants in a shard.
    fn cut(&self, samples: &[SampleView<'_>]) -> Vec<Range<usize>> {
        if self.shard_rows == usize::MAX {
            return cut_by_pairs(samples.iter().map(|sample| sample.rows()), self.most_pairs);
        }
        let total: usize = samples.iter().map(|sample| sample.rows()).sum();
        let shards = total.div_ceil(self.shard_rows).clamp(1, samples.len().max(1));
        let mut ranges = Vec::new();
        let (mut first, mut rows) = (0, 0);
        for (place, sample) in samples.iter().enumerate() {
            rows += sample.rows();
            if rows * shards >= total * (ranges.len() + 1) {
                ranges.push(first..place + 1);
                first = place + 1;
            }
        }
        ranges
    }

    /// Cuts samples into shards and puts the rows of each together.
    pub fn gather<'a, S: Copy + Into<SampleView<'a>>>(&self, samples: &[S], wanted: NeededRows<'_>) -> Vec<Shard<'a>> {
        let samples = views(samples);
        par_map(self.cut(&samples), 1, |_, range| {
            let batch = Batch::of(&samples[range.clone()]);
            let rows = match wanted {
                Some(NeededRowsOf { rows, speeds }) => {
                    let rows = OutputRows::of(&batch, rows[range.clone()].iter().copied());
                    match speeds {
                        Some(speeds) => rows.at_speeds(speeds[range.clone()].iter().copied()),
                        None => rows,
                    }
                }
                None => OutputRows::all(&batch),
            };
            let real = self.stager.as_ref().filter(|_| batch.inputs > 0).map(|stager| {
                let mut real = stager(batch.job_places.len() * batch.inputs);
                batch.write_real(real.values());
                real
            });
            Shard { range, batch, rows, real }
        })
    }
}

impl<D: Device> Learner<D> {
    /// Starts from these weights on a device.
    pub fn new(mut device: D, weights: &Weights, settings: AdamSettings) -> Learner<D> {
        let (network, parameters) = TapeNetwork::new(&mut device, weights);
        let adam = Adam::new(&mut device, settings, &parameters);
        let gradients = vec![parameters.zeros_like(&mut device)];
        Learner { network, parameters, adam, device, gradients, spares: Spares(Mutex::default()) }
    }

    /// Resets the moments and the step count of the optimizer.
    pub fn restart_optimizer(&mut self) {
        self.adam = Adam::new(&mut self.device, self.adam.settings, &self.parameters);
    }

    /// Returns another device of the same kind.
    pub fn another_device(&self) -> D {
        self.device.another()
    }

    /// Returns why the device stopped computing, if it failed.
    pub fn failure(&self) -> Option<String> {
        self.device.failure()
    }

    /// Returns a copy with the same parameters on a device of its own, to act while this one learns.
    pub fn twin(&mut self) -> Learner<D> {
        let mut device = self.another_device();
        let (network, parameters) = TapeNetwork::new(&mut device, &self.weights());
        let adam = Adam::new(&mut device, self.adam.settings, &parameters);
        let gradients = vec![parameters.zeros_like(&mut device)];
        let mut twin = Learner { network, parameters, adam, device, gradients, spares: Spares(Mutex::default()) };
        (twin.network.sparse, twin.network.dueling) = (self.network.sparse, self.network.dueling);
        twin.follow(self);
        twin
    }

    /// Takes over the parameters of another learner of the same network.
    pub fn follow(&mut self, twin: &Learner<D>) {
        self.parameters.take_over(&mut self.device, &twin.parameters, &twin.device);
    }

    /// Returns a copy of the parameters, for a target network.
    pub fn copy_parameters(&mut self) -> Tensors<D> {
        self.parameters.copy(&mut self.device)
    }

    /// Moves a target network towards the parameters, by a share of the difference.
    pub fn blend_into(&mut self, target: &mut Tensors<D>, share: f32) {
        target.blend(&mut self.device, &self.parameters, share);
    }

    /// Applies a map to the outputs of the heads.
    pub fn map_outputs(&mut self, map: &OutputMap) {
        self.network.map_outputs(&mut self.device, &mut self.parameters, map);
    }

    /// Returns the weights to deploy.
    pub fn weights(&self) -> Weights {
        self.network.weights(&self.device, &self.parameters)
    }

    /// Returns the device of the parameters, the parameters, and the gradients that were computed last.
    pub fn parts(&mut self) -> (&mut D, &mut Tensors<D>, &Tensors<D>) {
        (&mut self.device, &mut self.parameters, &self.gradients[0])
    }

    /// Shows the parameters, the optimizer's moments and other tensors that belong to them, with the device they live
    /// on.
    pub fn visit(
        &mut self,
        others: Vec<(&'static str, &mut Tensors<D>)>,
        mut each: impl FnMut(&'static str, &mut D, &mut Tensors<D>),
    ) {
        let device = &mut self.device;
        let adam = &mut self.adam;
        let own = [("parameters", &mut self.parameters), ("first", &mut adam.first), ("second", &mut adam.second)];
        own.into_iter().chain(others).for_each(|(name, tensors)| each(name, device, tensors));
    }

    /// Whether the device computes beside the processor. Shards are then computed one after the other, because they are
    /// too large to be in its memory together.
    pub fn computes_beside(&self) -> bool {
        self.device.shard_rows() == usize::MAX
    }

    /// Computes the outputs for some samples, with the given parameters or with the learner's own.
    pub fn outputs<'a, S: Copy + Into<SampleView<'a>>>(
        &mut self,
        parameters: Option<&Tensors<D>>,
        samples: &[S],
    ) -> Outputs {
        let samples = views(samples);
        let shards = self.shards_of(&samples, |device, network, own, range| {
            temponet_cancel::checkpoint();
            let batch = Batch::of(&samples[range]);
            let rows = OutputRows::all(&batch);
            let mut tape = Tape::new(device, parameters.unwrap_or(own));
            let output = network.forward(&mut tape, &batch, &rows);
            let (mut q, mut value) = (tape.values(output.q), tape.values(output.value));
            if let Some(atoms) = network.architecture.atoms() {
                let samples = rows.segments.ranges().zip(value.chunks_exact(atoms.count));
                q = samples
                    .flat_map(|(own, value)| {
                        mean_returns(atoms, &q[own.start * atoms.count..own.end * atoms.count], value)
                    })
                    .collect();
                value = value.chunks_exact(atoms.count).map(|logits| atoms.mean(logits)).collect();
            }
            ShardValues {
                rows,
                q,
                value,
                critic: output.critic.map(|critic| tape.values(critic)).unwrap_or_default(),
                gains: output.gains.iter().map(|gains| tape.values(*gains)).collect(),
                memory: output.memory.map_or(Vec::new(), |memory| states_of(&tape, memory)),
            }
        });
        let mut outputs = Outputs::default();
        shards.into_iter().for_each(|shard| outputs.push(shard));
        outputs
    }

    /// Runs `work` for each shard of some samples, with its device, the network and the parameters.
    pub fn each_shard<'a, S: Copy + Into<SampleView<'a>>, T: Send>(
        &mut self,
        samples: &[S],
        work: impl Fn(&mut D, &TapeNetwork, &Tensors<D>, Range<usize>) -> T + Sync,
    ) -> Vec<T> {
        self.shards_of(&views(samples), work)
    }

    fn shards_of<T: Send>(
        &mut self,
        samples: &[SampleView<'_>],
        work: impl Fn(&mut D, &TapeNetwork, &Tensors<D>, Range<usize>) -> T + Sync,
    ) -> Vec<T> {
        let (ranges, is_one_by_one) = (self.gathering().cut(samples), self.computes_beside());
        let (network, parameters) = (&self.network, &self.parameters);
        if is_one_by_one {
            let device = &mut self.device;
            return ranges.into_iter().map(|range| work(device, network, parameters, range)).collect();
        }
        par_map(ranges, 1, |_, range| self.spares.lend(&self.device, |device| work(device, network, parameters, range)))
    }

    /// Computes the loss of some samples and its gradients, with a loss that the processor evaluates. `loss` is called
    /// for each sample with its index, the outputs of its selected rows, the value, and the gradient with respect to
    /// those outputs, which it writes.
    pub fn gradients<'a, S: Copy + Into<SampleView<'a>>>(
        &mut self,
        samples: &[S],
        wanted: NeededRows<'_>,
        loss: impl Fn(usize, &[f32], f32, &mut [f32]) -> SampleLoss + Sync,
    ) -> f64 {
        let losses = self.backward(samples, wanted, |tape, shard| {
            let ShardOutput { range, rows, output, .. } = shard;
            let (q, value) = (tape.values(output.q), tape.values(output.value));
            let mut by_q = vec![0.0; q.len()];
            let mut parts: Vec<(&[f32], &mut [f32])> = Vec::with_capacity(range.len());
            let mut rest = &mut by_q[..];
            for rows in rows.segments.ranges() {
                let (own, others) = rest.split_at_mut(rows.len());
                parts.push((&q[rows], own));
                rest = others;
            }
            let losses =
                par_map(parts, SAMPLES_PER_TASK, |place, (q, by_q)| loss(range.start + place, q, value[place], by_q));
            let total: f64 = losses.iter().map(|sample| sample.loss).sum();
            let by_value: Vec<f32> = losses.iter().map(|sample| sample.by_value).collect();
            (vec![tape.loss(output.q, total, &by_q), tape.loss(output.value, 0.0, &by_value)], total)
        });
        losses.into_iter().sum()
    }

    /// Returns what cuts and gathers samples for [`Learner::backward_on`], for use on another thread.
    pub fn gathering(&self) -> Gathering {
        let (shard_rows, most_pairs) = (self.device.shard_rows(), self.device.most_pairs());
        Gathering { shard_rows, most_pairs, stager: self.device.stager() }
    }

    /// Computes the gradients of a loss of some samples. `loss` is called for each shard; it returns the losses to go
    /// backward from, and anything else, which is handed on.
    pub fn backward<'a, S: Copy + Into<SampleView<'a>>, T: Send>(
        &mut self,
        samples: &[S],
        wanted: NeededRows<'_>,
        loss: impl Fn(&mut Tape<'_, D>, ShardOutput<'_>) -> (Vec<Loss<D>>, T) + Sync,
    ) -> Vec<T> {
        self.backward_on(self.gathering().gather(samples, wanted), loss)
    }

    /// [`Learner::backward`] for samples that are gathered already.
    pub fn backward_on<T: Send>(
        &mut self,
        gathered: Vec<Shard<'_>>,
        loss: impl Fn(&mut Tape<'_, D>, ShardOutput<'_>) -> (Vec<Loss<D>>, T) + Sync,
    ) -> Vec<T> {
        let is_one_by_one = self.computes_beside();
        let (network, parameters) = (&self.network, &self.parameters);
        let pass = |device: &mut D, gradients: &mut Tensors<D>, shard: usize, gathered: Shard<'_>| {
            temponet_cancel::checkpoint();
            let Shard { range, batch, rows, real } = gathered;
            let mut tape = Tape::new(device, parameters);
            let output = network.forward_with(&mut tape, &batch, &rows, real);
            let (losses, found) = loss(&mut tape, ShardOutput { shard, range, rows: &rows, output });
            tape.backward(losses, gradients);
            found
        };
        if is_one_by_one {
            let (device, sum) = (&mut self.device, &mut self.gradients[0]);
            sum.clear(device);
            let shards = gathered.into_iter().enumerate();
            return shards.map(|(shard, gathered)| pass(device, sum, shard, gathered)).collect();
        }
        let count = gathered.len();
        while self.gradients.len() < count {
            self.gradients.push(self.parameters.zeros_like(&mut self.device));
        }
        let shards = gathered.into_iter().zip(&mut self.gradients);
        let found = par_map(shards, 1, |shard, (gathered, gradients)| {
            self.spares.lend(&self.device, |device| {
                gradients.clear(device);
                pass(device, gradients, shard, gathered)
            })
        });
        let (sum, others) = self.gradients.split_at_mut(1);
        for gradients in &others[..count - 1] {
            sum[0].add_all(&mut self.device, gradients);
        }
        found
    }

    /// Computes the gradient of a loss with respect to the real-valued inputs of the job rows, row after row; nothing
    /// of it stays in the learner. `slopes` is called for each sample with its index. It writes the gradient with
    /// respect to the outputs of the sample's rows and returns that with respect to its value.
    pub fn input_gradients<'a, S: Copy + Into<SampleView<'a>>>(
        &mut self,
        samples: &[S],
        slopes: impl Fn(usize, &mut [f32]) -> f32 + Sync,
    ) -> Vec<f32> {
        let samples = views(samples);
        let parts = self.shards_of(&samples, |device, network, parameters, range| {
            let batch = Batch::of(&samples[range.clone()]);
            let rows = OutputRows::all(&batch);
            let mut unused = parameters.zeros_like(device);
            let mut tape = Tape::new(device, parameters);
            let output = network.forward(&mut tape, &batch, &rows);
            let mut by_q = vec![0.0; batch.segments.rows()];
            let of_one = |(index, rows): (usize, Range<usize>)| slopes(index, &mut by_q[rows]);
            let by_value: Vec<f32> = range.zip(batch.segments.ranges()).map(of_one).collect();
            let losses = [tape.loss(output.q, 0.0, &by_q), tape.loss(output.value, 0.0, &by_value)];
            output.real.map(|real| tape.backward_to(losses, &mut unused, real)).unwrap_or_default()
        });
        parts.concat()
    }

    /// Makes an optimizer step with the gradients computed last, which belong to these losses. It does not wait for the
    /// device.
    pub fn step(&mut self, losses: Vec<D::Number>, size: StepSize) -> PendingUpdate<D> {
        let (device, gradients) = (&mut self.device, &mut self.gradients[0]);
        let norm = self.adam.clipped_step(device, size.rate, size.clip, gradients, &mut self.parameters);
        PendingUpdate { losses, norm, known: 0.0 }
    }

    /// Waits for an update and returns its figures.
    pub fn figures(&self, queued: &PendingUpdate<D>) -> UpdateFigures {
        let number = |number: &D::Number| self.device.number(number);
        UpdateFigures { loss: queued.known + queued.losses.iter().map(number).sum::<f64>(), norm: number(&queued.norm) }
    }

    /// Waits for a buffer of the device and returns its values.
    pub fn download(&self, buffer: &D::Buffer) -> Vec<f32> {
        self.device.download(buffer)
    }
}

fn views<'a, S: Copy + Into<SampleView<'a>>>(samples: &[S]) -> Vec<SampleView<'a>> {
    samples.iter().map(|sample| (*sample).into()).collect()
}

/// Returns the state of each sample: a row of the output and the same row of the cell state.
fn states_of<D: Device>(tape: &Tape<'_, D>, (output, cell): (Var, Var)) -> Vec<Vec<f32>> {
    let width = tape.shape(cell).1;
    let (output, cell) = (tape.values(output), tape.values(cell));
    output.chunks_exact(width).zip(cell.chunks_exact(width)).map(|(output, cell)| [output, cell].concat()).collect()
}

/// Cuts samples into ranges in which the numbers of pairs of rows add up to at most `most`, as long as a single sample
/// has no more. `rows` are the numbers of rows of the samples.
fn cut_by_pairs(rows: impl Iterator<Item = usize>, most: usize) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut pairs = 0usize;
    for (place, rows) in rows.enumerate() {
        pairs = pairs.saturating_add(rows * rows);
        match ranges.last_mut() {
            Some(last) if pairs <= most => last.end = place + 1,
            _ => {
                ranges.push(place..place + 1);
                pairs = rows * rows;
            }
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_cut_only_where_its_pairs_need_too_much_memory() {
        let cut = |rows: &[usize], most: usize| cut_by_pairs(rows.iter().copied(), most);
        assert_eq!(cut(&[641; 900], usize::MAX).first(), Some(&(0..900)));
        assert_eq!(cut(&[2, 3, 1, 4, 4, 9, 1], 14), [0..3, 3..4, 4..5, 5..6, 6..7]);
        assert_eq!(cut(&[], 14), []);
    }
}
