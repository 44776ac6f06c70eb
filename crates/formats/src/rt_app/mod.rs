//! Workloads of rt-app (<https://github.com/scheduler-tools/rt-app>): JSON with an object `tasks` of threads and times
//! in microseconds.
//!
//! A thread that recurs with a period becomes a task. Its locks become critical sections. What else it does (memory,
//! signals) has no place in a task set and becomes a note.

mod export;
mod lenient;
mod locks;
mod pattern;
mod policy;
mod thread;

use std::collections::{BTreeMap, BTreeSet};

use temponet_task::{CoreId, CoreSet, OnMiss, Protocol, Speed, TaskSet, Time, TimeUnit};

use crate::Problem;
use crate::json;
use crate::keys::printable;
use crate::node::{Fields, Node, Value};
use crate::notes::{Imported, Notes};
use crate::read::{Names, hopeless};
use policy::LinuxPolicy;
use thread::Thread;

pub use export::{Exported, ThreadPolicy, to_rt_app, to_rt_app_with};

/// Largest number of threads; no real workload has more.
const MOST_THREADS: usize = 100_000;

/// Reads the task set of an rt-app workload; `None` if the text is not one.
pub(super) fn read(text: &str, name: &str) -> Option<Result<Imported, Problem>> {
    let plain = lenient::plain(text);
    lenient::is_workload(&plain).then(|| json::parse_repeating(&plain).and_then(|root| workload(&root, name)))
}

/// Reads the root of a workload.
fn workload(root: &Node, name: &str) -> Result<Imported, Problem> {
    let mut notes = Notes::default();
    let mut fields = Fields::of(root, "the workload")?;
    let no_global = (LinuxPolicy::Other, Protocol::None);
    let (default_policy, protocol) = fields.take("global").map_or(Ok(no_global), |node| global(node, &mut notes))?;
    if let Some(node) = fields.take("resources").filter(|node| !is_empty(node)) {
        for (name, resource) in &node.table("resources")?.entries {
            let kind = Fields::of(resource, "a resource")?.take("type");
            if kind.is_none_or(|kind| kind.text("type").is_ok_and(|kind| kind != "mutex")) {
                notes.add(resource.line, format!("resource {name:?} is not represented: only a mutex is"));
            }
        }
    }
    let tasks = fields.need("tasks")?.table("tasks")?;
    for (key, node) in fields.rest()? {
        notes.add(node.line, format!("unknown key {key:?} is ignored"));
    }
    let mut threads = Vec::new();
    for (key, node) in &tasks.entries {
        threads.push(thread::read(&printable(key, node.line)?, node, default_policy, &mut notes)?);
    }
    let cpus = cpus(&threads, &mut notes);
    for thread in &mut threads {
        bind(thread, &cpus);
    }
    let set = TaskSet::new(name, Vec::new(), 1)
        .with_on_miss(OnMiss::Continue)
        .with_protocol(protocol)
        .with_time_unit(TimeUnit::Us)
        .with_cores(cpus.len().max(1));
    shared_timers(&threads, &mut notes);
    policies(&threads, &mut notes);
    with_tasks(set, &threads, notes)
}

/// Adds the task of each thread to the set, once per instance.
fn with_tasks(mut set: TaskSet, threads: &[Thread], mut notes: Notes) -> Result<Imported, Problem> {
    let (mut names, mut warnings, mut read) = (Names::default(), Vec::new(), Vec::new());
    for thread in threads {
        let Some(task) = &thread.task else { continue };
        let mut task = task.clone();
        let name = task.name.clone();
        locks::give(&mut task, &thread.sections, &mut set, &name, &mut notes);
        if read.len() + thread.instances > MOST_THREADS {
            return Err(Problem::at(thread.line, format!("more than {MOST_THREADS} threads")));
        }
        for copy in 0..thread.instances {
            let mut task = task.clone();
            if thread.instances > 1 {
                task.name = format!("{}-{copy}", task.name);
            }
            task.name = names.add(task.name, thread.line)?;
            warnings.extend(hopeless(thread.line, &task, Speed::FULL));
            read.push(task);
        }
    }
    set.system.set_tasks(read);
    if set.tasks().is_empty() {
        let why = notes.into_lines().into_iter().find(|note| note.message.contains("is left out"));
        let why = why.map_or(String::new(), |note| format!(": {}", note.message));
        return Err(Problem::whole_file(format!("has no thread that can become a task{why}")));
    }
    if !set.has_sections() {
        set.system.set_protocol(Protocol::default());
    }
    Ok(Imported { set, warnings, notes, files: Vec::new() })
}

