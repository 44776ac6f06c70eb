//! Comparisons: schedules alone, as fast as possible, or everything that the command line says.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use temponet_lab::comparison::json::JsonReport;
use temponet_lab::comparison::report::{self, MOST_JOBS, Parts};
use temponet_lab::comparison::{compare, picture_window, sketch};
use temponet_lab::progress::Progress;

use crate::Failure;
use crate::request::Run;

/// Runs every scheduler once and returns the schedules, without proofs, optimum and verdict.
pub fn schedules(run: &Run) -> Result<Value, Failure> {
    let mut plan = run.plan()?;
    plan.record_until = picture_window(&plan.set, plan.horizon, MOST_JOBS);
    // What lies beyond the picture is not seen.
    plan.horizon = plan.record_until;
    let comparison = sketch(plan, &Progress::new(1, temponet_task::Time(1)))?;
    let shares = comparison.rows.iter().map(|row| {
        let jobs = row.metrics.jobs;
        json!({ "scheduler": row.scheduler, "released": jobs.released, "met": jobs.met })
    });
    let shares = shares.collect::<Vec<_>>();
    let data = report::data(&comparison, false);
    Ok(json!({ "data": raw(data)?, "shares": shares }))
}

/// Compares the schedulers, and returns the parts of the page and what `temponet compare --json` prints.
pub fn whole(run: &Run) -> Result<Value, Failure> {
    let mut plan = run.plan()?;
    plan.record_until = picture_window(&plan.set, plan.horizon, MOST_JOBS);
    let progress = Progress::new(plan.runs * plan.schedulers.len() as u64, plan.horizon);
    let comparison = compare(plan, &progress)?;
    progress.say("verdict");
    let parts = Parts::of(&comparison);
    let report = JsonReport::of(&comparison, &[]);
    Ok(json!({ "data": raw(parts.data.clone())?, "parts": parts, "report": report }))
}

/// Returns JSON that is already written.
fn raw(text: String) -> Result<Box<RawValue>, Failure> {
    Ok(RawValue::from_string(text)?)
}
