//! Least laxity first: the job with the least slack runs. Optimal on one core if all deadlines can be met. Laxities are
//! compared at every event and at every multiple of the quantum; jobs of equal laxity would otherwise preempt each
//! other without end.
//!
//! Reference: Dertouzos and Mok, IEEE TSE 15(12), 1989 (least laxity, also called least slack).
//! Ties: earlier release, then lower task index.
//!
//! A running job keeps its laxity, and a waiting job loses laxity as time passes. So the date of the first crossing is
//! known, and the scheduler sleeps until the quantum boundary at or after it: the schedule is the same, with far fewer
//! decisions. Where cores differ, a job on a slow core loses laxity as well, and every boundary is a decision.

use temponet_task::{Assignment, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::quantum::quantum;
use crate::shared::selection::Selection;

pub(crate) struct Llf {
    given: Option<Time>,
    quantum: Time,
    selection: Selection<i64>,
}

impl Llf {
    pub fn new(given: Option<Time>) -> Llf {
        Llf { given, quantum: Time::ZERO, selection: Selection::new() }
    }
}

impl Scheduler for Llf {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.quantum = quantum(self.given, system);
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let now = view.now;
        let chosen = self.selection.select(view, view.system.most_offered(), |job| job.slack(now));
        assignment.place(view, chosen);
        if !view.system.machine().is_plain() || !view.system.machine().is_full_speed() || view.locks.is_some() {
            // A job on a slow core loses laxity, too, a job may wait although its laxity is less, for a core or a
            // resource, and laxities are rounded.
            return if view.active.len() > 1 {
                assignment.wake_at(now.next_multiple(self.quantum))
            };
        }
        if view.active.len() <= view.cores() {
            return;
        }
        let Some((worst_slack, worst_tie)) = self.selection.worst() else { return };
        let crossings = view.ready().filter(|(_, job)| !job.held).filter_map(|(_, job)| {
            let (slack, tie) = (job.slack(now), job.tie());
            // If the waiting job wins the tie, equal laxities are a crossing; otherwise its laxity must fall below.
            let below = u64::from(tie > worst_tie);
            ((slack, tie) > (worst_slack, worst_tie)).then(|| (slack - worst_slack) as u64 + below)
        });
        if let Some(wait) = crossings.min() {
            let crossing = now + Time(wait);
            assignment.wake_at(Time(crossing.0 - 1).next_multiple(self.quantum));
        }
    }
}
