//! Continued training of a model in the place where it is deployed, for a few episodes.

use temponet_train::{Method, Recipe};

/// Share of random decisions during adaptation.
const EPSILON: f64 = 0.05;
/// Greatest number of decisions in one episode.
const MOST_CHOICES: u64 = 50_000;

/// Returns the recipe that continues with `episodes` whole episodes in one environment, with few random decisions and the learning rate `rate`.
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
