//! What a decision costs the guaranteed jobs of a core, where switches, migrations and decisions take time.
//!
//! Each dispatch adds to the work of the dispatched job. The proof provides two dispatches for every job: one when it
//! starts, and one when the job that it preempts resumes. A guaranteed job that does not run in its turn on its own
//! core has to be dispatched there again, perhaps after a migration, so that dispatch counts as part of its remaining
//! work. So a decision that is allowed has already paid for the way back.

use temponet_task::{CoreId, Costs, Job, Time};

/// Costs of dispatching on a machine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dispatching {
    /// Context switch and decision.
    switch: Time,
    migration: Time,
    decision: Time,
}

impl Dispatching {
    pub fn on(costs: &Costs) -> Dispatching {
        let Costs { context_switch, migration, decision } = *costs;
        Dispatching { switch: context_switch + decision, migration, decision }
    }

    pub fn is_free(&self) -> bool {
        self.switch == Time::ZERO && self.migration == Time::ZERO
    }

    /// Cost of a switch and of a migration.
    pub fn full(&self) -> Time {
        self.switch + self.migration
    }

    /// What the decision adds to the work of a job by leaving it on, or putting it on, this core; nothing without a
    /// core.
    pub fn entry(&self, job: &Job, core: Option<CoreId>) -> Time {
        match core {
            None => Time::ZERO,
            Some(core) if is_on(job, core) => {
                if core == CoreId(0) {
                    self.decision
                } else {
                    Time::ZERO
                }
            }
            Some(core) => self.dispatch(job.last_core, core),
        }
    }

    /// Cost of the next dispatch of a job on `own` core after this decision has put it on `core`.
    pub fn way_back(&self, job: &Job, core: Option<CoreId>, own: CoreId) -> Time {
        self.dispatch(core.or(job.last_core), own)
    }

    /// Cost of a dispatch on `core` for a job that last ran on `last`.
    fn dispatch(&self, last: Option<CoreId>, core: CoreId) -> Time {
        let moves = last.is_some_and(|last| last != core);
        self.switch + if moves { self.migration } else { Time::ZERO }
    }
}

/// Whether the job runs on this core.
pub(super) fn is_on(job: &Job, core: CoreId) -> bool {
    job.running && job.last_core == Some(core)
}
