//! A workload of rt-app with the settings: a thread for each task, with its policy and processors.

use temponet_formats::{NotRepresentable, ThreadPolicy, to_rt_app_with};
use temponet_task::TaskSet;

use super::{Applied, number};
use crate::linux::settings::{Policy, Settings};

/// Writes the workload.
pub fn write(set: &TaskSet, settings: &Settings) -> Result<Applied, NotRepresentable> {
    let exported = to_rt_app_with(&settings.applied(set), |task| {
        Some(match settings.threads[task.index()].policy {
            Policy::Other { nice } => ThreadPolicy::Other(nice),
            Policy::Fifo { priority } => ThreadPolicy::Fifo(priority),
            Policy::Deadline { budget, deadline, period } => ThreadPolicy::Deadline([budget, deadline, period]),
        })
    })?;
    let mut notes = exported.notes;
    if set.core_ids().any(|core| number(set, core) != core.index()) {
        notes.push("processors are numbered as the cores of the set, not as those of the trace".into());
    }
    Ok(Applied { text: exported.text, notes })
}
