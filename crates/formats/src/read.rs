//! Nodes to a task set: the keys, their meaning, and what is refused.
//!
//! This file reads the set as a whole. `task.rs` reads tasks and bursts, `execution.rs` the execution times of a task, `estimate.rs` what is said
//! about them beforehand,
//! `preemption.rs` where its jobs can be preempted, `cores.rs` the machine and the cores that a task may use, `precedence.rs` what it
//! says about other tasks, and chains, `sections.rs` what it shares with them.

mod cores;
mod estimate;
mod execution;
mod precedence;
mod preemption;
mod sections;
mod task;

use std::collections::HashMap;
use std::path::Path;

use temponet_task::{Aim, Costs, Mode, OnMiss, Server, Speed, System, Task, TaskSet, TimeUnit};

use crate::Problem;
use crate::node::{Fields, Node, Value};
use crate::notes::{Imported, Notes};
pub(super) use cores::affinity;
pub(super) use estimate::of_job as estimate_of_job;
use precedence::Indices;
pub(super) use preemption::{limit, preemption};
use task::TaskReader;
pub use task::{BURST_KEYS, TASK_KEYS};

/// A set and its warnings, or the error.
pub(super) type ReadResult = Result<(TaskSet, Vec<Problem>), Problem>;

/// Largest value of a task. It keeps sums of values finite and accurate.
pub(super) const MOST_VALUE: f64 = 1e12;
/// Largest number of cores.
pub(super) const MOST_CORES: i64 = System::MOST_CORES as i64;

/// Keys of the file.
const FILE_KEYS: &[&str] = &[
    "time_unit",
    "description",
    "cores",
    "core",
    "on_miss",
    "preemption",
    "communication",
    "protocol",
    "goal",
    "costs",
    "speeds",
    "server",
    "task",
    "burst",
    "chain",
    "mode",
];
/// Keys of `[[server]]`.
const SERVER_KEYS: &[&str] = &["name", "budget", "period"];
/// Keys of `[[mode]]`.
const MODE_KEYS: &[&str] = &["name", "at", "work", "rate", "tasks"];
/// Keys of `costs`.
const COST_KEYS: &[&str] = &["context_switch", "migration", "decision"];

