//! Changes to the machine that outlast a process, each undone when this program ends, however it ends.
//!
//! A small process of its own waits at a pipe that this program holds open. When the pipe closes, because the change is
//! over or because this program is gone, killed or not, that process undoes the change. It belongs to a process group
//! of its own, so that Ctrl-C does not reach it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, anyhow};
use temponet_runtime::kernel_trace;

const THROTTLE: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// A change that is undone when this is dropped or the program ends.
pub struct Undone(Child);

impl Undone {
    /// Has a command of the shell, with its arguments as `$1` and so on, run when the change is over. Call it before
    /// the change.
    fn by(command: &str, arguments: &[&str]) -> Result<Undone> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(format!("cat > /dev/null; {command}")).arg("temponet-undo").args(arguments);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        Ok(Undone(shell.spawn().context("cannot start the process that undoes changes to the machine")?))
    }
}

impl Drop for Undone {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // Nothing else can be done about a failure here.
        let _ = self.0.wait();
    }
}

/// Turns the throttling of real-time threads off. Where it is off already, there is nothing to undo: that is for
/// whoever turned it off.
pub fn unthrottled() -> Result<Option<Undone>> {
    let cannot = || format!("--unthrottled: cannot change {THROTTLE}");
    let old = std::fs::read_to_string(THROTTLE).with_context(cannot)?;
    if old.trim() == "-1" {
        return Ok(None);
    }
    let undone = Undone::by(r#"echo "$1" > "$2""#, &[old.trim(), THROTTLE])?;
    std::fs::write(THROTTLE, "-1").with_context(cannot)?;
    Ok(Some(undone))
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
    // A run that was killed with this program may hold files of it open for another moment.
    let remove = r#"rmdir "$1" || { sleep 1; rmdir "$1"; }"#;
    let undone = Undone::by(remove, &[&path.to_string_lossy()])?;
    std::fs::create_dir(&path).with_context(|| format!("--trace: cannot make {}", path.display()))?;
    Ok(Instance { path, _undone: undone })
}
