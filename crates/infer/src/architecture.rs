//! The shape of a network.

use serde::{Deserialize, Serialize};

/// A discrete feature and how many values it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vocabulary {
    /// Its name, also that of its embedding.
    pub name: String,
    /// Values are 0 to `size` − 1.
    pub size: usize,
}

/// Real numbers that come with a job's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RealInput {
    /// How many.
    pub inputs: usize,
    /// Width of the layer with ReLU that they go through first; zero: there is none.
    pub hidden: usize,
}

impl RealInput {
    /// What is mapped to a row in the end: the hidden units, or else the numbers themselves.
    pub(crate) fn units(self) -> usize {
        if self.hidden > 0 { self.hidden } else { self.inputs }
    }
}

/// The shape of a network: post-LayerNorm Transformer blocks over rows that are sums of embeddings, and one number per row. With `slots` it is
/// feed-forward instead: the rows stand side by side, each in the place of its task, and go through hidden layers with ReLU together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    /// Width of a row, d.
    pub width: usize,
    /// Number of blocks, L, or of hidden layers.
    pub layers: usize,
    /// Attention heads, H; they divide the width. Without attention they mean nothing.
    pub heads: usize,
    /// Width inside the feed-forward part, or of the hidden layers.
    pub feed_forward: usize,
    /// Features of a job's row; the row is the sum of their embeddings.
    pub job: Vec<Vocabulary>,
    /// Features of the idle row.
    pub idle: Vec<Vocabulary>,
    /// Real numbers of a job's row, whose image is added to the embeddings; a job may then have no feature at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real: Option<RealInput>,
    /// Places for tasks in a feed-forward network. The last feature of a job's row, [`SLOT`], says which one is its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<usize>,
}

/// The feature that says in which place of a feed-forward network a job's row stands.
pub const SLOT: &str = "slot";
const MOST_SLOTS: usize = 256;

impl Architecture {
    /// The paper's: d = 128, L = 2, H = 4, a feed-forward part four times as wide.
    pub fn paper(job: Vec<Vocabulary>, idle: Vec<Vocabulary>) -> Architecture {
        Architecture { width: 128, layers: 2, heads: 4, feed_forward: 512, job, idle, real: None, slots: None }
    }

    /// Why no network has this shape, if none has.
    pub fn problem(&self) -> Option<String> {
        let within = |name: &str, value: usize, most: usize| {
            (!(1..=most).contains(&value)).then(|| format!("{name} is {value}, not from 1 to {most}"))
        };
        let sizes = [("width", self.width, 1024), ("layers", self.layers, 16), ("heads", self.heads, 64)];
        let mut problems = sizes.into_iter().filter_map(|(name, value, most)| within(name, value, most));
        if let Some(problem) = problems.next().or_else(|| within("feed_forward", self.feed_forward, 8192)) {
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
        if let Some(slots) = self.slots {
            if let Some(problem) = within("the number of slots", slots, MOST_SLOTS) {
                return Some(problem);
            }
            if self.job.last().is_none_or(|last| last.name != SLOT || last.size != slots) {
                return Some(format!("the last job feature is not {SLOT:?} with {slots} values"));
            }
        }
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

    /// Every tensor a network of this shape has: name, and rows and columns (one row for a vector).
    pub fn tensors(&self) -> Vec<(String, usize, usize)> {
        let (d, f) = (self.width, self.feed_forward);
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
        if let Some(slots) = self.slots {
            let places = || (0..slots).map(|slot| slot.to_string()).chain(["idle".into()]);
            tensors.extend(places().map(|place| (format!("inputs.{place}.weight"), f, d)));
            tensors.push(("inputs.bias".into(), 1, f));
            for layer in 1..self.layers {
                tensors.push((format!("hidden.{layer}.weight"), f, f));
                tensors.push((format!("hidden.{layer}.bias"), 1, f));
            }
            for place in places() {
                tensors.push((format!("head.{place}.weight"), 1, f));
                tensors.push((format!("head.{place}.bias"), 1, 1));
            }
            return tensors;
        }
        for layer in 0..self.layers {
            let mut add = |name: &str, rows: usize, columns: usize| {
                tensors.push((format!("layers.{layer}.{name}"), rows, columns));
            };
            for part in ["query", "key", "value", "output"] {
                add(&format!("attention.{part}.weight"), d, d);
                add(&format!("attention.{part}.bias"), 1, d);
            }
            add("feed_forward.up.weight", f, d);
            add("feed_forward.up.bias", 1, f);
            add("feed_forward.down.weight", d, f);
            add("feed_forward.down.bias", 1, d);
            for norm in ["attention_norm", "feed_forward_norm"] {
                add(&format!("{norm}.weight"), 1, d);
                add(&format!("{norm}.bias"), 1, d);
            }
        }
        for head in ["job", "idle"] {
            tensors.push((format!("head.{head}.weight"), 1, d));
            tensors.push((format!("head.{head}.bias"), 1, 1));
        }
        tensors
    }

    /// Tensors that a weights file may hold beside those of the network, so that training can go on: the value head, which judges states.
    pub fn training_tensors(&self) -> [(String, usize, usize); 2] {
        [("head.value.weight".into(), 1, self.head_width()), ("head.value.bias".into(), 1, 1)]
    }

    /// Width of what the heads read.
    pub fn head_width(&self) -> usize {
        if self.slots.is_some() { self.feed_forward } else { self.width }
    }

    /// Multiplications and additions that so many rows take, about.
    pub fn operations(&self, rows: usize) -> usize {
        let (d, f, layers) = (self.width, self.feed_forward, self.layers);
        match self.slots {
            Some(_) => 2 * (rows * (d * f + f) + (layers - 1) * f * f),
            None => (2 * layers * (4 * d * d + 2 * d * f) + 4 * layers * d * rows) * rows,
        }
    }

    /// Numbers in all tensors.
    pub fn parameters(&self) -> usize {
        self.tensors().iter().map(|(_, rows, columns)| rows * columns).sum()
    }
}
