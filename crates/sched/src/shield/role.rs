//! What the shield does on a system, in words: it must not be silent where somebody else decides.

use temponet_task::System;

use super::no_guarantee::NoGuarantee;
use super::premise::{Premise, SafeScheduler, prove};

/// What the shield does as long as jobs keep to what was proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Every deadline is guaranteed, and the inner scheduler chooses within the slack.
    StealsSlack,
    /// Every deadline is guaranteed, because this scheduler decides and the inner one does not.
    StandIn(&'static str),
    /// Nothing is guaranteed, and why.
    Disarmed(NoGuarantee),
}

impl Role {
    /// What a shield would do on this system, whatever scheduler is behind it.
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
    /// In one sentence, which goes on after "the shield"; `inner` is what to call the scheduler behind it, such as "the network".
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
                format!("guarantees every deadline; {name} decides alone, {inner} is not asked")
            }
            Role::Disarmed(why) => format!("guarantees nothing: {why}"),
        }
    }
}
