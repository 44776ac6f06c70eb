//! The premise of the shield: what is proved about a system before the run, or why nothing is.

use temponet_analysis::{Demand, Outcome, Sporadic, WorstCase, is_schedulable, qpa};
use temponet_task::{ExecutionModel, Scheduler, System, TaskSet, Time};

use super::no_guarantee::NoGuarantee;
use crate::catalog::Entry;
use crate::proofs::Facts;

/// The scheduler that is proved to meet every deadline.
pub(super) enum SafeScheduler {
    /// EDF on one core; the inner scheduler may deviate from it within the slack.
    Edf,
    /// A scheduler that decides instead of the inner one: on several cores, or where switching jobs costs time.
    StandIn {
        /// Name in the catalog.
        name: &'static str,
        scheduler: Box<dyn Scheduler>,
    },
}

/// What is proved, and what jobs have to keep to for the proof to hold.
pub(super) struct Premise {
    pub safe: SafeScheduler,
    /// Tasks in the order of the set. Each wcet is the bound that jobs have to keep to.
    pub tasks: Vec<Sporadic>,
    /// Whether the proof holds only for these exact arrivals. Otherwise jobs may also arrive later.
    pub is_exact: bool,
}

/// Returns the premise of a system, or why it has none.
pub(super) fn prove(system: &System) -> Result<Premise, NoGuarantee> {
    let mut set = TaskSet::new("", system.tasks.clone(), system.cores);
    (set.speeds, set.servers, set.costs) = (system.speeds.clone(), system.servers.clone(), system.costs);
    if system.cores == 1 {
        // EDF decides at the release and the completion of each job, as often as it may switch because of that job.
        set.costs.context_switch += std::mem::take(&mut set.costs.decision);
    }
    let worst_case = WorstCase::of(&set)?;
    let name_of = |task: &Sporadic| system.tasks[task.index].name.to_string();
    if let Some(task) = worst_case.tasks.iter().find(|task| task.jitter > task.period) {
        return Err(NoGuarantee::OvertakingReleases(name_of(task)));
    }
    if let Some(task) = worst_case.tasks.iter().find(|task| task.jobs > 1 && task.jitter > Time::ZERO) {
        return Err(NoGuarantee::ScatteredBurst(name_of(task)));
    }
    // A proof that covers overruns if there is one, else a proof that holds until the first overrun.
    if let Some(premise) = proved(&set, worst_case.clone()) {
        return Ok(premise);
    }
    if worst_case.may_overrun {
        for task in set.tasks.iter_mut().filter(|task| task.wcet_high.is_some()) {
            (task.wcet_high, task.execution) = (None, ExecutionModel::Wcet);
        }
        if let Some(premise) = WorstCase::of(&set).ok().and_then(|worst_case| proved(&set, worst_case)) {
            return Ok(premise);
        }
    }
    Err(match worst_case.is_overloaded() {
        Some(true) => NoGuarantee::Overloaded,
        _ => NoGuarantee::NotProved,
    })
}

fn proved(set: &TaskSet, worst_case: WorstCase) -> Option<Premise> {
    let (safe, is_exact) = if worst_case.cores == 1 && worst_case.has_costs {
        // The cost of switches that EDF would not make cannot be bounded, so EDF has to decide.
        (qpa(&worst_case) == Outcome::Schedulable).then_some(())?;
        (stand_in("edf")?, false)
    } else if worst_case.cores == 1 {
        let demands: Vec<Demand> = worst_case.tasks.iter().map(Demand::from).collect();
        let fits = is_schedulable(&demands);
        // Without `fits`, the set is schedulable only because its tasks do not all arrive together.
        (fits || qpa(&worst_case) == Outcome::Schedulable).then_some((SafeScheduler::Edf, !fits))?
    } else {
        let name = any_proved(set, &worst_case)?;
        (stand_in(name)?, name == DP_WRAP)
    };
    Some(Premise { safe, tasks: worst_case.tasks, is_exact })
}

const DP_WRAP: &str = "dp-wrap";

/// Returns the name of a scheduler that is proved to meet every deadline on several cores. The candidates are in order
/// of increasing migrations, and the first proved one is taken.
fn any_proved(set: &TaskSet, worst_case: &WorstCase) -> Option<&'static str> {
    if worst_case.is_overloaded() == Some(true) {
        return None;
    }
    let facts = Facts::with(set, worst_case.clone());
    let is_proved = |name: &&str| Entry::find(name).is_some_and(|entry| entry.proof(&facts).is_some());
    ["p-edf", "cd-split", DP_WRAP, "edf"].into_iter().find(is_proved)
}

fn stand_in(name: &'static str) -> Option<SafeScheduler> {
    Some(SafeScheduler::StandIn { name, scheduler: crate::build(name).ok()? })
}

impl Premise {
    /// Upper bound on the remaining work of a job, overhead included.
    pub fn remaining(&self, job: &temponet_task::Job) -> Time {
        let bound = self.tasks[job.task as usize].wcet.max(job.wcet);
        Time(bound.0.saturating_sub(job.executed.0).max(1) + job.overhead.0)
    }
}
