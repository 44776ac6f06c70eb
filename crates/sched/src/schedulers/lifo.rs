//! Last come, first served, by jobs that are not past their deadlines: in overload the newest job has the most time
//! left, and nothing need be known of lengths.
//!
//! Reference: adaptive LIFO, as in Maurer, "Fail at Scale" (ACM Queue 13(8), 2015), at all times.
//! Ties: lower task index. Where late jobs continue, they go last.

use std::cmp::Reverse;

use temponet_task::{Assignment, Job, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::selection::Selection;

pub(crate) struct Lifo {
    selection: Selection<(bool, Reverse<Time>)>,
}

impl Lifo {
    pub fn new() -> Lifo {
        Lifo { selection: Selection::new() }
    }
}

impl Scheduler for Lifo {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let key = |job: &Job| (job.deadline <= view.now, Reverse(job.release));
        assignment.place(view, self.selection.select(view, view.system.most_offered(), key));
    }
}
