//! EDF with virtual deadlines, for two levels of criticality. As long as no critical job overruns its wcet, critical
//! jobs get an earlier, virtual deadline, so that enough time is left if one does. After an overrun only critical jobs
//! run, with their real deadlines.
//!
//! Reference: Baruah et al., ECRTS 2012. The factor x = U_HI(LO) / (m − U_LO(LO)) shortens the relative deadlines of
//! critical tasks, unless the set fits even at the high wcets. On one core, x·U_LO(LO) + U_HI(HI) ≤ 1 guarantees all
//! critical jobs in both modes.
//! Ties: earlier release, then lower task index.

use temponet_analysis::shrink_factor;
use temponet_task::{Assignment, Job, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::criticality_mode::CriticalityMode;
use crate::shared::selection::Selection;

pub(crate) struct EdfVd {
    mode: CriticalityMode,
    shrink: f64,
    selection: Selection<(bool, Time)>,
}

impl EdfVd {
    pub fn new() -> EdfVd {
        EdfVd { mode: CriticalityMode::default(), shrink: 1.0, selection: Selection::new() }
    }
}

impl Scheduler for EdfVd {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.mode.reset();
        self.shrink = shrink_factor(system.tasks(), system.cores());
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let is_high = self.mode.update(view, assignment);
        let is_served = |job: &Job| !job.held && (!is_high || job.criticality > 0);
        let served = view.ready().filter(|(_, job)| is_served(job)).count();
        let shrink = self.shrink;
        let chosen = self.selection.select(view, view.system.most_offered(), |job| {
            let is_virtual = !is_high && job.criticality > 0;
            let window = job.deadline.saturating_sub(job.release).0 as f64;
            let deadline = if is_virtual { job.release + Time((window * shrink) as u64) } else { job.deadline };
            (is_high && job.criticality == 0, deadline)
        });
        let chosen = &chosen[..served.min(chosen.len())];
        assignment.place(view, chosen);
        self.mode.watch(view, assignment);
    }
}
