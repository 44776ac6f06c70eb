//! Modes: what a mode says about the tasks that come after those that it names.
//!
//! A task that comes after others arrives with them. So it stops with its sources, and is as slow as they are.

use temponet_task::{Mode, Precedence, TaskId, TaskSet, Time};
use temponet_wording::listed;

use crate::Problem;
use crate::keys::{Context, MODE, ModeDraft, TaskIds};
use crate::node::Node;
use crate::notes::Notes;

/// Largest number of names in a note.
const MOST_NAMES: usize = 5;

/// Reads the `[[mode]]` tables, in the order of their beginnings.
pub(super) fn modes(
    nodes: &[Node],
    set: &TaskSet,
    file: &Context<'_>,
    notes: &mut Notes,
) -> Result<Vec<Mode>, Problem> {
    let indices = TaskIds::of(set);
    let file = Context { tasks: Some((set, &indices)), ..*file };
    let graph = Precedence::of(set.tasks()).ok().flatten();
    let mut modes = Vec::new();
    for node in nodes {
        let mode = Mode::new(format!("mode {}", modes.len() + 1), Time::ZERO);
        let mut draft = ModeDraft { mode, slower: Vec::new(), stop: None, released: None };
        MODE.read(node, &mut draft, &file)?;
        let graph = Graph { set, precedence: graph.as_ref() };
        let parts = |task: TaskId| set.parts(task);
        let slower = draft.slower.iter().flat_map(|(task, factor, line)| {
            let (factor, line) = (Some(*factor), *line);
            parts(*task).map(move |part| (part, factor, line))
        });
        let slower = graph.with_followers(slower, None, "slower")?;
        let slower: Vec<(TaskId, f64)> =
            slower.into_iter().filter_map(|(task, factor)| Some((task, factor?))).collect();
        let stop = match (draft.stop, draft.released) {
            (Some(_), Some((_, line))) => {
                let both = "tasks beside stop: tasks stops every task that it does not name, so one of them is enough";
                return Err(Problem::at(line, both));
            }
            (Some((named, _)), None) => {
                let stopped =
                    named.into_iter().flat_map(|(task, line)| parts(task).map(move |part| (part, true, line)));
                graph.with_followers(stopped, false, "stop")?
            }
            (None, Some((released, line))) => {
                let released: Vec<TaskId> = released.into_iter().flat_map(parts).collect();
                whole_graphs(&graph, &released, line)?;
                let stops = |task: TaskId| (task, !released.contains(&task));
                let stopped: Vec<(TaskId, bool)> = set.task_ids().map(stops).filter(|(_, stops)| *stops).collect();
                if !stopped.is_empty() {
                    let wholes = stopped.iter().map(|(task, _)| &set.tasks()[*task]).filter(|task| !task.is_part);
                    let names = wholes.map(|task| task.name.as_str());
                    let names = listed(names.collect::<Vec<_>>(), MOST_NAMES);
                    notes.add(line, format!("mode {:?}: tasks = […] stops every other task: {names}", draft.mode.name));
                }
                stopped
            }
            (None, None) => Vec::new(),
        };
        let stop: Vec<TaskId> = stop.into_iter().filter(|(_, stops)| *stops).map(|(task, _)| task).collect();
        if let Some((task, _, line)) = draft.slower.iter().find(|(task, ..)| stop.contains(task)) {
            let name = graph.name(*task);
            return Err(Problem::at(*line, format!("slower names {name:?}, which stops in this mode and has no rate")));
        }
        let mode = draft.mode.with_slower(slower).with_stop(stop);
        if let Some(other) = modes.iter().find(|other: &&Mode| other.at == mode.at) {
            let (one, other, at) = (&other.name, &mode.name, mode.at);
            return Err(Problem::at(
                node.line,
                format!("{one:?} and {other:?} both begin at {at}: one mode at a time"),
            ));
        }
        modes.push(mode);
    }
    modes.sort_by_key(|mode| mode.at);
    Ok(modes)
}

/// The tasks and which of them come after which.
struct Graph<'a> {
    set: &'a TaskSet,
    precedence: Option<&'a Precedence>,
}

impl Graph<'_> {
    fn name(&self, task: TaskId) -> &str {
        &self.set.tasks()[self.set.whole(task)].name
    }

    /// Returns what a key says about each task that it names, with its line, and about those that come after them. What
    /// it says about a task must be what it says about the sources of the task; `absent` is what holds for others.
    fn with_followers<V: Copy + PartialEq>(
        &self,
        named: impl Iterator<Item = (TaskId, V, usize)>,
        absent: V,
        key: &str,
    ) -> Result<Vec<(TaskId, V)>, Problem> {
        let mut said: Vec<Option<(V, usize)>> = vec![None; self.set.tasks().len()];
        for (task, value, line) in named {
            if said[task].replace((value, line)).is_some() {
                return Err(Problem::at(line, format!("{key} names {:?} twice", self.name(task))));
            }
        }
        let of = |task: TaskId| said[task].map_or(absent, |(value, _)| value);
        let mut all = Vec::new();
        for task in self.set.task_ids() {
            let sources = self.precedence.map_or(&[][..], |graph| graph.sources(task));
            let own = said[task];
            let Some(first) = sources.first() else {
                all.extend(own.map(|(value, _)| (task, value)));
                continue;
            };
            let value = of(*first);
            let apart = |line: usize, one: TaskId, other: TaskId| {
                let (one, other) = (self.name(one), self.name(other));
                Problem::at(line, format!("{key}: {one:?} arrives with {other:?}, and must be named like it"))
            };
            if let Some((_, line)) = own.filter(|(own, _)| *own != value) {
                return Err(apart(line, task, *first));
            }
            if let Some(other) = sources.iter().find(|source| of(**source) != value) {
                let line = said[*other].or(said[*first]).map_or(0, |(_, line)| line);
                return Err(apart(line, *other, *first));
            }
            all.extend((value != absent).then_some((task, value)));
        }
        Ok(all)
    }
}

/// Checks that a mode releases all or none of the tasks that follow each other.
fn whole_graphs(graph: &Graph<'_>, released: &[TaskId], line: usize) -> Result<(), Problem> {
    let Some(precedence) = graph.precedence else { return Ok(()) };
    for task in graph.set.task_ids() {
        let differs = |source: &&TaskId| released.contains(source) != released.contains(&task);
        if let Some(source) = precedence.sources(task).iter().find(differs) {
            let message = format!(
                "a mode must have all or none of the tasks that come after each other, such as {:?} and {:?}",
                graph.name(*source),
                graph.name(task)
            );
            return Err(Problem::at(line, message));
        }
    }
    Ok(())
}
