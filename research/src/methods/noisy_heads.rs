//! Noisy networks: exploration by noise on the weights of the output heads, whose strength is learned.
//!
//! A head acts and learns with the weights μ + σ ∘ ε. The noise ε of a weight is the product of one number for its
//! input and one for its output, f(a) · f(b) with f(x) = sign(x) · √|x| of standard normal numbers; that of a bias is
//! the one of its output. It is drawn anew for each round of choices, for each update, and for the target network of
//! each update. The gradient with respect to σ is that with respect to the noisy weight, times ε, so nothing but the
//! heads' tensors changes and every device can compute it. The learner's own parameters are the means μ; the deployed
//! network has these alone.
//!
//! Paper: Fortunato et al., "Noisy Networks for Exploration" (2018), with its factorized noise. Deviations: only the
//! output heads are noisy, because they are the only layers after the encoder; all environments that act together share
//! one draw; σ has a norm of its own for gradient clipping.

use rand::RngExt;
use rand_distr::StandardNormal;
use rand_pcg::Pcg64;
use temponet_grad::{Adam, Device, TensorId, Tensors};
use temponet_train::{Learner, StepSize};

/// Standard deviations of the heads' noise, those of the target network, and their optimizer.
pub(super) struct NoisyHeads<D: Device> {
    /// Weight and bias of each head: ids in the network, and ids below.
    heads: Vec<[(TensorId, TensorId); 2]>,
    pub(super) deviations: Tensors<D>,
    pub(super) target: Tensors<D>,
    pub(super) adam: Adam<D>,
}

/// Noise that has been added to some heads: the weights before, and ε.
pub(super) struct AddedNoise {
    /// For each tensor its id in the network, its id among the deviations, its values before and its noise.
    tensors: Vec<(TensorId, TensorId, Vec<f32>, Vec<f32>)>,
}

impl<D: Device> NoisyHeads<D> {
    /// Noise on all heads of a network. The deviations start at `initial` / √(number of inputs).
    pub(super) fn new(initial: f64, learner: &mut Learner<D>) -> NoisyHeads<D> {
        let settings = learner.adam.settings;
        let (device, parameters, _) = learner.parts();
        let mut deviations = Tensors::default();
        let mut heads = Vec::new();
        for weight in parameters.ids() {
            let name = parameters.name(weight);
            let Some(head) = name.strip_prefix("head.").and_then(|name| name.strip_suffix(".weight")) else { continue };
            let Some(bias) = parameters.find(&format!("head.{head}.bias")) else { continue };
            let inputs = parameters.shape(weight).1;
            heads.push([weight, bias].map(|id| {
                let (rows, columns) = parameters.shape(id);
                let values = vec![(initial / (inputs as f64).sqrt()) as f32; rows * columns];
                (id, deviations.add(device, parameters.name(id), rows, columns, &values))
            }));
        }
        let (target, adam) = (deviations.copy(device), Adam::new(device, settings, &deviations));
        NoisyHeads { heads, deviations, target, adam }
    }

    /// Adds noise to the heads of a network with these deviations.
    pub(super) fn add(
        &self,
        (device, network): (&mut D, &mut Tensors<D>),
        deviations: &Tensors<D>,
        rng: &mut Pcg64,
    ) -> AddedNoise {
        let mut tensors = Vec::new();
        for [weight, bias] in &self.heads {
            let (outputs, inputs) = network.shape(weight.0);
            let mut draw =
                |count: usize| -> Vec<f32> { (0..count).map(|_| rooted(rng.sample(StandardNormal))).collect() };
            let (by_input, by_output) = (draw(inputs), draw(outputs));
            let product =
                by_output.iter().flat_map(|output| by_input.iter().map(move |input| output * input)).collect();
            for ((id, own), noise) in [(*weight, product), (*bias, by_output.clone())] {
                let (before, strength): (Vec<f32>, _) = (network.values(device, id), deviations.values(device, own));
                let noisy =
                    before.iter().zip(&strength).zip(&noise).map(|((mean, strength), noise)| mean + strength * noise);
                network.set(device, id, &noisy.collect::<Vec<f32>>());
                tensors.push((id, own, before, noise));
            }
        }
        AddedNoise { tensors }
    }

    /// Makes an optimizer step of the deviations with the learner's last gradients, which were computed with this
    /// noise.
    pub(super) fn step(&mut self, learner: &mut Learner<D>, added: &AddedNoise, size: StepSize, target_share: f32) {
        let (device, _, gradients) = learner.parts();
        let mut own = self.deviations.zeros_like(device);
        for (id, place, _, noise) in &added.tensors {
            let slopes: Vec<f32> =
                gradients.values(device, *id).iter().zip(noise).map(|(slope, noise)| slope * noise).collect();
            own.set(device, *place, &slopes);
        }
        self.adam.clipped_step(device, size.rate, size.clip, &mut own, &mut self.deviations);
        self.target.blend(device, &self.deviations, target_share);
    }
}

impl AddedNoise {
    /// Takes the noise away again.
    pub(super) fn remove<D: Device>(&self, device: &mut D, network: &mut Tensors<D>) {
        self.tensors.iter().for_each(|(id, _, before, _)| network.set(device, *id, before));
    }
}

/// sign(x) · √|x|.
fn rooted(x: f32) -> f32 {
    x.signum() * x.abs().sqrt()
}
