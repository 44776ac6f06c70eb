//! Parameters, and how they are moved: batches are cut into shards, whose gradients are added up in order, so that the number of threads
//! changes nothing.

use std::ops::Range;

use rayon::prelude::*;
use temponet_grad::{Adam, AdamSettings, Device, Tape, Tensors};
use temponet_infer::Weights;

use crate::network::{Focus, Network};
use crate::sample::{Batch, Sample};

/// A shard has about this many rows.
const SHARD_ROWS: usize = 448;

/// What a network says about some samples.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    /// Of each sample, one number for each row in focus, the idle one first.
    pub q: Vec<Vec<f32>>,
    /// What each state is worth.
    pub value: Vec<f32>,
}

/// A loss worked out from the outputs of some samples: its sum, and its gradients.
#[derive(Clone, Debug, Default)]
pub struct Gradient {
    /// The loss.
    pub loss: f64,
    /// With respect to each number of each sample.
    pub q: Vec<Vec<f32>>,
    /// With respect to each value.
    pub value: Vec<f32>,
}

/// A network that learns.
pub struct Learner<D: Device<Real = f32>> {
    /// Where its tensors are.
    pub network: Network,
    /// What it has learned.
    pub parameters: Tensors<D>,
    /// The optimiser.
    pub adam: Adam<D>,
    /// One for each shard that is under way at once, with its gradients.
    shards: Vec<(D, Tensors<D>)>,
    make_device: fn() -> D,
    /// Rows of a shard.
    shard_rows: usize,
}

/// Rows of a sample whose outputs are wanted, the idle one not named; all if there is no list.
pub type Wanted<'a> = Option<&'a [&'a [u32]]>;

impl<D: Device<Real = f32>> Learner<D> {
    /// A learner that begins with these weights.
    pub fn new(
        make_device: fn() -> D,
        weights: &Weights,
        value_head: Option<&[f32]>,
        settings: AdamSettings,
    ) -> Learner<D> {
        let mut device = make_device();
        let (network, parameters) = Network::new(&mut device, weights, value_head);
        let adam = Adam::new(&mut device, settings, &parameters);
        let gradients = parameters.zeros_like(&mut device);
        let shards = vec![(device, gradients)];
        Learner { network, parameters, adam, shards, make_device, shard_rows: SHARD_ROWS }
    }

    /// The first device, for what is not done in shards.
    pub fn device(&mut self) -> &mut D {
        &mut self.shards[0].0
    }

    /// A copy of the parameters, for a target network.
    pub fn copy_parameters(&mut self) -> Tensors<D> {
        self.parameters.copy(&mut self.shards[0].0)
    }

    /// Moves a target network towards the parameters.
    pub fn blend_into(&mut self, target: &mut Tensors<D>, share: f32) {
        target.blend(&mut self.shards[0].0, &self.parameters, share);
    }

    /// The weights to deploy.
    pub fn weights(&self) -> Weights {
        self.network.weights(&self.shards[0].0, &self.parameters)
    }

    /// Consecutive samples of about as many rows as a shard should have.
    fn cut(&self, samples: &[&Sample]) -> Vec<Range<usize>> {
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
        if first < samples.len() {
            ranges.push(first..samples.len());
        }
        ranges
    }

    fn make_shards(&mut self, count: usize) {
        while self.shards.len() < count {
            let mut device = (self.make_device)();
            let gradients = self.parameters.zeros_like(&mut device);
            self.shards.push((device, gradients));
        }
    }

    /// What a network with these parameters (its own if none are given) says about some samples.
    pub fn outputs(&mut self, parameters: Option<&Tensors<D>>, samples: &[&Sample]) -> Outputs {
        let ranges = self.cut(samples);
        self.make_shards(ranges.len());
        let parameters = parameters.unwrap_or(&self.parameters);
        let network = &self.network;
        let shards = ranges.par_iter().zip(&mut self.shards).map(|(range, (device, _))| {
            let batch = Batch::of(samples[range.clone()].iter().copied());
            let focus = Focus::all(&batch);
            let mut tape = Tape::new(device, parameters);
            let output = network.forward(&mut tape, &batch, &focus);
            (split(&focus, &tape.values(output.q)), tape.values(output.value))
        });
        let (mut q, mut value) = (Vec::new(), Vec::new());
        for (shard_q, shard_value) in shards.collect::<Vec<_>>() {
            q.extend(shard_q);
            value.extend(shard_value);
        }
        Outputs { q, value }
    }

    /// The loss of some samples, and its gradients, added up in order. `loss` is asked for each shard: it is told which samples and what the
    /// network says of their wanted rows.
    pub fn gradients(
        &mut self,
        samples: &[&Sample],
        wanted: Wanted<'_>,
        loss: impl Fn(Range<usize>, &Outputs) -> Gradient + Sync,
    ) -> f64 {
        let ranges = self.cut(samples);
        self.make_shards(ranges.len());
        let (network, parameters) = (&self.network, &self.parameters);
        let shards = ranges.par_iter().zip(&mut self.shards).map(|(range, (device, gradients))| {
            gradients.clear(device);
            let batch = Batch::of(samples[range.clone()].iter().copied());
            let focus = match wanted {
                Some(wanted) => Focus::of(&batch, wanted[range.clone()].iter().copied()),
                None => Focus::all(&batch),
            };
            let mut tape = Tape::new(device, parameters);
            let output = network.forward(&mut tape, &batch, &focus);
            let outputs = Outputs { q: split(&focus, &tape.values(output.q)), value: tape.values(output.value) };
            let gradient = loss(range.clone(), &outputs);
            let by_q = tape.loss(output.q, gradient.loss, &gradient.q.concat());
            let by_value = tape.loss(output.value, 0.0, &gradient.value);
            let total = by_q.value;
            tape.backward([by_q, by_value], gradients);
            total
        });
        let total = shards.collect::<Vec<f64>>().iter().sum();
        let (first, others) = self.shards.split_at_mut(1);
        let (device, sum) = &mut first[0];
        for (_, gradients) in &others[..ranges.len() - 1] {
            sum.add_all(device, gradients);
        }
        total
    }

    /// Moves the parameters against the gradients last found, clipped to a norm. Gives that norm before clipping.
    pub fn step(&mut self, rate: f64, clip: f64) -> f64 {
        let (device, gradients) = &mut self.shards[0];
        let norm = gradients.clip(device, clip);
        if norm.is_finite() {
            self.adam.step(device, rate, gradients, &mut self.parameters);
        }
        norm
    }
}

fn split(focus: &Focus, q: &[f32]) -> Vec<Vec<f32>> {
    focus.segments.ranges().map(|range| q[range].to_vec()).collect()
}
