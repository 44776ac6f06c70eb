//! The body of a network: what stands between the embeddings of its rows and their outputs.
//!
//! The Transformer is the body of all networks of the product; its file is [`crate::transformer`]. Another crate brings
//! a body of its own as a [`BodyKind`] and makes it known with [`register_body`], before it reads a weights file or a
//! recipe that names it. That pays for bodies that only a study uses: a program without them does not compile them, and
//! says what is missing.

use std::fmt;
use std::sync::{PoisonError, RwLock};

use crate::transformer::Heads;
use crate::{Architecture, Atoms, AttentionWork, Rows, Weights};

/// Body of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Transformer blocks, with these output heads.
    Transformer(Heads),
    /// Body that another crate has registered.
    Other(OtherBody),
}

impl Default for Body {
    /// A Transformer with one head for jobs and one for idling.
    fn default() -> Body {
        Body::Transformer(Heads::default())
    }
}

/// Body of a registered kind, with its size.
#[derive(Clone, Copy)]
pub struct OtherBody {
    pub(crate) kind: &'static dyn BodyKind,
    /// Value of the body's key; 1 for a key that is only there or not.
    pub size: usize,
}

impl fmt::Debug for OtherBody {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} = {}", self.kind.key(), self.size)
    }
}

impl PartialEq for OtherBody {
    fn eq(&self, other: &OtherBody) -> bool {
        (self.kind.key(), self.size) == (other.kind.key(), other.size)
    }
}

impl Eq for OtherBody {}

impl OtherBody {
    /// Body of a kind, with its size.
    pub fn new(kind: &'static dyn BodyKind, size: usize) -> OtherBody {
        OtherBody { kind, size }
    }

    /// Key of the body in weights files and recipes.
    pub fn key(&self) -> &'static str {
        self.kind.key()
    }

    /// The body in a few words.
    pub fn summary(&self) -> String {
        self.kind.summary(self.size)
    }
}

/// Kind of body that another crate brings. Every method but the first two takes the size of the body, which is the
/// value of its key in a weights file.
pub trait BodyKind: Send + Sync {
    /// Key of the body in weights files and recipes, one of those of [`BodyKeys`].
    fn key(&self) -> &'static str;
    /// The body in a few words.
    fn summary(&self, size: usize) -> String;
    /// Returns why the architecture is invalid, or `None`. The sizes that all networks have are checked elsewhere.
    fn problem(&self, size: usize, architecture: &Architecture) -> Option<String>;
    /// Tensors after the embeddings: name, number of rows (one for a vector) and number of columns.
    fn tensors(&self, size: usize, architecture: &Architecture) -> Vec<(String, usize, usize)>;
    /// Width of the input of the output heads.
    fn head_width(&self, architecture: &Architecture) -> usize;
    /// Approximate number of multiplications and additions of a forward pass over `rows` rows.
    fn operations(&self, size: usize, architecture: &Architecture, rows: usize) -> usize;
    /// Greatest magnitude of the initial weights of a tensor with this many columns; `None` for that of a linear map.
    fn initial_bound(&self, _size: usize, _tensor: &str, _columns: usize) -> Option<f32> {
        None
    }
    /// The network, ready to run. The architecture of the weights is valid.
    fn network(&self, size: usize, weights: &Weights) -> Box<dyn Forward>;
}

