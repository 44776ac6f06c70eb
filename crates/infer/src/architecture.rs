//! The architecture of a network: its sizes, its features and its body, and from these the names and shapes of its
//! tensors.

use serde::{Deserialize, Serialize};

use crate::Atoms;
use crate::body::{Body, BodyError, BodyKeys, OtherBody};
use crate::transformer::Heads;

/// A discrete feature of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vocabulary {
    /// Name of the feature and of its embedding.
    pub name: String,
    /// Number of values, which are 0 to `size` − 1.
    pub size: usize,
}

/// Real-valued inputs of a job's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RealInput {
    /// Number of inputs.
    pub inputs: usize,
    /// Width of the hidden layer with ReLU that the inputs go through first; 0 for none.
    pub hidden: usize,
}

impl RealInput {
    /// Number of units that are mapped to the row: the hidden units, or the inputs themselves if there is no hidden
    /// layer.
    pub(crate) fn units(self) -> usize {
        if self.hidden > 0 { self.hidden } else { self.inputs }
    }
}

/// Architecture of a network: rows that are sums of embeddings, a body that they go through, and one output per row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "FileForm", into = "FileForm")]
pub struct Architecture {
    /// Width d of a row.
    pub width: usize,
    /// Number L of blocks or hidden layers.
    pub layers: usize,
    /// Number H of attention heads, which divides the width. Without attention it has no meaning.
    pub heads: usize,
    /// Width of the feed-forward part of a block, or of hidden layers.
    pub feed_forward: usize,
    /// Features of a job's row, which is the sum of their embeddings.
    pub job: Vec<Vocabulary>,
    /// Features of the idle row.
    pub idle: Vec<Vocabulary>,
    /// Real-valued inputs of a job's row, whose linear map is added to the embeddings. With these a job may have no
    /// discrete feature at all.
    pub real: Option<RealInput>,
    /// Body.
    pub body: Body,
}

/// An architecture as weights files hold it: the keys of the body stand beside the sizes.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileForm {
    width: usize,
    layers: usize,
    heads: usize,
    feed_forward: usize,
    job: Vec<Vocabulary>,
    idle: Vec<Vocabulary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    real: Option<RealInput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slots: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    actor: Option<usize>,
    #[serde(default, skip_serializing_if = "is_zero")]
    speeds: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    atoms: Option<Atoms>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    graph: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory: Option<usize>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl TryFrom<FileForm> for Architecture {
    type Error = BodyError;

    fn try_from(form: FileForm) -> Result<Architecture, BodyError> {
        let FileForm { width, layers, heads, feed_forward, job, idle, real, .. } = form;
        let FileForm { slots, actor, speeds, atoms, graph, memory, .. } = form;
        let body = BodyKeys { slots, actor, speeds, atoms, graph, memory }.try_into()?;
        Ok(Architecture { width, layers, heads, feed_forward, job, idle, real, body })
    }
}

impl From<Architecture> for FileForm {
    fn from(architecture: Architecture) -> FileForm {
        let Architecture { width, layers, heads, feed_forward, job, idle, real, body } = architecture;
        let BodyKeys { slots, actor, speeds, atoms, graph, memory } = body.keys();
        FileForm { width, layers, heads, feed_forward, job, idle, real, slots, actor, speeds, atoms, graph, memory }
    }
}

/// Name of the feature that holds a job's slot in a feed-forward network.
pub const SLOT: &str = "slot";

/// Returns what is wrong with a number that must be from 1 to `most`, or `None`.
pub fn within(name: &str, value: usize, most: usize) -> Option<String> {
    (!(1..=most).contains(&value)).then(|| format!("{name} is {value}, not from 1 to {most}"))
}

impl Architecture {
    /// The paper's architecture: a Transformer with d = 128, L = 2, H = 4, and a feed-forward part four times as wide.
    pub fn paper(job: Vec<Vocabulary>, idle: Vec<Vocabulary>) -> Architecture {
        let (width, layers, heads, feed_forward) = (128, 2, 4, 512);
        Architecture { width, layers, heads, feed_forward, job, idle, real: None, body: Body::default() }
    }

