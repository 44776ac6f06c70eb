//! A task with `parts` to the tasks that stand for it: each part comes after the one before, and the last has the name
//! of the whole.

use temponet_task::{Task, Time};

use super::hopeless_parts;
use super::precedence::Links;
use super::task::TaskReader;
use crate::Problem;
use crate::keys::{PART, PARTS_KEY, Specs, TaskDraft};
use crate::node::Node;

/// Keys of a task that say how long its jobs take, and that no part has.
const OF_UNDIVIDED: [&str; 3] = ["wcet_high", "overrun", "section"];

/// Refuses what a task with parts cannot state as a whole.
pub(super) fn refuse_beside_parts(node: &Node, task: &Task) -> Result<(), Problem> {
    let refuse = |key: &str, why: &str| match node.entry(key) {
        Some(given) => {
            let message = format!("task {:?}: {key} beside {PARTS_KEY}: {why}", task.name);
            Err(Problem::at(given.line, message))
        }
        None => Ok(()),
    };
    // A limit on preemption can be said once for all parts.
    let own = PART.specs().into_iter().filter(|spec| spec.name != "preemption");
    own.map(|spec| spec.name).try_for_each(|key| refuse(key, "each part states its own"))?;
    OF_UNDIVIDED.into_iter().try_for_each(|key| refuse(key, "a task with parts cannot have it"))
}

impl<'a> TaskReader<'a> {
    /// Returns the parts of a task; `draft` has what holds for all of them. A task that cannot meet its deadline in the
    /// worst case is warned about.
    pub(super) fn parts(&mut self, node: &'a Node, mut draft: TaskDraft<'a>) -> Result<Vec<Task>, Problem> {
        refuse_beside_parts(node, &draft.task)?;
        let parts = std::mem::take(&mut draft.parts);
        let links = Links::of(node.line, &mut draft);
        let (mut tasks, mut needed) = (Vec::with_capacity(parts.len()), Time::ZERO);
        let count = parts.len();
        for (at, (mut part, table)) in parts.into_iter().enumerate() {
            let is_last = at + 1 == count;
            let Task { acet, cores, .. } = std::mem::replace(&mut part.task, draft.task.clone());
            part.task = part.task.with_acet(acet).with_cores(cores).with_is_part(!is_last);
            if !is_last {
                part.task.name = self.names.add(format!("{} (part {})", draft.task.name, at + 1), node.line)?;
            }
            part.preemption = part.preemption.or(draft.preemption);
            self.execution_times(table, &mut part)?;
            let (mut task, fastest) = self.limited(part, table.line)?;
            needed = Time(needed.0.saturating_add(fastest.time_for(task.wcet).0));
            if at > 0 {
                task.jitter = Time::ZERO;
            }
            self.links.push(if at == 0 { links.clone() } else { links.next_part() });
            tasks.push(task);
        }
        if !links.follows() {
            self.warnings.extend(hopeless_parts(node.line, &draft.task, needed));
        }
        Ok(tasks)
    }
}
