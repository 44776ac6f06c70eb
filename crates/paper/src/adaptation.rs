//! A model that goes on learning for a few episodes where it is deployed.

use temponet_train::{Method, Recipe};

/// Random choices while it adapts.
const EPSILON: f64 = 0.05;
/// Choices that an episode may have at most.
const MOST_CHOICES: u64 = 50_000;

/// A recipe that goes on for so many whole episodes, one after the other, with hardly any random choices.
pub fn adapted(recipe: &Recipe, episodes: u64, rate: f64) -> Recipe {
    let mut recipe = recipe.clone();
    recipe.stage.retain(|stage| matches!(stage.method, Method::Dqn(_)));
    for stage in &mut recipe.stage {
        (stage.phases, stage.rate) = (1, Some(rate));
        if let Method::Dqn(settings) = &mut stage.method {
            (settings.episodes, settings.steps) = (Some(episodes), episodes * MOST_CHOICES);
            (settings.epsilon, settings.environments) = ((EPSILON, EPSILON), 1);
            settings.learn_from = settings.batch as u64;
        }
    }
    recipe
}
