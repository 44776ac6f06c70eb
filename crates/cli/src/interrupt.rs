//! Handling of Ctrl-C and of requests to terminate: the program ends at once and leaves no temporary files and no changes to the machine behind.
//!
//! There is one handler for the whole program. Temporary files are registered here until they are complete, and changes until they are undone.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Files to remove if the program is interrupted.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Changes to the machine to undo if the program is interrupted.
static CHANGED: Mutex<Vec<(u64, Undo)>> = Mutex::new(Vec::new());

/// How a change to the machine is undone.
#[derive(Clone, Debug)]
pub enum Undo {
    /// Writes this content to a file.
    Write(PathBuf, String),
    /// Removes an empty folder.
    RemoveFolder(PathBuf),
}

impl Undo {
    fn undo(&self) {
        // Nothing else can be done about a failure here.
        let _ = match self {
            Undo::Write(path, content) => std::fs::write(path, content),
            Undo::RemoveFolder(path) => std::fs::remove_dir(path),
        };
    }
}

/// Guard of a change to the machine, which is undone when the guard is dropped or the program is interrupted.
pub struct Undone(u64);

impl Undone {
    /// Registers how a change is undone. Call it before the change.
    pub fn register(undo: Undo) -> Undone {
        let mut changed = CHANGED.lock().unwrap_or_else(PoisonError::into_inner);
        let number = changed.last().map_or(0, |(number, _)| number + 1);
        changed.push((number, undo));
        Undone(number)
    }
}

impl Drop for Undone {
    fn drop(&mut self) {
        let mut changed = CHANGED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = changed.iter().position(|(number, _)| *number == self.0) {
            changed.remove(place).1.undo();
        }
    }
}

/// Installs the handler. SIGINT ends the program with exit code 130, SIGTERM with 143.
pub fn listen() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            if let Some(signal) = signals.forever().next() {
                for path in UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                    let _ = std::fs::remove_file(path);
                }
                for (_, undo) in CHANGED.lock().unwrap_or_else(PoisonError::into_inner).iter().rev() {
                    undo.undo();
                }
                // Other threads are still running, so the process exits without waiting for them.
                signal_hook::low_level::exit(128 + signal);
            }
        })?;
    }
    Ok(())
}

/// Guard of a file that is removed if the program is interrupted while the guard exists.
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// Creates a file and registers it, without an interruption in between.
    pub fn create<T>(
        make: impl FnOnce() -> std::io::Result<T>,
        path_of: fn(&T) -> &Path,
    ) -> std::io::Result<(T, Unfinished)> {
        let mut unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        let made = make()?;
        let path = path_of(&made).to_path_buf();
        unfinished.push(path.clone());
        Ok((made, Unfinished(path)))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        unfinished.retain(|path| *path != self.0);
    }
}
