//! Rainbow: Q-learning with double selection, dueling heads, prioritized replay and n-step returns, which are options
//! of `dqn`, and with the two parts that are here: noise on the heads in place of random choices (`noisy_heads.rs`),
//! and, on a network with atoms, distributions of returns in place of their means (`distribution.rs`).
//!
//! Paper: Hessel et al., "Rainbow: Combining Improvements in Deep Reinforcement Learning" (2018). Each part can be left
//! out by one key. Deviations are named in the files of the parts.

use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use temponet_grad::{Device, LearningLosses, Tensors};
use temponet_train::limits::negative;
use temponet_train::{
    Algorithm, Dqn, DqnSettings, DqnVariant, Learner, Method, MethodDevice, NetworkPart, Recipe, StepSize, Transition,
};

use super::distribution::{self, NextChoice};
use super::noisy_heads::{AddedNoise, NoisyHeads};

/// Settings of Rainbow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RainbowSettings {
    /// Standard deviation, 0 or more, that the noise on the heads' weights starts with (noisy networks), in units of
    /// 1 / √(inputs of a head). The noise explores, so ε can be 0. 0, the default, adds no noise.
    pub noisy: f64,
    /// Settings of Q-learning.
    pub dqn: DqnSettings,
}

impl Method for RainbowSettings {
    const NAME: &'static str = "rainbow";

    fn problem(&self, recipe: &Recipe) -> Option<String> {
        negative(&[("noisy", self.noisy)]).or_else(|| self.dqn.problem(recipe))
    }

    fn learns(&self, part: NetworkPart) -> bool {
        self.dqn.learns(part) || (part == NetworkPart::Atoms && self.dqn.conservative == 0.0)
    }

    fn updates(&self) -> u64 {
        self.dqn.updates()
    }

    fn begin<D: MethodDevice>(&self, _recipe: &Recipe, learner: &mut Learner<D>) -> Box<dyn Algorithm<D>> {
        Box::new(self.algorithm(learner))
    }
}

impl RainbowSettings {
    /// Q-learning with the parts of Rainbow, with nothing learned.
    pub fn algorithm<D: LearningLosses + 'static>(&self, learner: &mut Learner<D>) -> Dqn<D> {
        let noise = (self.noisy > 0.0).then(|| NoisyHeads::new(self.noisy, learner));
        Dqn::new(self.dqn.clone(), learner).with_variant(Rainbow { noise, added: None })
    }
}

/// The parts of Rainbow that plain Q-learning lacks.
struct Rainbow<D: Device> {
    /// Noise on the heads; `None` without any.
    noise: Option<NoisyHeads<D>>,
    /// Noise that is on the network and, during an update, on the target network.
    added: Option<(AddedNoise, Option<AddedNoise>)>,
}

impl<D: LearningLosses> DqnVariant<D> for Rainbow<D> {
    fn perturb(&mut self, learner: &mut Learner<D>, target: Option<&mut Tensors<D>>, rng: &mut Pcg64) {
        self.added = self.noise.as_ref().map(|noise| {
            let (device, parameters, _) = learner.parts();
            let own = noise.add((&mut *device, parameters), &noise.deviations, rng);
            (own, target.map(|target| noise.add((device, target), &noise.target, rng)))
        });
    }

    fn restore(&mut self, learner: &mut Learner<D>, update: Option<(&mut Tensors<D>, StepSize, f32)>) {
        let (Some(noise), Some((own, of_target))) = (&mut self.noise, self.added.take()) else { return };
        let (device, parameters, _) = learner.parts();
        own.remove(device, parameters);
        if let (Some(of_target), Some((target, size, share))) = (of_target, update) {
            of_target.remove(device, target);
            noise.step(learner, &own, size, share);
        }
    }

    fn gradients(
        &self,
        learner: &mut Learner<D>,
        target: &Tensors<D>,
        settings: &DqnSettings,
        transitions: &[&Transition],
        weights: &[f32],
    ) -> Option<(f64, Vec<f32>)> {
        let atoms = learner.network.architecture.atoms()?;
        let how = NextChoice { double: settings.double, may_idle: settings.may_idle };
        Some(distribution::learn(learner, target, (atoms, how), transitions, weights))
    }

    fn tensors(&mut self) -> Vec<(&'static str, &mut Tensors<D>)> {
        let Some(NoisyHeads { deviations, target, adam, .. }) = &mut self.noise else { return Vec::new() };
        let moments = [("noise-first", &mut adam.first), ("noise-second", &mut adam.second)];
        [("noise", deviations), ("noise-target", target)].into_iter().chain(moments).collect()
    }

    fn steps(&self) -> u64 {
        self.noise.as_ref().map_or(0, |noise| noise.adam.steps)
    }

    fn set_steps(&mut self, steps: u64) {
        if let Some(noise) = &mut self.noise {
            noise.adam.steps = steps;
        }
    }
}
