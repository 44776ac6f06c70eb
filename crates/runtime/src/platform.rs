//! What a dispatcher stands on: something that has a clock and runs jobs. Threads of Linux and virtual time are the two
//! platforms.
//!
//! ```text
//!            admit (1)            switch (2)             Note::Done (4)
//!  free slot ─────────► waiting ────────────► started ───────────────────► free slot
//!                          │                     │                            ▲
//!                          │ vacate (3)          │ retire (5), until it returns │
//!                          └──────────┬──────────┴──────────────────────────────┘
//! ```

use temponet_task::{TaskId, Time};

use crate::releases::Due;

/// Place of a job on a platform: a worker thread, or an entry of a table.
pub(crate) type Slot = usize;

/// Runs jobs and has a clock.
pub(crate) trait Platform {
    /// Begins the run: date zero is now or soon.
    fn begin(&mut self) {}

    /// Ends the run: nothing has a priority any more.
    fn finish(&mut self) {}

    /// Processor time beyond its wcet that makes an overrun. On a machine it is more than what starting and ending a
    /// job takes, so that a job that computes for its whole wcet is none.
    fn overrun_margin(&self) -> Time {
        Time(1)
    }

    /// Sleeps until `until`, or until there is a note. Returns the date, which may be later.
    fn wait(&mut self, until: Time) -> Time;

    /// The date now, to measure latencies with.
    fn date(&self) -> Time;

    /// Says whether the completion of a job has to end the sleep, which is the default. If not, it is noted when the
    /// sleep ends for another reason.
    fn wake_for_completions(&mut self, _wake: bool) {}

    /// Takes what has happened since, one note at a time.
    fn note(&mut self) -> Option<Note>;

    /// Finds a place for a job of a task (1); none if all of the task's workers are busy.
    fn admit(&mut self, due: &Due) -> Option<Slot>;

    /// Takes a job back that has never been on a core (3).
    fn vacate(&mut self, slot: Slot);

    /// Processor time that a started job has used; none if the platform's clock and the time on a core are the same.
    fn executed(&mut self, slot: Slot) -> Option<Time>;

    /// Puts jobs on cores (2). Jobs that were on a core and are not any more keep their slot. Returns the date at which
    /// the orders were given.
    fn switch(&mut self, cores: &[Option<Slot>]) -> Time;

    /// Takes a started job out of competition until it returns (5). If `expired`, it is told to return.
    fn retire(&mut self, slot: Slot, expired: bool);
}

/// Something that happened on a platform.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note {
    /// The job in a slot has returned, and the slot is free (4).
    Done { slot: Slot, done: Done },
    /// A release of a sporadic task was asked for, at this date.
    Asked { task: TaskId, date: Time },
}

/// What is known of a job that has returned.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    /// Date of its first instruction.
    pub start: Time,
    /// Date of its last instruction.
    pub end: Time,
    /// Processor time that it took.
    pub executed: Time,
    /// Number of times that the kernel took the processor from it.
    pub preemptions: u32,
    /// Whether it did all its work. A job that was told to return has not, nor has one that panicked.
    pub is_complete: bool,
    /// Whether its code panicked.
    pub has_panicked: bool,
}
