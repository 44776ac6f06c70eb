//! Export of runs to files: one CSV row per job, and a trace that the viewers of Chrome and Perfetto open. Both are
//! written during the run, so memory does not grow with the horizon.

use crate::labels;
use std::io::{self, Write};

use serde_json::{Value, json};
use temponet_task::{CoreId, Job, Precedence, ResourceId, Speed, TaskId, TaskSet, Time};

use crate::chains::is_read_at_start;
use crate::core_history::CoreHistory;
use crate::metrics::End;
use crate::trace::{Observer, why_missed};

/// Observer that writes a CSV row for each job whose deadline is within the horizon, in the order in which jobs leave.
pub struct JobsCsv<'a, W: Write> {
    set: &'a TaskSet,
    horizon: Time,
    holders: CoreHistory,
    out: W,
    failed: Option<io::Error>,
}

impl<'a, W: Write> JobsCsv<'a, W> {
    /// Creates the observer and writes the header row.
    pub fn new(set: &'a TaskSet, horizon: Time, mut out: W) -> io::Result<JobsCsv<'a, W>> {
        writeln!(
            out,
            "task,job,release_ns,deadline_ns,start_ns,completion_ns,executed_ns,met,core,criticality,why_missed,ran_instead"
        )?;
        Ok(JobsCsv { set, horizon, holders: CoreHistory::default(), out, failed: None })
    }

    /// Flushes the output. Returns the first error that occurred during the run, if any.
    pub fn finish(mut self) -> io::Result<W> {
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    /// Writes the row of a job that left.
    fn row(&mut self, job: &Job, first_start: Option<Time>, end: End, now: Time) -> io::Result<()> {
        let name = quoted(&self.set.tasks()[job.task].name);
        let optional = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
        let completion = (end == End::Completed).then_some(now);
        let met = completion.is_some_and(|completion| completion <= job.deadline);
        let (why, instead) = match met {
            true => ("", String::new()),
            // A job that was never released competed for no core.
            false if end == End::Unreleased => (why_missed(job, first_start, end, now), String::new()),
            false => (why_missed(job, first_start, end, now), self.instead_of(job, now)),
        };
        let Job { number, release, deadline, executed, criticality, .. } = job;
        let (start, completion) = (optional(first_start.map(|time| time.0)), optional(completion.map(|time| time.0)));
        let core = optional(job.last_core.map(|core| u64::from(core.0)));
        let times = format!("{},{},{start},{completion},{}", release.0, deadline.0, executed.0);
        writeln!(self.out, "{name},{number},{times},{met},{core},{criticality},{why},{}", quoted(&instead))
    }

    /// Returns the tasks that held the cores instead of `job`, as `name 3ms; other 1ms`.
    fn instead_of(&mut self, job: &Job, now: Time) -> String {
        let named = |(task, time): (TaskId, Time)| format!("{} {time}", self.set.tasks()[task].name);
        self.holders.instead_of(job, now).into_iter().map(named).collect::<Vec<_>>().join("; ")
    }
}

impl<W: Write> Observer for JobsCsv<'_, W> {
    fn released(&mut self, job: &Job) {
        self.holders.released(job);
    }

    fn dispatched(&mut self, core: CoreId, job: &Job, now: Time) {
        self.holders.dispatched(core, job, now);
    }

    fn ran(&mut self, core: CoreId, job: &Job, start: Time, end: Time, _speed: Speed) {
        self.holders.ran(core, job, start, end);
    }

    fn left(&mut self, job: &Job, first_start: Option<Time>, end: End, now: Time) {
        if job.deadline <= self.horizon && self.failed.is_none() {
            self.failed = self.row(job, first_start, end, now).err();
        }
        if end != End::Unreleased {
            self.holders.left(job);
        }
    }
}

/// Observer that writes the Chrome trace-event format (JSON): cores are threads, slices are complete events, and missed
/// deadlines are instant events. Flows lead from a job to those that come after it, and from a value to the jobs that
/// read it when they start. Resources are threads with the times in which jobs hold them, and so are the tasks that
/// wait for them. Events are written when they end; viewers sort them.
pub struct ChromeTrace<'a, W: Write> {
    set: &'a TaskSet,
    horizon: Time,
    out: W,
    failed: Option<io::Error>,
    /// Tasks that come after each other; `None` if none does.
    graph: Option<Precedence>,
    /// Tasks whose values each task reads when its jobs start.
    reads: Vec<Vec<TaskId>>,
    /// Newest value of each task, once there is one.
    newest: Vec<Option<Written>>,
}

