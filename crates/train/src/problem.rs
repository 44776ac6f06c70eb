//! Check of a recipe: everything that a user can get wrong in one, found before anything is done.

use crate::exploration::ExplorationBonus;
use crate::hierarchical::missing_feature;
use crate::methods::dqn::DqnSettings;
use crate::methods::matching::MatchingSettings;
use crate::methods::offline::OfflineAlgorithm;
use crate::priorities::PriorityAlgorithm;
use crate::recipe::{Method, NetworkShape, Recipe, Stage};
use crate::reward::{Reward, RewardShape};
use crate::sac::Temperature;
use crate::teacher::unknown;
use temponet_sim::generate::WorkloadRanges;

/// Greatest number of updates in a stage.
const MAX_UPDATES: u64 = 1_000_000_000_000;

impl Recipe {
    /// Returns why the recipe cannot be followed, or `None`. The text names the setting, so that its line in the file can be found.
    pub fn problem(&self) -> Option<String> {
        let tokenizer = self.tokenizer();
        if let Some(problem) = tokenizer.problem() {
            return Some(format!("tokens: {problem}"));
        }
        if let Some(problem) = self.network.architecture(&tokenizer).problem() {
            return Some(format!("network: {problem}"));
        }
        if tokenizer.sparse && tokenizer.slots.is_some() {
            return Some("sparse: a network with slots has no attention".into());
        }
        if tokenizer.sparse && (self.network.graph || self.network.memory.is_some()) {
            return Some("sparse: a graph network and a recurrent one have no attention".into());
        }
        let positive = [
            ("episode.length", self.episode.length),
            ("episode.tick", self.episode.tick.unwrap_or(1.0)),
            ("optimizer.rate", self.optimizer.rate),
            ("optimizer.clip", self.optimizer.clip),
            ("validation.length", self.validation.length),
        ];
        let adam = &self.optimizer.adam;
        let shares = [("episode.gamma", self.episode.gamma), ("adam.beta1", adam.beta1), ("adam.beta2", adam.beta2)];
        let amounts = [("adam.epsilon", adam.epsilon), ("adam.weight_decay", adam.weight_decay)];
        let whole = [("validation.runs", self.validation.runs)];
        let problem = not_positive(&positive).or_else(|| not_a_share(&shares)).or_else(|| negative(&amounts));
        if let Some(problem) = problem.or_else(|| not_whole(&whole)).or_else(|| self.episode.reward.problem()) {
            return Some(problem);
        }
        if self.stage.is_empty() || self.stage.len() > 1_000 {
            return Some(format!("{} stages, not from 1 to 1000", self.stage.len()));
        }
        for (place, stage) in self.stage.iter().enumerate() {
            let tokens = || match stage.method {
                Method::Hierarchical(_) => missing_feature(&tokenizer),
                _ => None,
            };
            let network = || self.network.not_learned_by(&stage.method);
            if let Some(problem) = stage.problem().or_else(network).or_else(tokens) {
                return Some(format!("stage {}: {problem}", place + 1));
            }
        }
        self.workload.problem().map(|problem| format!("workload: {problem}"))
    }
}

impl NetworkShape {
    /// Returns what of the network a method does not learn, or `None`.
    fn not_learned_by(&self, method: &Method) -> Option<String> {
        let learns_speeds = matches!(method, Method::Dqn(settings) if settings.conservative == 0.0);
        if self.speeds > 0 && !learns_speeds {
            return Some(format!(
                "network.speeds are learned by dqn without a conservative penalty, not by {}",
                method.name()
            ));
        }
        if self.memory.is_some() && !matches!(method, Method::Ppo(_)) {
            return Some(format!("network.memory is learned by ppo, not by {}", method.name()));
        }
        if self.atoms.is_some() && !learns_speeds {
            return Some(format!(
                "network.atoms are learned by dqn without a conservative penalty, not by {}",
                method.name()
            ));
        }
        if self.actor.is_some() && matches!(method, Method::Dqn(_) | Method::Offline(_)) {
            return Some(format!("network.actor is learned by policies, not by {}", method.name()));
        }
        let is_gaussian =
            matches!(method, Method::Priorities(s) if matches!(s.algorithm, PriorityAlgorithm::Sac { .. }));
        if self.actor.is_none() && is_gaussian {
            return Some("priorities with sac need network.actor, for the means beside the deviations".into());
        }
        None
    }
}

