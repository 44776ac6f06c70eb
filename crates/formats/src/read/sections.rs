//! The key `section` of tasks, which are `[[task.section]]` tables, and `protocol`.

use temponet_task::{Protocol, Section, Task, TimeUnit};

use super::printable;
use crate::Problem;
use crate::node::{Fields, Node};

/// Keys of `[[task.section]]`.
const SECTION_KEYS: &[&str] = &["resource", "at", "length"];

/// Gives a task the critical sections that `node` lists. Resources that have not been named before are added.
pub(super) fn sections(
    node: &Node,
    task: &mut Task,
    resources: &mut Vec<String>,
    unit: TimeUnit,
) -> Result<(), Problem> {
    for item in node.list("section")? {
        let mut fields = Fields::of(item, "section")?.only(SECTION_KEYS)?;
        let named = fields.need("resource")?;
        let name = printable(named.text("resource")?, named.line)?;
        let at = fields.time("at", unit)?.unwrap_or_default();
        let length = fields.need("length")?.positive_time("length", unit)?;
        fields.finish()?;
        let known = resources.iter().position(|resource| *resource == name);
        let resource = known.unwrap_or_else(|| {
            resources.push(name);
            resources.len() - 1
        });
        task.sections.push(Section { resource, at, length });
        if let Some((_, problem)) = task.section_problem(resources) {
            return Err(Problem::at(item.line, format!("task {:?}: {problem}", task.name)));
        }
    }
    Ok(())
}

/// Reads `protocol`.
pub(super) fn protocol(node: &Node) -> Result<Protocol, Problem> {
    Protocol::from_name(node.text("protocol")?).ok_or_else(|| {
        let known = Protocol::ALL.map(Protocol::name).join(", ");
        Problem::at(node.line, format!("protocol = {} is none of {known}", node.shown()))
    })
}
