//! Keys that name tasks: `after` and `reads` of a task, and the table `[[chain]]`.

use std::collections::BTreeMap;

use temponet_task::{Chain, Communication, TaskId, TaskSet};
use temponet_wording::did_you_mean;

use super::{COMMUNICATION, Given, Key, Kind, NAME, Plain, Spec, Table, put, set};
use crate::Problem;
use crate::node::{Node, Value};
use crate::out::{Out, text, time};

/// A name of a task, with its line.
pub(crate) type Named = (String, usize);

/// One name or a list of names.
pub(super) const NAMES: Kind = Kind::Either(&[Kind::Reference, Kind::List(&Kind::Reference, 1, usize::MAX)]);

/// Reads a list of names. In a CSV cell they are separated by semicolons or, if it is not a single name with spaces, by
/// spaces.
pub(super) fn names(given: Given<'_>) -> Result<Vec<Named>, Problem> {
    let (node, key) = (given.node, given.name);
    let names: Vec<Named> = match &node.value {
        Value::Cell(text) => text.split(';').map(|name| (name.trim().to_string(), node.line)).collect(),
        Value::Text(text) => vec![(text.trim().to_string(), node.line)],
        _ => {
            let item = |item: &Node| Ok((item.text(key)?.trim().to_string(), item.line));
            node.list(key)?.iter().map(item).collect::<Result<_, _>>()?
        }
    };
    match names.iter().find(|(name, _)| name.is_empty()) {
        _ if names.is_empty() || matches!(&names[..], [(name, _)] if name.is_empty()) => {
            Err(Problem::at(node.line, format!("{key} = {} names no task", node.written())))
        }
        Some((_, line)) => Err(Problem::at(*line, format!("{key} = {} has an empty name", node.written()))),
        None => Ok(names),
    }
}

/// Returns the list of the names of tasks. Parts have the name of the whole, which is among them.
pub(super) fn write_names(set: &TaskSet, tasks: &[TaskId]) -> Out {
    let wholes = tasks.iter().map(|task| &set.tasks()[*task]).filter(|task| !task.is_part);
    Out::list(wholes.map(|task| text(&task.name)))
}

/// Ids of the tasks by their names.
pub(crate) struct TaskIds(BTreeMap<String, TaskId>);

impl TaskIds {
    pub fn of(set: &TaskSet) -> TaskIds {
        TaskIds(set.whole_tasks().map(|id| (set.tasks()[id].name.clone(), id)).collect())
    }

    /// Returns the task with a name that stands in this line.
    fn find(&self, name: &str, line: usize) -> Result<TaskId, Problem> {
        let hint = || match whole_of_part(name) {
            Some(whole) if self.0.contains_key(whole) => format!("; all parts go by the name {whole:?}"),
            whole => did_you_mean(whole.unwrap_or(name), self.0.keys().map(String::as_str)),
        };
        let task = self.0.get(name).copied();
        task.ok_or_else(|| Problem::at(line, format!("there is no task {name:?}{}", hint())))
    }

    /// Returns the tasks with these names. A single text that is no name is taken for names with spaces
    /// between them, if one of them is there.
    pub fn find_all(&self, names: &[Named]) -> Result<Vec<TaskId>, Problem> {
        if let [(text, line)] = names
            && !self.0.contains_key(text)
            && whole_of_part(text).is_none()
            && text.split_whitespace().any(|name| self.0.contains_key(name))
        {
            return text.split_whitespace().map(|name| self.find(name, *line)).collect();
        }
        names.iter().map(|(name, line)| self.find(name, *line)).collect()
    }
}

/// Returns the name of the whole if a text is the name of a part, as schedulers and traces show it.
fn whole_of_part(text: &str) -> Option<&str> {
    let (whole, number) = text.strip_suffix(')')?.rsplit_once(" (part ")?;
    number.bytes().all(|digit| digit.is_ascii_digit()).then_some(whole)
}

/// Names of tasks that a chain or a mode is about.
pub(super) const TASKS: Spec = Spec::new("tasks", Kind::List(&Kind::Reference, 2, usize::MAX), "");

/// Keys of `[[chain]]`.
pub(crate) static CHAIN: Table<Plain<(Chain, [usize; 2]), Chain>> = Table {
    what: "chain",
    keys: &[
        Key::new(
            NAME,
            |(chain, lines), given| {
                lines[0] = given.node.line;
                set(&mut chain.name, given.printable())
            },
            |_, chain| Some(text(&chain.name)),
        ),
        Key::new(
            TASKS.doc("names of the tasks, from the source to the output").required(),
            |(chain, lines), given| {
                lines[1] = given.node.line;
                let find = |(name, line): &Named| given.with.find_task(name, *line);
                set(&mut chain.tasks, names(given)?.iter().map(find).collect())
            },
            |set, chain| Some(write_names(set, &chain.tasks)),
        ),
        Key::new(
            Spec::new("deadline", Kind::PositiveTime, "end-to-end deadline, for the reaction time")
                .default("none: times are measured, and nothing is late"),
            |(chain, _), given| put(&mut chain.deadline, given.time()),
            |_, chain| chain.deadline.map(time),
        ),
        Key::new(
            COMMUNICATION
                .doc("`\"implicit\"`: a job reads when it starts and writes when it completes; `\"let\"` (logical execution time): it reads at its release, and its value can be read from its deadline on")
                .default("that of the file"),
            |(chain, _), given| set(&mut chain.communication, given.word(Communication::from_name)),
            |_, chain| (chain.communication != Communication::default()).then(|| text(chain.communication.name())),
        ),
    ],
};

impl super::Context<'_> {
    /// Returns the task with a name that stands in this line.
    pub fn find_task(&self, name: &str, line: usize) -> Result<TaskId, Problem> {
        let unknown = || Problem::at(line, format!("there is no task {name:?}"));
        self.tasks.ok_or_else(unknown)?.1.find(name, line)
    }
}
