//! The architecture of a network: its sizes, the names and shapes of its tensors, and its limits.

use serde::{Deserialize, Serialize};

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
    /// Number of units that are mapped to the row: the hidden units, or the inputs themselves if there is no hidden layer.
    pub(crate) fn units(self) -> usize {
        if self.hidden > 0 { self.hidden } else { self.inputs }
    }
}

/// Architecture of a network: post-LayerNorm Transformer blocks over rows that are sums of embeddings, with one output per row. With `slots` it is a
/// feed-forward network instead: the rows are concatenated, each in the slot of its task, and go through hidden layers with ReLU together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    /// Width d of a row.
    pub width: usize,
    /// Number L of Transformer blocks, or of hidden layers of a feed-forward network.
    pub layers: usize,
    /// Number H of attention heads, which divides the width. Without attention it has no meaning.
    pub heads: usize,
    /// Width of the feed-forward part of a block, or of the hidden layers of a feed-forward network.
    pub feed_forward: usize,
    /// Features of a job's row, which is the sum of their embeddings.
    pub job: Vec<Vocabulary>,
    /// Features of the idle row.
    pub idle: Vec<Vocabulary>,
    /// Real-valued inputs of a job's row, whose linear map is added to the embeddings. With these a job may have no discrete feature at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real: Option<RealInput>,
    /// Number of task slots of a feed-forward network; `None` for a Transformer. The last feature of a job's row, [`SLOT`], is the number of its slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<usize>,
    /// Width of the hidden layer of a two-layer actor head. Its logits are the outputs of the job rows, and the job head, which is then the critic of an
    /// actor–critic, is used in training only. `None` if the job head gives the outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<usize>,
    /// Number of speeds below full speed that a job can run at. Each has a head of its own, which gives the gain over full speed. 0 for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub speeds: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Name of the feature that holds a job's slot in a feed-forward network.
pub const SLOT: &str = "slot";
const MOST_SLOTS: usize = 256;
const MOST_SPEEDS: usize = 8;

impl Architecture {
    /// The paper's architecture: d = 128, L = 2, H = 4, and a feed-forward part four times as wide.
    pub fn paper(job: Vec<Vocabulary>, idle: Vec<Vocabulary>) -> Architecture {
        let (real, slots, actor, speeds) = (None, None, None, 0);
        Architecture { width: 128, layers: 2, heads: 4, feed_forward: 512, job, idle, real, slots, actor, speeds }
    }

    /// Returns why the architecture is invalid, or `None` if it is valid.
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
        if let Some(problem) = self.actor.and_then(|actor| within("the actor's hidden layer", actor, 1024)) {
            return Some(problem);
        }
        if self.speeds > MOST_SPEEDS {
            return Some(format!("{} speeds, not from 0 to {MOST_SPEEDS}", self.speeds));
        }
        if self.slots.is_some() && (self.actor.is_some() || self.speeds > 0) {
            return Some("a feed-forward network has no actor and no speeds".into());
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

    /// All tensors of a network of this architecture: name, number of rows (one for a vector) and number of columns.
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
        if let Some(hidden) = self.actor {
            tensors.push(("head.actor.hidden.weight".into(), hidden, d));
            tensors.push(("head.actor.hidden.bias".into(), 1, hidden));
            tensors.push(("head.actor.weight".into(), 1, hidden));
            tensors.push(("head.actor.bias".into(), 1, 1));
        }
        for speed in 0..self.speeds {
            tensors.push((format!("head.speed.{speed}.weight"), 1, d));
            tensors.push((format!("head.speed.{speed}.bias"), 1, 1));
        }
        tensors
    }

    /// Tensors that a weights file may hold besides those of [`Architecture::tensors`], for further training: the value head, which estimates state values.
    pub fn training_tensors(&self) -> [(String, usize, usize); 2] {
        [("head.value.weight".into(), 1, self.head_width()), ("head.value.bias".into(), 1, 1)]
    }

    /// Width of the input of the output heads.
    pub fn head_width(&self) -> usize {
        if self.slots.is_some() { self.feed_forward } else { self.width }
    }

    /// Approximate number of multiplications and additions of a forward pass over `rows` rows.
    pub fn operations(&self, rows: usize) -> usize {
        let (d, f, layers) = (self.width, self.feed_forward, self.layers);
        match self.slots {
            Some(_) => 2 * (rows * (d * f + f) + (layers - 1) * f * f),
            None => (2 * layers * (4 * d * d + 2 * d * f) + 4 * layers * d * rows) * rows,
        }
    }

    /// Number of parameters in all tensors.
    pub fn parameters(&self) -> usize {
        self.tensors().iter().map(|(_, rows, columns)| rows * columns).sum()
    }
}