/// A value that a job has written.
#[derive(Clone, Copy)]
struct Written {
    /// Number of the job.
    number: u64,
    core: CoreId,
    time: Time,
}

impl<'a, W: Write> ChromeTrace<'a, W> {
    /// Creates the observer and writes the names of cores and tasks.
    pub fn new(set: &'a TaskSet, horizon: Time, mut out: W) -> io::Result<ChromeTrace<'a, W>> {
        let process =
            |number: u32, name: &str| json!({"ph": "M", "pid": number, "name": "process_name", "args": {"name": name}});
        write!(out, "{{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n{}", process(1, "cores"))?;
        let graph = Precedence::of(set.tasks()).ok().flatten();
        let read_at_start = |reader: TaskId| {
            let reads = set.tasks()[set.first_part(reader)].reads.iter().copied();
            reads.filter(|read| is_read_at_start(set, *read, reader)).collect()
        };
        let reads = set.task_ids().map(read_at_start).collect();
        let newest = vec![None; set.tasks().len()];
        let mut trace = ChromeTrace { set, horizon, out, failed: None, graph, reads, newest };
        for core in set.core_ids() {
            let args = json!({"name": labels::core(set, core)});
            trace.write(&json!({"ph": "M", "pid": 1, "tid": core.0, "name": "thread_name", "args": args}));
        }
        trace.write(&process(2, "missed deadlines"));
        for id in set.whole_tasks() {
            let (index, task) = (id.0, &set.tasks()[id]);
            let labels: Vec<String> =
                labels::preemption(task.preemption).into_iter().chain(labels::estimate(task)).collect();
            let name = match labels.is_empty() {
                false => format!("{} ({})", task.name, labels.join(", ")),
                true => task.name.clone(),
            };
            trace.write(&json!({"ph": "M", "pid": 2, "tid": index, "name": "thread_name", "args": {"name": name}}));
        }
        if set.has_sections() {
            trace.write(&process(3, "resources"));
            for (index, name) in set.resources().iter().enumerate() {
                trace.write(&json!({"ph": "M", "pid": 3, "tid": index, "name": "thread_name", "args": {"name": name}}));
            }
            trace.write(&process(4, "waiting for resources"));
            for (index, task) in set.tasks().iter().enumerate() {
                let args = json!({"name": task.name});
                trace.write(&json!({"ph": "M", "pid": 4, "tid": index, "name": "thread_name", "args": args}));
            }
        }
        Ok(trace)
    }

    /// Writes the closing brackets and flushes. Returns the first error that occurred during the run, if any.
    pub fn finish(mut self) -> io::Result<W> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.out.write_all(b"\n]}\n")?;
        self.out.flush().map(|()| self.out)
    }

    /// Writes one end of the flow from a job of one task to the job with this number of another. `why` is the key of
    /// the second task that names the first.
    fn flow(&mut self, phase: &str, why: &str, (from, to, number): (TaskId, TaskId, u64), core: CoreId, time: f64) {
        let id = format!("{from}-{to}-{number}");
        self.write(&json!({
            "ph": phase, "bp": "e", "id": id, "pid": 1, "tid": core.0, "cat": why, "name": why, "ts": time,
        }));
    }

    fn write(&mut self, event: &Value) {
        if self.failed.is_none() {
            self.failed = write!(self.out, ",\n{event}").err();
        }
    }
}

/// Converts to microseconds, the unit of the format. The fraction keeps the nanoseconds.
fn us(time: Time) -> f64 {
    time.0 as f64 / 1e3
}

/// Returns the last instant of a slice that ends at `end`, in microseconds. The end itself is outside of it.
fn last_instant(end: Time) -> f64 {
    us(Time(end.0.saturating_sub(1)))
}

