//! Drop-in files of systemd: one for each task, for a service of its name. A file of them is a shell archive: a script
//! that writes the drop-ins, so that one file holds all.

use std::fmt::Write;

use temponet_task::TaskSet;

use super::{Affinity, Applied, affinity, in_comment, joined, note_on_partitions};
use crate::linux::settings::{Policy, Settings};

/// Writes the script.
pub fn write(set: &TaskSet, settings: &Settings) -> Applied {
    let mut notes: Vec<String> = note_on_partitions(settings).into_iter().collect();
    let mut text = "#!/bin/sh\n\
        # Settings by temponet advise: a drop-in for the service of each task, written below the folder $1.\n\
        # sudo sh FILE && sudo systemctl daemon-reload, then restart the services.\n\
        set -e\n\
        root=${1:-/etc/systemd/system}\n"
        .to_string();
    for (id, task) in set.task_ids().zip(set.tasks()) {
        let setting = &settings.threads[id.index()];
        let unit = escaped(&task.name);
        let policy = match setting.policy {
            Policy::Fifo { priority } => format!("CPUSchedulingPolicy=fifo\nCPUSchedulingPriority={priority}\n"),
            Policy::Other { nice } => format!("CPUSchedulingPolicy=other\nNice={nice}\n"),
            Policy::Deadline { budget, deadline, period } => {
                notes.push(format!(
                    "systemd has no SCHED_DEADLINE: the service of {:?} is to be started by chrt --deadline",
                    task.name
                ));
                format!(
                    "# systemd has no SCHED_DEADLINE. Start the program with\n\
                     # chrt --deadline --sched-runtime {} --sched-deadline {} --sched-period {} 0 …\n",
                    budget.0, deadline.0, period.0
                )
            }
        };
        // A unit's own affinity would be added to that of a drop-in; an empty one removes it.
        let affinity = match affinity(set, settings, id) {
            Affinity::Processors(cores) => format!("CPUAffinity=\nCPUAffinity={}\n", joined(&cores, " ")),
            Affinity::All => "CPUAffinity=\n".into(),
            Affinity::Partition(cores) => {
                format!("CPUAffinity=\n# Its cpuset: a partition root with processor {}\n", joined(&cores, ","))
            }
        };
        let _ = write!(
            text,
            "\nmkdir -p \"$root\"/'{unit}.service.d'\n\
             cat > \"$root\"/'{unit}.service.d/50-temponet.conf' <<'END'\n\
             # {}: {}\n[Service]\n{policy}{affinity}END\n",
            in_comment(&task.name),
            setting.policy
        );
    }
    Applied { text, notes }
}

/// The name of a unit, as `systemd-escape` writes it.
fn escaped(name: &str) -> String {
    let mut out = String::new();
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'/' => out.push('-'),
            b'.' if at == 0 => out += r"\x2e",
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b':' | b'_' | b'.' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, r"\x{byte:02x}");
            }
        }
    }
    out
}
