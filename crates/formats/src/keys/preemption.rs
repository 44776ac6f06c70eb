//! The key `preemption` of tasks, bursts, jobs and the file.

use temponet_task::{Preemption, Task, TaskSet, Time};

use super::{Given, Key, Kind, Plain, Spec, Table, set};
use crate::Problem;
use crate::node::Value;
use crate::out::{Out, text, time};

const LIMITS: &[Kind] = &[Kind::Word(|| vec!["free", "none", "cancel"]), Kind::Table(&POINTS)];

/// Limit on preemption.
pub(super) const PREEMPTION: Spec =
    Spec::new("preemption", Kind::Either(LIMITS), "where its running jobs can lose their core")
        .default("that of the file")
        .lost(Some("its limit on preemption is"))
        .see("#limits-on-preemption")
        .example("{ every = \"2ms\" }");

/// Time between two events of the same kind.
pub(super) const EVERY: Spec = Spec::new("every", Kind::PositiveTime, "work between two preemption points").required();

/// Keys of `preemption`.
static POINTS: Table<Plain<Time, Time>> = Table {
    what: "preemption",
    keys: &[Key::new(EVERY, |every, given| set(every, given.time()), |_, every| Some(time(*every)))],
};

/// Reads a limit on preemption: `"free"`, `"none"`, `"cancel"`, or `{ every = "2ms" }`, which is `2ms` in a CSV cell.
pub(super) fn preemption(given: Given<'_>) -> Result<Preemption, Problem> {
    match &given.node.value {
        Value::Text(text) | Value::Cell(text) if text == "none" => Ok(Preemption::None),
        Value::Text(text) | Value::Cell(text) if text == "free" => Ok(Preemption::Free),
        Value::Text(text) | Value::Cell(text) if text == "cancel" => Ok(Preemption::Cancel),
        Value::Cell(text) if text.starts_with(char::is_alphabetic) => {
            Err(given.is("is none of free, none, cancel, or a time between two preemption points such as 2ms"))
        }
        Value::Cell(_) => Given { kind: EVERY.kind, ..given }.time().map(Preemption::Every),
        Value::Table(_) => {
            let mut every = Time::ZERO;
            POINTS.read(given.node, &mut every, given.with)?;
            Ok(Preemption::Every(every))
        }
        _ => Err(given.is("is none of \"free\", \"none\", \"cancel\", { every = TIME }")),
    }
}

/// Returns the limit on preemption, if there is one.
pub(super) fn write_preemption(set: &TaskSet, task: &Task) -> Option<Out> {
    match task.preemption {
        Preemption::Free => None,
        Preemption::None => Some(text("none")),
        Preemption::Cancel => Some(text("cancel")),
        Preemption::Every(every) => Some(Out::Table(POINTS.entries(set, &every))),
    }
}
