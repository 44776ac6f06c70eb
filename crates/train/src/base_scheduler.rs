//! The base scheduler of a set: the best of the simple schedulers on it, which a learned scheduler should beat.
//!
//! Candidates are the advisors and planners of the learned scheduler, as [`temponet_sched::advisors`] and [`temponet_sched::planners`] list
//! them. Of candidates that earn the same, the one listed first is taken; nothing else in this crate depends on their order.

use temponet_sched::{advisors, planners};
use temponet_sim::SimError;
use temponet_task::{Assignment, JobId, Scheduler, SystemView};

use crate::environment::Environment;

/// Returns the candidate that earns the most in an environment over the next `units` median wcets of the set. Of several
/// equal ones it is the one that is listed first, advisors before planners.
pub fn best_base_scheduler(environment: &Environment, units: f64) -> Result<Box<dyn Scheduler>, SimError> {
    let planners = planners().map(|planner| Box::new(planner) as Box<dyn Scheduler>);
    best_of(environment, advisors().into_iter().chain(planners), units)
}

/// As [`best_base_scheduler`], among the advisors alone, which decide faster.
pub fn best_advisor(environment: &Environment, units: f64) -> Result<Box<dyn Scheduler>, SimError> {
    best_of(environment, advisors().into_iter(), units)
}

fn best_of(
    environment: &Environment,
    mut candidates: impl Iterator<Item = Box<dyn Scheduler>>,
    units: f64,
) -> Result<Box<dyn Scheduler>, SimError> {
    let mut best = candidates.next().unwrap_or_else(|| temponet_sched::fallback(false));
    let mut most = reward_of(environment, &mut *best, units)?;
    for mut other in candidates {
        let reward = reward_of(environment, &mut *other, units)?;
        if reward > most {
            (most, best) = (reward, other);
        }
    }
    Ok(best)
}

/// Returns the reward of a run in which a scheduler decides from now on.
fn reward_of(environment: &Environment, scheduler: &mut dyn Scheduler, units: f64) -> Result<f64, SimError> {
    scheduler.start(environment.view().system).map_err(SimError::NotApplicable)?;
    let first = chosen_jobs(scheduler, &environment.view());
    environment.rollout_reward(&first, None, scheduler, units)
}

/// Returns the jobs that a scheduler would run.
pub fn chosen_jobs(scheduler: &mut dyn Scheduler, view: &SystemView<'_>) -> Vec<JobId> {
    let mut assignment = Assignment::default();
    assignment.reset(view.cores());
    scheduler.decide(view, &mut assignment);
    assignment.cores().iter().flatten().copied().collect()
}
