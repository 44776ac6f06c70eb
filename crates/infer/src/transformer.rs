//! The Transformer as a body: its output heads, its limits and its tensors. Its forward pass is [`crate::pass`], over
//! the weights of [`crate::prepared`].

use crate::architecture::within;
use crate::{Architecture, Atoms};

/// Greatest number of speeds below full speed.
const MOST_SPEEDS: usize = 8;

/// Output heads of a Transformer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heads {
    /// One number for each row.
    Values {
        /// Width of the hidden layer of a two-layer actor head, 1 to 1,024. Its logits are the outputs of the job rows,
        /// and the job head, which is then the critic of an actor–critic, is used in training only. `None` if the job
        /// head gives the outputs.
        actor: Option<usize>,
        /// Number of speeds below full speed that a job can run at, 0 to 8. Each has a head of its own, which gives the
        /// gain over full speed.
        speeds: usize,
    },
    /// Logits of a distribution of returns (C51). An output is then the mean return of running one job alone.
    Returns(Atoms),
}

impl Default for Heads {
    fn default() -> Heads {
        Heads::Values { actor: None, speeds: 0 }
    }
}

impl Heads {
    /// Returns why the heads are invalid, or `None`.
    pub(crate) fn problem(self) -> Option<String> {
        match self {
            Heads::Values { speeds, .. } if speeds > MOST_SPEEDS => {
                Some(format!("{speeds} speeds, not from 0 to {MOST_SPEEDS}"))
            }
            Heads::Values { actor, .. } => actor.and_then(|actor| within("the actor's hidden layer", actor, 1024)),
            Heads::Returns(atoms) => atoms.problem(),
        }
    }

    /// Number of outputs of a head.
    pub(crate) fn outputs(self) -> usize {
        match self {
            Heads::Values { .. } => 1,
            Heads::Returns(atoms) => atoms.count,
        }
    }

    /// Tensors of the blocks and the heads.
    pub(crate) fn tensors(self, architecture: &Architecture) -> Vec<(String, usize, usize)> {
        let (d, f) = (architecture.width, architecture.feed_forward);
        let mut tensors = Vec::new();
        for layer in 0..architecture.layers {
            let mut add = |name: &str, rows: usize, columns: usize| {
                tensors.push((format!("layers.{layer}.{name}"), rows, columns));
            };
            for map in ["query", "key", "value", "output"] {
                add(&format!("attention.{map}.weight"), d, d);
                add(&format!("attention.{map}.bias"), 1, d);
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
        let mut add = |name: &str, rows: usize, columns: usize| {
            tensors.push((format!("head.{name}.weight"), rows, columns));
            tensors.push((format!("head.{name}.bias"), 1, rows));
        };
        add("job", self.outputs(), d);
        add("idle", self.outputs(), d);
        if let Heads::Values { actor, speeds } = self {
            if let Some(hidden) = actor {
                add("actor.hidden", hidden, d);
                add("actor", 1, hidden);
            }
            (0..speeds).for_each(|speed| add(&format!("speed.{speed}"), 1, d));
        }
        tensors
    }

    /// Approximate number of multiplications and additions of a forward pass over `rows` rows.
    pub(crate) fn operations(architecture: &Architecture, rows: usize) -> usize {
        let (d, f, layers) = (architecture.width, architecture.feed_forward, architecture.layers);
        (2 * layers * (4 * d * d + 2 * d * f) + 4 * layers * d * rows) * rows
    }
}
