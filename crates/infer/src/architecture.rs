//! The architecture of a network: its sizes, the names and shapes of its tensors, and its limits.

use serde::{Deserialize, Serialize};

use crate::{Atoms, Relations};

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

/// Architecture of a network: post-LayerNorm Transformer blocks over rows that are sums of embeddings, with one output per row. With `graph`, message passing
/// takes the place of attention. With `slots` it is a
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
    /// Distribution of returns that the heads give the logits of (C51). An output is then the mean return of running one job alone. `None` if a head gives
    /// one number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atoms: Option<Atoms>,
    /// Whether the rows exchange messages over a complete graph in place of attention. The job features then include the time to the deadline and the core,
    /// which [`Relations`] are read from.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub graph: bool,
    /// Width of the state of an LSTM over the sequence of decisions, whose output joins each row. It takes the place of the blocks. `None` for a network
    /// without memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<usize>,
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
        let (real, slots, actor, speeds, atoms, graph, memory) = (None, None, None, 0, None, false, None);
        let (width, layers, heads, feed_forward) = (128, 2, 4, 512);
        Architecture { width, layers, heads, feed_forward, job, idle, real, slots, actor, speeds, atoms, graph, memory }
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
        if let Some(problem) = self.atoms.and_then(Atoms::problem) {
            return Some(problem);
        }
        if self.atoms.is_some() && (self.slots.is_some() || self.actor.is_some() || self.speeds > 0) {
            return Some("a network with atoms has no slots, no actor and no speeds".into());
        }
        if self.graph && (self.slots.is_some() || self.actor.is_some() || self.speeds > 0 || self.atoms.is_some()) {
            return Some("a graph network has no slots, no actor, no speeds and no atoms".into());
        }
        if let Some(memory) = self.memory {
            let is_other = self.slots.is_some() || self.actor.is_some() || self.speeds > 0 || self.atoms.is_some();
            let other = (is_other || self.graph)
                .then(|| "a recurrent network has no slots, no actor, no speeds, no atoms and no graph".into());
            if let Some(problem) = within("memory", memory, 1024).or(other) {
                return Some(problem);
            }
        }
        if self.graph && Relations::of(self).is_none() {
            return Some("a graph network needs the job features \"due\" and \"core\"".into());
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
        if let Some(memory) = self.memory {
            tensors.extend(self.recurrent_tensors(memory));
            return tensors;
        }
        for layer in 0..self.layers {
            let mut add = |name: &str, rows: usize, columns: usize| {
                tensors.push((format!("layers.{layer}.{name}"), rows, columns));
            };
            let maps: &[&str] = match self.graph {
                true => &["message", "output"],
                false => &["attention.query", "attention.key", "attention.value", "attention.output"],
            };
            for map in maps {
                add(&format!("{map}.weight"), d, d);
                add(&format!("{map}.bias"), 1, d);
            }
            if self.graph {
                add("relation", Relations::COUNT, d);
            }
            add("feed_forward.up.weight", f, d);
            add("feed_forward.up.bias", 1, f);
            add("feed_forward.down.weight", d, f);
            add("feed_forward.down.bias", 1, d);
            let norms: &[&str] = match self.graph {
                true => &["message_norm", "update_norm", "feed_forward_norm"],
                false => &["attention_norm", "feed_forward_norm"],
            };
            for norm in norms {
                add(&format!("{norm}.weight"), 1, d);
                add(&format!("{norm}.bias"), 1, d);
            }
        }
        let outputs = self.outputs();
        for head in ["job", "idle"] {
            tensors.push((format!("head.{head}.weight"), outputs, d));
            tensors.push((format!("head.{head}.bias"), 1, outputs));
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

    /// Tensors of a recurrent network after its embeddings.
    fn recurrent_tensors(&self, memory: usize) -> Vec<(String, usize, usize)> {
        let (d, f) = (self.width, self.feed_forward);
        let tensors = [
            ("rows.weight", f, d),
            ("rows.bias", 1, f),
            ("pool_norm.weight", 1, f),
            ("pool_norm.bias", 1, f),
            ("memory.input.weight", 4 * memory, f),
            ("memory.input.bias", 1, 4 * memory),
            ("memory.state.weight", 4 * memory, memory),
            ("join.row.weight", f, f),
            ("join.row.bias", 1, f),
            ("join.memory.weight", f, memory),
            ("head.job.weight", 1, f),
            ("head.job.bias", 1, 1),
            ("head.idle.weight", 1, f),
            ("head.idle.bias", 1, 1),
        ];
        tensors.into_iter().map(|(name, rows, columns)| (name.into(), rows, columns)).collect()
    }

    /// Tensors that a weights file may hold besides those of [`Architecture::tensors`], for further training: the value head, which estimates state values.
    /// A network with atoms also needs it to run: its logits are added to those of each job, less those of idling. Without it, they are those of idling.
    pub fn training_tensors(&self) -> [(String, usize, usize); 2] {
        let outputs = self.outputs();
        [("head.value.weight".into(), outputs, self.head_width()), ("head.value.bias".into(), 1, outputs)]
    }

    /// Number of outputs of a head.
    fn outputs(&self) -> usize {
        self.atoms.map_or(1, |atoms| atoms.count)
    }

    /// Width of the input of the output heads.
    pub fn head_width(&self) -> usize {
        if self.slots.is_some() || self.memory.is_some() { self.feed_forward } else { self.width }
    }

    /// Approximate number of multiplications and additions of a forward pass over `rows` rows.
    pub fn operations(&self, rows: usize) -> usize {
        let (d, f, layers) = (self.width, self.feed_forward, self.layers);
        match (self.slots, self.memory) {
            (Some(_), _) => 2 * (rows * (d * f + f) + (layers - 1) * f * f),
            (_, Some(memory)) => 2 * (rows * (d * f + f * f) + 4 * memory * (f + memory) + memory * f),
            _ if self.graph => (2 * layers * (2 * d * d + 2 * d * f) + 3 * layers * d * rows) * rows,
            _ => (2 * layers * (4 * d * d + 2 * d * f) + 4 * layers * d * rows) * rows,
        }
    }

    /// Number of parameters in all tensors.
    pub fn parameters(&self) -> usize {
        self.tensors().iter().map(|(_, rows, columns)| rows * columns).sum()
    }
}
