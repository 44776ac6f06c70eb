//! Models by name: a file, the built-in model, or untrained weights.

use std::path::Path;

use temponet::stages::{Continuous, Tokenizer};
use temponet::{Model, ModelError as BrokenModel};

/// Name of the model that comes with the program.
pub const BUILT_IN: &str = "built-in";

/// Width of the hidden layer that encodes continuous slack in `random-mlp`.
const HIDDEN: usize = 64;

/// Reason why a name does not lead to a model.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The built-in model cannot be read.
    #[error("the built-in model is broken: {0}")]
    BuiltIn(BrokenModel),
    /// Name of untrained weights whose seed is not a number.
    #[error("{0}: the seed must be a whole number")]
    Seed(String),
    /// File that cannot be read.
    #[error("{0}: cannot be read: {1}")]
    Unreadable(String, std::io::Error),
    /// File that is not a model.
    #[error("{0}: {1}")]
    Broken(String, BrokenModel),
}

/// Returns the tokens and the seed of untrained weights; `None` if the name is not one of theirs.
fn untrained(name: &str) -> Option<(Tokenizer, &str)> {
    let (kind, seed) = name.split_once(':')?;
    let tokenizer = match kind {
        "random" => Tokenizer::full(),
        "random-paper" => Tokenizer::paper(),
        "random-raw" => Tokenizer::continuous(Continuous::Raw),
        "random-mlp" => Tokenizer::continuous(Continuous::Mlp { hidden: HIDDEN }),
        _ => return None,
    };
    Some((tokenizer, seed))
}

/// Whether a name is that of a file.
pub fn is_path(name: &str) -> bool {
    name != BUILT_IN && untrained(name).is_none()
}

/// Loads a model by name: a path, `built-in`, or untrained weights such as `random:1`.
pub fn named(name: &str) -> Result<Model, ModelError> {
    if name == BUILT_IN {
        return Model::built_in().map_err(ModelError::BuiltIn);
    }
    if let Some((tokenizer, seed)) = untrained(name) {
        let seed = seed.parse().map_err(|_| ModelError::Seed(name.into()))?;
        return Ok(Model::random(tokenizer, seed));
    }
    let bytes = temponet_formats::read_bytes(Path::new(name));
    let bytes = bytes.map_err(|error| ModelError::Unreadable(name.into(), error))?;
    Model::from_bytes(&bytes).map_err(|error| ModelError::Broken(name.into(), error))
}
