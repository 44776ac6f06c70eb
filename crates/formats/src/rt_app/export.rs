//! Task set to rt-app workload: one thread per task, with its own timer; SCHED_DEADLINE unless settings say otherwise.

use temponet_task::{Arrival, Costs, OnMiss, Speed, Task, TaskId, TaskSet, Time};

use super::MOST_MICROS;
use crate::NotRepresentable;
use crate::keys::{Spec, TASK};
use crate::out::Out;

/// Text of a file for another tool, with notes on what it does not represent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Text of the file.
    pub text: String,
    /// Properties of the set that the file does not represent, one line each.
    pub notes: Vec<String>,
}

/// How Linux is to schedule the thread of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadPolicy {
    /// SCHED_OTHER with this nice value.
    Other(i8),
    /// SCHED_FIFO with this priority.
    Fifo(u8),
    /// SCHED_DEADLINE with this budget, deadline and period.
    Deadline([Time; 3]),
}

/// Returns the set as an rt-app workload, whose threads have a reservation of their wcet, deadline and period each; see
/// [`to_rt_app_with`].
pub fn to_rt_app(set: &TaskSet) -> Result<Exported, NotRepresentable> {
    to_rt_app_with(set, |_| None)
}

/// Returns the set as an rt-app workload with these policies; none is a reservation of wcet, deadline and period. Tasks
/// that rt-app cannot represent are left out and named in the notes. If no task is left, that is an error.
pub fn to_rt_app_with(
    set: &TaskSet,
    policy: impl Fn(TaskId) -> Option<ThreadPolicy>,
) -> Result<Exported, NotRepresentable> {
    let mut notes = Vec::new();
    let (mut threads, mut names) = (Vec::new(), Vec::new());
    for id in set.whole_tasks() {
        let task = &set.tasks()[id];
        let mut say = |message: String| notes.push(format!("task {:?}: {message}", task.name));
        match thread(task, set, policy(id), &mut say) {
            Ok(thread) => {
                let name = file_name(&task.name, set, &names);
                if name != task.name {
                    say(format!("is named {name:?}, because rt-app names the file of a thread's log after it"));
                }
                threads.push(format!("    {}: {thread}", serde_json::Value::from(name.as_str())));
                names.push(name);
            }
            Err(why) => say(format!("is left out: {why}")),
        }
    }
    if threads.is_empty() {
        let what = notes.pop().unwrap_or_else(|| "a set without tasks".into());
        return Err(NotRepresentable { what, format: "a workload of rt-app", hint: ", and no other task is left" });
    }
    whole_set(set, &mut notes);
    let global = r#""duration": -1, "default_policy": "SCHED_DEADLINE", "calibration": "CPU0""#;
    let threads = threads.join(",\n");
    let text = format!("{{\n  \"global\": {{ {global} }},\n  \"tasks\": {{\n{threads}\n  }}\n}}\n");
    Ok(Exported { text, notes })
}

/// Returns the name of a task as a part of the name of a file, different from those of all other tasks.
fn file_name(name: &str, set: &TaskSet, taken: &[String]) -> String {
    let mut own = name.replace('/', "_");
    while own != name && (taken.contains(&own) || set.tasks().iter().any(|other| other.name == own)) {
        own.push('_');
    }
    own
}

