//! Simple schedulers that need no history, to start a comparison from: whatever is learned should be better than the best of them.

use temponet_sched::advisors;
use temponet_sim::SimError;
use temponet_task::{Assignment, JobId, Scheduler, SystemView};

use crate::environment::Environment;

/// One of them.
pub enum Base {
    /// EDF that runs jobs that are late by wcet last.
    EdfSkip {
        /// Working memory.
        order: Vec<JobId>,
    },
    /// One that plans anew at every decision.
    Planner(Box<dyn Scheduler>),
}

impl Base {
    /// The one that earns the most in an environment from now on, for so many units of time.
    pub fn best(environment: &Environment, units: f64) -> Result<Base, SimError> {
        let planners = advisors().into_iter().map(Base::Planner);
        let mut best = (f64::NEG_INFINITY, Base::EdfSkip { order: Vec::new() });
        for mut base in [Base::EdfSkip { order: Vec::new() }].into_iter().chain(planners) {
            let first = base.choose(&environment.view());
            let earned = environment.what_if(&first, &mut base, units)?;
            if earned > best.0 {
                best = (earned, base);
            }
        }
        Ok(best.1)
    }

    /// The jobs it would run.
    pub fn choose(&mut self, view: &SystemView<'_>) -> Vec<JobId> {
        let mut assignment = Assignment::default();
        assignment.reset(view.cores());
        self.assign(view, &mut assignment);
        assignment.cores().iter().flatten().copied().collect()
    }

    /// Takes its decision.
    pub fn assign(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        match self {
            Base::Planner(planner) => planner.decide(view, assignment),
            Base::EdfSkip { order } => {
                order.clear();
                order.extend_from_slice(view.active);
                if order.len() > view.cores() {
                    order.select_nth_unstable_by_key(view.cores(), |id| {
                        let job = view.job(*id);
                        (job.is_late_by_wcet(view.now), job.deadline, job.tie())
                    });
                    order.truncate(view.cores());
                }
                assignment.place(view, order);
            }
        }
    }
}
