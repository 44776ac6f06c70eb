//! The one source of advice: which scheduler is best on a set, who decides in it, what speaks against it, and what all
//! of that rests on. Every command, page and binding quotes it.
//!
//! - `evidence.rs` counts runs and jobs, and says what runs without a miss leave open;
//! - `decider.rs` names who decides where a scheduler follows another one;
//! - `claim.rs` states differences, together with the more important measures that do not tell the two apart, and
//!   ranks;
//! - `recommendation.rs` and `reservations.rs` put the advice on a comparison into words;
//! - `premise.rs` does so for real threads, where the question is whether what was assumed has held.
//!
//! Which candidate a running scheduler follows is decided below, by `temponet::tuning`, because programs that embed it
//! need no lab; that choice is quoted here.

mod claim;
mod decider;
mod evidence;
mod premise;
mod recommendation;
mod reservations;

pub use claim::{Claim, rank};
pub use decider::Decider;
pub use evidence::{Evidence, Source};
pub use premise::{MeasuredMachine, Premise};

use serde::Serialize;

/// What to do on a set, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Scheduler that serves the goal best; none if none could be compared.
    pub best: Option<String>,
    /// Who decides in it, if it follows another one: `network`, or the name of a scheduler.
    pub decider: Option<Decider>,
    /// Schedulers that the evidence cannot tell from the best one.
    pub level_with: Vec<String>,
    /// What a reader must know before any figure, such as that a machine is noisy; none if there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Sentences, each with its full stop: the answer first, then what qualifies it, and at the end what it rests on.
    pub sentences: Vec<String>,
    /// What the advice rests on.
    pub evidence: Evidence,
}

impl Advice {
    /// Returns all sentences.
    pub fn verdict(&self) -> String {
        self.sentences.join(" ")
    }
}
