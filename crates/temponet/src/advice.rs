//! Advice of simple schedulers about each ready job, as part of the job's token.
//!
//! A network that sees what the simple schedulers would do can imitate them, so it does not fall far behind, and it can
//! learn when to differ. This module only collects the advice; the schedulers themselves are in
//! [`temponet_sched::advice`].

use std::fmt;

use temponet_sched::Panel;
use temponet_sched::advice::{Advisor, FutureArrivals, NextArrivals, Planner};
use temponet_task::{Assignment, JobId, System, SystemView, TaskId};

use crate::scale::Scale;

/// Number of values of [`crate::stages::Feature::Advice`]: one for each subset of the advisors.
pub(crate) const ADVICE_VALUES: usize = 1 << Advisor::ALL.len();
/// Number of values of [`crate::stages::Feature::Plan`]: one for each subset of the planners.
pub(crate) const PLAN_VALUES: usize = 1 << Planner::ALL.len();

/// Number of ready jobs above which [`Advisor::Dios`] is asked only if tasks differ in value or criticality, because it
/// is slow.
const MANY_JOBS: usize = 64;

/// Advice about one job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JobAdvice {
    /// Advisors that would run the job, one bit each: bit `a as u16` for [`Advisor`] `a`.
    pub advisors: u16,
    /// Planners that would run the job, one bit each: bit `p as u16` for [`Planner`] `p`.
    pub planners: u16,
    /// Work due by the job's deadline, as a share of what the cores can do until then. It is infinite for a job that is
    /// late or that the planner left out of its plan.
    pub pressure: f64,
}

/// Asks the advisors and planners at a decision point. Its buffers are reused from decision to decision.
#[derive(Default)]
pub(crate) struct Advice {
    panel: Panel,
    arrivals: NextArrivals,
    /// Advice by job id; empty if nobody is asked.
    by_job: Vec<JobAdvice>,
    /// Placement of the jobs that an advisor would run, where tasks are bound to cores.
    placed: Assignment,
}

impl fmt::Debug for Advice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Advice").field("by_job", &self.by_job).finish_non_exhaustive()
    }
}

/// Iterates over those of the chosen jobs, best first, that get a core. Where tasks are bound to cores, some may not.
fn with_cores<'a>(
    chosen: &'a [JobId],
    view: &SystemView<'_>,
    placed: &'a mut Assignment,
) -> impl Iterator<Item = JobId> + use<'a> {
    placed.reset(view.cores());
    let is_bound = view.system.machine().is_bound() || view.locks.is_some();
    if is_bound {
        placed.place(view, chosen);
    }
    chosen.iter().copied().filter(move |id| !is_bound || placed.runs(*id))
}

impl Advice {
    /// Prepares the advisors and planners for a system.
    pub(crate) fn start(&mut self, system: &System) {
        self.panel.start(system);
    }

    /// Forgets the order of the ready jobs, for a decision about others.
    pub(crate) fn forget(&mut self) {
        self.panel.forget();
    }

    /// Sorts the ready jobs by deadline, then asks the advisors if `ask_advisors` is set and the planners if
    /// `ask_planners` is set.
    pub(crate) fn ask(&mut self, view: &SystemView<'_>, scale: &Scale, ask_advisors: bool, ask_planners: bool) {
        self.by_job.clear();
        if !ask_advisors && !ask_planners {
            return self.panel.look(view, false);
        }
        if self.by_job.capacity() < view.jobs.len() {
            // Twice as many, because ids of jobs that have just left are not free yet.
            self.by_job.reserve(2 * view.system.tasks().len().max(view.jobs.len()));
            // The panel may lack room for this many jobs too; it reserves room when it starts.
            self.start(view.system);
        }
        self.by_job.resize(view.jobs.len(), JobAdvice { pressure: f64::INFINITY, ..JobAdvice::default() });
        self.panel.look(view, ask_planners);
        for advisor in Advisor::ALL.into_iter().filter(|_| ask_advisors) {
            if advisor == Advisor::Dios && !scale.differs && view.active.len() > MANY_JOBS {
                continue;
            }
            let chosen = self.panel.advisor(advisor, view);
            for id in with_cores(chosen, view, &mut self.placed) {
                self.by_job[id.index()].advisors |= 1 << advisor as u16;
            }
        }
        if ask_planners {
            for planner in Planner::ALL {
                let chosen = self.panel.planner(planner, view);
                for id in with_cores(chosen, view, &mut self.placed) {
                    self.by_job[id.index()].planners |= 1 << planner as u16;
                }
            }
            self.panel.pressures(view).for_each(|(id, pressure)| self.by_job[id.index()].pressure = pressure);
        }
    }

    /// Calls `take` with the tasks whose arrivals can be foreseen and their next ones. Call [`Advice::ask`] before;
    /// `has_planners` tells whether it asked the planners.
    pub(crate) fn arrivals(
        &mut self,
        view: &SystemView<'_>,
        scale: &Scale,
        has_planners: bool,
        mut take: impl FnMut(TaskId, FutureArrivals),
    ) {
        match has_planners {
            true => self.panel.arrivals().for_each(|(task, arrivals)| take(task, arrivals)),
            false => self.arrivals.find(view, scale.flows.iter().map(|flow| flow.rule), take),
        }
    }

    /// Ready jobs in deadline order, as of the last call of [`Advice::ask`].
    pub(crate) fn ready(&self) -> &[JobId] {
        self.panel.ready()
    }

    /// Returns the advice about a job; empty advice if the id is unknown.
    pub(crate) fn about(&self, id: JobId) -> JobAdvice {
        self.by_job.get(id.index()).copied().unwrap_or_default()
    }
}