/// Returns the JSON object of a task's thread, or the reason why rt-app cannot represent the task.
fn thread(
    task: &Task,
    set: &TaskSet,
    policy: Option<ThreadPolicy>,
    say: &mut impl FnMut(String),
) -> Result<String, String> {
    if task.after.iter().any(|before| set.tasks()[*before].is_part) {
        return Err("rt-app has no tasks with parts on several cores".into());
    }
    let period = match task.arrival {
        Arrival::Periodic { period } => period,
        Arrival::Sporadic { minimum, .. } => {
            say(format!("it is sporadic: its thread wakes every {minimum}, the least time between its jobs"));
            minimum
        }
        Arrival::Burst { .. } => return Err("rt-app has no bursts".into()),
        _ => return Err("rt-app has no lists of single jobs".into()),
    };
    let mut micros = |key: &str, time: Time, up: bool| {
        let us = if up { time.0.div_ceil(1_000) } else { time.0 / 1_000 };
        if us > MOST_MICROS as u64 {
            return Err(format!("its {key} {time} is longer than rt-app can be told"));
        }
        if us == 0 && time > Time::ZERO {
            return Err(format!("its {key} {time} is less than a microsecond"));
        }
        if us * 1_000 != time.0 {
            say(format!("its {key} {time} is rounded to {}", Time::from_us(us)));
        }
        Ok(us)
    };
    let wcet = micros("wcet", task.wcet, true)?;
    let period = micros("period", period, false)?;
    let deadline = micros("deadline", task.deadline, false)?;
    let offset = micros("offset", task.offset, true)?;
    let is_reserved = matches!(policy, None | Some(ThreadPolicy::Deadline(_)));
    let policy = match policy {
        None => reserved(wcet, deadline, period),
        Some(ThreadPolicy::Deadline([budget, deadline, period])) => reserved(
            micros("budget", budget, true)?,
            micros("deadline", deadline, false)?,
            micros("period", period, false)?,
        ),
        Some(ThreadPolicy::Fifo(priority)) => format!("\"policy\": \"SCHED_FIFO\", \"priority\": {priority}"),
        Some(ThreadPolicy::Other(nice)) => format!("\"policy\": \"SCHED_OTHER\", \"priority\": {nice}"),
    };
    if is_reserved && (wcet > deadline || deadline > period) {
        say("Linux admits SCHED_DEADLINE threads only with wcet <= deadline <= period".into());
    }
    for what in unsaid(task, set, is_reserved) {
        say(format!("{what} not represented"));
    }
    let cpus = match task.cores.is_all() {
        true => String::new(),
        false => {
            if is_reserved {
                say("Linux admits SCHED_DEADLINE threads only if they may use every CPU".into());
            }
            let cores: Vec<String> = task.cores.iter(set.cores()).map(|core| core.to_string()).collect();
            format!("\"cpus\": [{}], ", cores.join(", "))
        }
    };
    let delay = if offset > 0 { format!("\"delay\": {offset}, ") } else { String::new() };
    Ok(format!(
        "{{ {policy}, {cpus}{delay}\"run\": {wcet}, \
         \"timer\": {{ \"ref\": \"unique\", \"period\": {period}, \"mode\": \"absolute\" }} }}"
    ))
}

/// A reservation, in microseconds.
fn reserved(budget: u64, deadline: u64, period: u64) -> String {
    format!(
        "\"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": {budget}, \"dl-deadline\": {deadline}, \"dl-period\": {period}"
    )
}

/// Returns the properties of a task that are not represented, each with its verb. A thread without a reservation has a
/// priority.
fn unsaid(task: &Task, set: &TaskSet, is_reserved: bool) -> Vec<String> {
    let words = |(key, _): &(&Spec, Out)| match key.lost? {
        _ if key.name == "priority" && !is_reserved => None,
        "" => Some(format!("{} is", key.name)),
        words => Some(words.into()),
    };
    let mut unsaid: Vec<String> = TASK.entries(set, task).iter().filter_map(words).collect();
    unsaid.dedup();
    unsaid
}

/// Notes the properties of the whole set that are not represented.
fn whole_set(set: &TaskSet, notes: &mut Vec<String>) {
    notes.push(format!("cores = {} is not represented: rt-app uses the machine it runs on", set.cores()));
    if set.on_miss() == OnMiss::Abort {
        notes.push("on_miss = abort is not represented: rt-app lets a late job go on".into());
    }
    let facts = [
        (!set.description.is_empty(), "description is"),
        (*set.costs() != Costs::default(), "costs are"),
        (set.speeds() != [Speed::FULL], "speeds are"),
        (!set.machine().cores().is_empty(), "names and speeds of cores are"),
        (!set.modes().is_empty(), "modes are"),
        (!set.servers().is_empty(), "servers are"),
        (!set.chains().is_empty(), "chains are"),
    ];
    let unsaid = facts.into_iter().filter(|(holds, _)| *holds);
    notes.extend(unsaid.map(|(_, what)| format!("{what} not represented")));
}
