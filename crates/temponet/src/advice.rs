//! What classical schedulers would do, as part of a job's token: whoever knows that cannot fall far behind them, and can learn when to differ.

use std::fmt;

use temponet_sched::advisors;
use temponet_task::{Assignment, JobId, Scheduler, SystemView};

use crate::tokenizer::Scale;

/// How many there are: EDF that runs late jobs last, shortest remaining first, and the planners.
const ADVISORS: usize = 5;

/// Values of the feature: every subset of the advisors.
pub(crate) const VALUES: usize = 1 << ADVISORS;

/// With more ready jobs than this, importance-aware planning is asked only where jobs differ in importance: it takes long.
const MANY: usize = 64;

/// Asks the advisors; keeps its memory between decisions.
pub(crate) struct Advice {
    planners: [Box<dyn Scheduler>; 3],
    assignment: Assignment,
    order: Vec<JobId>,
    /// By job id: the advisors that would run it, one bit each.
    marks: Vec<u16>,
}

impl Default for Advice {
    fn default() -> Self {
        let assignment = Assignment::default();
        Advice { planners: advisors(), assignment, order: Vec::new(), marks: Vec::new() }
    }
}

impl fmt::Debug for Advice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Advice").field("marks", &self.marks).finish_non_exhaustive()
    }
}

impl Advice {
    /// Asks them all.
    pub(crate) fn ask(&mut self, view: &SystemView<'_>, scale: &Scale) {
        if self.marks.capacity() < view.jobs.len() {
            // Ids of jobs that have just left are still taken.
            self.marks.reserve(2 * view.system.tasks.len().max(view.jobs.len()));
            self.order.reserve(view.system.tasks.len().max(view.jobs.len()));
            // A planner that has no room for so many takes it now.
            self.planners.iter_mut().for_each(|planner| drop(planner.start(view.system)));
        }
        self.marks.clear();
        self.marks.resize(view.jobs.len(), 0);
        let cores = view.cores();
        let mark = |jobs: &[JobId], advisor: usize, marks: &mut [u16]| {
            jobs.iter().for_each(|id| marks[id.index()] |= 1 << advisor);
        };
        self.order.clear();
        self.order.extend_from_slice(view.active);
        let take = cores.min(self.order.len());
        if take < self.order.len() {
            self.order.select_nth_unstable_by_key(take, |id| {
                let job = view.job(*id);
                (job.is_late_by_wcet(view.now), job.deadline, job.tie())
            });
        }
        mark(&self.order[..take], 0, &mut self.marks);
        if take < self.order.len() {
            self.order.select_nth_unstable_by_key(take, |id| {
                let job = view.job(*id);
                (job.is_impossible(view.now), job.remaining(), job.tie())
            });
        }
        mark(&self.order[..take], 1, &mut self.marks);
        for (place, planner) in self.planners.iter_mut().enumerate() {
            if place == 2 && !scale.differs && view.active.len() > MANY {
                continue;
            }
            self.assignment.reset(cores);
            planner.decide(view, &mut self.assignment);
            for id in self.assignment.cores().iter().flatten() {
                self.marks[id.index()] |= 1 << (place + 2);
            }
        }
    }

    /// The advisors that would run a job, one bit each.
    pub(crate) fn of(&self, id: JobId) -> u16 {
        self.marks.get(id.index()).copied().unwrap_or(0)
    }
}
