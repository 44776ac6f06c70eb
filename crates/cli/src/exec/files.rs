//! Files of `exec`: jobs as CSV, a trace for Perfetto, and a picture.

use std::io::Write;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use temponet_lab::gantt;
use temponet_runtime::JobOutcome;
use temponet_sim::{labels, quoted};
use temponet_task::{TaskSet, Time};

use super::Args;
use super::outcome::{ExecResult, Measured, Run};
use crate::paths::{Kind, Output};

/// Files that the user has asked for, claimed before the runs.
pub struct Outputs {
    jobs: Option<Output>,
    trace: Option<Output>,
    gantt: Option<Output>,
}

impl Outputs {
    pub fn claim(args: &Args) -> Result<Outputs> {
        Ok(Outputs {
            jobs: Output::wanted(args.jobs.as_deref(), Kind::Jobs, args.force)?,
            trace: Output::wanted(args.trace.as_deref(), Kind::Trace, args.force)?,
            gantt: Output::wanted(args.gantt.as_deref(), Kind::Picture, args.force)?,
        })
    }

    pub fn write(self, args: &Args, result: &ExecResult) -> Result<()> {
        if let Some(file) = self.jobs {
            file.write(jobs(result))?;
        }
        if let Some(file) = self.trace {
            file.write(trace(result))?;
        }
        if let Some(file) = self.gantt {
            let plan = &result.comparison.plan;
            let first = plan.schedulers.iter().find_map(|name| {
                let label = plan.roster.label(name);
                result.comparison.row(&label)
            });
            let row = first.with_context(|| format!("--gantt {:?}: no scheduler ran", args.gantt))?;
            let picture =
                gantt::svg(&plan.set, &format!("{} on real threads", row.scheduler), &row.recording, result.window);
            file.write(picture)?;
        }
        Ok(())
    }
}

/// One row per job of every run.
fn jobs(result: &ExecResult) -> Vec<u8> {
    let mut out = Vec::from(
        "task,job,release_ns,deadline_ns,start_ns,completion_ns,response_ns,lateness_ns,executed_ns,preemptions,met,why_left,scheduler,run\n",
    );
    let set = &result.comparison.plan.set;
    for (row, measured) in result.comparison.rows.iter().zip(&result.measured) {
        for (run, Run { report, .. }) in measured.runs.iter().enumerate() {
            for job in report.jobs.iter().filter(|job| job.deadline <= report.horizon) {
                let line = job_row(set, job, &row.scheduler, run);
                // Writing to memory does not fail.
                let _ = writeln!(out, "{line}");
            }
        }
    }
    out
}

fn job_row(set: &TaskSet, job: &JobOutcome, scheduler: &str, run: usize) -> String {
    let optional = |time: Option<Time>| time.map(|time| time.0.to_string()).unwrap_or_default();
    let completion = (job.end == temponet_sim::End::Completed).then_some(job.left);
    let response = completion.map(|completion| completion.saturating_sub(job.release));
    let lateness = completion.map(|completion| completion.signed_sub(job.deadline).to_string()).unwrap_or_default();
    let why = if job.skipped { "skipped, because its thread was busy" } else { job.end.name() };
    [
        quoted(&set.tasks()[job.task].name),
        job.number.to_string(),
        job.release.0.to_string(),
        job.deadline.0.to_string(),
        optional(job.start),
        optional(completion),
        optional(response),
        lateness,
        job.executed.0.to_string(),
        job.preemptions.to_string(),
        job.met().to_string(),
        quoted(why),
        quoted(scheduler),
        run.to_string(),
    ]
    .join(",")
}

/// A Chrome trace of the first runs: for each scheduler, what the jobs noticed themselves beside what the kernel
/// recorded.
fn trace(result: &ExecResult) -> Vec<u8> {
    let set = &result.comparison.plan.set;
    let mut events: Vec<Value> = Vec::new();
    let us = |time: Time| time.0 as f64 / 1e3;
    for (place, (row, measured)) in result.comparison.rows.iter().zip(&result.measured).enumerate() {
        let [jobs, kernel] = [2 * place + 1, 2 * place + 2];
        for (process, what) in [(jobs, "jobs"), (kernel, "kernel")] {
            let name = format!("{}: {what}", row.scheduler);
            events.push(json!({"ph": "M", "pid": process, "name": "process_name", "args": {"name": name}}));
            events.push(
                json!({"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": process}}),
            );
        }
        for core in set.core_ids() {
            let args = json!({"name": labels::core(set, core)});
            events.push(json!({"ph": "M", "pid": jobs, "tid": core.0, "name": "thread_name", "args": args}));
        }
        let Some(first) = measured.runs.first() else { continue };
        for slice in first.wire.slices() {
            events.push(json!({
                "ph": "X", "pid": jobs, "tid": slice.core.0, "cat": "job", "name": set.tasks()[slice.task].name,
                "ts": us(slice.start), "dur": us(slice.end.saturating_sub(slice.start)), "args": {"job": slice.number},
            }));
        }
        for (cpu, task, start, end) in first.wire.kernel_slices() {
            events.push(json!({
                "ph": "X", "pid": kernel, "tid": cpu, "cat": "sched_switch", "name": set.tasks()[task].name,
                "ts": us(start), "dur": us(end.saturating_sub(start)),
            }));
        }
        events.extend(misses(set, measured, jobs, us));
    }
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    format!("{{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n{}\n]}}\n", lines.join(",\n")).into_bytes()
}

/// Instant events of missed deadlines.
fn misses(set: &TaskSet, measured: &Measured, process: usize, us: impl Fn(Time) -> f64) -> Vec<Value> {
    let Some(Run { report, .. }) = measured.runs.first() else { return Vec::new() };
    let missed = report.jobs.iter().filter(|job| !job.met() && job.deadline <= report.horizon);
    let event = |job: &JobOutcome| {
        json!({
            "ph": "i", "s": "p", "pid": process, "tid": 0, "cat": "miss", "name": format!("{} missed", set.tasks()[job.task].name),
            "ts": us(job.deadline), "args": {"job": job.number, "why": job.end.name()},
        })
    };
    missed.map(event).collect()
}
