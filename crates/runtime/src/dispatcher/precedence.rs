//! The dispatcher and jobs that follow others: one is released when the last of its predecessors completes, as in the
//! simulator. If a predecessor leaves without completing, it is never released.

use temponet_sim::End;
use temponet_task::{OnMiss, Time};

use super::Dispatcher;
use crate::error::RuntimeError;
use crate::platform::Platform;
use crate::releases::Due;
use crate::report::JobOutcome;

impl<P: Platform> Dispatcher<'_, P> {
    /// Takes a job that has arrived.
    pub(super) fn arrive(&mut self, due: Due) -> Result<(), RuntimeError> {
        let mut lost = Vec::new();
        if let Some(waiting) = &mut self.waiting {
            waiting.arrive(due.task, due.number, due, &mut lost);
        }
        self.lose(lost)
    }

    /// Tells the jobs that follow a job that it has left, and when, if it has completed.
    pub(super) fn tell_followers(&mut self, due: &Due, completed: Option<Time>) -> Result<(), RuntimeError> {
        let Some(waiting) = &mut self.waiting else { return Ok(()) };
        let (before, mut lost) = (waiting.ripe().len(), Vec::new());
        waiting.left(due.task, due.number, completed.is_some(), &mut lost);
        let date = completed.unwrap_or_default().min(self.ready.now());
        for Due { release, .. } in &mut waiting.ripe()[before..] {
            // One whose deadline has passed already is late from the beginning.
            release.release = release.release.max(date).min(Time(release.deadline.0.saturating_sub(1)));
        }
        self.lose(lost)
    }

    /// Releases the jobs that have arrived, or whose predecessors have completed, by task and number. Returns whether
    /// there are any.
    pub(super) fn release_ripe(&mut self) -> Result<bool, RuntimeError> {
        let mut happened = false;
        // A release that is skipped loses those that follow it; it makes none ripe.
        let Some(waiting) = &mut self.waiting else { return Ok(false) };
        let mut ripe = std::mem::take(waiting.ripe());
        ripe.sort_by_key(|due| (due.task, due.number));
        for due in ripe.drain(..) {
            happened |= self.release(due)?;
        }
        if let Some(waiting) = &mut self.waiting {
            *waiting.ripe() = ripe;
        }
        Ok(happened)
    }

    /// Counts jobs that are never released.
    fn lose(&mut self, lost: Vec<Due>) -> Result<(), RuntimeError> {
        for due in lost {
            self.ready.skip(due.task)?;
            let now = self.ready.now();
            // Where late jobs are removed, this one would not have outlasted its deadline.
            let left = match self.plan.system.on_miss() {
                OnMiss::Abort => now.min(due.release.deadline),
                OnMiss::Continue => now,
            };
            self.jobs.push(JobOutcome { left, end: End::Unreleased, ..JobOutcome::not_run(&due) });
        }
        Ok(())
    }
}
