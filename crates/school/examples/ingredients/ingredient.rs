//! The ingredients, and how a recipe does without each.

use temponet::stages::{Feature, Number, Tokenizer};
use temponet_train::{PpoSettings, Recipe, RewardShape, Stage, Tokens};

/// Median wcets in which the weight of a reward falls to 1/e where it does not fade in deadlines.
const FADE: f64 = 20.0;

/// An ingredient of learning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ingredient {
    /// Nothing is left out.
    None,
    /// Rows and sums of the jobs that tasks will release.
    Coming,
    /// Sums and counts over the other ready jobs and over coming work.
    Sums,
    /// What a job may still need, given the distribution of its execution time and what it has executed.
    Expectation,
    /// Numbers: bins take their place.
    Numbers,
    /// The mask of impossible jobs: the network judges them like all others.
    Mask,
    /// Independence of simple schedulers: the network sees their advice.
    NoAdvice,
    /// A reward for misses alone: a job in time earns as much as a miss costs.
    MissesAlone,
    /// A weight of rewards that fades in deadlines: it fades in twenty median wcets.
    Deadlines,
}

impl Ingredient {
    pub const ALL: [Ingredient; 9] = [
        Ingredient::None,
        Ingredient::Coming,
        Ingredient::Sums,
        Ingredient::Expectation,
        Ingredient::Numbers,
        Ingredient::Mask,
        Ingredient::NoAdvice,
        Ingredient::MissesAlone,
        Ingredient::Deadlines,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Ingredient::None => "all ingredients",
            Ingredient::Coming => "without coming jobs",
            Ingredient::Sums => "without sums over other jobs",
            Ingredient::Expectation => "without expected times",
            Ingredient::Numbers => "bins in place of numbers",
            Ingredient::Mask => "without the mask of impossible jobs",
            Ingredient::NoAdvice => "with the advice of simple schedulers",
            Ingredient::MissesAlone => "+1 for a job in time, −1 for a miss",
            Ingredient::Deadlines => "rewards fade in wcets, not in deadlines",
        }
    }

    /// Takes the ingredient out of a recipe, and adds the stage that learns with these settings.
    pub fn leave_out(self, recipe: &mut Recipe, mut settings: PpoSettings) {
        let mut tokenizer = recipe.tokens.tokenizer();
        self.change(&mut tokenizer);
        recipe.tokens = Tokens::Custom(Box::new(tokenizer));
        if self == Ingredient::MissesAlone {
            recipe.episode.reward.shape = RewardShape::Binary;
        }
        if self == Ingredient::Deadlines {
            // As much of an advantage is left after the time in which a reward fades to 1/e.
            let horizon = recipe.episode.horizon.take().unwrap_or(1.0);
            settings.lambda = settings.lambda.powf(horizon / FADE);
            recipe.episode.gamma = (-1.0f64 / FADE).exp();
        }
        recipe.stage = vec![Stage::new(1, settings)];
    }

    fn change(self, tokenizer: &mut Tokenizer) {
        let mut without = |left_out: &[Number]| tokenizer.numbers.retain(|number| !left_out.contains(number));
        match self {
            Ingredient::Coming => {
                without(&[Number::ComingBefore, Number::Inflow, Number::Start, Number::NextDue]);
                tokenizer.coming = false;
            }
            Ingredient::Sums => without(&[
                Number::WorkBefore,
                Number::ExpectedBefore,
                Number::ComingBefore,
                Number::Inflow,
                Number::Earlier,
                Number::Shorter,
                Number::Ready,
                Number::Rank,
                Number::Denser,
                Number::LevelBefore,
            ]),
            Ingredient::Expectation => without(&[
                Number::Expected,
                Number::Least,
                Number::ExpectedSlack,
                Number::LeastSlack,
                Number::Chance,
                Number::ExpectedBefore,
                Number::ComingBefore,
                Number::Denser,
                Number::LevelBefore,
            ]),
            Ingredient::Numbers => {
                let advice = [Feature::Advice, Feature::Plan, Feature::Pressure];
                tokenizer.features = Feature::ALL.into_iter().filter(|feature| !advice.contains(feature)).collect();
                tokenizer.features.push(Feature::Kind);
                tokenizer.numbers.clear();
                tokenizer.most_rows = None;
            }
            Ingredient::Mask => (tokenizer.skips_impossible, tokenizer.most_rows) = (false, None),
            Ingredient::NoAdvice => tokenizer.features.extend([Feature::Advice, Feature::Plan]),
            Ingredient::None | Ingredient::MissesAlone | Ingredient::Deadlines => {}
        }
    }
}
