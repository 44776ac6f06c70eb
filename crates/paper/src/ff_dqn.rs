//! The paper's baseline, a feed-forward DQN with a place for each task, beside the learned scheduler of E1 and E2.

use temponet::{Continuous, Tokenizer};
use temponet_task::TaskSet;
use temponet_train::{NetworkShape, Recipe, Tokens};

use super::ablation::Variant;

/// What its figures are called.
pub const NAME: &str = "ff_dqn";

/// It reads slack and remaining time as they are, on sets of so many tasks that the recipe draws, or on one set.
pub fn variant<'a>(recipe: &Recipe, tasks: usize, set: Option<&'a TaskSet>) -> Variant<'a> {
    let tokens = Tokens::Custom(Box::new(Tokenizer::continuous(Continuous::Raw)));
    let network = NetworkShape { slots: Some(tasks), ..recipe.network };
    Variant { set, ..Variant::new(NAME, Recipe { tokens, network, ..recipe.clone() }) }
}
