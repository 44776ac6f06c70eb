//! Shedding: a job that has not begun and would be late by a quantile of its length never begins. Of the others the
//! earliest deadline runs (`edf-shed`) or the shortest (`sjf-shed`). With the median, that is what servers do that
//! compare the time left of a request with the usual time of its kind.
//!
//! Lengths are those of estimates, of completed jobs of the same task, or of the bounds; see [`Lengths`]. Where late
//! jobs continue, nothing is shed, and jobs that would be late go last.
//!
//! Reference: admission by deadline in servers, as in Welsh and Culler, "Adaptive overload control for busy Internet
//! servers" (USITS 2003), with a given quantile in place of a controlled rate.
//! Ties: earlier release, then lower task index.

use temponet_task::{Assignment, Job, JobId, NotApplicable, OnMiss, Scheduler, System, SystemView, Time};

use crate::shared::lengths::Lengths;
use crate::shared::selection::Selection;

pub(crate) struct Shed {
    lengths: Lengths,
    /// Whether the shortest job goes first, in place of the earliest deadline.
    by_length: bool,
    selection: Selection<(bool, Time)>,
    chosen: Vec<JobId>,
}

impl Shed {
    /// The earliest deadline first.
    pub fn by_deadline(quantile: f64) -> Shed {
        Shed { lengths: Lengths::at(quantile), by_length: false, selection: Selection::new(), chosen: Vec::new() }
    }

    /// The shortest first.
    pub fn by_length(quantile: f64) -> Shed {
        Shed { by_length: true, ..Shed::by_deadline(quantile) }
    }
}

impl Scheduler for Shed {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.lengths.start(system);
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.lengths.follow(view);
        let Shed { lengths, by_length, selection, chosen } = self;
        let is_late =
            |job: &Job, length: Time| job.last_core.is_none() && view.now.0.saturating_add(length.0) > job.deadline.0;
        let is_shed = |job: &Job| is_late(job, lengths.time_to_finish(job));
        let key = |job: &Job| {
            let length = lengths.time_to_finish(job);
            (is_late(job, length), if *by_length { length } else { job.deadline })
        };
        let best = selection.select(view, view.system.most_offered(), key);
        let sheds = view.system.on_miss() == OnMiss::Abort;
        chosen.clear();
        chosen.extend(best.iter().filter(|id| !sheds || !is_shed(view.job(**id))));
        assignment.place(view, chosen);
    }

    fn watch(&mut self, view: &SystemView<'_>, _: &mut Assignment) {
        self.lengths.follow(view);
    }
}
