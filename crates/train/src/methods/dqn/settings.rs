//! Settings of Q-learning.

use serde::{Deserialize, Serialize};

use super::Dqn;
use crate::exploration::ExplorationBonus;
use crate::learner::Learner;
use crate::limits::{negative, not_a_share, not_positive, not_whole};
use crate::method::{Algorithm, Method, MethodDevice, NetworkPart};
use crate::recipe::Recipe;
use crate::replay_settings::ReplaySettings;

/// Settings of Q-learning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DqnSettings {
    /// Acting, learning and the replay buffer.
    #[serde(flatten)]
    pub replay: ReplaySettings,
    /// Whole episodes, of all environments together, after which a phase ends if its steps are not used up before; at
    /// least 1. `None`, the default, sets no such limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub episodes: Option<u64>,
    /// Exponent of the replay priorities, 0 or more; 0, the default, draws uniformly.
    pub priority: f64,
    /// Whether the network itself picks the next action and the target network only values it (Double DQN); default
    /// true.
    pub double: bool,
    /// Whether V is a value head of its own (dueling); otherwise V is the output for idling. Default true.
    pub dueling: bool,
    /// Choices that a transition spans (n-step returns); at least 1, default 1.
    pub n_step: usize,
    /// Bound of the Huber loss, positive; `None`, in a file `inf`, is the squared error. Default 1.
    #[serde(with = "bound")]
    pub huber: Option<f64>,
    /// Probability of a random choice at first and at last, each 0 to 1. It falls linearly over the first half of the
    /// stage's phases and then stays. Default (1, 0.05).
    pub epsilon: (f64, f64),
    /// Bonus on the Q-values of rarely tried jobs while acting; default none.
    pub bonus: ExplorationBonus,
    /// Whether the policy may leave cores idle while jobs wait; default false.
    pub may_idle: bool,
    /// Weight of the conservative penalty (CQL), 0 or more: the negative logarithm of the softmax likelihood of the
    /// jobs that ran. It raises their Q-values above the others', which at the same time clones them. Default 0.
    pub conservative: f64,
}

impl Default for DqnSettings {
    fn default() -> Self {
        DqnSettings {
            replay: ReplaySettings::default(),
            episodes: None,
            priority: 0.0,
            double: true,
            dueling: true,
            n_step: 1,
            huber: Some(1.0),
            epsilon: (1.0, 0.05),
            bonus: ExplorationBonus::None,
            may_idle: false,
            conservative: 0.0,
        }
    }
}

impl Method for DqnSettings {
    const NAME: &'static str = "dqn";

    fn problem(&self, _recipe: &Recipe) -> Option<String> {
        let whole = [("n_step", self.n_step), ("episodes", self.episodes.unwrap_or(1) as usize)];
        let bonus = match self.bonus {
            ExplorationBonus::None => 0.0,
            ExplorationBonus::Count { weight, .. } | ExplorationBonus::Ucb { weight } => weight,
        };
        let amounts = [("priority", self.priority), ("bonus.weight", bonus), ("conservative", self.conservative)];
        let (first, last) = self.epsilon;
        let problem = self.replay.problem().or_else(|| not_whole(&whole)).or_else(|| negative(&amounts));
        problem
            .or_else(|| not_a_share(&[("epsilon[0]", first), ("epsilon[1]", last)]))
            .or_else(|| not_positive(&[("huber", self.huber.unwrap_or(1.0))]))
    }

    fn learns(&self, part: NetworkPart) -> bool {
        self.conservative == 0.0 && part == NetworkPart::Speeds
    }

    fn updates(&self) -> u64 {
        self.replay.updates()
    }

    fn begin<D: MethodDevice>(&self, _recipe: &Recipe, learner: &mut Learner<D>) -> Box<dyn Algorithm<D>> {
        Box::new(Dqn::new(self.clone(), learner))
    }
}

/// A bound in a recipe file, where a missing key means the default: no bound is written as an infinite one, in JSON as
/// null.
mod bound {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bound: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(bound.unwrap_or(f64::INFINITY))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
        Ok(Option::<f64>::deserialize(deserializer)?.filter(|bound| *bound != f64::INFINITY))
    }
}
