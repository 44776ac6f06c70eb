//! A shell script of `chrt`, `taskset` and `renice` for threads that run, found by their names.

use std::fmt::Write;

use temponet_task::TaskSet;

use super::{Affinity, Applied, affinity, in_comment, joined, note_on_partitions};
use crate::linux::settings::{Policy, Settings};

/// Longest name of a thread that the kernel keeps, in bytes.
const LONGEST_NAME: usize = 15;

const HEAD: &str = r#"#!/bin/sh
# Settings by temponet advise. Threads are found by their names, which the kernel cuts to 15 bytes.
# Needs root or CAP_SYS_NICE.
failed=0

# Calls the rest of the line with the id of the thread of this name.
thread() {
    name=$1
    shift
    found=$(grep -lxF -e "$name" /proc/[0-9]*/task/[0-9]*/comm 2>/dev/null)
    case $(echo "$found" | grep -c .) in
    0) echo "no thread is named $name" >&2; failed=1 ;;
    1) found=${found%/comm}; "$@" "${found##*/}" || failed=1 ;;
    *) echo "several threads are named $name: they need names of their own to have settings of their own" >&2; failed=1 ;;
    esac
}
fifo() { chrt --fifo --pid "$1" "$2"; }
reserve() { chrt --deadline --sched-runtime "$1" --sched-deadline "$2" --sched-period "$3" --pid 0 "$4"; }
other() { chrt --other --pid 0 "$2" && renice -n "$1" -p "$2" >/dev/null; }
pin() { taskset --pid --cpu-list "$1" "$2" >/dev/null; }

"#;

/// Writes the script.
pub fn write(set: &TaskSet, settings: &Settings) -> Applied {
    let mut text = HEAD.to_string();
    let mut notes: Vec<String> = note_on_partitions(settings).into_iter().collect();
    // None where the kernel cuts it within a character.
    let name_of = |name: &str| name.get(..name.len().min(LONGEST_NAME)).map(String::from);
    let names: Vec<Option<String>> = set.tasks().iter().map(|task| name_of(&task.name)).collect();
    for (id, task) in set.task_ids().zip(set.tasks()) {
        let setting = &settings.threads[id.index()];
        let Some(name) = &names[id.index()] else {
            notes.push(format!("task {:?} is left out: the kernel cuts its name within a character", task.name));
            continue;
        };
        if names.iter().flatten().filter(|other| *other == name).count() > 1 {
            let why = format!("the kernel cuts its name to {name:?}, as that of another task");
            notes.push(format!("task {:?} is left out: {why}", task.name));
            continue;
        }
        if name.is_empty() || name.contains(char::is_control) {
            notes.push(format!("task {:?} is left out: no thread has such a name", task.name));
            continue;
        }
        let _ = writeln!(text, "# {}: {}", in_comment(&task.name), setting.policy);
        let name = quoted(name);
        let _ = match affinity(set, settings, id) {
            Affinity::Processors(cores) => writeln!(text, "thread {name} pin {}", joined(&cores, ",")),
            Affinity::Partition(cores) => {
                writeln!(text, "# its cpuset: a partition root with processor {}", joined(&cores, ","))
            }
            Affinity::All => Ok(()),
        };
        let _ = match setting.policy {
            Policy::Fifo { priority } => writeln!(text, "thread {name} fifo {priority}"),
            Policy::Other { nice } => writeln!(text, "thread {name} other {nice}"),
            Policy::Deadline { budget, deadline, period } => {
                writeln!(text, "thread {name} reserve {} {} {}", budget.0, deadline.0, period.0)
            }
        };
    }
    text += "exit $failed\n";
    Applied { text, notes }
}

/// A word of the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
