//! Advantage actor–critic (A2C), the synchronous form of A3C.
//!
//! All environments make a few choices with the same weights. Then one gradient step follows the logarithm of the
//! choices' likelihood, weighted by the advantage: the n-step return less the estimated return of the state. The
//! entropy of the policy is a bonus, and the value head learns the n-step returns. Choices, their likelihood, and the
//! estimated returns are those of [`Ppo`]; a single pass over choices that were made with the same weights has a
//! likelihood ratio of 1, so the loss of PPO without a clip has the gradient of A2C.
//!
//! Paper: Mnih et al., "Asynchronous Methods for Deep Reinforcement Learning" (2016). Deviations:
//! - The environments act in step, and their gradients are added up in one update, instead of asynchronous workers with
//!   RMSProp. The result then does not depend on timing.
//! - Adam instead of RMSProp.
//! - Discounts are γ to the power of the time between choices, and an episode that the horizon cuts off is not a
//!   terminal state.

use serde::{Deserialize, Serialize};
use temponet_grad::LearningLosses;
use temponet_train::limits::{negative, not_environments, not_positive, not_whole};
use temponet_train::{
    Algorithm, Fleet, Learner, Method, MethodDevice, Phase, Ppo, PpoRound, PpoSettings, Recipe, TrainError,
    training_seed,
};

/// Settings of advantage actor–critic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct A2cSettings {
    /// Environments that act in step, 1 to 100,000; default 16.
    pub environments: usize,
    /// Choices of each environment between updates, the n of the n-step returns; at least 1, default 5.
    pub length: usize,
    /// Updates per phase; at least 1, default 200.
    pub updates: u64,
    /// Weight of the entropy bonus, 0 or more; default 0.01.
    pub entropy: f64,
    /// Weight of the value loss, 0 or more; default 0.5.
    pub value: f64,
    /// Factor from the value head's output to the return it estimates, positive; default 10.
    pub value_scale: f64,
}

impl Default for A2cSettings {
    fn default() -> Self {
        A2cSettings { environments: 16, length: 5, updates: 200, entropy: 0.01, value: 0.5, value_scale: 10.0 }
    }
}

impl Method for A2cSettings {
    const NAME: &'static str = "a2c";

    fn problem(&self, _recipe: &Recipe) -> Option<String> {
        not_whole(&[("length", self.length), ("updates", self.updates as usize)])
            .or_else(|| not_environments(self.environments))
            .or_else(|| not_positive(&[("value_scale", self.value_scale)]))
            .or_else(|| negative(&[("entropy", self.entropy), ("value", self.value)]))
    }

    fn updates(&self) -> u64 {
        self.updates
    }

    fn begin<D: MethodDevice>(&self, _recipe: &Recipe, _learner: &mut Learner<D>) -> Box<dyn Algorithm<D>> {
        let policy = Ppo::new(PpoSettings {
            environments: self.environments,
            length: self.length,
            rounds: self.updates,
            epochs: 1,
            batch: self.environments.saturating_mul(self.length),
            clip: f64::INFINITY,
            entropy: self.entropy,
            value: self.value,
            lambda: 1.0,
            value_scale: self.value_scale,
            ..PpoSettings::default()
        });
        Box::new(A2c { settings: self.clone(), policy: policy.unnormalized() })
    }
}

/// Advantage actor–critic. It keeps nothing from phase to phase.
struct A2c {
    settings: A2cSettings,
    /// Acts and learns with one pass over all choices, no clip, and λ = 1, which makes the advantages those of n-step
    /// returns.
    policy: Ppo,
}

impl<D: LearningLosses> Algorithm<D> for A2c {
    fn phase(&mut self, learner: &mut Learner<D>, phase: &mut Phase<'_, D>) -> Result<(), TrainError> {
        let mut fleet = Fleet::new(phase.episodes.clone(), self.settings.environments, phase.seed)?;
        let mut round = PpoRound::default();
        for update in 0..self.settings.updates {
            let seed = training_seed(phase.seed, 100 + update);
            self.policy.collect(std::slice::from_mut(learner), &mut fleet, seed, &mut round)?;
            let figures = self.policy.learn(learner, &round, seed, &mut phase.updates);
            figures.into_iter().try_for_each(|figures| phase.updates.report(learner, figures))?;
        }
        Ok(())
    }
}
