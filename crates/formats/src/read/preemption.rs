//! The key `preemption`: `"free"`, `"none"`, or `{ every = "2ms" }`, which is `2ms` in a CSV cell.

use temponet_task::{Preemption, Task, TimeUnit};

use crate::Problem;
use crate::node::{Fields, Node, Value};

/// Reads a limit on preemption. A bare number is in `unit`s.
pub(crate) fn preemption(node: &Node, unit: TimeUnit) -> Result<Preemption, Problem> {
    match &node.value {
        Value::Text(text) | Value::Cell(text) if text == "none" => Ok(Preemption::None),
        Value::Text(text) | Value::Cell(text) if text == "free" => Ok(Preemption::Free),
        Value::Cell(_) => node.positive_time("preemption", unit).map(Preemption::Every),
        Value::Table(_) => {
            let mut fields = Fields::of(node, "preemption")?.only(&["every"])?;
            let every = fields.need("every")?.positive_time("every", unit)?;
            fields.finish()?;
            Ok(Preemption::Every(every))
        }
        _ => {
            let wrong = format!("preemption = {} is none of \"free\", \"none\", {{ every = TIME }}", node.shown());
            Err(Problem::at(node.line, wrong))
        }
    }
}

/// Gives a task the limit on preemption that `line` states. Too many preemption points are refused.
pub(crate) fn limit(task: &mut Task, preemption: Preemption, line: usize) -> Result<(), Problem> {
    let wcet = task.wcet.max(task.wcet_high.unwrap_or_default());
    if let Preemption::Every(every) = preemption
        && !preemption.is_usable(wcet)
    {
        let name = &task.name;
        let many =
            format!("every = {every} gives task {name:?} with wcet {wcet} more than 1 000 000 preemption points");
        return Err(Problem::at(line, many));
    }
    task.preemption = preemption;
    Ok(())
}
