//! Thread object of rt-app to task.

use std::collections::BTreeSet;

use temponet_task::{Attribute, Task, Time};

use super::locks::{self, Locked};
use super::pattern::{Pattern, Phase, event};
use super::policy::LinuxPolicy;
use super::{is_empty, micros};
use crate::Problem;
use crate::keys::MOST_CORES;
use crate::node::{Fields, Node};
use crate::notes::Notes;

/// A thread of a workload.
pub(super) struct Thread {
    pub line: usize,
    pub instances: usize,
    pub policy: LinuxPolicy,
    /// CPUs that the thread may run on, and the line that states them.
    pub cpus: Option<(BTreeSet<i64>, usize)>,
    /// Names of the timers that other threads may share.
    pub timers: Vec<String>,
    /// Task of the thread; `None` if it cannot become one, with a note on the reason.
    pub task: Option<Task>,
    /// Critical sections of the task.
    pub sections: Vec<Locked>,
}

/// Keys of a thread or phase that state its scheduling.
#[derive(Default)]
struct Scheduling<'a> {
    policy: Option<&'a Node>,
    priority: Option<&'a Node>,
    runtime: Option<&'a Node>,
    period: Option<&'a Node>,
    deadline: Option<&'a Node>,
    cpus: Option<&'a Node>,
}

