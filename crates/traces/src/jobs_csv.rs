//! Every job as a row of a CSV file.

use std::io::{Result, Write};

use crate::event::NO_CPU;
use crate::job_log::Done;

/// Header of the file. Its beginning is that of the files of simulated jobs.
pub(crate) const HEADER: &str =
    "task,job,release_ns,start_ns,completion_ns,response_ns,executed_ns,preemptions,thread,core\n";

/// Writes the row of a job. Dates count from the first event of the trace.
pub(crate) fn row(out: &mut dyn Write, task: &str, number: u64, tid: i32, job: &Done, origin: u64) -> Result<()> {
    let after = |date: u64| date.saturating_sub(origin);
    write!(
        out,
        "{},{number},{},{},{},{},{},{},",
        quoted(task),
        after(job.release),
        after(job.start),
        after(job.end),
        job.end.saturating_sub(job.release),
        job.executed,
        job.preemptions,
    )?;
    if tid >= 0 {
        write!(out, "{tid}")?;
    }
    match job.last_cpu {
        NO_CPU => out.write_all(b",\n"),
        cpu => writeln!(out, ",{cpu}"),
    }
}

/// Quotes a cell that needs it.
fn quoted(cell: &str) -> std::borrow::Cow<'_, str> {
    match cell.contains([',', '"', '\n', '\r']) || cell.starts_with('#') {
        true => format!("\"{}\"", cell.replace('"', "\"\"")).into(),
        false => cell.into(),
    }
}
