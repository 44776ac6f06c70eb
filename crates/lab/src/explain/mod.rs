//! Explanations of the learned scheduler's decisions: the figures ([`diagnostics`]), and the pages of one decision
//! ([`decision`]) and of a whole run ([`run`]).

pub mod decision;
pub mod diagnostics;
pub mod run;

use temponet::Model;
use temponet_task::{Scheduler, TaskSet, Time};

/// A run of the learned scheduler whose decisions are explained.
pub struct ModelRun<'a> {
    /// Tasks and machine.
    pub set: &'a TaskSet,
    /// Seed of the jobs.
    pub seed: u64,
    /// Length of the run.
    pub horizon: Time,
    /// Model whose choices are explained.
    pub model: &'a Model,
    /// Scheduler that takes the decisions: the learned scheduler, which may follow another one than its network, or the
    /// network without a shield.
    pub scheduler: &'a mut dyn Scheduler,
    /// The network alone, which says what it wants in the states of the run.
    pub plain: &'a mut dyn Scheduler,
}
