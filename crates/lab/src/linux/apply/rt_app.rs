//! A workload of rt-app with the settings: a thread for each task, with its policy and processors.

use temponet_formats::{NotRepresentable, ThreadPolicy, to_rt_app_with};
use temponet_task::TaskSet;

use super::Applied;
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
    Ok(Applied { text: exported.text, notes: exported.notes })
}