    /// Returns why the architecture is invalid, or `None` if it is valid.
    pub fn problem(&self) -> Option<String> {
        let sizes = [
            ("width", self.width, 1024),
            ("layers", self.layers, 16),
            ("heads", self.heads, 64),
            ("feed_forward", self.feed_forward, 8192),
        ];
        if let Some(problem) = sizes.into_iter().find_map(|(name, value, most)| within(name, value, most)) {
            return Some(problem);
        }
        if !self.width.is_multiple_of(self.heads) {
            return Some(format!("a width of {} cannot be divided among {} heads", self.width, self.heads));
        }
        if let Some(RealInput { inputs, hidden }) = self.real {
            let problem = within("the number of real inputs", inputs, 32);
            let hidden =
                || (hidden > 1024).then(|| format!("{hidden} hidden units of real inputs, not from 0 to 1024"));
            if let Some(problem) = problem.or_else(hidden) {
                return Some(problem);
            }
        }
        let body = match self.body {
            Body::Transformer(heads) => heads.problem(),
            Body::Other(OtherBody { kind, size }) => kind.problem(size, self),
        };
        body.or_else(|| self.feature_problem())
    }

    /// Returns what is wrong with the features, or `None`.
    fn feature_problem(&self) -> Option<String> {
        let least_job = usize::from(self.real.is_none());
        for (kind, features, least) in [("job", &self.job, least_job), ("idle", &self.idle, 1)] {
            if !(least..=32).contains(&features.len()) {
                return Some(format!("{} {kind} features, not from {least} to 32", features.len()));
            }
            for (place, Vocabulary { name, size }) in features.iter().enumerate() {
                if let Some(problem) = within(&format!("the size of {kind} feature {name:?}"), *size, 65_536) {
                    return Some(problem);
                }
                if features[..place].iter().any(|other| other.name == *name) {
                    return Some(format!("two {kind} features are called {name:?}"));
                }
            }
        }
        None
    }

    /// All tensors of a network of this architecture: name, number of rows (one for a vector) and number of columns.
    pub fn tensors(&self) -> Vec<(String, usize, usize)> {
        let d = self.width;
        let mut tensors = Vec::new();
        for (kind, features) in [("job", &self.job), ("idle", &self.idle)] {
            tensors.extend(features.iter().map(|feature| (format!("embed.{kind}.{}", feature.name), feature.size, d)));
        }
        if let Some(real) = self.real {
            if real.hidden > 0 {
                tensors.push(("embed.real.hidden.weight".into(), real.hidden, real.inputs));
                tensors.push(("embed.real.hidden.bias".into(), 1, real.hidden));
            }
            tensors.push(("embed.real.weight".into(), real.units(), d));
            tensors.push(("embed.real.bias".into(), 1, d));
        }
        tensors.extend(match self.body {
            Body::Transformer(heads) => heads.tensors(self),
            Body::Other(OtherBody { kind, size }) => kind.tensors(size, self),
        });
        tensors
    }

    /// Tensors that a weights file may hold besides those of [`Architecture::tensors`], for further training: the value
    /// head, which estimates state values. A network with atoms also needs it to run: its logits are added to those of
    /// each job, less those of idling. Without it, they are those of idling.
    pub fn training_tensors(&self) -> [(String, usize, usize); 2] {
        let outputs = match self.body {
            Body::Transformer(heads) => heads.outputs(),
            Body::Other(_) => 1,
        };
        [("head.value.weight".into(), outputs, self.head_width()), ("head.value.bias".into(), 1, outputs)]
    }

    /// Width of the input of the output heads.
    pub fn head_width(&self) -> usize {
        match self.body {
            Body::Transformer(_) => self.width,
            Body::Other(OtherBody { kind, .. }) => kind.head_width(self),
        }
    }

    /// Width of the hidden layer of the actor head; `None` if the job head gives the outputs.
    pub fn actor(&self) -> Option<usize> {
        self.body.keys().actor
    }

    /// Number of speeds below full speed that have heads of their own.
    pub fn speeds(&self) -> usize {
        self.body.keys().speeds
    }

    /// Atoms of the distribution of returns that the heads give the logits of; `None` if a head gives one number.
    pub fn atoms(&self) -> Option<Atoms> {
        self.body.keys().atoms
    }

    /// The same architecture whose job head gives the outputs, as the network of a critic has it.
    pub fn without_actor(self) -> Architecture {
        let body = match self.body {
            Body::Transformer(Heads::Values { speeds, .. }) => Body::Transformer(Heads::Values { actor: None, speeds }),
            other => other,
        };
        Architecture { body, ..self }
    }

    /// Approximate number of multiplications and additions of a forward pass over `rows` rows.
    pub fn operations(&self, rows: usize) -> usize {
        match self.body {
            Body::Transformer(_) => Heads::operations(self, rows),
            Body::Other(OtherBody { kind, size }) => kind.operations(size, self, rows),
        }
    }

    /// Number of parameters in all tensors.
    pub fn parameters(&self) -> usize {
        self.tensors().iter().map(|(_, rows, columns)| rows * columns).sum()
    }
}
