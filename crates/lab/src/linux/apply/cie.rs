//! The thread configuration of the callback-isolated executor of ROS 2 (`cie_thread_configurator`): an entry for each
//! callback group, with `nice` for the fair class, `priority` from 1 to 99 for SCHED_FIFO, and times in nanoseconds for
//! SCHED_DEADLINE.
//!
//! The ids of callback groups are those of the executor's prerun. A trace names callbacks differently, so that a name
//! that is none of its ids has to be replaced, which a comment says.

use std::fmt::Write;

use temponet_task::TaskSet;

use super::{Affinity, Applied, affinity, in_comment, joined, note_on_partitions};
use crate::linux::settings::{Policy, Settings};

/// Writes the file.
pub fn write(set: &TaskSet, settings: &Settings) -> Applied {
    let mut text = "# Settings by temponet advise, for cie_thread_configurator.\ncallback_groups:\n".to_string();
    let mut unknown = 0;
    for (id, task) in set.task_ids().zip(set.tasks()) {
        let setting = &settings.threads[id.index()];
        if !is_group(&task.name) {
            unknown += 1;
            let _ = writeln!(text, "  # the id of the callback group of {}", in_comment(&task.name));
        }
        let _ = writeln!(text, "  - id: {}", quoted(&task.name));
        match affinity(set, settings, id) {
            Affinity::All => text += "    affinity: ~\n",
            Affinity::Partition(cores) => {
                let _ = writeln!(
                    text,
                    "    # its cpuset: a partition root with processor {}\n    affinity: ~",
                    joined(&cores, ",")
                );
            }
            Affinity::Processors(cores) => {
                text += "    affinity:\n";
                cores.iter().for_each(|core| {
                    let _ = writeln!(text, "      - {core}");
                });
            }
        }
        let _ = writeln!(text, "    policy: {}", setting.policy.name());
        let _ = match setting.policy {
            Policy::Other { nice } => writeln!(text, "    nice: {nice}"),
            Policy::Fifo { priority } => writeln!(text, "    priority: {priority}"),
            Policy::Deadline { budget, deadline, period } => {
                writeln!(text, "    runtime: {}\n    deadline: {}\n    period: {}", budget.0, deadline.0, period.0)
            }
        };
    }
    let note = match unknown {
        0 => None,
        1 => Some("1 name is no id of a callback group; the configurator's prerun lists the ids".into()),
        count => Some(format!("{count} names are no ids of callback groups; the configurator's prerun lists the ids")),
    };
    Applied { text, notes: note.into_iter().chain(note_on_partitions(settings)).collect() }
}

/// Whether a name looks like the id of a callback group: a node, and callbacks behind @.
fn is_group(name: &str) -> bool {
    name.starts_with('/') && name.contains('@')
}

/// A double-quoted scalar of YAML.
fn quoted(name: &str) -> String {
    serde_json::Value::from(name).to_string()
}
