//! Changes to the machine that outlast a process, each undone when its guard is dropped or the program is interrupted.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use temponet_runtime::kernel_trace;

use crate::interrupt::{Undo, Undone};

const THROTTLE: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// Turns the throttling of real-time threads off.
pub fn unthrottled() -> Result<Undone> {
    let cannot = || format!("--unthrottled: cannot change {THROTTLE}");
    let old = std::fs::read_to_string(THROTTLE).with_context(cannot)?;
    let undone = Undone::register(Undo::Write(THROTTLE.into(), old));
    std::fs::write(THROTTLE, "-1").with_context(cannot)?;
    Ok(undone)
}

/// An instance of the kernel's trace that belongs to this program.
pub struct Instance {
    path: PathBuf,
    _undone: Undone,
}

impl Instance {
    /// Folder of the instance.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Makes an instance of the kernel's trace.
pub fn trace_instance() -> Result<Instance> {
    let folder = kernel_trace::folder().map_err(|why| anyhow!("--trace: {why}"))?;
    let path = folder.join(format!("temponet-{}", std::process::id()));
    let undone = Undone::register(Undo::RemoveFolder(path.clone()));
    std::fs::create_dir(&path).with_context(|| format!("--trace: cannot make {}", path.display()))?;
    Ok(Instance { path, _undone: undone })
}
