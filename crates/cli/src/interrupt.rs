//! The end of the program by Ctrl-C or by a request to terminate: at once, whatever it is doing, with nothing left half-written.
//!
//! There is one handler for the whole program. What must not stay behind is registered here for as long as it is unfinished.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Files that are to be removed if the program ends now.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Begins to listen. SIGINT ends the program with exit code 130, SIGTERM with 143.
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
                // Without waiting for anybody: other threads are still at work.
                signal_hook::low_level::exit(128 + signal);
            }
        })?;
    }
    Ok(())
}

/// A file that is removed if the program is interrupted before this is dropped.
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// Makes a file and registers it; an interruption cannot come between.
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
