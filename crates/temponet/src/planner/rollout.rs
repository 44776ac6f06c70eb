//! One future, followed to its end.

use temponet_sim::{End, Engine, Observer, SimError};
use temponet_task::{Assignment, Job, JobId, Scheduler, SystemView, Tie, Time, Worths};

use super::alternatives::{Choice, insert_kept};

/// How futures are followed and what counts in them.
pub struct Rollout<'a> {
    /// Worth of a job in time.
    pub worths: &'a Worths,
    /// End of the futures. Of a job that is unfinished then and can still be on time, the part of its work that is done
    /// counts.
    pub end: Time,
}

/// What a future brought.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Worth of the jobs in time, and of the finished part of jobs that can still be in time.
    pub earned: f64,
    /// Sum of the times that jobs were in the system, from their release or the begin of the future until they left or
    /// it ended, in nanoseconds.
    pub sojourn: f64,
    /// Number of these jobs.
    pub jobs: u64,
}

impl Rollout<'_> {
    /// Returns what is earned if `choice` runs now and `base` decides afterwards.
    pub(super) fn earned(
        &self,
        mut future: Engine,
        choice: &Choice,
        base: &mut dyn Scheduler,
        assignment: &mut Assignment,
    ) -> Result<f64, SimError> {
        let view = future.view();
        let mut kept: Vec<(JobId, Tie)> = choice.kept.iter().map(|id| (*id, view.job(*id).tie())).collect();
        let mut earnings = Earnings::new(self.worths, view.now);
        assignment.reset(view.cores());
        assignment.place(&view, &choice.jobs);
        future.apply(assignment, &mut earnings)?;
        let decide = |view: &SystemView<'_>, assignment: &mut Assignment| {
            base.decide(view, assignment);
            kept.retain(|(id, tie)| view.job(*id).tie() == *tie && view.active.contains(id));
            if !kept.is_empty() {
                let mut jobs = assignment.jobs_in_order(view);
                let kept: Vec<JobId> = kept.iter().map(|(id, _)| *id).collect();
                insert_kept(view, &mut jobs, &kept, &choice.outward);
                assignment.reset(view.cores());
                assignment.place(view, &jobs);
            }
        };
        Ok(self.follow(future, earnings, assignment, decide)?.earned)
    }

    /// Follows a future in which `decide` makes every decision with more ready jobs than cores, the present one
    /// included.
    pub fn outcome(
        &self,
        mut future: Engine,
        assignment: &mut Assignment,
        mut decide: impl FnMut(&SystemView<'_>, &mut Assignment),
    ) -> Result<Outcome, SimError> {
        let view = future.view();
        let mut earnings = Earnings::new(self.worths, view.now);
        assignment.reset(view.cores());
        decide(&view, assignment);
        future.apply(assignment, &mut earnings)?;
        self.follow(future, earnings, assignment, decide)
    }

    /// Follows a future from its next decision point to its end.
    fn follow(
        &self,
        mut future: Engine,
        mut earnings: Earnings<'_>,
        assignment: &mut Assignment,
        mut decide: impl FnMut(&SystemView<'_>, &mut Assignment),
    ) -> Result<Outcome, SimError> {
        while future.advance(&mut earnings) {
            let view = future.view();
            assignment.reset(view.cores());
            if view.leaves_no_choice() {
                assignment.place(&view, view.active);
            } else {
                decide(&view, assignment);
            }
            future.apply(assignment, &mut earnings)?;
        }
        let waiting = |job: &Job| self.end.saturating_sub(job.release.max(earnings.begin)).0 as f64;
        let view = future.view();
        let waiting: f64 = view.ready().map(|(_, job)| waiting(job)).sum();
        Ok(Outcome {
            earned: earnings.total + self.begun(&future),
            sojourn: earnings.sojourn + waiting,
            jobs: earnings.jobs + view.active.len() as u64,
        })
    }

    /// Returns the worth of the work done on unfinished jobs that can still be on time.
    fn begun(&self, future: &Engine) -> f64 {
        let done = |(id, job): (JobId, &Job)| {
            let execution = future.true_execution(id);
            let left = execution.saturating_sub(job.executed) + job.overhead;
            let is_possible = self.end + job.fastest.time_for(left) <= job.deadline;
            let share = job.executed.0 as f64 / execution.0.max(1) as f64;
            if is_possible { share * self.worths.of(job.criticality, job.value) } else { 0.0 }
        };
        future.view().ready().map(done).sum()
    }
}

/// Observer that adds up the worth of the jobs that meet their deadline, and the time that jobs spend in the system.
struct Earnings<'a> {
    worths: &'a Worths,
    begin: Time,
    total: f64,
    sojourn: f64,
    jobs: u64,
}

impl<'a> Earnings<'a> {
    fn new(worths: &'a Worths, begin: Time) -> Earnings<'a> {
        Earnings { worths, begin, total: 0.0, sojourn: 0.0, jobs: 0 }
    }
}

impl Observer for Earnings<'_> {
    fn left(&mut self, job: &Job, _first_start: Option<Time>, end: End, now: Time) {
        self.jobs += 1;
        self.sojourn += now.saturating_sub(job.release.max(self.begin)).0 as f64;
        if end == End::Completed && now <= job.deadline {
            self.total += self.worths.of(job.criticality, job.value);
        }
    }
}