impl<'a> Scheduling<'a> {
    /// Takes the keys from the fields of a thread or phase.
    fn take(fields: &mut Fields<'a>, thread: &str, notes: &mut Notes) -> Scheduling<'a> {
        for key in ["util_min", "util_max", "taskgroup", "nodes_membind"] {
            if let Some(node) = fields.take(key).filter(|node| !is_empty(node)) {
                notes.task(node.line, thread, format_args!("{key:?} is not represented"));
            }
        }
        let (period, deadline) = (fields.take("period"), fields.take("deadline"));
        Scheduling {
            policy: fields.take("policy"),
            priority: fields.take("priority"),
            runtime: fields.take("dl-runtime"),
            period: fields.take("dl-period").or(period),
            deadline: fields.take("dl-deadline").or(deadline),
            cpus: fields.take("cpus"),
        }
    }

    /// Returns the values of a phase (`self`), with the values of its thread for those that it does not state.
    fn under(self, thread: Scheduling<'a>) -> Scheduling<'a> {
        Scheduling {
            policy: self.policy.or(thread.policy),
            priority: self.priority.or(thread.priority),
            runtime: self.runtime.or(thread.runtime),
            period: self.period.or(thread.period),
            deadline: self.deadline.or(thread.deadline),
            cpus: self.cpus.or(thread.cpus),
        }
    }

    /// Returns the first line that states any of the keys.
    fn first_line(&self) -> Option<usize> {
        let keys = [self.policy, self.priority, self.runtime, self.period, self.deadline, self.cpus];
        keys.into_iter().flatten().map(|node| node.line).min()
    }
}

/// Reads a thread. For a thread that is left out, the only note is the reason.
pub(super) fn read(name: &str, node: &Node, default: LinuxPolicy, all_notes: &mut Notes) -> Result<Thread, Problem> {
    let mut own_notes = Notes::default();
    let notes = &mut own_notes;
    let mut fields = Fields::of(node, "a thread")?;
    let instances = fields.take("instance").map_or(Ok(1), |node| node.integer("instance", 0, 10_000))? as usize;
    let delay = fields.take("delay").map_or(Ok(Time::ZERO), |node| micros(node, "delay"))?;
    let repeat = fields.take("loop");
    let loops = repeat.map(loop_count).transpose()?;
    let phases_node = fields.take("phases");
    let mut scheduling = Scheduling::take(&mut fields, name, notes);
    let mut phases = Vec::new();
    let ends = match phases_node {
        None => {
            phases.push(Phase::of(fields.rest()?, name, notes)?);
            // Without `phases`, `loop` counts repetitions of the single phase, and a thread without it repeats forever.
            loops.flatten().is_some()
        }
        Some(node) => {
            for (key, node) in fields.rest()? {
                let what = if event(key).is_some() { "beside \"phases\"" } else { "unknown key" };
                notes.task(node.line, name, format_args!("{key:?} is ignored: {what}"));
            }
            scheduling = read_phases(node, scheduling, name, &mut phases, notes)?;
            loops.flatten().is_some() && phases.iter().all(|phase| phase.loops.is_some())
        }
    };
    let timers = phases.iter().flat_map(|phase| phase.shared_timers.iter().cloned()).collect();
    let policy = scheduling.policy.map_or(Ok(default), LinuxPolicy::of)?;
    let cpus = scheduling.cpus.map(affinity).transpose()?.filter(|(cpus, _)| !cpus.is_empty());
    let mut offset = delay;
    if ends && phases_node.is_some() && loops == Some(Some(1)) {
        offset = leading_pauses(&mut phases, delay);
    }
    let line = node.line;
    let sections = locks::sections(&phases, name, notes);
    let task = match task(name, line, policy, &scheduling, &phases, notes)? {
        Ok(_) if instances == 0 => {
            all_notes.task(line, name, "is left out: with \"instance\" = 0 it only runs when another thread forks it");
            None
        }
        Ok(task) => {
            if let Some(node) = repeat.filter(|_| ends) {
                notes.task(
                    node.line,
                    name,
                    format_args!("\"loop\" = {} is not represented: its jobs go on", node.shown()),
                );
            }
            all_notes.extend(own_notes);
            Some(task.with_offset(offset))
        }
        Err(why) => {
            all_notes.task(line, name, format_args!("is left out: {why}"));
            None
        }
    };
    Ok(Thread { line, instances, policy, cpus, timers, task, sections })
}

/// Reads the phases in order. Returns the scheduling of the thread, overridden by that of its phase if there is only
/// one.
fn read_phases<'a>(
    node: &'a Node,
    mut scheduling: Scheduling<'a>,
    thread: &str,
    phases: &mut Vec<Phase>,
    notes: &mut Notes,
) -> Result<Scheduling<'a>, Problem> {
    let entries = &node.table("phases")?.entries;
    for (key, node) in entries {
        if phases.last().is_some_and(|last| last.loops.is_none()) {
            notes.task(node.line, thread, format_args!("phase {key:?} is ignored: the one before it never ends"));
            continue;
        }
        let mut fields = Fields::of(node, "a phase")?;
        let loops = fields.take("loop").map_or(Ok(Some(1)), loop_count)?;
        let own = Scheduling::take(&mut fields, thread, notes);
        if entries.len() == 1 {
            scheduling = own.under(std::mem::take(&mut scheduling));
        } else if let Some(line) = own.first_line() {
            notes.task(line, thread, format_args!("a scheduling of phase {key:?} alone is not represented"));
        }
        let mut phase = Phase::of(fields.rest()?, thread, notes)?;
        phase.loops = loops;
        match loops {
            Some(0) => notes.task(node.line, thread, format_args!("phase {key:?} with \"loop\" = 0 never runs")),
            _ => phases.push(phase),
        }
    }
    Ok(scheduling)
}

/// Reads a number of repetitions; `None` means forever.
fn loop_count(node: &Node) -> Result<Option<u64>, Problem> {
    let count = node.integer("loop", -1, i64::from(i32::MAX))?;
    Ok(u64::try_from(count).ok())
}

/// Reads the CPUs of a thread, with their line.
fn affinity(node: &Node) -> Result<(BTreeSet<i64>, usize), Problem> {
    let cpus = node.list("cpus")?.iter().map(|cpu| cpu.integer("cpus", 0, MOST_CORES - 1));
    Ok((cpus.collect::<Result<_, _>>()?, node.line))
}

/// Removes the leading phases that only sleep, and returns `delay` plus their duration as the offset of the task.
fn leading_pauses(phases: &mut Vec<Phase>, delay: Time) -> Time {
    let mut offset = delay;
    while phases.len() > 1 {
        match phases[0].pause() {
            Some(pause) if offset + pause <= Time::MAX_INPUT => offset += pause,
            _ => break,
        }
        phases.remove(0);
    }
    offset
}

