//! What the rows of a task's jobs have in common: most numbers of a row depend on the task alone, or on nothing but how
//! far its job has got. They are computed once for each task when a scheduler starts.

use temponet_task::{Job, System, TaskId, Time};

use crate::number::{Number, RowFacts};
use crate::outlook::Known;
use crate::scale::Scale;

/// The row of a job of a task at its release, where nothing else happens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TaskRow {
    /// Numbers of the row. Those that depend on the moment are wrong.
    pub numbers: [f32; Number::ALL.len()],
    /// What is known of the job. Its due date is that of the first job.
    pub known: Known,
    /// Time from the release to the due date, in units.
    pub span: f64,
    /// Relative deadline.
    pub deadline: Time,
    /// Time from the due date to the deadline.
    lead: Time,
    wcet: Time,
    criticality: u8,
    value: f64,
}

impl TaskRow {
    /// Computes the row of a task of a system, whose scale has everything else.
    pub fn of(id: TaskId, system: &System, scale: &Scale) -> TaskRow {
        let (task, per_unit) = (&system.tasks()[id], 1.0 / scale.unit);
        let job = Job::first(id, task).with_fastest(system.machine().fastest(id));
        let known = Known::of(&job, task.offset, scale.prediction_at_release(id), scale, per_unit);
        let facts = RowFacts::of(&job, task.offset, &known, scale, (per_unit, system.capacity()));
        TaskRow {
            numbers: facts.numbers(),
            known,
            span: facts.span,
            deadline: task.deadline,
            lead: job.deadline.saturating_sub(known.due),
            wcet: task.wcet,
            criticality: task.criticality,
            value: task.value,
        }
    }

    /// Whether what the task says holds for one of its jobs, which is due at a date. The jobs of a list differ from
    /// their task, and those of a mode with more work.
    pub fn is_of(&self, job: &Job, due: Time) -> bool {
        job.wcet == self.wcet
            && job.criticality == self.criticality
            && job.value == self.value
            && job.deadline.saturating_sub(due) == self.lead
    }
}
