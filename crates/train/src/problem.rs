//! Check of a recipe: everything that a user can get wrong in one, found before anything is done.

use crate::limits::{negative, not_a_share, not_positive, not_whole};
use crate::method::{NetworkPart, StageMethod};
use crate::network_shape::NetworkShape;
use crate::recipe::{Recipe, Stage};
use crate::reward::{Reward, RewardShape};
use crate::teacher::unknown;
use temponet_sim::generate::WorkloadRanges;

/// Greatest number of updates in a stage.
const MAX_UPDATES: u64 = 1_000_000_000_000;

impl Recipe {
    /// Returns why the recipe cannot be followed, or `None`. The text names the setting, so that its line in the file
    /// can be found.
    pub fn problem(&self) -> Option<String> {
        let tokenizer = self.tokenizer();
        if let Some(problem) = tokenizer.problem() {
            return Some(format!("tokens: {problem}"));
        }
        if let Some(problem) = self.network.architecture(&tokenizer).problem() {
            return Some(format!("network: {problem}"));
        }
        if tokenizer.sparse && !self.network.body.has_attention() {
            return Some("sparse: a network with slots, a graph or memory has no attention".into());
        }
        let positive = [
            ("episode.length", self.episode.length),
            ("episode.tick", self.episode.tick.unwrap_or(1.0)),
            ("episode.horizon", self.episode.horizon.unwrap_or(1.0)),
            ("optimizer.rate", self.optimizer.rate),
            ("optimizer.clip", self.optimizer.clip),
            ("validation.length", self.validation.length),
        ];
        let adam = &self.optimizer.adam;
        let shares = [("episode.gamma", self.episode.gamma), ("adam.beta1", adam.beta1), ("adam.beta2", adam.beta2)];
        let deadlines = ("episode.deadlines", self.episode.deadlines);
        let amounts = [deadlines, ("adam.epsilon", adam.epsilon), ("adam.weight_decay", adam.weight_decay)];
        let whole = [("validation.runs", self.validation.runs)];
        let problem = not_positive(&positive).or_else(|| not_a_share(&shares)).or_else(|| negative(&amounts));
        if let Some(problem) = problem.or_else(|| not_whole(&whole)).or_else(|| self.episode.reward.problem()) {
            return Some(problem);
        }
        if self.stage.is_empty() || self.stage.len() > 1_000 {
            return Some(format!("{} stages, not from 1 to 1000", self.stage.len()));
        }
        for (place, stage) in self.stage.iter().enumerate() {
            let network = || self.network.not_learned_by(&stage.method);
            if let Some(problem) = stage.problem(self).or_else(network) {
                return Some(format!("stage {}: {problem}", place + 1));
            }
        }
        self.workload.problem().map(|problem| format!("workload: {problem}"))
    }
}

impl NetworkShape {
    /// Returns what of the network a method does not learn, or `None`.
    fn not_learned_by(&self, method: &StageMethod) -> Option<String> {
        let keys = self.body.keys();
        let speeds = "network.speeds are learned by dqn without a conservative penalty";
        let parts = [
            (keys.speeds > 0, NetworkPart::Speeds, speeds),
            (keys.memory.is_some(), NetworkPart::Memory, "network.memory is learned by ppo"),
            (keys.atoms.is_some(), NetworkPart::Atoms, "network.atoms are learned by rainbow"),
            (keys.actor.is_some(), NetworkPart::Actor, "network.actor is learned by policies"),
        ];
        let wrong = parts.into_iter().find(|(is_there, part, _)| *is_there && !method.learns(*part));
        wrong.map(|(.., text)| format!("{text}, not by {}", method.name()))
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

impl Stage {
    fn problem(&self, recipe: &Recipe) -> Option<String> {
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
        rate.or_else(reward).or_else(phases).or_else(|| self.method.problem(recipe)).or_else(teacher).or_else(length)
    }
}
