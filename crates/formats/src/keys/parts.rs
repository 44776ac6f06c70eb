//! The key `parts` of a task, which runs them in turn, each on cores of its own.
//!
//! A part has the keys of a task that say how long jobs take and where they run. Everything else is said once, by the
//! task. In a set, the last part stands for the task, and the others come directly before it
//! ([`temponet_task::System::parts`]).

use temponet_task::{Task, TaskId, TaskSet};

use super::task::{ACET, BCET, MODEL, OWN_WCET, OfTask, TaskDraft};
use super::{Csv, Key, Kind, Spec, Table, put, set};
use crate::keys::machine::{CORES, affinity, write_affinity};
use crate::keys::preemption::{PREEMPTION, preemption, write_preemption};
use crate::out::Out;

/// Name of the key.
pub(crate) const PARTS_KEY: &str = "parts";

const PART_TABLE: &Kind = &Kind::Table(&PART);

/// The parts of a task.
pub(super) const PARTS: Key<OfTask> = Key::new(
    Spec::new(
        PARTS_KEY,
        Kind::List(PART_TABLE, 2, usize::MAX),
        "what its jobs do in turn, on cores that can differ; instead of `wcet` and `cores`",
    )
    .see("#parts-on-several-cores")
    .csv(Csv::Refused("the parts"))
    .lost(Some("its parts are"))
    .example("[{ wcet = \"2ms\" }, { wcet = \"18ms\", cores = [\"gpu\"] }, { wcet = \"1ms\" }]"),
    |draft, given| {
        for item in given.items()? {
            let mut part = TaskDraft::new();
            PART.read(item.node, &mut part, given.with)?;
            draft.parts.push((part, item.node));
        }
        match draft.parts.len() {
            0 | 1 => Err(given.is("has fewer than two parts")),
            _ => Ok(()),
        }
    },
    |set, task| {
        let whole = TaskId::new(part_before(set, task)?.index() + 1);
        let part = |part: TaskId| Out::Table(PART.entries(set, &set.tasks()[part]));
        Some(Out::list(set.parts(whole).map(part)))
    },
);

/// Keys of a part.
pub(crate) static PART: Table<OfTask> = Table {
    what: "part",
    keys: &[
        OWN_WCET,
        BCET,
        MODEL,
        ACET,
        Key::new(CORES, |draft, given| set(&mut draft.task.cores, affinity(given)), write_affinity),
        Key::new(PREEMPTION, |draft, given| put(&mut draft.preemption, given.at(preemption(given))), write_preemption),
    ],
};

/// Returns the part directly before a task, if the task has parts and is not the first.
fn part_before(set: &TaskSet, task: &Task) -> Option<TaskId> {
    match task.after.as_slice() {
        [before] if set.tasks()[*before].is_part => Some(*before),
        _ => None,
    }
}

/// Whether a task is the last of several parts, which stands for all.
pub(super) fn has_parts(set: &TaskSet, task: &Task) -> bool {
    part_before(set, task).is_some()
}

/// Returns the first part of a task, which says how the whole arrives; the task itself without parts.
pub(super) fn first<'a>(set: &'a TaskSet, task: &'a Task) -> &'a Task {
    part_before(set, task).map_or(task, |before| &set.tasks()[set.first_part(before)])
}