impl Reward {
    fn problem(&self) -> Option<String> {
        let weight = match self.shape {
            RewardShape::Binary | RewardShape::NoPenalty | RewardShape::Misses => 0.0,
            RewardShape::Lateness { weight }
            | RewardShape::Early { weight }
            | RewardShape::Slack { weight }
            | RewardShape::Risk { weight }
            | RewardShape::Energy { weight } => weight,
        };
        let amounts =
            [("weight", weight), ("migration", self.migration), ("by_criticality", self.by_criticality.unwrap_or(0.0))];
        negative(&amounts).map(|problem| format!("reward: {problem}"))
    }
}

impl MatchingSettings {
    fn problem(&self) -> Option<String> {
        let problem = not_positive(&[("matching.temperature", self.temperature)]);
        problem.or_else(|| negative(&[("matching.migration", self.migration)])).or_else(|| {
            let iterations = self.iterations;
            (!(1..=1_000).contains(&iterations))
                .then(|| format!("matching.iterations = {iterations} is not from 1 to 1000"))
        })
    }
}

impl Stage {
    fn problem(&self) -> Option<String> {
        if let Some(problem) = self.workload.as_ref().and_then(WorkloadRanges::problem) {
            return Some(format!("workload: {problem}"));
        }
        let rate = not_positive(&[("rate", self.rate.unwrap_or(1.0))]);
        let reward = || self.reward.and_then(|reward| reward.problem());
        let phases = || not_whole(&[("phases", self.phases as usize)]);
        let teacher = || self.method.teachers().iter().find_map(|name| unknown(name));
        let length = || {
            let updates = self.phases.saturating_mul(self.method.updates());
            (updates > MAX_UPDATES).then(|| format!("its {updates} updates are more than {MAX_UPDATES}"))
        };
        rate.or_else(reward).or_else(phases).or_else(|| self.method.problem()).or_else(teacher).or_else(length)
    }
}

impl Method {
    fn problem(&self) -> Option<String> {
        match self {
            Method::Cloning(s) => {
                let (steps, updates) = (s.steps as usize, s.updates as usize);
                let whole = [("steps", steps), ("batch", s.batch), ("updates", updates), ("memory", s.memory)];
                not_whole(&whole)
                    .or_else(|| environments(s.environments))
                    .or_else(|| not_a_share(&[("dagger", s.dagger)]))
                    .or_else(|| s.matching.as_ref().and_then(MatchingSettings::problem))
            }
            Method::Rollouts(s) => {
                let (states, updates) = (s.states as usize, s.updates as usize);
                let whole = [("states", states), ("batch", s.batch), ("updates", updates), ("memory", s.memory)];
                not_whole(&whole)
                    .or_else(|| not_whole(&[("futures", s.futures)]))
                    .or_else(|| environments(s.environments))
                    .or_else(|| not_a_share(&[("own_share", s.own_share), ("random", s.random)]))
                    .or_else(|| negative(&[("cloning", s.cloning)]))
                    .or_else(|| not_positive(&[("length", s.length)]))
            }
            Method::Dqn(s) => {
                let episodes = s.episodes.unwrap_or(1) as usize;
                not_whole(&[("steps", s.steps as usize), ("episodes", episodes)]).or_else(|| q_learning(s))
            }
            Method::Ppo(s) => {
                let rounds = s.rounds as usize;
                let whole = [
                    ("length", s.length),
                    ("rounds", rounds),
                    ("epochs", s.epochs),
                    ("batch", s.batch),
                    ("truncation", s.truncation),
                ];
                let amounts = [("entropy", s.entropy), ("value", s.value)];
                not_whole(&whole)
                    .or_else(|| environments(s.environments))
                    .or_else(|| not_positive(&[("clip", s.clip), ("value_scale", s.value_scale)]))
                    .or_else(|| negative(&amounts))
                    .or_else(|| not_a_share(&[("lambda", s.lambda)]))
            }
            Method::A2c(s) => not_whole(&[("length", s.length), ("updates", s.updates as usize)])
                .or_else(|| environments(s.environments))
                .or_else(|| not_positive(&[("value_scale", s.value_scale)]))
                .or_else(|| negative(&[("entropy", s.entropy), ("value", s.value)])),
            Method::Sac(s) => {
                let (steps, update_every) = (s.steps as usize, s.update_every as usize);
                let whole =
                    [("steps", steps), ("batch", s.batch), ("replay", s.replay), ("update_every", update_every)];
                let temperature = || match s.temperature {
                    Temperature::Fixed { alpha } => not_positive(&[("temperature.alpha", alpha)]),
                    Temperature::Learned { entropy, rate } => not_a_share(&[("temperature.entropy", entropy)])
                        .or_else(|| not_positive(&[("temperature.rate", rate)])),
                };
                not_whole(&whole)
                    .or_else(|| environments(s.environments))
                    .or_else(|| not_a_share(&[("target_share", s.target_share)]))
                    .or_else(temperature)
            }
            Method::Priorities(s) => {
                let (steps, update_every) = (s.steps as usize, s.update_every as usize);
                let whole =
                    [("steps", steps), ("batch", s.batch), ("replay", s.replay), ("update_every", update_every)];
                let algorithm = || match s.algorithm {
                    PriorityAlgorithm::Td3 { delay, exploration, smoothing, bound } => {
                        let amounts = [("exploration", exploration), ("smoothing", smoothing), ("bound", bound)];
                        not_whole(&[("delay", delay as usize)]).or_else(|| negative(&amounts))
                    }
                    PriorityAlgorithm::Sac { entropy, .. } if !(-20.0..=std::f64::consts::LN_2).contains(&entropy) => {
                        Some(format!("entropy = {entropy} is not from -20 to ln 2"))
                    }
                    PriorityAlgorithm::Sac { rate, .. } => not_positive(&[("rate", rate)]),
                };
                not_whole(&whole)
                    .or_else(|| environments(s.environments))
                    .or_else(|| not_a_share(&[("target_share", s.target_share)]))
                    .or_else(algorithm)
            }
            Method::Hierarchical(s) => {
                let (steps, update_every) = (s.steps as usize, s.update_every as usize);
                let whole = [
                    ("steps", steps),
                    ("batch", s.batch),
                    ("replay", s.replay),
                    ("update_every", update_every),
                    ("period", s.period as usize),
                ];
                let shares =
                    [("target_share", s.target_share), ("epsilon[0]", s.epsilon.0), ("epsilon[1]", s.epsilon.1)];
                not_whole(&whole)
                    .or_else(|| environments(s.environments))
                    .or_else(|| not_a_share(&shares))
                    .or_else(|| negative(&[("agreement", s.agreement)]))
            }
            Method::Offline(s) if s.teachers.is_empty() => Some("teachers names no scheduler".into()),
            Method::Offline(s) => {
                let algorithm = match s.algorithm {
                    OfflineAlgorithm::Cql { conservative } => negative(&[("conservative", conservative)]),
                    OfflineAlgorithm::Iql { expectile, sharpness } => {
                        not_a_share(&[("expectile", expectile)]).or_else(|| negative(&[("sharpness", sharpness)]))
                    }
                };
                let whole = [("transitions", s.transitions), ("updates", s.updates as usize)];
                not_whole(&whole).or(algorithm).or_else(|| q_learning(&s.dqn))
            }
            Method::Stay(s) => not_positive(&[("step", s.step)]),
        }
    }
}

