//! Keys of `[[core]]`, and the key `cores` of a task, which names cores or their numbers: `["big"]` or `[0, 2]`, in a
//! CSV cell `big little` or `0 2`.

use temponet_task::{Core, CoreId, CoreSet, Speed, Task, TaskSet};
use temponet_wording::did_you_mean;

use super::{Csv, Given, Key, Kind, MOST_CORES, NAME, Plain, Spec, Table, set};
use crate::Problem;
use crate::node::{Node, Value};
use crate::out::{Out, text};

/// Cores with the same name and speed that follow each other.
#[derive(Clone)]
pub(crate) struct CoreGroup {
    pub core: Core,
    pub count: usize,
}

impl CoreGroup {
    pub fn new() -> CoreGroup {
        CoreGroup { core: Core::new("", Speed::FULL), count: 1 }
    }
}

/// Returns the groups of a machine.
pub(super) fn groups(machine: &[Core]) -> Vec<CoreGroup> {
    let group = |cores: &[Core]| CoreGroup { core: cores[0].clone(), count: cores.len() };
    machine.chunk_by(|a, b| a == b).map(group).collect()
}

/// Keys of `[[core]]`.
pub(crate) static CORE: Table<Plain<CoreGroup, CoreGroup>> = Table {
    what: "core",
    keys: &[
        Key::new(
            NAME.doc("group of the core; several may have the same name"),
            |group, given| {
                let name = given.printable()?;
                if name.parse::<i64>().is_ok() {
                    let wrong = format!("{} = {name:?} of a core must not be a number", given.name);
                    return Err(Problem::at(given.node.line, wrong));
                }
                set(&mut group.core.name, Ok(name))
            },
            |_, group| Some(text(&group.core.name)),
        ),
        Key::new(
            Spec::new(
                "speed",
                Kind::Number(0.001, 1000.0),
                "speed in thousandths; execution times are stated at speed 1",
            )
            .default("`1`"),
            |group, given| {
                let stated = given.number()?;
                let nearest = (stated * 1000.0).round() / 1000.0;
                let fine = || given.is(format_args!("has more than three decimals; {nearest} is near"));
                set(&mut group.core.speed, Speed::of(stated).ok_or_else(fine))
            },
            |_, group| Some(Out::Number(group.core.speed.as_f64())),
        ),
        Key::new(
            Spec::new("count", Kind::Integer(1, MOST_CORES), "number of such cores").default("`1`"),
            |group, given| set(&mut group.count, given.integer().map(|count| count as usize)),
            |_, group| (group.count > 1).then_some(Out::Integer(group.count as i64)),
        ),
        Key::new(
            Spec::new(
                "only",
                Kind::Bool,
                "whether it runs nothing but the tasks that name it in `cores`, as a GPU or a bus does",
            )
            .default("`false`")
            .example("true"),
            |group, given| set(&mut group.core.only, given.boolean()),
            |_, group| group.core.only.then_some(Out::Bool(true)),
        ),
    ],
};

const CORE_NUMBER: Kind = Kind::Integer(0, MOST_CORES - 1);
const CORE_NAME: Kind = Kind::Either(&[CORE_NUMBER, Kind::Reference]);

/// Cores that a task may use.
pub(super) const CORES: Spec = Spec::new(
    "cores",
    Kind::Either(&[CORE_NAME, Kind::List(&CORE_NAME, 1, usize::MAX)]),
    "cores that its jobs may use, by name or number",
)
.default("all but those that are `only` for others")
.lost(None)
.see("#cores-that-differ")
.csv(Csv::Column(" "))
.example("[0]");

/// Returns the number of cores that CSV cells of the column `cores` imply: one more than the highest number; 1 without
/// any. A CSV file has no other place for it.
pub(crate) fn implied_cores(tasks: &[Node]) -> usize {
    let number = |word: &str| word.parse::<usize>().ok().filter(|number| *number < MOST_CORES as usize);
    let cell = |task: &Node| match &task.entry(CORES.name)?.value {
        Value::Cell(text) => text.split_whitespace().filter_map(number).max(),
        _ => None,
    };
    tasks.iter().filter_map(cell).max().map_or(1, |highest| highest + 1)
}

/// Reads the cores that a task may use.
pub(super) fn affinity(given: Given<'_>) -> Result<CoreSet, Problem> {
    let mut chosen = Vec::new();
    let mut add = |node: &Node| -> Result<(), Problem> {
        match &node.value {
            Value::Number(_) => chosen.push(numbered(node, given)?),
            _ => chosen.extend(group(node, given)?),
        }
        Ok(())
    };
    match &given.node.value {
        Value::List(items) => items.iter().try_for_each(add)?,
        Value::Cell(text) => {
            for word in text.split_whitespace() {
                let value = match word.parse::<i64>() {
                    Ok(_) => Value::Number(word.into()),
                    Err(_) => Value::Text(word.into()),
                };
                add(&Node { line: given.node.line, value })?;
            }
        }
        _ => add(given.node)?,
    }
    let wrong = |message: String| Err(Problem::at(given.node.line, message));
    if chosen.is_empty() {
        return wrong(format!("{} = [] names no core", given.name));
    }
    chosen.sort_unstable();
    match chosen.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => wrong(format!("{} names core {} twice", given.name, twice[0])),
        None => Ok(CoreSet::of(chosen)),
    }
}

/// Reads the number of a core.
fn numbered(node: &Node, given: Given<'_>) -> Result<CoreId, Problem> {
    let (core, cores) = (Given { node, kind: CORE_NUMBER, ..given }.integer()? as usize, given.with.cores);
    if core >= cores {
        let there = if cores == 1 { "only core 0".into() } else { format!("cores 0 to {}", cores - 1) };
        return Err(Problem::at(node.line, format!("{} = {core}: there is no core {core}, {there}", given.name)));
    }
    Ok(CoreId::new(core))
}

/// Returns the cores with the name that a node states.
fn group(node: &Node, given: Given<'_>) -> Result<Vec<CoreId>, Problem> {
    let (wanted, named) = (node.text(given.name)?.trim(), given.with.machine);
    let found: Vec<CoreId> = CoreId::all(named.len()).filter(|core| named[*core].name == wanted).collect();
    if found.is_empty() {
        let hint = match named.is_empty() {
            true => "; cores have names only in [[core]] tables".into(),
            false => did_you_mean(wanted, named.iter().map(|core| core.name.as_str())),
        };
        return Err(Problem::at(node.line, format!("there is no core {wanted:?}{hint}")));
    }
    Ok(found)
}

/// Returns the cores that a task may use, unless it may use all: their names if these say it, otherwise their numbers.
pub(super) fn write_affinity(set: &TaskSet, task: &Task) -> Option<Out> {
    if task.cores.is_all() || set.machine().shared().is_some_and(|shared| shared == task.cores) {
        return None;
    }
    let mut names: Vec<&str> = Vec::new();
    for core in task.cores.iter(set.machine().cores().len()) {
        let name = set.machine().cores()[core].name.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let is_said = |(core, named): (CoreId, &Core)| task.cores.contains(core) == names.contains(&named.name.as_str());
    if !names.is_empty() && set.core_ids().zip(set.machine().cores()).all(is_said) {
        return Some(Out::list(names.into_iter().map(text)));
    }
    Some(Out::list(task.cores.iter(set.cores()).map(|core| Out::Integer(core.0.into()))))
}
