//! What classical schedulers would do, as part of a job's token: whoever knows that cannot fall far behind them, and can learn when to differ.

use std::fmt;

use temponet_sched::advisors;
use temponet_task::{Assignment, JobId, Scheduler, SystemView};

use crate::tokenizer::Scale;

/// How many there are; see [`advisors`].
const ADVISORS: usize = 5;
/// Which of them plans by importance.
const BY_IMPORTANCE: usize = 4;

/// Values of the feature: every subset of the advisors.
pub(crate) const VALUES: usize = 1 << ADVISORS;

/// With more ready jobs than this, importance-aware planning is asked only where jobs differ in importance: it takes long.
const MANY: usize = 64;

/// Asks the advisors; keeps its memory between decisions.
pub(crate) struct Advice {
    advisors: [Box<dyn Scheduler>; ADVISORS],
    assignment: Assignment,
    /// By job id: the advisors that would run it, one bit each.
    marks: Vec<u16>,
}

impl Default for Advice {
    fn default() -> Self {
        Advice { advisors: advisors(), assignment: Assignment::default(), marks: Vec::new() }
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
            // An advisor that has no room for so many takes it now.
            self.advisors.iter_mut().for_each(|advisor| drop(advisor.start(view.system)));
        }
        self.marks.clear();
        self.marks.resize(view.jobs.len(), 0);
        for (place, advisor) in self.advisors.iter_mut().enumerate() {
            if place == BY_IMPORTANCE && !scale.differs && view.active.len() > MANY {
                continue;
            }
            self.assignment.reset(view.cores());
            advisor.decide(view, &mut self.assignment);
            for id in self.assignment.cores().iter().flatten() {
                self.marks[id.index()] |= 1 << place;
            }
        }
    }

    /// The advisors that would run a job, one bit each.
    pub(crate) fn of(&self, id: JobId) -> u16 {
        self.marks.get(id.index()).copied().unwrap_or(0)
    }
}
