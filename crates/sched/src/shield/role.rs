//! The role of the shield on a system, in words. Users must be told where another scheduler decides.

use temponet_task::System;

use super::no_guarantee::NoGuarantee;
use super::premise::{Premise, SafeScheduler, prove};

/// What the shield does as long as jobs keep to the premise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// Every deadline is guaranteed, and the inner scheduler chooses within the slack.
    StealsSlack,
    /// Every deadline is guaranteed, because the scheduler with this name decides and the inner one does not.
    StandIn(&'static str),
    /// Nothing is guaranteed, for this reason.
    Disarmed(NoGuarantee),
}

impl Role {
    /// Role of a shield on this system, whatever the inner scheduler is.
    pub fn on(system: &System) -> Role {
        Role::of(&prove(system))
    }

    pub(super) fn of(premise: &Result<Premise, NoGuarantee>) -> Role {
        match premise {
            Ok(Premise { safe: SafeScheduler::Edf, .. }) => Role::StealsSlack,
            Ok(Premise { safe: SafeScheduler::StandIn { name, .. }, .. }) => Role::StandIn(name),
            Err(why) => Role::Disarmed(why.clone()),
        }
    }
}

impl Role {
    /// The role as a predicate of "the shield", in one sentence. `inner` is the name of the inner scheduler in that
    /// sentence, such as "the network".
    pub fn sentence(&self, inner: &str) -> String {
        match self {
            Role::StealsSlack => "guarantees every deadline by slack stealing".into(),
            Role::StandIn(name) => {
                let name = match *name {
                    "edf" => "EDF",
                    "p-edf" => "partitioned EDF",
                    "cd-split" => "C=D splitting",
                    "dp-wrap" => "DP-Wrap",
                    other => other,
                };
                format!("guarantees every deadline; {name} decides alone, {inner} is not followed")
            }
            Role::Disarmed(why) => format!("guarantees nothing: {why}"),
        }
    }
}
