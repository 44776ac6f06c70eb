//! Jobs and decisions, as C sees them.

use temponet::{Job, JobHandle, StoppedJob};

/// A released job. Unlike an index it is never used for another job: that of a job that has left is an error. The null
/// job, whose members are both 0, stands for "no job".
///
/// A job is a plain value that needs no freeing.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct tn_job {
    /// Handle of the ready jobs to which it belongs.
    pub of: u64,
    /// Which of their jobs it is.
    pub value: u64,
}

impl tn_job {
    pub(crate) const NONE: tn_job = tn_job { of: 0, value: 0 };

    pub(crate) fn new(of: u64, handle: JobHandle) -> tn_job {
        tn_job { of, value: handle.to_bits() }
    }
}

/// What a core does until the next decision.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct tn_core {
    /// Job to run; the null job if the core idles.
    pub job: tn_job,
    /// Task of the job, by its number; 0 if the core idles.
    pub task: usize,
    /// Speed of the core, in thousandths of full speed.
    pub speed: u32,
}

/// What to do until the next decision, apart from the cores.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct tn_decision {
    /// Latest date of the next decision; `UINT64_MAX` if only a release or a completion can change anything.
    pub next_ns: u64,
    /// Number of jobs that left without completing, which the program must stop: `tn_ready_stopped` names them.
    pub stopped: usize,
    /// Number of jobs whose deadline has passed since the last decision and that stay: `tn_ready_late` names them.
    pub late: usize,
    /// Number of cores, which is the number of elements written.
    pub cores: usize,
}

/// A release of a job that differs from what its task says. Times are in nanoseconds.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct tn_release {
    /// Date of the release; not in the future.
    pub release_ns: u64,
    /// Absolute deadline.
    pub deadline_ns: u64,
    /// Worst-case execution time.
    pub wcet_ns: u64,
    /// Best-case execution time.
    pub bcet_ns: u64,
    /// Execution time that one job in two is expected to exceed; 0 if there is no estimate.
    pub estimate_median_ns: u64,
    /// Execution time that one job in ten is expected to exceed; 0 if there is no estimate.
    pub estimate_high_ns: u64,
    /// Value of meeting the deadline.
    pub value: f64,
    /// Criticality; 0 is low.
    pub criticality: u8,
}

/// A ready job as it is now. Times are in nanoseconds.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct tn_job_state {
    /// Task, by its number.
    pub task: usize,
    /// Number of the job within its task, from 0.
    pub number: u64,
    /// Date of the release.
    pub release_ns: u64,
    /// Absolute deadline.
    pub deadline_ns: u64,
    /// Worst-case execution time.
    pub wcet_ns: u64,
    /// Best-case execution time.
    pub bcet_ns: u64,
    /// Work done so far, as execution time at full speed.
    pub executed_ns: u64,
    /// Value of meeting the deadline.
    pub value: f64,
    /// Core on which the job is or last was; -1 if it has not run yet.
    pub core: i64,
    /// Criticality; 0 is low.
    pub criticality: u8,
    /// Whether the job is on its core.
    pub is_running: bool,
}

impl tn_job_state {
    pub(crate) fn of(job: &Job) -> tn_job_state {
        tn_job_state {
            task: job.task.index(),
            number: job.number,
            release_ns: job.release.0,
            deadline_ns: job.deadline.0,
            wcet_ns: job.wcet.0,
            bcet_ns: job.bcet.0,
            executed_ns: job.executed.0,
            value: job.value,
            core: job.last_core.map_or(-1, |core| core.index() as i64),
            criticality: job.criticality,
            is_running: job.running,
        }
    }
}

/// A job that left without completing.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct tn_stopped {
    /// The job.
    pub job: tn_job,
    /// The job as it was when it left.
    pub state: tn_job_state,
    /// Whether its deadline has passed; otherwise the scheduler gave it up.
    pub is_late: bool,
}

impl tn_stopped {
    pub(crate) fn new(of: u64, stopped: &StoppedJob) -> tn_stopped {
        let StoppedJob { handle, job, is_late, .. } = *stopped;
        tn_stopped { job: tn_job::new(of, handle), state: tn_job_state::of(&job), is_late }
    }
}
