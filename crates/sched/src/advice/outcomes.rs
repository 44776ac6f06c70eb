//! Whether jobs met their deadlines, as a scheduler learns it from the events of its decisions.

use temponet_task::{Event, JobId, SystemView};

/// Tells from the events of every decision which jobs have met or missed their deadlines, each job once.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    /// Whether the deadline of a job has passed while it stayed, by job id.
    is_late: Vec<bool>,
}

impl Outcomes {
    /// Forgets everything, for a new run.
    pub fn clear(&mut self) {
        self.is_late.clear();
    }

    /// Returns the job whose deadline an event of this view decides, and whether it is met; `None` if it decides none.
    /// Each event of a run has to be shown once, in order.
    pub fn of(&mut self, view: &SystemView<'_>, event: Event) -> Option<(JobId, bool)> {
        let mut was_late = |id: JobId, is_late: bool| {
            self.is_late.resize(view.jobs.len().max(self.is_late.len()), false);
            std::mem::replace(&mut self.is_late[id.index()], is_late)
        };
        match event {
            Event::Released(id) => {
                was_late(id, false);
                None
            }
            // A late job was told when its deadline passed.
            Event::Completed(id) => (view.now <= view.job(id).deadline).then_some((id, true)),
            // A job that held its core when its deadline passed leaves later.
            Event::Aborted(id) => (!was_late(id, true)).then_some((id, false)),
            Event::DeadlinePassed(id) => {
                was_late(id, true);
                Some((id, false))
            }
            _ => None,
        }
    }
}