impl<W: Write> Observer for ChromeTrace<'_, W> {
    fn ran(&mut self, core: CoreId, job: &Job, start: Time, end: Time, speed: Speed) {
        if start < end {
            self.write(&json!({
                "ph": "X", "pid": 1, "tid": core.0, "cat": "job", "name": self.set.tasks()[job.task].name,
                "ts": us(start), "dur": us(end - start),
                "args": {"job": job.number, "speed": f64::from(speed.0) / 1000.0},
            }));
        }
    }

    fn held(&mut self, resource: ResourceId, job: &Job, start: Time, end: Time) {
        self.write(&json!({
            "ph": "X", "pid": 3, "tid": resource.0, "cat": "section", "name": self.set.tasks()[job.task].name,
            "ts": us(start), "dur": us(end - start), "args": {"job": job.number},
        }));
    }

    fn blocked(&mut self, resource: ResourceId, job: &Job, start: Time, end: Time) {
        if start < end {
            self.write(&json!({
                "ph": "X", "pid": 4, "tid": job.task.0, "cat": "wait", "name": self.set.resources()[resource],
                "ts": us(start), "dur": us(end - start), "args": {"job": job.number},
            }));
        }
    }

    fn dispatched(&mut self, core: CoreId, job: &Job, now: Time) {
        if job.executed > Time::ZERO {
            return;
        }
        let task = job.task;
        for before in &self.set.tasks()[self.set.first_part(task)].after {
            self.flow("f", "after", (*before, job.task, job.number), core, us(now));
        }
        for at in 0..self.reads[task].len() {
            let read = self.reads[task][at];
            if let Some(written) = self.newest[read] {
                let flow = (read, job.task, job.number);
                self.flow("s", "reads", flow, written.core, last_instant(written.time));
                self.flow("f", "reads", flow, core, us(now));
            }
        }
    }

    fn left(&mut self, job: &Job, _first_start: Option<Time>, end: End, now: Time) {
        let graph = self.graph.as_ref().filter(|_| end == End::Completed);
        let successors = graph.map_or_else(Vec::new, |graph| graph.successors(job.task).to_vec());
        for after in successors {
            let flow = (job.task, self.set.whole(after), job.number);
            self.flow("s", "after", flow, job.last_core.unwrap_or_default(), last_instant(now));
        }
        let newest = &mut self.newest[job.task];
        if end == End::Completed && newest.is_none_or(|newest| newest.number <= job.number) {
            *newest = Some(Written { number: job.number, core: job.last_core.unwrap_or_default(), time: now });
        }
        let met = end == End::Completed && now <= job.deadline;
        if !met && job.deadline <= self.horizon {
            let name = format!("{} missed", self.set.tasks()[job.task].name);
            self.write(&json!({
                "ph": "i", "s": "t", "pid": 2, "tid": job.task.0, "cat": "miss", "name": name, "ts": us(job.deadline),
                "args": {"job": job.number, "release_us": us(job.release), "executed_us": us(job.executed), "why": end.name()},
            }));
        }
    }
}