/// Creates the task, or returns the reason why the thread cannot become one.
fn task(
    name: &str,
    line: usize,
    policy: LinuxPolicy,
    scheduling: &Scheduling<'_>,
    phases: &[Phase],
    notes: &mut Notes,
) -> Result<Result<Task, String>, Problem> {
    let time = |node: Option<&Node>, key| node.map(|node| micros(node, key)).transpose();
    let positive = |time: Option<Time>| time.filter(|time| *time > Time::ZERO);
    let budget = positive(time(scheduling.runtime, "dl-runtime")?);
    let period = positive(time(scheduling.period, "dl-period")?);
    let deadline = positive(time(scheduling.deadline, "dl-deadline")?);
    let pattern = Pattern::of(phases, period);
    let mut task = match (policy, budget, scheduling.runtime) {
        (LinuxPolicy::Deadline, Some(budget), Some(node)) => {
            let period = period.unwrap_or(budget);
            match &pattern {
                Ok(pattern) if pattern.period != period => {
                    let message = format!("its events come every {}: the dl-period {period} is taken", pattern.period);
                    notes.task(node.line, name, message);
                }
                Ok(pattern) if (pattern.least, pattern.wcet) != (budget, budget) => {
                    let message = format!("its jobs run {}: the dl-runtime {budget} is taken", pattern.wcet);
                    notes.task(node.line, name, message);
                }
                Ok(pattern) if pattern.sleeps_within => notes.task(line, name, SLEEPS_WITHIN),
                Ok(_) => {}
                Err(why) => notes.task(node.line, name, format_args!("{why}: its dl-runtime and dl-period are taken")),
            }
            Task::periodic(name, period, budget)
        }
        (_, _, runtime) => {
            let pattern = match pattern {
                Ok(pattern) => pattern,
                Err(why) => return Ok(Err(why)),
            };
            if let Some(node) = runtime {
                notes.task(node.line, name, format_args!("\"dl-runtime\" is not used with {}", policy.name()));
            }
            describe(&pattern, period, line, name, notes);
            Task::periodic(name, pattern.period, pattern.wcet)
        }
    };
    task.deadline = deadline.unwrap_or(task.deadline);
    let priority = scheduling.priority.map(|node| node.integer("priority", -20, 99).map(|value| (value, node.line)));
    match (policy, priority.transpose()?) {
        (LinuxPolicy::Fifo | LinuxPolicy::RoundRobin, priority) => {
            task.extra.set(Attribute::Priority, Some(priority.map_or(DEFAULT_PRIORITY, |(value, _)| value)));
        }
        (_, Some((value, line))) if value != 0 => {
            notes.task(line, name, format_args!("\"priority\" = {value} of {} is not represented", policy.name()));
        }
        _ => {}
    }
    Ok(Ok(task))
}

/// Priority that rt-app gives to real-time threads without one.
const DEFAULT_PRIORITY: i64 = 10;

/// Notes what a periodic task does not represent of a pattern.
fn describe(pattern: &Pattern, stated: Option<Time>, line: usize, name: &str, notes: &mut Notes) {
    let Pattern { period, wcet, least, .. } = pattern;
    if least != wcet {
        notes.task(line, name, format_args!("its jobs run from {least} to {wcet} by turns: each takes {wcet} here"));
    }
    if pattern.from_sleep {
        let why = "its sleep begins when its run ends, so that a late job delays the next";
        notes.task(line, name, format_args!("{why}: a fixed period of {period} is taken"));
    }
    if pattern.sleeps_within {
        notes.task(line, name, SLEEPS_WITHIN);
    }
    if let Some(stated) = stated.filter(|stated| stated != period) {
        notes.task(line, name, format_args!("the period {stated} is not used: its timer says {period}"));
    }
}

const SLEEPS_WITHIN: &str = "\"sleep\" within a job is not represented";
