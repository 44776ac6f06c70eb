//! Output to the terminal, and files that are never left half-written.
//!
//! Everything that reaches the terminal passes through this module, which escapes the control characters that names of
//! files and tasks may contain.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use temponet_formats::is_pipe;
use temponet_wording::{visible, visible_lines};

use crate::hints::with_flags;
use crate::interrupt::Unfinished;

/// Escape sequences that begin and end bold text on a terminal.
pub const BOLD: [&str; 2] = ["\x1b[1m", "\x1b[0m"];

/// Prints text to stdout.
pub fn print(text: &str) -> Result<()> {
    print_bytes(harmless(text).as_bytes())
}

/// Escapes everything that controls a terminal except our own [`BOLD`].
fn harmless(text: &str) -> String {
    let [begin, end] = BOLD;
    let plain = |part: &str| part.split(end).map(visible_lines).collect::<Vec<_>>().join(end);
    text.split(begin).map(plain).collect::<Vec<_>>().join(begin)
}

/// Prints bytes to stdout without escaping.
pub fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).context("cannot write to stdout")
}

/// Prints one JSON value to stdout.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    // JSON itself escapes most control characters. The others occur only inside strings, where they can be escaped as
    // well.
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match visible_lines(c.encode_utf8(&mut [0; 4])).len() > c.len_utf8() {
            true => out += &format!("\\u{:04x}", u32::from(c)),
            false => out.push(c),
        }
    }
    print_bytes(out.as_bytes())
}

/// Prints one line to stderr, with flags where a library speaks of what they set. Errors are ignored, because stderr
/// may be closed.
pub fn say(message: &str) {
    let _ = writeln!(std::io::stderr(), "{}", visible(&with_flags(message)));
}

/// Files that are complete, in the order of their first completion.
static WRITTEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Names the files that the command has written and that are still there, in one line on stderr.
pub fn say_what_was_written() {
    let written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    let names: Vec<String> =
        written.iter().filter(|path| path.exists()).map(|path| path.display().to_string()).collect();
    match &names[..] {
        [] => {}
        [one] => say(&format!("wrote {one}")),
        [others @ .., last] => say(&format!("wrote {} and {last}", others.join(", "))),
    }
}

/// Longest time to wait for a reader of a pipe.
const PATIENCE: Duration = Duration::from_secs(10);

/// A file that is written under a temporary name and takes its own name when it is complete. Until then, an older file
/// of that name stays unchanged.
pub struct NewFile {
    path: PathBuf,
    /// Temporary file; none where the target is not a regular file (a pipe, a device) and is written directly.
    temporary: Option<(tempfile::TempPath, Unfinished)>,
    /// Writer of the content.
    pub out: BufWriter<File>,
}

impl NewFile {
    /// Opens the temporary file of a target, which must not be a link. `is_special` targets are opened directly.
    pub fn create(target: &Path, is_special: bool) -> Result<NewFile> {
        let cannot_write = || format!("cannot write {}", target.display());
        if is_special {
            let file = open_special(target).with_context(cannot_write)?;
            return Ok(NewFile { path: target.into(), temporary: None, out: BufWriter::new(file) });
        }
        let (file, unfinished) =
            Unfinished::create(|| temporary_in(folder_of(target)), |file| file.path()).with_context(cannot_write)?;
        let (file, path) = file.into_parts();
        if let Ok(old) = target.metadata() {
            // The owner is set first, because a change of owner resets the permissions. Only root can keep the owner.
            #[cfg(unix)]
            {
                use std::os::unix::fs::{MetadataExt, fchown};
                let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
            }
            file.set_permissions(old.permissions()).with_context(cannot_write)?;
        }
        Ok(NewFile { path: target.into(), temporary: Some((path, unfinished)), out: BufWriter::new(file) })
    }

    /// Completes the file: writes it to disk and renames it.
    pub fn finish(mut self) -> Result<()> {
        self.complete().with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn complete(&mut self) -> std::io::Result<()> {
        self.out.flush()?;
        let Some((temporary, unfinished)) = self.temporary.take() else { return Ok(()) };
        // The content must be on disk before the file takes its name; otherwise a crash could leave an empty file under
        // that name.
        self.out.get_ref().sync_all()?;
        temporary.persist(&self.path).map_err(|error| error.error)?;
        drop(unfinished);
        #[cfg(unix)]
        if let Ok(folder) = File::open(folder_of(&self.path)) {
            // Not every file system can sync a folder; the file itself is safe.
            let _ = folder.sync_all();
        }
        let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
        if !written.contains(&self.path) {
            written.push(self.path.clone());
        }
        Ok(())
    }

    /// Writes the whole content and completes the file.
    pub fn write(mut self, content: &[u8]) -> Result<()> {
        self.out.write_all(content).with_context(|| format!("cannot write {}", self.path.display()))?;
        self.finish()
    }
}

/// Returns the folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a temporary file with an unpredictable name and the usual permissions of a new file.
pub fn temporary_in(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".temponet-").suffix(".partial").rand_bytes(12);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// Opens a pipe or a device. Opening a pipe waits for a reader, but not for longer than [`PATIENCE`].
fn open_special(path: &Path) -> Result<File> {
    // A stream that is already open continues at its position; otherwise one output would overwrite the other.
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        if path == Path::new("/dev/stdout") {
            return Ok(File::from(std::io::stdout().as_fd().try_clone_to_owned()?));
        }
        if path == Path::new("/dev/stderr") {
            return Ok(File::from(std::io::stderr().as_fd().try_clone_to_owned()?));
        }
    }
    let open = |path: &Path| File::options().append(true).open(path);
    if !path.metadata().is_ok_and(|metadata| is_pipe(&metadata)) {
        return Ok(open(path)?);
    }
    let (sender, receiver) = channel();
    let path = path.to_path_buf();
    std::thread::spawn(move || sender.send(open(&path)));
    match receiver.recv_timeout(PATIENCE) {
        Ok(file) => Ok(file?),
        Err(_) => bail!("nobody has read from the pipe for {} s", PATIENCE.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_bold_reaches_the_terminal_and_nothing_else_does() {
        assert_eq!(harmless("a\x1b[1mb\x1b[0m\n\tc"), "a\x1b[1mb\x1b[0m\n\tc");
        assert_eq!(harmless("\x1b[2Ja\x1b[1mb\x07\x1b[0m"), "\\u{1b}[2Ja\x1b[1mb\\u{7}\x1b[0m");
    }
}
