//! The base scheduler of a set: the best advisor on it, which a learned scheduler should beat.
//!
//! Of advisors that earn the same, the one listed first is taken; nothing else in this crate depends on their order.

use temponet_sched::advisors;
use temponet_sim::SimError;
use temponet_task::Scheduler;

use crate::environment::Environment;

/// Returns the advisor that earns the most in an environment over the next `units` median wcets of the set. Of several
/// equal ones it is the one that is listed first.
pub fn best_base_scheduler(environment: &Environment, units: f64) -> Result<Box<dyn Scheduler>, SimError> {
    let mut candidates = advisors().into_iter();
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

fn reward_of(environment: &Environment, scheduler: &mut dyn Scheduler, units: f64) -> Result<f64, SimError> {
    scheduler.start(environment.view().system).map_err(SimError::NotApplicable)?;
    environment.reward_of(scheduler, units)
}
