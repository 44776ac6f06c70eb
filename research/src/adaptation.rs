//! Continued training of a model in the place where it is deployed, for a few episodes.

use temponet_train::{DqnSettings, Keep, Recipe};

/// Share of random decisions during adaptation.
const EPSILON: f64 = 0.05;
/// Greatest number of decisions in one episode.
const MOST_CHOICES: u64 = 50_000;

/// Returns the recipe that continues with `episodes` whole episodes in one environment, with few random decisions and
/// the learning rate `rate`.
pub fn adapted(recipe: &Recipe, episodes: u64, rate: f64) -> Recipe {
    let mut recipe = recipe.clone();
    // What adaptation does is what is asked, so it is not undone where it does harm.
    recipe.validation.keep = Keep::Last;
    recipe.stage.retain(|stage| stage.method.settings::<DqnSettings>().is_some());
    for stage in &mut recipe.stage {
        (stage.phases, stage.rate) = (1, Some(rate));
        if let Some(DqnSettings { replay, episodes: most, epsilon, .. }) = stage.method.settings_mut() {
            (*most, *epsilon) = (Some(episodes), (EPSILON, EPSILON));
            (replay.steps, replay.environments) = (episodes * MOST_CHOICES, 1);
            replay.learn_from = replay.batch as u64;
        }
    }
    recipe
}
