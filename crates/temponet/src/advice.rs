//! What simple schedulers would do, as part of a job's token: whoever knows that cannot fall far behind them, and can learn when to differ.

use std::fmt;

use temponet_sched::Panel;
use temponet_sched::advice::{Advisor, Planner};
use temponet_task::{JobId, System, SystemView};

use crate::tokenizer::Scale;

/// Values of the features: every subset of the advisors, and of the planners.
pub(crate) const ADVICE_VALUES: usize = 1 << Advisor::ALL.len();
pub(crate) const PLAN_VALUES: usize = 1 << Planner::ALL.len();

/// With more ready jobs than this, importance-aware planning is asked only where jobs differ in importance: it takes long.
const MANY_JOBS: usize = 64;

/// What is said of one job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JobAdvice {
    /// The advisors that would run it, one bit each.
    pub advisors: u16,
    /// The planners that would, likewise.
    pub planners: u16,
    /// The work due until its deadline as a share of what the cores can do until then; infinite for a job that is late.
    pub pressure: f64,
}

/// Asks them; keeps its memory between decisions.
#[derive(Default)]
pub(crate) struct Advice {
    panel: Panel,
    /// By job id.
    by_job: Vec<JobAdvice>,
}

impl fmt::Debug for Advice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Advice").field("by_job", &self.by_job).finish_non_exhaustive()
    }
}

impl Advice {
    /// Prepares for a system.
    pub(crate) fn start(&mut self, system: &System) {
        self.panel.start(system);
    }

    /// Puts the ready jobs in order and asks the advisors, the planners, both or nobody.
    pub(crate) fn ask(&mut self, view: &SystemView<'_>, scale: &Scale, ask_advisors: bool, ask_planners: bool) {
        if self.by_job.capacity() < view.jobs.len() {
            // Ids of jobs that have just left are still taken.
            self.by_job.reserve(2 * view.system.tasks.len().max(view.jobs.len()));
            // One that has no room for so many takes it now.
            self.start(view.system);
        }
        self.by_job.clear();
        self.by_job.resize(view.jobs.len(), JobAdvice { pressure: f64::INFINITY, ..JobAdvice::default() });
        self.panel.look(view, ask_planners);
        for advisor in Advisor::ALL.into_iter().filter(|_| ask_advisors) {
            if advisor == Advisor::Dios && !scale.differs && view.active.len() > MANY_JOBS {
                continue;
            }
            for id in self.panel.advisor(advisor, view) {
                self.by_job[id.index()].advisors |= 1 << advisor as u16;
            }
        }
        if ask_planners {
            for planner in Planner::ALL {
                for id in self.panel.planner(planner, view) {
                    self.by_job[id.index()].planners |= 1 << planner as u16;
                }
            }
            self.panel.pressures(view).for_each(|(id, pressure)| self.by_job[id.index()].pressure = pressure);
        }
    }

    /// The ready jobs in deadline order.
    pub(crate) fn ready(&self) -> &[JobId] {
        self.panel.ready()
    }

    /// What is said of a job.
    pub(crate) fn about(&self, id: JobId) -> JobAdvice {
        self.by_job.get(id.index()).copied().unwrap_or_default()
    }
}
