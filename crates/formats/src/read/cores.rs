//! The machine: `[[core]]` tables with name, speed and count, and the key `cores` of a task, which names cores or their
//! numbers: `["big"]` or `[0, 2]`, in a CSV cell `big little` or `0 2`.

use temponet_wording::did_you_mean;
use temponet_task::{Core, CoreSet, Speed};

use super::{MOST_CORES, name};
use crate::Problem;
use crate::node::{Fields, Node, Value};

/// Keys of `[[core]]`.
const CORE_KEYS: &[&str] = &["name", "speed", "count"];

/// Reads the `[[core]]` tables.
pub(super) fn machine(node: &Node) -> Result<Vec<Core>, Problem> {
    if let Value::Number(_) = node.value {
        let wrong = format!("core = {} is not a list of tables; did you mean \"cores\"?", node.shown());
        return Err(Problem::at(node.line, wrong));
    }
    let mut machine: Vec<Core> = Vec::new();
    for node in node.list("core")? {
        let mut fields = Fields::of(node, "core")?.only(CORE_KEYS)?;
        let (name, line) = name(&mut fields)?;
        if name.parse::<i64>().is_ok() {
            return Err(Problem::at(line, format!("name = {name:?} of a core must not be a number")));
        }
        let least = f64::from(Speed::RANGE.start().0) / 1000.0;
        let most = f64::from(Speed::RANGE.end().0) / 1000.0;
        let speed = match fields.take("speed") {
            Some(node) => {
                let stated = node.number("speed", least, most)?;
                Speed::of(stated).ok_or_else(|| {
                    let nearest = (stated * 1000.0).round() / 1000.0;
                    let wrong = format!("speed = {} has more than three decimals; {nearest} is near", node.shown());
                    Problem::at(node.line, wrong)
                })?
            }
            None => Speed::FULL,
        };
        let count = fields.take("count").map_or(Ok(1), |node| node.integer("count", 1, MOST_CORES))? as usize;
        let line = fields.line();
        fields.finish()?;
        if machine.len() + count > MOST_CORES as usize {
            let many = machine.len() + count;
            return Err(Problem::at(line, format!("core {name:?} is one of {many} cores, more than {MOST_CORES}")));
        }
        machine.extend(std::iter::repeat_n(Core { name, speed }, count));
    }
    Ok(machine)
}

/// Returns the number of cores that CSV cells of the column `cores` imply: one more than the highest number; 1 without any.
/// A CSV file has no other place for it.
pub(super) fn implied(tasks: &[Node]) -> usize {
    let cell = |task: &Node| match &task.value {
        Value::Table(table) => match &table.entries.iter().find(|(key, _)| key == "cores")?.1.value {
            Value::Cell(text) => numbers(text).max(),
            _ => None,
        },
        _ => None,
    };
    tasks.iter().filter_map(cell).max().map_or(1, |highest| highest + 1)
}

/// Returns the numbers of cores in a CSV cell.
fn numbers(text: &str) -> impl Iterator<Item = usize> + '_ {
    let number = |word: &str| word.parse::<usize>().ok().filter(|number| *number < MOST_CORES as usize);
    text.split_whitespace().filter_map(number)
}

/// Reads the cores that a task may use, of a machine with this many cores, of which `named` have names.
pub(crate) fn affinity(node: &Node, named: &[Core], cores: usize) -> Result<CoreSet, Problem> {
    let mut chosen = Vec::new();
    let mut add = |item: &Node| -> Result<(), Problem> {
        match &item.value {
            Value::Number(_) => chosen.push(numbered(item, cores)?),
            _ => chosen.extend(group(item, named)?),
        }
        Ok(())
    };
    match &node.value {
        Value::List(items) => items.iter().try_for_each(add)?,
        Value::Cell(text) => {
            for word in text.split_whitespace() {
                let value = match word.parse::<i64>() {
                    Ok(_) => Value::Number(word.into()),
                    Err(_) => Value::Text(word.into()),
                };
                add(&Node { line: node.line, value })?;
            }
        }
        _ => add(node)?,
    }
    if chosen.is_empty() {
        return Err(Problem::at(node.line, "cores = [] names no core"));
    }
    chosen.sort_unstable();
    if let Some(twice) = chosen.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Problem::at(node.line, format!("cores names core {} twice", twice[0])));
    }
    Ok(CoreSet::of(chosen))
}

/// Reads the number of a core.
fn numbered(node: &Node, cores: usize) -> Result<usize, Problem> {
    let core = node.integer("cores", 0, MOST_CORES - 1)? as usize;
    if core >= cores {
        let there = if cores == 1 { "only core 0".into() } else { format!("cores 0 to {}", cores - 1) };
        return Err(Problem::at(node.line, format!("cores = {core}: there is no core {core}, {there}")));
    }
    Ok(core)
}

/// Returns the cores with the name that a node states.
fn group<'a>(node: &Node, named: &'a [Core]) -> Result<impl Iterator<Item = usize> + use<'a>, Problem> {
    let wanted = node.text("cores")?.trim().to_string();
    if !named.iter().any(|core| core.name == wanted) {
        let hint = match named.is_empty() {
            true => "; cores have names only in [[core]] tables".into(),
            false => did_you_mean(&wanted, named.iter().map(|core| core.name.as_str())),
        };
        return Err(Problem::at(node.line, format!("there is no core {wanted:?}{hint}")));
    }
    Ok((0..named.len()).filter(move |core| named[*core].name == wanted))
}
