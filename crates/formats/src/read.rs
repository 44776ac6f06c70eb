//! Nodes to a task set: what follows from several keys, and what is refused.
//!
//! `keys/` reads the single values. This file puts the set as a whole together, `task.rs` its tasks and bursts,
//! `parts.rs` the parts of tasks, `precedence.rs` what tasks say
//! about each other.

mod modes;
mod parts;
mod precedence;
mod task;

use std::collections::HashMap;
use std::path::Path;

use temponet_task::{Core, CoreId, Server, Speed, Task, TaskSet, Time, TimeUnit};

use crate::Problem;
use crate::keys::{CORE, Context, CoreGroup, MOST_CORES, SERVER, SET, SetDraft, TIME_UNIT};
use crate::keys::{implied_cores, unknown_server};
use crate::node::{Node, Value};
use crate::notes::{Imported, Notes};
use task::TaskReader;
pub(super) use task::limit;

/// Reads a task set from the root of a file. `origin` is the path of the file.
pub(super) fn task_set(root: &Node, name: String, origin: &Path) -> Result<Imported, Problem> {
    let unit = match root.entry(TIME_UNIT.name) {
        Some(node) => TimeUnit::from_name(node.text(TIME_UNIT.name)?).unwrap_or(TimeUnit::Ms),
        None => TimeUnit::Ms,
    };
    let file = Context { origin, ..Context::plain(unit) };
    let mut draft = SetDraft::new(name);
    SET.read(root, &mut draft, &file)?;
    let mut set = draft.set;
    let named = draft.machine.map_or(Ok(Vec::new()), |node| machine(node, &file))?;
    let cores = match (draft.cores, named.len()) {
        (Some((cores, _)), 0) => cores,
        (None, 0) => implied_cores(draft.tasks),
        (Some((cores, line)), count) if count != cores => {
            return Err(Problem::at(line, format!("cores = {cores} where the [[core]] tables state {count}")));
        }
        (_, count) => count,
    };
    let own = named.iter().find(|core| core.speed != Speed::FULL);
    if let Some(core) = own.filter(|_| set.speeds().len() > 1) {
        let both = format!("speeds to choose from beside core {:?}, which has a speed of its own", core.name);
        return Err(Problem::at(draft.speeds_line, both));
    }
    let servers = servers(draft.servers, &file)?;
    let machine = Context { servers: &servers, machine: &named, cores, ..file };
    let mut reader = TaskReader::new(&machine, draft.preemption);
    let mut tasks = Vec::with_capacity(draft.tasks.len());
    for node in draft.tasks {
        tasks.extend(reader.task(node)?);
    }
    for node in draft.bursts {
        tasks.push(reader.burst(node)?);
    }
    let TaskReader { mut warnings, files, links, resources, .. } = reader;
    set.system.set_tasks(tasks);
    set.system.set_resources(resources);
    set.system.set_servers(servers);
    set.system.set_cores(cores);
    set.system.set_machine(named);
    if let (Some(line), Some(problem)) = (draft.protocol_line, set.protocol_problem()) {
        return Err(Problem::at(line, problem.to_string()));
    }
    warnings.extend(precedence::connect(&mut set, &links, draft.chains, draft.communication, &file)?);
    let mut notes = Notes::default();
    let is_idle = |core: &Core| core.only && !names_core(&set, &core.name);
    for core in set.machine().cores().iter().filter(|core| is_idle(core)) {
        notes.whole_file(format!("core {:?} is only for tasks that name it, and none does: it stays idle", core.name));
    }
    let modes = modes::modes(draft.modes, &set, &file, &mut notes)?;
    set.set_modes(modes);
    if set.tasks().is_empty() {
        return Err(Problem::whole_file("has no tasks: write at least one [[task]] with name, period and wcet"));
    }
    Ok(Imported { set, warnings, notes, files })
}

/// Returns whether a task may use a core with this name.
fn names_core(set: &TaskSet, name: &str) -> bool {
    let named: Vec<CoreId> = set.core_ids().filter(|core| set.machine().cores()[*core].name == name).collect();
    set.tasks().iter().any(|task| named.iter().any(|core| task.cores.contains(*core)))
}

/// Reads the `[[core]]` tables.
fn machine(node: &Node, file: &Context<'_>) -> Result<Vec<Core>, Problem> {
    if let Value::Number(_) = node.value {
        let wrong = format!("core = {} is not a list of tables; did you mean \"cores\"?", node.shown());
        return Err(Problem::at(node.line, wrong));
    }
    let mut machine: Vec<Core> = Vec::new();
    for node in node.list(CORE.what)? {
        let mut group = CoreGroup::new();
        CORE.read(node, &mut group, file)?;
        let (many, name) = (machine.len() + group.count, &group.core.name);
        if many > MOST_CORES as usize {
            return Err(Problem::at(
                node.line,
                format!("core {name:?} is one of {many} cores, more than {MOST_CORES}"),
            ));
        }
        machine.extend(std::iter::repeat_n(group.core, group.count));
    }
    Ok(machine)
}

/// Reads the `[[server]]` tables.
fn servers(nodes: &[Node], file: &Context<'_>) -> Result<Vec<Server>, Problem> {
    let mut names = Names::default();
    let server = |node: &Node| {
        let mut draft = (unknown_server(), 0);
        SERVER.read(node, &mut draft, file)?;
        let (server, line) = draft;
        names.add(server.name.clone(), line)?;
        let Server { name, budget, period } = &server;
        match budget > period {
            true => Err(Problem::at(node.line, format!("server {name:?} has budget {budget} > period {period}"))),
            false => Ok(server),
        }
    };
    nodes.iter().map(server).collect()
}

/// Names that are in use, with their lines.
#[derive(Default)]
pub(super) struct Names(HashMap<String, usize>);

impl Names {
    /// Adds a name, which must not be in use, and returns it.
    pub fn add(&mut self, name: String, line: usize) -> Result<String, Problem> {
        match self.0.insert(name.clone(), line) {
            Some(first) => Err(Problem::at(line, format!("the name {name:?} stands already in line {first}"))),
            None => Ok(name),
        }
    }
}

/// Returns the warning about a task that cannot meet its deadline in the worst case, if it is one. `fastest` is the
/// speed of the fastest core that it may use.
pub(super) fn hopeless(line: usize, task: &Task, fastest: Speed) -> Option<Problem> {
    let Task { name, wcet, deadline, .. } = task;
    let time = fastest.time_for(*wcet);
    let on_core = if fastest == Speed::FULL { String::new() } else { format!(", {time} on its fastest core,") };
    let message = || format!("warning: task {name:?} has wcet {wcet}{on_core} > deadline {deadline}");
    (time > *deadline).then(|| Problem::at(line, message()))
}

/// Returns the warning about a task whose parts take `needed` in the worst case, on their fastest cores, if that is
/// more than its deadline.
pub(super) fn hopeless_parts(line: usize, task: &Task, needed: Time) -> Option<Problem> {
    let Task { name, deadline, .. } = task;
    let message = || format!("warning: task {name:?} has parts that take {needed} in all > deadline {deadline}");
    (needed > *deadline).then(|| Problem::at(line, message()))
}
