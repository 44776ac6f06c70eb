//! The role of the shield on a system, in words. Users must be told what is guaranteed and who decides.

use temponet_task::{CoreId, System};
use temponet_wording::{counted, listed};

use super::guarantee::{Guarantee, Premise, prove, reasons_of_nothing};
use super::no_guarantee::{NoGuarantee, WhyNot};
use super::stand_in::title;

/// What the shield does as long as jobs keep to the premise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// The deadlines of some or all tasks are guaranteed, and the inner scheduler chooses within the slack.
    StealsSlack(Guarantee),
    /// Every deadline is guaranteed, because the scheduler with this name decides and the inner one does not.
    StandIn(&'static str),
    /// Nothing is guaranteed, for this reason.
    Disarmed(NoGuarantee),
}

/// Largest number of task names in a sentence.
const MOST_NAMES: usize = 6;

impl Role {
    /// Role of a shield on this system, whatever the inner scheduler is.
    pub fn on(system: &System) -> Role {
        Role::of(&prove(system))
    }

    pub(super) fn of(premise: &Result<Premise, NoGuarantee>) -> Role {
        match premise {
            Ok(Premise::Reserved(guarantee)) => Role::StealsSlack(guarantee.clone()),
            Ok(Premise::StandIn(stand_in, _)) => Role::StandIn(stand_in.name),
            Err(why) => Role::Disarmed(why.clone()),
        }
    }

    /// The guaranteed tasks, where the inner scheduler chooses within their slack.
    pub fn guarantee(&self) -> Option<&Guarantee> {
        match self {
            Role::StealsSlack(guarantee) => Some(guarantee),
            Role::StandIn(_) | Role::Disarmed(_) => None,
        }
    }

    /// Returns why each task of the system is not guaranteed; none for a task that is.
    pub fn why_not(&self, system: &System) -> Vec<Option<String>> {
        match self {
            Role::StealsSlack(guarantee) => {
                guarantee.reasons(system).into_iter().map(|why| why.map(|why| why.to_string())).collect()
            }
            Role::StandIn(_) => vec![None; system.tasks().len()],
            Role::Disarmed(why) => reasons_of_nothing(system, why).into_iter().map(Some).collect(),
        }
    }

    /// The role as a predicate of "the shield", in one sentence. `inner` is the name of the inner scheduler in that
    /// sentence, such as "the network".
    pub fn sentence(&self, inner: &str) -> String {
        match self {
            Role::StealsSlack(guarantee) => {
                let up_to = if guarantee.covers_overruns() { "" } else { "; jobs only up to their wcet" };
                let pattern =
                    if guarantee.is_exact { "; as long as all arrive in the pattern of their offsets" } else { "" };
                format!("{}{up_to}{pattern}", within_slack(guarantee))
            }
            Role::StandIn(name) => {
                let name = title(name);
                format!("guarantees every deadline; {name} decides alone, {inner} is not followed")
            }
            Role::Disarmed(why) => format!("guarantees nothing: {why}"),
        }
    }
}

/// Sentence about guaranteed tasks.
fn within_slack(guarantee: &Guarantee) -> String {
    if guarantee.is_for_all() {
        return "guarantees every deadline by slack stealing".into();
    }
    let tasks = || guarantee.whole_tasks();
    let guaranteed = tasks().filter(|(_, core)| core.is_ok()).count();
    let named = |is_named: &dyn Fn(&Result<CoreId, WhyNot>) -> bool| {
        listed(tasks().filter(|(_, core)| is_named(core)).map(|(name, _)| name), MOST_NAMES)
    };
    let is_wanted = |why: &WhyNot| !matches!(why, WhyNot::NotCritical | WhyNot::NotAsked);
    let others = |core: &Result<CoreId, WhyNot>| core.as_ref().is_err_and(is_wanted);
    let left_out = named(&others);
    let left_out = if left_out.is_empty() { left_out } else { format!("; not {left_out}") };
    let names = named(&|core| core.is_ok());
    let total = tasks().count();
    format!(
        "guarantees every deadline of {guaranteed} of {} by slack stealing: {names}{left_out}",
        counted(total, "task")
    )
}
