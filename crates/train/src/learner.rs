//! Parameters, and how they are moved: batches are cut into shards, whose gradients are added up in order, so that the number of threads
//! changes nothing.

use std::ops::Range;

use rayon::prelude::*;
use temponet_grad::{Adam, AdamSettings, Device, Loss, Tape, Tensors};
use temponet_infer::Weights;

use crate::sample::{Batch, Sample};
use crate::tape_network::{OutputMap, OutputRows, TapeNetwork, TapeOutput};
use crate::updates::StepSize;

/// What a network says about some samples.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    q: Vec<f32>,
    /// Where each sample's numbers begin, and the end.
    starts: Vec<usize>,
    /// What each state is worth.
    pub value: Vec<f32>,
}

impl Outputs {
    /// A sample's numbers, one for each row in rows, the idle one first.
    pub fn q(&self, sample: usize) -> &[f32] {
        &self.q[self.starts[sample]..self.starts[sample + 1]]
    }

    fn push(&mut self, q: &[f32], rows: &OutputRows, value: &[f32]) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        let before = self.q.len();
        self.starts.extend(rows.segments.ranges().map(|range| before + range.end));
        self.q.extend_from_slice(q);
        self.value.extend_from_slice(value);
    }
}

/// One sample's loss and its gradient with respect to the state's worth; that with respect to the rows' numbers is written elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct SampleLoss {
    /// The loss.
    pub loss: f64,
    /// Its slope by the value.
    pub by_value: f32,
}

/// A shard of a batch on the tape, to say how wrong the network was.
pub struct ShardOutput<'a> {
    /// Which shard.
    pub shard: usize,
    /// Which samples of the batch.
    pub range: Range<usize>,
    /// The rows of theirs whose outputs are wanted.
    pub rows: &'a OutputRows,
    /// What the network says.
    pub output: TapeOutput,
}

/// An update that may still be under way.
pub struct PendingUpdate<D: Device> {
    /// What the loss of each shard comes to.
    losses: Vec<D::Number>,
    /// The gradient's norm before clipping.
    norm: D::Number,
}

/// What an update came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct UpdateFigures {
    /// The mean loss.
    pub loss: f64,
    /// The gradient's norm.
    pub norm: f64,
}

/// A network that learns.
pub struct Learner<D: Device<Real = f32>> {
    /// Where its tensors are.
    pub network: TapeNetwork,
    /// What it has learned.
    pub parameters: Tensors<D>,
    /// The optimiser.
    pub adam: Adam<D>,
    /// One for each shard that is under way at once, with its gradients.
    shards: Vec<(D, Tensors<D>)>,
}

/// The losses of so many samples are no work to share: whoever is asked to take a part may be busy simulating.
const FEW: usize = 1024;

