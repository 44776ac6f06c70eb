//! Who decides where a scheduler follows another one: the learned scheduler and the tuned portfolio.

use serde::Serialize;
use temponet::tuning::{Choice, NETWORK, TunedModel, Why};
use temponet_sched::shield::Role;
use temponet_task::{System, TaskSet};

use crate::roster::SHIELDED;

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
        let jobs = choice.compared_jobs();
        Decider { name: choice.name.clone(), why: Some(choice.why), sentence: choice.to_string(), jobs }
    }

    /// Whether the network decides. Where a stand-in of the shield does, the network is not asked either.
    pub fn is_network(&self) -> bool {
        self.name == NETWORK
    }

    /// Adds that a choice was made before any mode of the set began. How modes are noticed, see docs/tuning.md.
    pub fn on(mut self, set: &TaskSet, choice: &Choice) -> Decider {
        let is_simulated = matches!(self.why, Some(Why::Simulated | Why::Guarded | Why::NothingLost));
        if is_simulated && !set.modes().is_empty() && choice.modes.is_empty() {
            self.sentence += "; modes were not simulated: what they change is noticed in the run, and chosen anew";
        }
        self
    }

    /// Adds why a verdict that the model carries is not followed, if it has one and is not.
    pub fn beside(mut self, carried: Option<&TunedModel>, system: &System) -> Decider {
        let is_verdict = carried.filter(|tuned| tuned.choice.why == Why::Judged && self.why != Some(Why::Judged));
        if let Some(TunedModel { set, .. }) = is_verdict {
            let why = match carried.is_some_and(|tuned| tuned.is_for(system)) {
                true => "is not asked here",
                false => "is for another system",
            };
            self.sentence += &format!("; the verdict of the training on {set} {why}");
        }
        self
    }

    /// Says who decides on a set, before what the network would do there is explained. Without a shield and without
    /// tuning, nobody else does.
    pub fn before_explanation(decider: Option<&Decider>) -> String {
        let Some(decider) = decider else {
            return "The network decides alone: there is no shield and no tuning.".into();
        };
        let below = if decider.is_network() { "" } else { "; below is what the network would do in such a run" };
        format!("In {SHIELDED}, {}{below}.", decider.sentence)
    }
}
