//! What the code of a task knows about the job that it is running.

use std::sync::atomic::{AtomicBool, Ordering};

use temponet_task::{OnMiss, Time};

/// A job that is running, as its closure sees it. Dates count from the beginning of the run.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Number of the job within its task, from 0.
    pub number: u64,
    /// Nominal release.
    pub release: Time,
    /// Absolute deadline.
    pub deadline: Time,
    /// How the job learns that its time is over; none in virtual time, where closures take no time.
    pub(crate) clock: Option<JobClock<'a>>,
}

/// The dispatcher's sign to a job, and the clock of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobClock<'a> {
    /// Set when the job should return.
    pub stop: &'a AtomicBool,
    pub on_miss: OnMiss,
    /// Reads the machine's clock, in nanoseconds.
    pub now: fn() -> u64,
    /// Date on that clock at which the run began.
    pub epoch: u64,
    /// Reads the processor clock of the calling thread, in nanoseconds.
    pub processor: fn() -> u64,
    /// What it showed when the job began.
    pub began_with: u64,
}

impl JobClock<'_> {
    /// Whether a job with this deadline should return, at a date on the machine's clock.
    pub fn is_over(&self, deadline: Time, now: u64) -> bool {
        let is_past = self.on_miss == OnMiss::Abort && now.saturating_sub(self.epoch) >= deadline.0;
        is_past || self.stop.load(Ordering::Relaxed)
    }
}

impl Job<'_> {
    /// Whether the job should return: its deadline has passed and late jobs are aborted, or the scheduler or the
    /// overrun rule has given it up. Long computations ask often; the answer takes tens of nanoseconds.
    pub fn expired(&self) -> bool {
        self.clock.is_some_and(|clock| clock.is_over(self.deadline, (clock.now)()))
    }

    /// Processor time that the job has used so far, if it is asked on its own thread; none in virtual time.
    pub fn used(&self) -> Option<Time> {
        self.clock.map(|clock| Time((clock.processor)().saturating_sub(clock.began_with)))
    }
}
