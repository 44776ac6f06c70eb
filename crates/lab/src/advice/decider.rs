//! Who decides where a scheduler follows another one: the learned scheduler and the tuned portfolio.

use serde::Serialize;
use temponet::tuning::{Choice, NETWORK, Why};
use temponet_sched::shield::Role;

/// Who decides in a scheduler that follows another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decider {
    /// `network`, the name of a scheduler of the catalog, or that of the shield's stand-in.
    pub name: String,
    /// Basis of the choice; none where the shield leaves no choice.
    pub why: Option<Why>,
    /// Why it decides, as a sentence without its full stop.
    pub sentence: String,
    /// Number of simulated jobs that the choice rests on.
    pub jobs: u64,
}

impl Decider {
    /// Who decides by a choice of the tuning, behind a shield with this role or without one.
    pub fn of(choice: &Choice, role: Option<&Role>) -> Decider {
        if let Some(Role::StandIn(stand_in)) = role {
            let sentence = format!("{stand_in} decides: it is the shield's stand-in, which meets every deadline");
            return Decider { name: stand_in.to_string(), why: None, sentence, jobs: 0 };
        }
        Decider { name: choice.name.clone(), why: Some(choice.why), sentence: choice.to_string(), jobs: choice.jobs }
    }

    /// Whether the network decides.
    pub fn is_network(&self) -> bool {
        self.name == NETWORK
    }
}
