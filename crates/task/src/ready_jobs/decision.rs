//! What a program gets back: handles of its jobs, and decisions about them.

use crate::{Assignment, CoreId, Job, JobId, Speed, Time};

/// A released job. Unlike a [`JobId`], a handle is never used for another job of the same
/// [`ReadyJobs`](super::ReadyJobs).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JobHandle {
    pub(super) id: JobId,
    /// Number of jobs that had the id before.
    pub(super) generation: u32,
}

impl JobHandle {
    /// The id under which schedulers see the job while it is ready.
    pub fn id(self) -> JobId {
        self.id
    }

    /// The handle as one number, for programs in other languages.
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.id.0)
    }

    /// The handle that [`JobHandle::to_bits`] made a number of. One of any other number names no job, or a job of
    /// someone else's; it is as safe as a handle of other [`ReadyJobs`](super::ReadyJobs).
    pub fn from_bits(bits: u64) -> JobHandle {
        JobHandle { id: JobId(bits as u32), generation: (bits >> 32) as u32 }
    }
}

/// A job that left without completing.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoppedJob {
    /// The job's handle.
    pub handle: JobHandle,
    /// The job as it was when it left.
    pub job: Job,
    /// Whether its deadline has passed; otherwise the scheduler gave it up.
    pub is_late: bool,
}

/// What to do until the next decision.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'a> {
    pub(super) assignment: &'a Assignment,
    pub(super) cores: &'a [Option<JobHandle>],
    pub(super) stopped: &'a [StoppedJob],
    pub(super) late: &'a [JobHandle],
    pub(super) next: Option<Time>,
}

impl<'a> Decision<'a> {
    /// The job to run on each core.
    pub fn cores(&self) -> &'a [Option<JobHandle>] {
        self.cores
    }

    /// The speed of a core.
    pub fn speed(&self, core: CoreId) -> Speed {
        self.assignment.speed(core)
    }

    /// Jobs that left without completing: aborted at their deadline, or given up by the scheduler. The program must
    /// stop them.
    pub fn stopped(&self) -> &'a [StoppedJob] {
        self.stopped
    }

    /// Jobs whose deadline has passed since the last decision and that stay, because the system continues late jobs or
    /// because the job holds its core.
    pub fn late(&self) -> &'a [JobHandle] {
        self.late
    }

    /// Latest date of the next decision: the next deadline, the next preemption point of a job that holds its core, or
    /// the date that the scheduler asked for. None if only a release or a completion can change anything.
    pub fn next(&self) -> Option<Time> {
        self.next
    }
}
