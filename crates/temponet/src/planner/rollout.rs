//! One future, followed to its end.

use std::sync::Arc;

use temponet_sim::{End, Engine, Observer, SimError};
use temponet_task::{Assignment, Job, JobId, Scheduler, TaskSet, Tie, Time, Worths};

use super::alternatives::{Choice, insert_kept};

/// How futures are followed and what counts in them.
pub(super) struct Rollout<'a> {
    pub worths: &'a Worths,
    /// End of the futures. Of a job that is unfinished then and can still be on time, the part of its work that is done
    /// counts.
    pub end: Time,
}

impl Rollout<'_> {
    /// Returns what is earned if `choice` runs now and `base` decides afterwards.
    pub fn earned(
        &self,
        mut future: Engine<Arc<TaskSet>>,
        choice: &Choice,
        base: &mut dyn Scheduler,
        assignment: &mut Assignment,
    ) -> Result<f64, SimError> {
        let mut earnings = Earnings { worths: self.worths, total: 0.0 };
        let view = future.view();
        let mut kept: Vec<(JobId, Tie)> = choice.kept.iter().map(|id| (*id, view.job(*id).tie())).collect();
        assignment.reset(view.cores());
        assignment.place(&view, &choice.jobs);
        future.apply(assignment, &mut earnings)?;
        while future.advance(&mut earnings) {
            let view = future.view();
            assignment.reset(view.cores());
            if view.active.len() <= view.cores() {
                assignment.place(&view, view.active);
            } else {
                base.decide(&view, assignment);
                kept.retain(|(id, tie)| view.job(*id).tie() == *tie && view.active.contains(id));
                if !kept.is_empty() {
                    let mut jobs: Vec<JobId> = assignment.cores().iter().flatten().copied().collect();
                    let kept: Vec<JobId> = kept.iter().map(|(id, _)| *id).collect();
                    insert_kept(&view, &mut jobs, &kept, &choice.outward);
                    assignment.reset(view.cores());
                    assignment.place(&view, &jobs);
                }
            }
            future.apply(assignment, &mut earnings)?;
        }
        Ok(earnings.total + self.begun(&future))
    }

    /// Returns the worth of the work done on unfinished jobs that can still be on time.
    fn begun(&self, future: &Engine<Arc<TaskSet>>) -> f64 {
        let done = |(id, job): (JobId, &Job)| {
            let execution = future.true_execution(id);
            let left = execution.saturating_sub(job.executed) + job.overhead;
            let is_possible = self.end + left <= job.deadline;
            let share = job.executed.0 as f64 / execution.0.max(1) as f64;
            if is_possible { share * self.worths.of(job.criticality, job.value) } else { 0.0 }
        };
        future.view().ready().map(done).sum()
    }
}

/// Observer that adds up the worth of the jobs that meet their deadline.
struct Earnings<'a> {
    worths: &'a Worths,
    total: f64,
}

impl Observer for Earnings<'_> {
    fn left(&mut self, job: &Job, _first_start: Option<Time>, end: End, now: Time) {
        if end == End::Completed && now <= job.deadline {
            self.total += self.worths.of(job.criticality, job.value);
        }
    }
}
