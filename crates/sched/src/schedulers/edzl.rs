//! EDF until zero laxity: a job without slack goes before all others, and EDF orders the rest. On several cores it
//! meets every deadline that global EDF meets, and more.
//!
//! Reference: Lee, TENCON 1994; Cirinei and Baker, ECRTS 2007.
//! Ties: earlier release, then lower task index. Jobs at or below zero laxity are ordered by deadline.

use temponet_task::{Assignment, Job, JobId, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::selection::Selection;

pub(crate) struct Edzl {
    selection: Selection<(bool, Time)>,
}

impl Edzl {
    pub fn new() -> Edzl {
        Edzl { selection: Selection::new() }
    }
}

impl Scheduler for Edzl {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let now = view.now;
        let chosen = self.selection.select(view, view.system.most_offered(), |job| (job.slack(now) > 0, job.deadline));
        assignment.place(view, chosen);
        // Jobs on the fastest core that they may use keep their slack; a waiting job reaches zero after its slack has
        // passed, and a job on a slower core no sooner.
        let is_plain = view.system.machine().is_plain() && view.locks.is_none();
        if view.active.len() > view.cores() || !is_plain {
            let machine = view.system.machine();
            let keeps_slack = |id: JobId, job: &Job| match is_plain {
                true => chosen.contains(&id),
                false => view
                    .system
                    .core_ids()
                    .any(|core| assignment.cores()[core] == Some(id) && machine.speed(core) == job.fastest),
            };
            let waiting = view.ready().filter(|(id, job)| !job.held && !keeps_slack(*id, job));
            let crossings = waiting.map(|(_, job)| job.slack(now)).filter(|slack| *slack > 0);
            if let Some(slack) = crossings.min() {
                assignment.wake_at(now + Time(slack as u64));
            }
        }
    }
}
