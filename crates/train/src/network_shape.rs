//! The shape of the network in a recipe: its sizes and its body.

use serde::{Deserialize, Serialize};
use temponet::stages::Tokenizer;
use temponet_infer::{Architecture, Atoms, Body, BodyError, BodyKeys};

/// Shape of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RecipeForm", into = "RecipeForm")]
pub struct NetworkShape {
    /// Width of a row, d; default 64.
    pub width: usize,
    /// Number of blocks or hidden layers, L; default 2.
    pub layers: usize,
    /// Number of attention heads, H, which divides the width; default 4.
    pub heads: usize,
    /// Width of the feed-forward part of a block, or of hidden layers; default 128.
    pub feed_forward: usize,
    /// Body; by default a Transformer with one head for jobs and one for idling.
    pub body: Body,
}

/// A shape as recipes hold it: the keys of the body stand beside the sizes.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RecipeForm {
    width: usize,
    layers: usize,
    heads: usize,
    feed_forward: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    slots: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<usize>,
    #[serde(skip_serializing_if = "is_zero")]
    speeds: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    atoms: Option<Atoms>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    graph: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<usize>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Default for RecipeForm {
    fn default() -> Self {
        NetworkShape::default().into()
    }
}

impl TryFrom<RecipeForm> for NetworkShape {
    type Error = BodyError;

    fn try_from(form: RecipeForm) -> Result<NetworkShape, BodyError> {
        let RecipeForm { width, layers, heads, feed_forward, slots, actor, speeds, atoms, graph, memory } = form;
        let body = BodyKeys { slots, actor, speeds, atoms, graph, memory }.try_into()?;
        Ok(NetworkShape { width, layers, heads, feed_forward, body })
    }
}

impl From<NetworkShape> for RecipeForm {
    fn from(shape: NetworkShape) -> RecipeForm {
        let NetworkShape { width, layers, heads, feed_forward, body } = shape;
        let BodyKeys { slots, actor, speeds, atoms, graph, memory } = body.keys();
        RecipeForm { width, layers, heads, feed_forward, slots, actor, speeds, atoms, graph, memory }
    }
}

impl Default for NetworkShape {
    fn default() -> Self {
        NetworkShape { width: 64, layers: 2, heads: 4, feed_forward: 128, body: Body::default() }
    }
}

impl NetworkShape {
    /// Returns the architecture for a tokenizer.
    pub fn architecture(self, tokenizer: &Tokenizer) -> Architecture {
        let NetworkShape { width, layers, heads, feed_forward, body } = self;
        let (job, idle) = (tokenizer.job_vocabularies(), tokenizer.idle_vocabularies());
        Architecture { width, layers, heads, feed_forward, job, idle, real: tokenizer.real_input(), body }
    }
}
