//! Shortest remaining processing time first, by the remaining wcet. Optimal for the mean response time on one core when
//! execution times are known; blind to deadlines.
//!
//! Reference: Schrage, Operations Research 16(3), 1968.
//! Ties: earlier release, then lower task index.

use crate::selection::Selection;
use temponet_task::{Assignment, NotApplicable, Scheduler, System, SystemView, Time};

pub(crate) struct Srpt {
    selection: Selection<Time>,
}

impl Srpt {
    pub fn new() -> Srpt {
        Srpt { selection: Selection::new() }
    }
}

impl Scheduler for Srpt {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        assignment.place(view, self.selection.select(view, view.cores(), |job| job.remaining()));
    }
}
