//! Simple schedulers that need no history, to start a comparison from: whatever is learned should be better than the best of them.

use temponet_sched::{advisors, planners};
use temponet_sim::SimError;
use temponet_task::{Assignment, JobId, Scheduler, SystemView};

use crate::environment::Environment;

/// The one that earns the most in an environment from now on, for so many units of time.
pub fn best_base_scheduler(environment: &Environment, units: f64) -> Result<Box<dyn Scheduler>, SimError> {
    let [mut best, others @ ..] = advisors();
    let mut most = earned(environment, &mut *best, units)?;
    let planners = planners().map(|planner| Box::new(planner) as Box<dyn Scheduler>);
    for mut other in others.into_iter().chain(planners) {
        let earned = earned(environment, &mut *other, units)?;
        if earned > most {
            (most, best) = (earned, other);
        }
    }
    Ok(best)
}

fn earned(environment: &Environment, scheduler: &mut dyn Scheduler, units: f64) -> Result<f64, SimError> {
    scheduler.start(environment.view().system).map_err(SimError::NotApplicable)?;
    let first = chosen_jobs(scheduler, &environment.view());
    environment.rollout_reward(&first, None, scheduler, units)
}

/// The jobs that a scheduler would run.
pub fn chosen_jobs(scheduler: &mut dyn Scheduler, view: &SystemView<'_>) -> Vec<JobId> {
    let mut assignment = Assignment::default();
    assignment.reset(view.cores());
    scheduler.decide(view, &mut assignment);
    assignment.cores().iter().flatten().copied().collect()
}