fn q_learning(s: &DqnSettings) -> Option<String> {
    let whole =
        [("batch", s.batch), ("replay", s.replay), ("n_step", s.n_step), ("update_every", s.update_every as usize)];
    let shares = [("target_share", s.target_share), ("epsilon[0]", s.epsilon.0), ("epsilon[1]", s.epsilon.1)];
    let bonus = match s.bonus {
        ExplorationBonus::None => 0.0,
        ExplorationBonus::Count { weight, .. } | ExplorationBonus::Ucb { weight } => weight,
    };
    let amounts =
        [("priority", s.priority), ("bonus.weight", bonus), ("conservative", s.conservative), ("noisy", s.noisy)];
    not_whole(&whole)
        .or_else(|| environments(s.environments))
        .or_else(|| not_a_share(&shares))
        .or_else(|| negative(&amounts))
        .or_else(|| not_positive(&[("huber", s.huber.unwrap_or(1.0))]))
}

fn environments(count: usize) -> Option<String> {
    (!(1..=100_000).contains(&count)).then(|| format!("environments = {count} is not from 1 to 100000"))
}

fn not_whole(list: &[(&str, usize)]) -> Option<String> {
    let wrong = list.iter().find(|(_, value)| !(1..=100_000_000).contains(value));
    wrong.map(|(name, value)| format!("{name} = {value} is not from 1 to 100000000"))
}

fn not_positive(list: &[(&str, f64)]) -> Option<String> {
    let wrong = list.iter().find(|(_, value)| !(value.is_finite() && *value > 0.0));
    wrong.map(|(name, value)| format!("{name} = {value} is not positive"))
}

fn negative(list: &[(&str, f64)]) -> Option<String> {
    let wrong = list.iter().find(|(_, value)| !(value.is_finite() && *value >= 0.0));
    wrong.map(|(name, value)| format!("{name} = {value} is negative or no number"))
}

fn not_a_share(list: &[(&str, f64)]) -> Option<String> {
    let wrong = list.iter().find(|(_, value)| !(0.0..=1.0).contains(value));
    wrong.map(|(name, value)| format!("{name} = {value} is not from 0 to 1"))
}