/// Rows of each sample whose outputs are wanted, the idle one not named; all if there is no list.
pub type SelectedRows<'a> = Option<&'a [&'a [u32]]>;

impl<D: Device<Real = f32>> Learner<D> {
    /// A learner on a device that begins with these weights.
    pub fn new(mut device: D, weights: &Weights, settings: AdamSettings) -> Learner<D> {
        let (network, parameters) = TapeNetwork::new(&mut device, weights);
        let adam = Adam::new(&mut device, settings, &parameters);
        let gradients = parameters.zeros_like(&mut device);
        Learner { network, parameters, adam, shards: vec![(device, gradients)] }
    }

    /// Forgets what the optimiser remembers.
    pub fn restart_optimizer(&mut self) {
        self.adam = Adam::new(&mut self.shards[0].0, self.adam.settings, &self.parameters);
    }

    /// Another device of the same kind.
    pub fn another_device(&self) -> D {
        self.shards[0].0.another()
    }

    /// Why its device computes no longer, if it failed.
    pub fn failure(&self) -> Option<String> {
        self.shards[0].0.failure()
    }

    /// Another one with the same parameters, on a device of its own: to act while this one learns.
    pub fn twin(&mut self) -> Learner<D> {
        let mut device = self.another_device();
        let (network, parameters) = TapeNetwork::new(&mut device, &self.weights());
        let adam = Adam::new(&mut device, self.adam.settings, &parameters);
        let gradients = parameters.zeros_like(&mut device);
        let mut twin = Learner { network, parameters, adam, shards: vec![(device, gradients)] };
        twin.follow(self);
        twin
    }

    /// Takes over what its twin has learned.
    pub fn follow(&mut self, twin: &Learner<D>) {
        self.parameters.take_over(&mut self.shards[0].0, &twin.parameters, &twin.shards[0].0);
    }

    /// A copy of the parameters, for a target network.
    pub fn copy_parameters(&mut self) -> Tensors<D> {
        self.parameters.copy(&mut self.shards[0].0)
    }

    /// Moves a target network towards the parameters.
    pub fn blend_into(&mut self, target: &mut Tensors<D>, share: f32) {
        target.blend(&mut self.shards[0].0, &self.parameters, share);
    }

    /// Maps what the heads say.
    pub fn map_outputs(&mut self, map: &OutputMap) {
        self.network.map_outputs(&mut self.shards[0].0, &mut self.parameters, map);
    }

    /// The weights to deploy.
    pub fn weights(&self) -> Weights {
        self.network.weights(&self.shards[0].0, &self.parameters)
    }

    /// Shows the parameters, the optimiser's moments and tensors that belong to them, with the device they live on.
    pub fn visit(
        &mut self,
        others: Vec<(&'static str, &mut Tensors<D>)>,
        mut each: impl FnMut(&'static str, &mut D, &mut Tensors<D>),
    ) {
        let device = &mut self.shards[0].0;
        let adam = &mut self.adam;
        let own = [("parameters", &mut self.parameters), ("first", &mut adam.first), ("second", &mut adam.second)];
        own.into_iter().chain(others).for_each(|(name, tensors)| each(name, device, tensors));
    }

    /// Consecutive samples of about as many rows as a shard should have.
    fn cut(&mut self, samples: &[&Sample]) -> Vec<Range<usize>> {
        if self.shards[0].0.shard_rows() == usize::MAX {
            // They need not even be looked at.
            return (!samples.is_empty()).then_some(0..samples.len()).into_iter().collect();
        }
        let total: usize = samples.iter().map(|sample| sample.rows()).sum();
        let shards = total.div_ceil(self.shards[0].0.shard_rows()).clamp(1, samples.len().max(1));
        let mut ranges = Vec::new();
        let (mut first, mut rows) = (0, 0);
        for (place, sample) in samples.iter().enumerate() {
            rows += sample.rows();
            if rows * shards >= total * (ranges.len() + 1) {
                ranges.push(first..place + 1);
                first = place + 1;
            }
        }
        while self.shards.len() < ranges.len() {
            let mut device = self.another_device();
            let gradients = self.parameters.zeros_like(&mut device);
            self.shards.push((device, gradients));
        }
        ranges
    }

    /// What a network with these parameters (its own if none are given) says about some samples.
    pub fn outputs(&mut self, parameters: Option<&Tensors<D>>, samples: &[&Sample]) -> Outputs {
        let shards = self.each_shard(samples, |device, network, own, range| {
            let batch = Batch::of(&samples[range]);
            let rows = OutputRows::all(&batch);
            let mut tape = Tape::new(device, parameters.unwrap_or(own));
            let output = network.forward(&mut tape, &batch, &rows);
            (tape.values(output.q), rows, tape.values(output.value))
        });
        let mut outputs = Outputs::default();
        shards.iter().for_each(|(q, rows, value)| outputs.push(q, rows, value));
        outputs
    }

    /// Does something for each shard of some samples, on its device, with the network and its parameters.
    pub fn each_shard<T: Send>(
        &mut self,
        samples: &[&Sample],
        work: impl Fn(&mut D, &TapeNetwork, &Tensors<D>, Range<usize>) -> T + Sync,
    ) -> Vec<T> {
        let ranges = self.cut(samples);
        let (network, parameters) = (&self.network, &self.parameters);
        let shards = ranges.into_par_iter().zip(&mut self.shards);
        shards.map(|(range, (device, _))| work(device, network, parameters, range)).collect()
    }

    /// The loss of some samples, and its gradients, added up in order, worked out by the processor. `loss` is asked for each sample: it is told which one,
    /// what the network says of its wanted rows and of its worth, and writes its gradient with respect to the former.
    pub fn gradients(
        &mut self,
        samples: &[&Sample],
        wanted: SelectedRows<'_>,
        loss: impl Fn(usize, &[f32], f32, &mut [f32]) -> SampleLoss + Sync,
    ) -> f64 {
        let losses = self.backward(samples, wanted, |tape, shard| {
            let ShardOutput { range, rows, output, .. } = shard;
            let (q, value) = (tape.values(output.q), tape.values(output.value));
            let mut by_q = vec![0.0; q.len()];
            let mut parts: Vec<(usize, &[f32], &mut [f32])> = Vec::with_capacity(range.len());
            let mut rest = &mut by_q[..];
            for (place, rows) in rows.segments.ranges().enumerate() {
                let (own, others) = rest.split_at_mut(rows.len());
                parts.push((place, &q[rows], own));
                rest = others;
            }
            let one = |(place, q, by_q): (usize, &[f32], &mut [f32])| loss(range.start + place, q, value[place], by_q);
            let losses: Vec<SampleLoss> = parts.into_par_iter().with_min_len(FEW).map(one).collect();
            let total: f64 = losses.iter().map(|sample| sample.loss).sum();
            let by_value: Vec<f32> = losses.iter().map(|sample| sample.by_value).collect();
            (vec![tape.loss(output.q, total, &by_q), tape.loss(output.value, 0.0, &by_value)], total)
        });
        losses.into_iter().sum()
    }

    /// The gradients of a loss of some samples, added up in order. `loss` is asked for each shard of them, and what it gives beside the losses to go
    /// backwards from is handed on.
    pub fn backward<T: Send>(
        &mut self,
        samples: &[&Sample],
        wanted: SelectedRows<'_>,
        loss: impl Fn(&mut Tape<'_, D>, ShardOutput<'_>) -> (Vec<Loss<D>>, T) + Sync,
    ) -> Vec<T> {
        let ranges = self.cut(samples);
        let (network, parameters) = (&self.network, &self.parameters);
        let shards = ranges.par_iter().zip(&mut self.shards).enumerate();
        let shards = shards.map(|(shard, (range, (device, gradients)))| {
            gradients.clear(device);
            let batch = Batch::of(&samples[range.clone()]);
            let rows = match wanted {
                Some(wanted) => OutputRows::of(&batch, wanted[range.clone()].iter().copied()),
                None => OutputRows::all(&batch),
            };
            let mut tape = Tape::new(device, parameters);
            let output = network.forward(&mut tape, &batch, &rows);
            let (losses, found) = loss(&mut tape, ShardOutput { shard, range: range.clone(), rows: &rows, output });
            tape.backward(losses, gradients);
            found
        });
        let found = shards.collect();
        let (first, others) = self.shards.split_at_mut(1);
        let (device, sum) = &mut first[0];
        for (_, gradients) in &others[..ranges.len() - 1] {
            sum.add_all(device, gradients);
        }
        found
    }

    /// Moves the parameters against the gradients last found, which are those of these losses, clipped to a norm. Does not wait for it.
    pub fn step(&mut self, losses: Vec<D::Number>, size: StepSize) -> PendingUpdate<D> {
        let (device, gradients) = &mut self.shards[0];
        let norm = self.adam.clipped_step(device, size.rate, size.clip, gradients, &mut self.parameters);
        PendingUpdate { losses, norm }
    }

    /// What an update came to, waited for.
    pub fn figures(&self, queued: &PendingUpdate<D>) -> UpdateFigures {
        let number = |number: &D::Number| self.shards[0].0.number(number);
        UpdateFigures { loss: queued.losses.iter().map(number).sum(), norm: number(&queued.norm) }
    }

    /// The numbers of a matrix on its device, waited for.
    pub fn download(&self, buffer: &D::Buffer) -> Vec<f32> {
        self.shards[0].0.download(buffer)
    }
}