/// Quotes a CSV cell that contains a separator, a quote or a line break, or that begins like a comment.
///
/// This is not left to the `csv` crate, which the rest of this crate does not need: with comments enabled, its writer
/// quotes every cell that contains a `#` anywhere, which would change the files of sets with such task names.
pub fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) || cell.starts_with('#') {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate;
    use crate::trace::Recorder;
    use temponet_task::{Chain, Communication, ExecutionModel, Scheduler, Task};

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
        let expected = "task,job,release_ns,deadline_ns,start_ns,completion_ns,executed_ns,met,core,criticality,why_missed,ran_instead\n\
            \"a,\"\"b\"\"\",0,0,4000000,0,3000000,3000000,true,0,0,,\n\
            c,0,0,6000000,3000000,,1000000,false,0,0,interrupted,\"a,\"\"b\"\" 5ms\"\n\
            \"a,\"\"b\"\"\",1,4000000,8000000,4000000,7000000,3000000,true,0,0,,\n\
            \"a,\"\"b\"\"\",2,8000000,12000000,8000000,11000000,3000000,true,0,0,,\n\
            c,1,6000000,12000000,7000000,,2000000,false,0,0,interrupted,\"a,\"\"b\"\" 4ms\"\n";
        assert_eq!(text, expected);
        assert_eq!(metrics.jobs.released, 5);
    }

    /// A trace that is first built in memory takes fifteen times the size of the file.
    #[test]
    fn the_trace_is_written_while_the_run_goes_on() {
        let set = overloaded();
        let horizon = Time::from_ms(12);
        let mut watchers = (Recorder::until(horizon), ChromeTrace::new(&set, horizon, Vec::new()).unwrap());
        let mut scheduler = temponet_sched::build("rm").unwrap();
        let mut engine = crate::Engine::new(&set, 0, horizon);
        scheduler.start(engine.system()).unwrap();
        let mut assignment = temponet_task::Assignment::default();
        while engine.advance(&mut watchers) {
            let written = String::from_utf8(watchers.1.out.clone()).unwrap();
            assert_eq!(written.matches(r#""ph":"X""#).count(), watchers.0.slices.len());
            assignment.reset(1);
            scheduler.decide(&engine.view(), &mut assignment);
            engine.apply(&assignment, &mut watchers).unwrap();
        }
        engine.finish(&mut watchers);
        let (recorder, trace) = watchers;
        let trace: Value = serde_json::from_slice(&trace.finish().unwrap()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let count = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
        assert_eq!((count("X"), count("i")), (recorder.slices.len(), 2));
        assert_eq!(events.iter().find(|event| event["ph"] == "X").unwrap()["dur"], 3000.0);
    }

    #[test]
    fn a_row_says_why_its_job_was_late() {
        let ms = Time::from_ms;
        let tight = Task::periodic("tight", ms(12), ms(2)).with_deadline(ms(1));
        let tasks = vec![Task::periodic("first", ms(4), ms(4)), tight, Task::periodic("starved", ms(12), ms(1))];
        let set = TaskSet::new("s", tasks, 1);
        let rows = |scheduler: &str| {
            let mut csv = JobsCsv::new(&set, ms(12), Vec::new()).unwrap();
            simulate(&set, 0, ms(12), &mut *temponet_sched::build(scheduler).unwrap(), &mut csv).unwrap();
            String::from_utf8(csv.finish().unwrap()).unwrap()
        };
        let rm = rows("rm");
        assert!(rm.contains("tight,0,0,1000000,,,0,false,,0,late by wcet at its release,first 1ms\n"), "{rm}");
        assert!(rm.contains("starved,0,0,12000000,,,0,false,,0,never started,first 12ms\n"), "{rm}");
        assert!(rows("d-over").contains("given up by the scheduler"));
    }

    #[test]
    fn a_job_with_work_left_after_its_wcet_overran_it() {
        let ms = Time::from_ms;
        let execution = ExecutionModel::Overrun { probability: 1.0, below: Box::new(ExecutionModel::Wcet) };
        let task = Task::periodic("a", ms(10), ms(4))
            .with_wcet_high(Some(ms(9)))
            .with_execution(execution)
            .with_deadline(ms(4));
        let set = TaskSet::new("s", vec![task], 1);
        let mut csv = JobsCsv::new(&set, ms(10), Vec::new()).unwrap();
        simulate(&set, 0, ms(10), &mut *temponet_sched::build("edf").unwrap(), &mut csv).unwrap();
        let text = String::from_utf8(csv.finish().unwrap()).unwrap();
        assert!(text.ends_with("a,0,0,4000000,0,,4000000,false,0,0,overran its wcet,\n"), "{text}");
    }

    #[test]
    fn flows_lead_from_values_to_their_readers_unless_they_are_let() {
        let ms = Time::from_ms;
        let reader = Task::periodic("reader", ms(10), ms(1)).with_reads(vec![TaskId(0)]).with_offset(ms(5));
        let mut set = TaskSet::new("s", vec![Task::periodic("writer", ms(10), ms(2)), reader], 1);
        let flows = |set: &TaskSet| -> Vec<(String, f64)> {
            let mut trace = ChromeTrace::new(set, ms(20), Vec::new()).unwrap();
            simulate(set, 0, ms(20), &mut *temponet_sched::build("edf").unwrap(), &mut trace).unwrap();
            let trace: Value = serde_json::from_slice(&trace.finish().unwrap()).unwrap();
            let events = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["cat"] == "reads");
            events.map(|event| (event["ph"].as_str().unwrap().to_string(), event["ts"].as_f64().unwrap())).collect()
        };
        let expected = [("s", 1999.999), ("f", 5000.0), ("s", 11999.999), ("f", 15000.0)];
        assert_eq!(flows(&set), expected.map(|(phase, time)| (phase.to_string(), time)));
        let chain = |communication: Communication| Chain {
            name: communication.name().into(),
            tasks: vec![TaskId(0), TaskId(1)],
            deadline: None,
            communication,
        };
        set.system.set_chains(vec![chain(Communication::Let)]);
        assert!(flows(&set).is_empty());
        set.system.set_chains(vec![chain(Communication::Implicit)]);
        assert_eq!(flows(&set).len(), 4);
    }
}
