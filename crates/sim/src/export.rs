//! Runs as files: a CSV row per job, written as jobs leave, and a trace that Chrome's and Perfetto's viewers open.

use std::io::{self, Write};

use serde_json::{Value, json};
use temponet_task::{Job, TaskSet, Time};

use crate::metrics::End;
use crate::trace::{Observer, Recorder};

/// Writes one row per job that counts, in the order in which they leave; memory does not grow.
pub struct JobsCsv<'a, W: Write> {
    set: &'a TaskSet,
    horizon: Time,
    out: W,
    failed: Option<io::Error>,
}

impl<'a, W: Write> JobsCsv<'a, W> {
    /// Writes the header.
    pub fn new(set: &'a TaskSet, horizon: Time, mut out: W) -> io::Result<JobsCsv<'a, W>> {
        writeln!(out, "task,job,release_ns,deadline_ns,start_ns,completion_ns,executed_ns,met")?;
        Ok(JobsCsv { set, horizon, out, failed: None })
    }

    /// Flushes, and reports what went wrong on the way.
    pub fn finish(mut self) -> io::Result<W> {
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    fn row(&mut self, job: &Job, first_start: Option<Time>, end: End, now: Time) -> io::Result<()> {
        let name = quoted(&self.set.tasks[job.task as usize].name);
        let optional = |time: Option<Time>| time.map(|time| time.0.to_string()).unwrap_or_default();
        let completion = (end == End::Completed).then_some(now);
        let met = completion.is_some_and(|completion| completion <= job.deadline);
        let (start, completion) = (optional(first_start), optional(completion));
        let Job { number, release, deadline, executed, .. } = job;
        writeln!(self.out, "{name},{number},{},{},{start},{completion},{},{met}", release.0, deadline.0, executed.0)
    }
}

impl<W: Write> Observer for JobsCsv<'_, W> {
    fn left(&mut self, job: &Job, first_start: Option<Time>, end: End, now: Time) {
        if job.deadline <= self.horizon && self.failed.is_none() {
            self.failed = self.row(job, first_start, end, now).err();
        }
    }
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) || cell.starts_with('#') {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.into()
    }
}

/// The Chrome trace-event format (JSON): cores are threads, slices are complete events, missed deadlines instants.
pub fn chrome_trace(set: &TaskSet, recording: &Recorder) -> String {
    // The format counts microseconds; a fraction keeps the nanoseconds.
    let us = |time: Time| time.0 as f64 / 1e3;
    let name = |task: u32| set.tasks[task as usize].name.as_str();
    let mut events: Vec<Value> = vec![json!({"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "cores"}})];
    for core in 0..set.cores {
        let args = json!({"name": format!("core {core}")});
        events.push(json!({"ph": "M", "pid": 1, "tid": core, "name": "thread_name", "args": args}));
    }
    events.push(json!({"ph": "M", "pid": 2, "name": "process_name", "args": {"name": "missed deadlines"}}));
    for (index, task) in set.tasks.iter().enumerate() {
        events.push(json!({"ph": "M", "pid": 2, "tid": index, "name": "thread_name", "args": {"name": task.name}}));
    }
    for slice in &recording.slices {
        events.push(json!({
            "ph": "X", "pid": 1, "tid": slice.core, "cat": "job", "name": name(slice.task),
            "ts": us(slice.start), "dur": us(slice.end - slice.start),
            "args": {"job": slice.number, "speed": f64::from(slice.speed.0) / 1000.0},
        }));
    }
    for job in recording.jobs.iter().filter(|job| !job.met() && job.deadline <= recording.until) {
        events.push(json!({
            "ph": "i", "s": "t", "pid": 2, "tid": job.task, "cat": "miss", "name": format!("{} missed", name(job.task)),
            "ts": us(job.deadline),
            "args": {"job": job.number, "release_us": us(job.release), "executed_us": us(job.executed), "why": job.end.name()},
        }));
    }
    let mut out = String::from("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n");
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    out.push_str(&lines.join(",\n"));
    out.push_str("\n]}\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate;
    use temponet_task::Task;

    fn overloaded() -> TaskSet {
        let ms = Time::from_ms;
        TaskSet::new("s", vec![Task::periodic("a,\"b\"", ms(4), ms(3)), Task::periodic("c", ms(6), ms(3))], 1)
    }

    #[test]
    fn a_row_per_job_that_counts() {
        let set = overloaded();
        let horizon = Time::from_ms(12);
        let mut csv = JobsCsv::new(&set, horizon, Vec::new()).unwrap();
        let mut scheduler = temponet_sched::build("rm").unwrap();
        let metrics = simulate(&set, 0, horizon, &mut *scheduler, &mut csv).unwrap();
        let text = String::from_utf8(csv.finish().unwrap()).unwrap();
        let expected = "task,job,release_ns,deadline_ns,start_ns,completion_ns,executed_ns,met\n\
            \"a,\"\"b\"\"\",0,0,4000000,0,3000000,3000000,true\n\
            c,0,0,6000000,3000000,,1000000,false\n\
            \"a,\"\"b\"\"\",1,4000000,8000000,4000000,7000000,3000000,true\n\
            \"a,\"\"b\"\"\",2,8000000,12000000,8000000,11000000,3000000,true\n\
            c,1,6000000,12000000,7000000,,2000000,false\n";
        assert_eq!(text, expected);
        assert_eq!(metrics.jobs.released, 5);
    }

    #[test]
    fn the_trace_is_valid_json_with_every_slice_and_miss() {
        let set = overloaded();
        let horizon = Time::from_ms(12);
        let mut recorder = Recorder::until(horizon);
        let mut scheduler = temponet_sched::build("rm").unwrap();
        simulate(&set, 0, horizon, &mut *scheduler, &mut recorder).unwrap();
        let trace: Value = serde_json::from_str(&chrome_trace(&set, &recorder)).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let count = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
        assert_eq!((count("X"), count("i")), (recorder.slices.len(), 2));
        assert_eq!(events.iter().find(|event| event["ph"] == "X").unwrap()["dur"], 3000.0);
    }
}
