//! The mode of a mixed-criticality system. It is low until a critical job overruns its wcet. It is then high until the
//! cores are idle, and jobs of criticality 0 are abandoned.

use temponet_task::{Assignment, SystemView};

#[derive(Default)]
pub(crate) struct CriticalityMode {
    is_high: bool,
}

impl CriticalityMode {
    pub fn reset(&mut self) {
        self.is_high = false;
    }

    /// Updates the mode, and abandons jobs of criticality 0 in high mode. Returns whether the mode is high.
    pub fn update(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) -> bool {
        if view.active.is_empty() {
            self.is_high = false;
        }
        let overruns = |job: &temponet_task::Job| job.criticality > 0 && job.executed >= job.wcet;
        self.is_high |= view.ready().any(|(_, job)| overruns(job));
        if self.is_high {
            view.ready().filter(|(_, job)| job.criticality == 0).for_each(|(id, _)| assignment.abandon(id));
        }
        self.is_high
    }

    /// Requests a wake-up at the time when one of the jobs on the cores would overrun its wcet.
    pub fn watch(&self, view: &SystemView<'_>, assignment: &mut Assignment) {
        for core in view.system.core_ids() {
            let Some(job) = assignment.cores()[core].map(|id| view.job(id)) else { continue };
            let may_overrun = view.task_of(job).wcet_high.is_some_and(|high| high > job.wcet);
            if may_overrun && job.criticality > 0 && job.executed < job.wcet {
                assignment.wake_at(view.date_after_on(job, job.wcet - job.executed, core));
            }
        }
    }
}
