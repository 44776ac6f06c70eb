//! Where results go: stdout, or files that are never left half-written.
//!
//! Whatever reaches a terminal goes through here, where control characters, which names of files and tasks may hold, are escaped.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use temponet_formats::is_pipe;
use temponet_task::wording::{visible, visible_lines};

use crate::interrupt::Unfinished;

/// How a part of a text is set in bold, where stdout is a terminal.
pub const BOLD: [&str; 2] = ["\x1b[1m", "\x1b[0m"];

/// Prints text to stdout.
pub fn print(text: &str) -> Result<()> {
    print_bytes(harmless(text).as_bytes())
}

/// The text without what steers a terminal, but for our own [`BOLD`].
fn harmless(text: &str) -> String {
    let [begin, end] = BOLD;
    let plain = |part: &str| part.split(end).map(visible_lines).collect::<Vec<_>>().join(end);
    text.split(begin).map(plain).collect::<Vec<_>>().join(begin)
}

/// Prints to stdout as it is.
pub fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).context("cannot write to stdout")
}

/// Prints one JSON object to stdout.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    // JSON escapes most control characters by itself; others occur in texts only, where they may be escaped as well.
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match visible_lines(c.encode_utf8(&mut [0; 4])).len() > c.len_utf8() {
            true => out += &format!("\\u{:04x}", u32::from(c)),
            false => out.push(c),
        }
    }
    print_bytes(out.as_bytes())
}

/// Tells the user something on stderr, in one line. Nobody may be listening.
pub fn say(message: &str) {
    let _ = writeln!(std::io::stderr(), "{}", visible(message));
}

/// How long to wait for a reader of a pipe.
const PATIENCE: Duration = Duration::from_secs(10);

/// A file under a temporary name beside its own, which it takes when it is complete. Until then an older file of that name stays as it was.
pub struct NewFile {
    path: PathBuf,
    /// None where the target is no ordinary file (a pipe, a device) and is written to as it is.
    temporary: Option<(tempfile::TempPath, Unfinished)>,
    /// What to write to.
    pub out: BufWriter<File>,
}

impl NewFile {
    /// Opens the temporary file for a target that is no link.
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
            // The owner first, which only root can keep: another one resets the permissions.
            #[cfg(unix)]
            {
                use std::os::unix::fs::{MetadataExt, fchown};
                let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
            }
            file.set_permissions(old.permissions()).with_context(cannot_write)?;
        }
        Ok(NewFile { path: target.into(), temporary: Some((path, unfinished)), out: BufWriter::new(file) })
    }

    /// Completes the file.
    pub fn finish(mut self) -> Result<()> {
        self.complete().with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn complete(&mut self) -> std::io::Result<()> {
        self.out.flush()?;
        let Some((temporary, unfinished)) = self.temporary.take() else { return Ok(()) };
        // On the disk before it takes the place of the old one, or a crash could leave an empty file under its name.
        self.out.get_ref().sync_all()?;
        temporary.persist(&self.path).map_err(|error| error.error)?;
        drop(unfinished);
        #[cfg(unix)]
        if let Ok(folder) = File::open(folder_of(&self.path)) {
            // Not every file system can; the file itself is safe.
            let _ = folder.sync_all();
        }
        Ok(())
    }

    /// Writes everything and completes the file.
    pub fn write(mut self, content: &[u8]) -> Result<()> {
        self.out.write_all(content).with_context(|| format!("cannot write {}", self.path.display()))?;
        self.finish()
    }
}

/// The folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A new file in a folder under a name that nobody can foresee, with the permissions of any new file.
pub fn temporary_in(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".temponet-").suffix(".partial").rand_bytes(12);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// Opens a pipe or a device. Opening a pipe waits for a reader, who may never come.
fn open_special(path: &Path) -> Result<File> {
    // What is open already goes on where it is, or one output would overwrite the other.
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