/// Reads a task set from the root of a file. `origin` is the path of the file.
pub(super) fn task_set(root: &Node, name: String, origin: &Path) -> Result<Imported, Problem> {
    let mut fields = Fields::of(root, "the file")?.only(FILE_KEYS)?;
    let time_unit = match fields.take("time_unit") {
        None => TimeUnit::Ms,
        Some(node) => TimeUnit::from_name(node.text("time_unit")?)
            .ok_or_else(|| Problem::at(node.line, format!("time_unit = {} is none of ns, us, ms, s", node.shown())))?,
    };
    let mut set = TaskSet::new(name, Vec::new(), 1).with_time_unit(time_unit);
    if let Some(node) = fields.take("description") {
        set.description = node.text("description")?.to_string();
    }
    let mut cores_line = None;
    if let Some(node) = fields.take("cores") {
        set.system.set_cores(node.integer("cores", 1, MOST_CORES)? as usize);
        cores_line = Some(node.line);
    }
    set.system.set_machine(fields.take("core").map_or(Ok(Vec::new()), cores::machine)?);
    match (cores_line, set.machine().cores().len()) {
        (_, 0) => {}
        (Some(line), count) if count != set.cores() => {
            let both = format!("cores = {} where the [[core]] tables state {count}", set.cores());
            return Err(Problem::at(line, both));
        }
        (_, count) => set.system.set_cores(count),
    }
    if let Some(node) = fields.take("on_miss") {
        set.system.set_on_miss(
            OnMiss::from_name(node.text("on_miss")?).ok_or_else(|| {
                Problem::at(node.line, format!("on_miss = {} is none of abort, continue", node.shown()))
            })?,
        );
    }
    let default_preemption = fields.take("preemption").map(|node| Ok((preemption(node, time_unit)?, node.line)));
    let default_preemption = default_preemption.transpose()?;
    if let Some(node) = fields.take("goal") {
        set.system.set_aims(aims(node)?);
    }
    if let Some(node) = fields.take("costs") {
        set.system.set_costs(costs(node, time_unit)?);
    }
    if let Some(node) = fields.take("speeds") {
        set.system.set_speeds(speeds(node)?);
        let own = set.machine().cores().iter().find(|core| core.speed != Speed::FULL);
        if let Some(core) = own.filter(|_| set.speeds().len() > 1) {
            let both = format!("speeds to choose from beside core {:?}, which has a speed of its own", core.name);
            return Err(Problem::at(node.line, both));
        }
    }
    let communication = fields.take("communication").map_or(Ok(Default::default()), precedence::communication)?;
    let mut protocol_line = None;
    if let Some(node) = fields.take("protocol") {
        set.system.set_protocol(sections::protocol(node)?);
        protocol_line = Some(node.line);
    }
    let mut names = Names::default();
    let mut servers = Vec::new();
    for node in list(&mut fields, "server")? {
        servers.push(server(node, time_unit, &mut names)?);
    }
    set.system.set_servers(servers);
    let tasks = list(&mut fields, "task")?;
    if cores_line.is_none() && set.machine().cores().is_empty() {
        set.system.set_cores(cores::implied(tasks));
    }
    let mut reader = TaskReader {
        unit: time_unit,
        origin,
        machine: set.machine().cores(),
        cores: set.cores(),
        servers: set.servers(),
        default_preemption,
        warnings: Vec::new(),
        names,
        files: Vec::new(),
        links: Vec::new(),
        resources: Vec::new(),
    };
    reader.names.0.clear();
    let mut read = Vec::new();
    for node in tasks {
        read.push(reader.task(node)?);
    }
    for node in list(&mut fields, "burst")? {
        read.push(reader.burst(node)?);
    }
    let (mut warnings, files, links) = (reader.warnings, reader.files, reader.links);
    set.system.set_resources(reader.resources);
    set.system.set_tasks(read);
    if let (Some(line), Some(problem)) = (protocol_line, set.protocol_problem()) {
        return Err(Problem::at(line, problem.to_string()));
    }
    let chains = list(&mut fields, "chain")?;
    warnings.extend(precedence::connect(&mut set, &links, chains, communication)?);
    for node in list(&mut fields, "mode")? {
        set.modes.push(mode(node, &set)?);
    }
    set.modes.sort_by_key(|mode| mode.at);
    fields.finish()?;
    if set.tasks().is_empty() {
        return Err(Problem::whole_file("has no tasks: write at least one [[task]] with name, period and wcet"));
    }
    Ok(Imported { set, warnings, notes: Notes::default(), files })
}

/// Takes a list, which is empty if the key is absent.
fn list<'a>(fields: &mut Fields<'a>, key: &'static str) -> Result<&'a [Node], Problem> {
    fields.take(key).map_or(Ok(&[]), |node| node.list(key))
}

/// Takes the name of a table, with its line.
pub(super) fn name(fields: &mut Fields<'_>) -> Result<(String, usize), Problem> {
    let node = fields.need("name")?;
    Ok((printable(node.text("name")?, node.line)?, node.line))
}

/// Returns a name without surrounding spaces. It must be printable.
pub(super) fn printable(name: &str, line: usize) -> Result<String, Problem> {
    let name = name.trim();
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(Problem::at(line, format!("name = {name:?} must be a printable text")));
    }
    Ok(name.to_string())
}

/// Names that are in use, with their lines.
#[derive(Default)]
pub(super) struct Names(HashMap<String, usize>);

impl Names {
    /// Takes the name of a table, which must not be in use.
    fn take(&mut self, fields: &mut Fields<'_>) -> Result<String, Problem> {
        let (name, line) = name(fields)?;
        self.add(name, line)
    }

    /// Adds a name, which must not be in use, and returns it.
    pub fn add(&mut self, name: String, line: usize) -> Result<String, Problem> {
        match self.0.insert(name.clone(), line) {
            Some(first) => Err(Problem::at(line, format!("the name {name:?} stands already in line {first}"))),
            None => Ok(name),
        }
    }
}

