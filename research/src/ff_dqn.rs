//! The paper's baseline for E1 and E2: a feed-forward DQN whose input has a slot for each task.

use temponet::stages::{Continuous, Tokenizer};
use temponet_task::TaskSet;
use temponet_train::{NetworkShape, Recipe, Tokens};

use super::ablation::Variant;
use super::{Context, networks};

/// Name of its figures.
pub const NAME: &str = "ff_dqn";

/// Returns the baseline for sets of `tasks` tasks. It reads slack and remaining time as numbers, and trains on `set`
/// or, without one, on sets drawn as the recipe says. There is none where late jobs continue: it has a slot for one job
/// of each task.
pub fn variant<'a>(
    context: &Context<'_>,
    recipe: &Recipe,
    tasks: usize,
    set: Option<&'a TaskSet>,
) -> Option<Variant<'a>> {
    let tokens = Tokens::Custom(Box::new(Tokenizer::continuous(Continuous::Raw)));
    let network = NetworkShape { body: networks::feed_forward(tasks), ..recipe.network };
    let variant = Variant { set, ..Variant::new(NAME, Recipe { tokens, network, ..recipe.clone() }) };
    (!context.reading.continues()).then_some(variant)
}
