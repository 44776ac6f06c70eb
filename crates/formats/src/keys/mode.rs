//! Keys of `[[mode]]`.

use temponet_task::{Mode, TaskId};

use super::links::{TASKS, write_names};
use super::{Csv, Given, Key, Kind, NAME, Spec, Subject, Table, put, set};
use crate::Problem;
use crate::out::{Out, text, time};

const FACTOR: Kind = Kind::Number(0.001, 1000.0);
const NAMES: Kind = Kind::List(&Kind::Reference, 0, usize::MAX);

/// A mode that is being read. Tasks that come after others are not there yet where only their sources are named.
pub(crate) struct ModeDraft {
    pub mode: Mode,
    /// Tasks of `slower` with their factors and lines.
    pub slower: Vec<(TaskId, f64, usize)>,
    /// Tasks of `stop` with their lines, and the line of the key.
    pub stop: Option<(Vec<(TaskId, usize)>, usize)>,
    /// The only tasks that release jobs, and the line of the key.
    pub released: Option<(Vec<TaskId>, usize)>,
}

pub(crate) struct OfMode;

impl Subject for OfMode {
    type Draft<'a> = ModeDraft;
    type Source = Mode;
}

type Row = Key<OfMode>;

/// Returns the tasks that a list names, with their lines.
fn tasks(given: Given<'_>) -> Result<Vec<(TaskId, usize)>, Problem> {
    let find = |item: Given<'_>| Ok((given.with.find_task(item.text()?, item.node.line)?, item.node.line));
    given.items()?.map(find).collect()
}

/// Keys of `[[mode]]`.
pub(crate) static MODE: Table<OfMode> = Table {
    what: "mode",
    keys: &[
        Row::new(
            NAME.doc("name shown in reports").default("`mode` and its number"),
            |draft, given| set(&mut draft.mode.name, given.printable()),
            |_, mode| Some(text(&mode.name)),
        ),
        Row::new(
            Spec::new("at", Kind::Time, "time at which the mode begins; it lasts until the next one").required(),
            |draft, given| set(&mut draft.mode.at, given.time()),
            |_, mode| Some(time(mode.at)),
        ),
        Row::new(
            Spec::new("work", FACTOR, "factor on execution times").default("`1`"),
            |draft, given| set(&mut draft.mode.work, given.number()),
            |_, mode| Some(Out::Number(mode.work)),
        ),
        Row::new(
            Spec::new(
                "rate",
                FACTOR,
                "factor on the arrival rate of all tasks; periods and deadlines are divided by it",
            )
            .default("`1`"),
            |draft, given| set(&mut draft.mode.rate, given.number()),
            |_, mode| Some(Out::Number(mode.rate)),
        ),
        Row::new(
            Spec::new(
                "slower",
                Kind::Named(&FACTOR),
                "factors on the periods and deadlines of single tasks, beside `rate`: above 1 is slower, below 1 faster; tasks that come after one go with it",
            ),
            |draft, given| {
                let factor = |(name, item): (&str, Given<'_>)| {
                    Ok((given.with.find_task(name, item.node.line)?, item.number()?, item.node.line))
                };
                set(&mut draft.slower, given.entries()?.map(factor).collect())
            },
            |set, mode| {
                let wholes = mode.slower.iter().filter(|(task, _)| !set.tasks()[*task].is_part);
                let factor = |(task, factor): &(TaskId, f64)| (set.tasks()[*task].name.clone(), Out::Number(*factor));
                (!mode.slower.is_empty()).then(|| Out::Named(wholes.map(factor).collect()))
            },
        ),
        Row::new(
            Spec::new(
                "stop",
                NAMES,
                "names of the tasks that release no jobs, with those that come after them; all others go on",
            ),
            |draft, given| put(&mut draft.stop, given.at(tasks(given))),
            |set, mode| (!mode.stop.is_empty()).then(|| write_names(set, &mode.stop)),
        ),
        Row::new(
            Spec { kind: NAMES, ..TASKS }
                .doc("names of the only tasks that release jobs: every other one stops; `stop` says the same by its opposite")
                .default("all")
                .csv(Csv::Column("")),
            |draft, given| {
                let named = tasks(given)?.into_iter().map(|(task, _)| task).collect();
                put(&mut draft.released, given.at(Ok(named)))
            },
            |_, _| None,
        ),
    ],
};