/// A forward pass over prepared weights of any kind, with its working memory.
pub trait Forward: Send + Sync {
    /// Computes one Q-value per row into `q`, the idle row's first; see [`crate::Network::forward`].
    fn forward(&mut self, rows: &Rows<'_>, q: &mut Vec<f32>);
    /// What the attention of the last pass has read; zeros without attention.
    fn attention_work(&self) -> AttentionWork {
        AttentionWork::default()
    }
    /// Forgets all passes before.
    fn reset(&mut self) {}
    /// Another one over the same weights, with working memory of its own, which remembers no pass.
    fn again(&self) -> Box<dyn Forward>;
}

static KINDS: RwLock<Vec<&'static dyn BodyKind>> = RwLock::new(Vec::new());

/// Makes a kind of body known to the whole process. A kind with the same key is replaced.
pub fn register_body(kind: &'static dyn BodyKind) {
    let mut kinds = KINDS.write().unwrap_or_else(PoisonError::into_inner);
    kinds.retain(|known| known.key() != kind.key());
    kinds.push(kind);
}

/// Keys by which weights files and recipes say what the body is. Without any of them it is a Transformer with one head
/// for jobs and one for idling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyKeys {
    /// Number of task slots of a feed-forward network.
    pub slots: Option<usize>,
    /// Width of the hidden layer of a Transformer's actor head.
    pub actor: Option<usize>,
    /// Number of speeds below full speed of a Transformer.
    pub speeds: usize,
    /// Atoms of a Transformer's distribution of returns.
    pub atoms: Option<Atoms>,
    /// Whether it is a graph network.
    pub graph: bool,
    /// Width of the state of a recurrent network.
    pub memory: Option<usize>,
}

/// Reason why keys name no body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The keys belong to different bodies.
    #[error("{0:?} and {1:?} belong to different networks")]
    Excluded(&'static str, &'static str),
    /// No crate has registered the body.
    #[error("the network is a {0}, which temponet-paper has (cargo build --release -p temponet-paper)")]
    Missing(&'static str),
}

impl TryFrom<BodyKeys> for Body {
    type Error = BodyError;

    fn try_from(keys: BodyKeys) -> Result<Body, BodyError> {
        let BodyKeys { slots, actor, speeds, atoms, graph, memory } = keys;
        let others = [
            ("slots", "feed-forward network", slots),
            ("graph", "graph network", graph.then_some(1)),
            ("memory", "recurrent network", memory),
        ];
        let heads = [("actor", actor.is_some()), ("speeds", speeds > 0)].into_iter().find(|(_, is_given)| *is_given);
        let atoms_key = atoms.map(|_| "atoms");
        // One key of each body that is named.
        let other_keys = others.iter().filter_map(|(key, _, size)| size.map(|_| *key));
        let mut bodies = other_keys.chain(atoms_key).chain(heads.map(|(key, _)| key));
        if let (Some(one), Some(another)) = (bodies.next(), bodies.next()) {
            return Err(BodyError::Excluded(one, another));
        }
        if let Some((key, name, Some(size))) = others.into_iter().find(|(.., size)| size.is_some()) {
            let kinds = KINDS.read().unwrap_or_else(PoisonError::into_inner);
            let kind = kinds.iter().copied().find(|kind| kind.key() == key).ok_or(BodyError::Missing(name))?;
            return Ok(Body::Other(OtherBody { kind, size }));
        }
        Ok(Body::Transformer(atoms.map_or(Heads::Values { actor, speeds }, Heads::Returns)))
    }
}

impl Body {
    /// Transformer with an actor head, if its hidden layer has a width, and with heads for this many speeds below full
    /// speed.
    pub fn transformer(actor: Option<usize>, speeds: usize) -> Body {
        Body::Transformer(Heads::Values { actor, speeds })
    }

    /// Keys that name the body.
    pub fn keys(&self) -> BodyKeys {
        match self {
            Body::Transformer(Heads::Values { actor, speeds }) => {
                BodyKeys { actor: *actor, speeds: *speeds, ..BodyKeys::default() }
            }
            Body::Transformer(Heads::Returns(atoms)) => BodyKeys { atoms: Some(*atoms), ..BodyKeys::default() },
            Body::Other(OtherBody { kind, size }) => {
                let of = |key: &str| (kind.key() == key).then_some(*size);
                let (slots, graph, memory) = (of("slots"), of("graph").is_some(), of("memory"));
                BodyKeys { slots, graph, memory, ..BodyKeys::default() }
            }
        }
    }

    /// Whether rows attend to each other.
    pub fn has_attention(&self) -> bool {
        matches!(self, Body::Transformer(_))
    }
}
