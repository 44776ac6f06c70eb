//! Handling of Ctrl-C and of requests to terminate: the program ends at once and leaves no temporary files behind.
//!
//! There is one handler for the whole program. Temporary files are registered here until they are complete. A command
//! that ends well when it is interrupted, such as a recording, asks for the first interruption itself.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Whether the first interruption is for the command.
static IS_ASKED_FOR: AtomicBool = AtomicBool::new(false);
/// Whether the command has been interrupted.
static HAS_COME: AtomicBool = AtomicBool::new(false);

/// From now on the first interruption only makes [`has_come`] true; a second one ends the program.
pub fn ask_for_the_first() {
    IS_ASKED_FOR.store(true, Ordering::SeqCst);
}

/// Whether an interruption has come since [`ask_for_the_first`].
pub fn has_come() -> bool {
    HAS_COME.load(Ordering::SeqCst)
}

/// Files to remove if the program is interrupted.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// What is said if the program is interrupted.
static LAST_WORDS: Mutex<Option<String>> = Mutex::new(None);

/// Has this said if the program is interrupted from now on, or nothing.
pub fn set_last_words(words: Option<String>) {
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = words;
}

/// Installs the handler. SIGINT ends the program with exit code 130, SIGTERM with 143, and SIGHUP, as when a terminal is
/// closed, with 129 unless it is ignored (`nohup`).
pub fn listen() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
        if ignores(SIGHUP) == Some(false) {
            signals.handle().add_signal(SIGHUP)?;
        }
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            for signal in signals.forever() {
                if IS_ASKED_FOR.load(Ordering::SeqCst) && !HAS_COME.swap(true, Ordering::SeqCst) {
                    continue;
                }
                for path in UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                    let _ = std::fs::remove_file(path);
                }
                if let Some(words) = &*LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) {
                    crate::output::say(words);
                }
                // Other threads are still running, so the process exits without waiting for them.
                signal_hook::low_level::exit(128 + signal);
            }
        })?;
    }
    Ok(())
}

/// Whether this process ignores a signal, as Linux tells it.
#[cfg(unix)]
fn ignores(signal: i32) -> Option<bool> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let ignored = u64::from_str_radix(ignored.trim(), 16).ok()?;
    Some(ignored >> (signal - 1) & 1 == 1)
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