/// Reads `goal = ["critical", "value"]`, or a single aim.
fn aims(node: &Node) -> Result<Vec<Aim>, Problem> {
    let items = match &node.value {
        Value::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let aim = |item: &Node| {
        let known = || Aim::ALL.map(Aim::name).join(", ");
        Aim::from_name(item.text("goal")?)
            .ok_or_else(|| Problem::at(item.line, format!("goal = {} is none of {}", item.shown(), known())))
    };
    if items.is_empty() {
        return Err(Problem::at(node.line, "goal = [] names no aim"));
    }
    items.iter().map(aim).collect()
}

fn costs(node: &Node, unit: TimeUnit) -> Result<Costs, Problem> {
    let mut fields = Fields::of(node, "costs")?.only(COST_KEYS)?;
    let costs = Costs {
        context_switch: fields.time("context_switch", unit)?.unwrap_or_default(),
        migration: fields.time("migration", unit)?.unwrap_or_default(),
        decision: fields.time("decision", unit)?.unwrap_or_default(),
    };
    fields.finish()?;
    Ok(costs)
}

fn speeds(node: &Node) -> Result<Vec<Speed>, Problem> {
    let mut speeds = Vec::new();
    for item in node.list("speeds")? {
        let share = item.number("speeds", 0.001, 1.0)?;
        speeds.push(Speed((share * 1000.0).round() as u32));
    }
    speeds.sort();
    speeds.dedup();
    match speeds.last() {
        Some(&Speed::FULL) => Ok(speeds),
        _ => Err(Problem::at(node.line, "speeds are shares of full speed and must contain 1.0")),
    }
}

fn server(node: &Node, unit: TimeUnit, names: &mut Names) -> Result<Server, Problem> {
    let mut fields = Fields::of(node, "server")?.only(SERVER_KEYS)?;
    let name = names.take(&mut fields)?;
    let budget = fields.need("budget")?.positive_time("budget", unit)?;
    let period = fields.need("period")?.positive_time("period", unit)?;
    let line = fields.line();
    fields.finish()?;
    if budget > period {
        return Err(Problem::at(line, format!("server {name:?} has budget {budget} > period {period}")));
    }
    Ok(Server { name, budget, period })
}

fn mode(node: &Node, set: &TaskSet) -> Result<Mode, Problem> {
    let mut fields = Fields::of(node, "mode")?.only(MODE_KEYS)?;
    let at = fields.need("at")?.time("at", set.time_unit)?;
    let name = match fields.take("name") {
        Some(node) => printable(node.text("name")?, node.line)?,
        None => format!("mode {}", set.modes.len() + 1),
    };
    let mut factor = |key| fields.take(key).map_or(Ok(1.0), |node: &Node| node.number(key, 0.001, 1000.0));
    let (work, rate) = (factor("work")?, factor("rate")?);
    let tasks = match fields.take("tasks") {
        None => None,
        Some(node) => {
            let indices = Indices::of(set);
            let index = |item: &Node| indices.find(item.text("tasks")?, item.line);
            let released = node.list("tasks")?.iter().map(index).collect::<Result<Vec<usize>, Problem>>()?;
            precedence::whole_graphs(set, &released, node.line)?;
            Some(released)
        }
    };
    fields.finish()?;
    Ok(Mode { name, at, work, rate, tasks })
}

/// Reads a criticality: `low`, `high` or a level.
pub(super) fn criticality(node: &Node) -> Result<u8, Problem> {
    match &node.value {
        Value::Text(text) | Value::Cell(text) if text == "low" => Ok(0),
        Value::Text(text) | Value::Cell(text) if text == "high" => Ok(1),
        Value::Number(_) | Value::Cell(_) => node.integer("criticality", 0, 255).map(|level| level as u8),
        _ => Err(Problem::at(node.line, format!("criticality = {} is none of low, high, 0 to 255", node.shown()))),
    }
}

/// Returns the warning about a task that cannot meet its deadline in the worst case, if it is one. `fastest` is the speed of
/// the fastest core that it may use.
pub(super) fn hopeless(line: usize, task: &Task, fastest: Speed) -> Option<Problem> {
    let Task { name, wcet, deadline, .. } = task;
    let time = fastest.time_for(*wcet);
    let on_core = if fastest == Speed::FULL { String::new() } else { format!(", {time} on its fastest core,") };
    let message = || format!("warning: task {name:?} has wcet {wcet}{on_core} > deadline {deadline}");
    (time > *deadline).then(|| Problem::at(line, message()))
}
