//! What is proved of a system before the run: what the shield may rely on, or why there is nothing.

use temponet_task::{ExecutionModel, Scheduler, System, TaskSet, Time};

use crate::analysis::uniprocessor_edf::{Demand, is_schedulable};
use crate::analysis::{Model, Outcome, Sporadic, any_proved, qpa};

/// Who can meet every deadline.
pub(super) enum Guard {
    /// EDF, on one core.
    Edf,
    /// This scheduler, on several cores, or where every switch from one job to another costs time.
    StandIn {
        /// As users name it.
        name: &'static str,
        scheduler: Box<dyn Scheduler>,
    },
}

/// What holds as long as jobs come and take their time as they should.
pub(super) struct Premise {
    pub guard: Guard,
    /// In the set's order; the wcet is the bound that jobs have to keep to.
    pub tasks: Vec<Sporadic>,
    /// It is proved for these very arrivals; otherwise they may come later as well.
    pub is_exact: bool,
}

/// The premise of a system, or why it has none.
pub(super) fn prove(system: &System) -> Result<Premise, String> {
    let mut set = TaskSet::new("", system.tasks.clone(), system.cores);
    (set.speeds, set.servers, set.costs) = (system.speeds.clone(), system.servers.clone(), system.costs);
    if system.cores == 1 {
        // EDF decides at a job's release and at its completion, as often as it may switch for it.
        set.costs.context_switch += std::mem::take(&mut set.costs.decision);
    }
    let model = Model::of(&set)?;
    if let Some(task) = model.tasks.iter().find(|task| task.jitter > task.period) {
        return Err(format!("releases of task {:?} can overtake each other", system.tasks[task.index].name));
    }
    if let Some(task) = model.tasks.iter().find(|task| task.jobs > 1 && task.jitter > Time::ZERO) {
        return Err(format!("the jobs of a burst of task {:?} are released one by one", system.tasks[task.index].name));
    }
    // With overruns if that is enough, else until one happens.
    if let Some(premise) = proved(&set, model.clone()) {
        return Ok(premise);
    }
    if model.may_overrun {
        for task in set.tasks.iter_mut().filter(|task| task.wcet_high.is_some()) {
            (task.wcet_high, task.execution) = (None, ExecutionModel::Wcet);
        }
        if let Some(premise) = Model::of(&set).ok().and_then(|model| proved(&set, model)) {
            return Ok(premise);
        }
    }
    Err(match model.is_overloaded() {
        Some(true) => "the set is overloaded".into(),
        _ => "no scheduler is proved to meet every deadline".into(),
    })
}

fn proved(set: &TaskSet, model: Model) -> Option<Premise> {
    let (guard, is_exact) = if model.cores == 1 && model.has_costs {
        // What switches cost that EDF would not make cannot be bounded.
        (qpa(&model) == Outcome::Schedulable).then_some(())?;
        (stand_in("edf")?, false)
    } else if model.cores == 1 {
        let demands: Vec<Demand> = model.tasks.iter().map(Demand::from).collect();
        let fits = is_schedulable(&demands);
        // Or only because tasks do not all arrive together.
        (fits || qpa(&model) == Outcome::Schedulable).then_some((Guard::Edf, !fits))?
    } else {
        let name = any_proved(set, &model)?;
        (stand_in(name)?, name == "dp-wrap")
    };
    Some(Premise { guard, tasks: model.tasks, is_exact })
}

fn stand_in(name: &'static str) -> Option<Guard> {
    Some(Guard::StandIn { name, scheduler: crate::build(name).ok()? })
}

impl Premise {
    /// What a job may still take.
    pub fn remaining(&self, job: &temponet_task::Job) -> Time {
        let bound = self.tasks[job.task as usize].wcet.max(job.wcet);
        Time(bound.0.saturating_sub(job.executed.0).max(1) + job.overhead.0)
    }
}
