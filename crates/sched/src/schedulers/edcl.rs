//! EDCL, earliest deadline until critical laxity: global EDF that checks laxities only at releases and completions.
//! There it runs a job first if its laxity would run out before the next chance to do so. Fewer decisions than EDZL,
//! with most of its gain.
//!
//! Reference: Kato and Yamasaki, Global EDF-Based Scheduling with Efficient Priority Promotion, RTCSA 2008. A waiting
//! job is critical if its laxity is less than the shortest remaining work of the jobs that EDF would run, because no
//! core is certain to be free sooner.
//! Ties: earlier release, then lower task index; critical jobs are ordered by deadline.

use temponet_task::{Assignment, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::selection::Selection;

pub(crate) struct Edcl {
    selection: Selection<(bool, Time)>,
}

impl Edcl {
    pub fn new() -> Edcl {
        Edcl { selection: Selection::new() }
    }
}

impl Scheduler for Edcl {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let by_deadline = self.selection.select(view, view.system.most_offered(), |job| (false, job.deadline));
        if view.active.len() <= view.cores() {
            return assignment.place(view, by_deadline);
        }
        let first = by_deadline.iter().take(view.cores());
        let soonest = first.map(|id| view.job(*id).time_to_finish()).min().unwrap_or_default();
        let now = view.now;
        let is_critical = |slack: i64| slack >= 0 && slack < soonest.0 as i64;
        let chosen =
            self.selection.select(view, view.system.most_offered(), |job| (!is_critical(job.slack(now)), job.deadline));
        assignment.place(view, chosen);
    }
}
