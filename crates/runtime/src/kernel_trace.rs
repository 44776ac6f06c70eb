//! The kernel's record of a run, where the machine has one.

use std::path::{Path, PathBuf};

/// A switch of a processor from one thread to another, as the kernel recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Date on the monotonic clock, in nanoseconds. The kernel writes microseconds.
    pub at: u64,
    /// Number of the processor.
    pub cpu: u32,
    /// The kernel's id of the thread that stopped running; zero is an idle processor.
    pub from: i32,
    /// The kernel's id of the thread that runs now.
    pub to: i32,
}

/// Folder in which an instance for recording can be made; an error in words otherwise.
pub fn folder() -> Result<PathBuf, String> {
    #[cfg(target_os = "linux")]
    return crate::linux::tracefs::folder();
    #[cfg(not(target_os = "linux"))]
    Err("the kernel's trace needs Linux".into())
}

/// Prepares a new instance to record.
pub fn prepare(instance: &Path) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    return crate::linux::tracefs::prepare(instance);
    #[cfg(not(target_os = "linux"))]
    Err(std::io::Error::other(instance.display().to_string()))
}

/// Records the switches of these threads from now on.
pub fn record(instance: &Path, threads: &[i32]) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    return crate::linux::tracefs::record(instance, threads);
    #[cfg(not(target_os = "linux"))]
    Err(std::io::Error::other(format!("{}: {threads:?}", instance.display())))
}

/// Stops recording and reads what was recorded.
pub fn read(instance: &Path) -> std::io::Result<Vec<Switch>> {
    #[cfg(target_os = "linux")]
    return crate::linux::tracefs::read(instance);
    #[cfg(not(target_os = "linux"))]
    Err(std::io::Error::other(instance.display().to_string()))
}
