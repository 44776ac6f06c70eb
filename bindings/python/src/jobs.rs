//! The jobs and slices of a run as tables.

use temponet_sim::{End, JobRecord, Recorder};
use temponet_task::{TaskSet, Time};

use pyo3::PyResult;

use crate::table::{Table, flag, optional, whole, word};

/// Returns one row for each job that counts, in the order in which jobs left.
pub fn jobs(set: &TaskSet, horizon: Time, recording: &Recorder) -> PyResult<Table> {
    let jobs: Vec<&JobRecord> = recording.jobs.iter().filter(|job| job.deadline <= horizon).collect();
    let time = |time: Time| time.0 as i64;
    let end = |job: &JobRecord| match job.end {
        End::Completed => "completed",
        End::Aborted => "aborted",
        End::Abandoned => "abandoned",
        End::Unfinished => "unfinished",
        End::Unreleased => "unreleased",
    };
    Table::of(vec![
        word("task", jobs.iter().map(|job| set.tasks()[job.task].name.as_str())),
        whole("job", jobs.iter().map(|job| job.number as i64)),
        whole("release_ns", jobs.iter().map(|job| time(job.release))),
        whole("deadline_ns", jobs.iter().map(|job| time(job.deadline))),
        optional("start_ns", jobs.iter().map(|job| job.start.map(time))),
        optional("completion_ns", jobs.iter().map(|job| job.completion().map(time))),
        whole("executed_ns", jobs.iter().map(|job| time(job.executed))),
        flag("met", jobs.iter().map(|job| job.met())),
        word("end", jobs.iter().map(|job| end(job))),
    ])
}

/// Returns one row for each stretch of time in which a job ran on a core without interruption.
pub fn slices(set: &TaskSet, recording: &Recorder) -> PyResult<Table> {
    let slices = || recording.slices.iter();
    Table::of(vec![
        whole("core", slices().map(|slice| i64::from(slice.core.0))),
        word("task", slices().map(|slice| set.tasks()[slice.task].name.as_str())),
        whole("job", slices().map(|slice| slice.number as i64)),
        whole("start_ns", slices().map(|slice| slice.start.0 as i64)),
        whole("end_ns", slices().map(|slice| slice.end.0 as i64)),
    ])
}