/// Reads the default policy, and whether mutexes have priority inheritance, which they do not by default. The rest of
/// `global` concerns rt-app itself.
fn global(node: &Node, notes: &mut Notes) -> Result<(LinuxPolicy, Protocol), Problem> {
    let mut fields = Fields::of(node, "global")?;
    let policy = fields.take("default_policy").map_or(Ok(LinuxPolicy::Other), LinuxPolicy::of)?;
    if let Some(node) = fields.take("duration") {
        let seconds = node.integer("duration", i64::from(i32::MIN), i64::from(i32::MAX))?;
        if seconds > 0 {
            let message = format!("\"duration\" is not part of a task set: a horizon of {seconds}s runs as long");
            notes.add(node.line, message);
        }
    }
    let inherits = fields.take("pi_enabled").map_or(Ok(false), |node| node.boolean("pi_enabled"))?;
    const OF_THE_TOOL: [&str; 10] = [
        "calibration",
        "lock_pages",
        "logdir",
        "log_basename",
        "log_size",
        "ftrace",
        "gnuplot",
        "io_device",
        "mem_buffer_size",
        "cumulative_slack",
    ];
    let (known, unknown): (Vec<_>, Vec<_>) = fields.rest()?.into_iter().partition(|(key, _)| OF_THE_TOOL.contains(key));
    if !known.is_empty() {
        let keys: Vec<&str> = known.iter().map(|(key, _)| *key).collect();
        notes.add(
            node.line,
            format!(
                "\"global\": {} {} rt-app itself and {} ignored",
                keys.join(", "),
                temponet_wording::verb(keys.len(), "concerns", "concern"),
                temponet_wording::verb(keys.len(), "is", "are")
            ),
        );
    }
    for (key, node) in unknown {
        notes.add(node.line, format!("\"global\": unknown key {key:?} is ignored"));
    }
    Ok((policy, if inherits { Protocol::Inheritance } else { Protocol::None }))
}

/// Returns the CPUs that threads name, which are the cores of the set in this order. rt-app runs on the machine it
/// finds, so a file need not state the number of cores.
fn cpus(threads: &[Thread], notes: &mut Notes) -> Vec<i64> {
    let named = threads.iter().flat_map(|thread| thread.cpus.iter().flat_map(|(cpus, _)| cpus));
    let all: BTreeSet<i64> = named.copied().collect();
    let all: Vec<i64> = all.into_iter().collect();
    if all.iter().zip(0..).any(|(cpu, core)| *cpu != core) {
        let names: Vec<String> = all.iter().map(i64::to_string).collect();
        notes.whole_file(format!("CPU {} are the cores 0 to {} here", names.join(", "), all.len() - 1));
    }
    match all.len() {
        0 => {
            notes.whole_file("does not say how many cores there are: 1 is taken; another number of cores can be given")
        }
        count if threads.iter().any(|thread| thread.cpus.is_none()) => {
            notes.whole_file(format!("names {count} CPUs, so cores = {count}; another number of cores can be given"));
        }
        _ => {}
    }
    all
}

/// Binds the task of a thread to the cores that its CPUs are, unless these are all of them.
fn bind(thread: &mut Thread, all: &[i64]) {
    if let (Some(task), Some((own, _))) = (&mut thread.task, &thread.cpus)
        && own.len() < all.len()
    {
        task.cores = CoreSet::of(CoreId::all(all.len()).filter(|core| own.contains(&all[*core])));
    }
}

/// Notes timers that several threads share. Such a timer wakes the threads in turn.
fn shared_timers(threads: &[Thread], notes: &mut Notes) {
    let mut users: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for thread in threads.iter().filter(|thread| thread.task.is_some()) {
        let names: BTreeSet<&str> = thread.timers.iter().map(String::as_str).collect();
        for name in names {
            let (count, line) = users.entry(name).or_insert((0, thread.line));
            *count += thread.instances;
            *line = thread.line;
        }
    }
    for (name, (count, line)) in users.into_iter().filter(|(_, (count, _))| *count > 1) {
        notes.add(line, format!("timer {name:?} is shared by {count} threads: each has a period of its own here"));
    }
}

/// Notes the closest scheduler for each policy of the file. A run has one scheduler for all tasks.
fn policies(threads: &[Thread], notes: &mut Notes) {
    let imported = threads.iter().filter(|thread| thread.task.is_some());
    let used: BTreeSet<LinuxPolicy> = imported.map(|thread| thread.policy).collect();
    for policy in &used {
        notes.whole_file(format!("{}: {}", policy.name(), policy.scheduler()));
    }
    if used.len() > 1 {
        notes.whole_file("that policies take precedence over one another is not represented");
    }
}

/// Reads a duration in microseconds as rt-app does: a whole number of 32 bits.
fn micros(node: &Node, key: &str) -> Result<Time, Problem> {
    node.integer(key, 0, MOST_MICROS).map(|us| Time::from_us(us as u64))
}

/// Longest duration in rt-app, in microseconds.
const MOST_MICROS: i64 = i32::MAX as i64;

/// Returns whether a value is an empty table, list or text.
fn is_empty(node: &Node) -> bool {
    match &node.value {
        Value::Table(table) => table.entries.is_empty(),
        Value::List(list) => list.is_empty(),
        Value::Text(text) => text.is_empty(),
        _ => false,
    }
}
