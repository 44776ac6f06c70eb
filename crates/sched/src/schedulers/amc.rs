//! Adaptive mixed criticality: fixed priorities, from the file if every task has one, else deadline monotonic. When a
//! critical job overruns its wcet, all jobs of criticality 0 are abandoned until the cores are idle.
//!
//! Reference: Baruah, Burns and Davis, Response-Time Analysis for Mixed Criticality Systems, RTSS 2011.
//! Ties: earlier release, then lower task index.

use std::cmp::Reverse;

use temponet_task::{Assignment, Attribute, Job, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::criticality_mode::CriticalityMode;
use crate::shared::selection::Selection;

pub(crate) struct Amc {
    mode: CriticalityMode,
    has_priorities: bool,
    selection: Selection<(bool, Reverse<Option<i64>>, Time)>,
}

impl Amc {
    pub fn new() -> Amc {
        Amc { mode: CriticalityMode::default(), has_priorities: false, selection: Selection::new() }
    }
}

impl Scheduler for Amc {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.mode.reset();
        self.has_priorities = system.tasks().iter().all(|task| task.extra.has(Attribute::Priority));
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let is_high = self.mode.update(view, assignment);
        let is_served = |job: &Job| !job.held && (!is_high || job.criticality > 0);
        let served = view.ready().filter(|(_, job)| is_served(job)).count();
        let chosen = self.selection.select(view, view.system.most_offered(), |job| {
            let priority = view.task_of(job).extra.get(Attribute::Priority).filter(|_| self.has_priorities);
            (is_high && job.criticality == 0, Reverse(priority), job.deadline.saturating_sub(job.release))
        });
        let chosen = &chosen[..served.min(chosen.len())];
        assignment.place(view, chosen);
        self.mode.watch(view, assignment);
    }
}
