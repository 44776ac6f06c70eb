//! Where results go: stdout, or files that are never left half-written.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;

/// Prints to stdout.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Prints one JSON object to stdout.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// A file under a temporary name beside its own, which it takes when it is complete. Until then an older file of that
/// name stays as it was.
pub struct NewFile {
    path: PathBuf,
    /// None where the target is no ordinary file (a pipe, a device) and is written to as it is.
    temporary: Option<PathBuf>,
    /// What to write to.
    pub out: BufWriter<File>,
}

impl NewFile {
    /// Opens the temporary file.
    pub fn create(path: &Path) -> Result<NewFile> {
        let cannot_write = || format!("cannot write {}", path.display());
        // A link stays one: the file it leads to is written.
        let target = path.canonicalize().unwrap_or_else(|_| path.into());
        let is_special = target.metadata().is_ok_and(|kind| !kind.is_file());
        let name = target.file_name().with_context(|| format!("{}: is not a file name", path.display()))?;
        let partial = format!(".{}.{}.partial", name.to_string_lossy(), std::process::id());
        let temporary = (!is_special).then(|| target.with_file_name(partial));
        let file = match &temporary {
            Some(temporary) => File::create(temporary),
            None => File::options().write(true).open(&target),
        };
        let out = BufWriter::new(file.with_context(cannot_write)?);
        Ok(NewFile { path: target, temporary, out })
    }

    /// Completes the file.
    pub fn finish(mut self) -> Result<()> {
        let mut written = self.out.flush();
        if let Some(temporary) = &self.temporary {
            written = written.and_then(|()| std::fs::rename(temporary, &self.path));
        }
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After `finish` it has moved away and this finds nothing.
        if let Some(temporary) = &self.temporary {
            let _ = std::fs::remove_file(temporary);
        }
    }
}

impl NewFile {
    /// Writes everything and completes the file.
    pub fn write(mut self, content: &[u8]) -> Result<()> {
        self.out.write_all(content).with_context(|| format!("cannot write {}", self.path.display()))?;
        self.finish()
    }
}

/// Writes a whole file, completely or not at all.
pub fn write_file(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    NewFile::create(path)?.write(content.as_ref())
}

/// Refuses to write one file twice, or over the set that is read.
pub fn refuse_same(input: Option<&str>, outputs: &[Option<&Path>]) -> Result<()> {
    let place = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.into());
    let mut seen: Vec<PathBuf> = input.map(|input| place(Path::new(input))).into_iter().collect();
    for path in outputs.iter().flatten() {
        // Pipes and devices may be written to as often as one likes.
        let is_file = path.metadata().map_or(true, |kind| kind.is_file());
        if is_file && seen.contains(&place(path)) {
            bail!("{}: would be written over a file that this command reads or writes as well", path.display());
        }
        seen.push(place(path));
    }
    Ok(())
}

/// Refuses a file in a folder that is not there, before hours of work are lost to it.
pub fn refuse_nowhere(path: &Path) -> Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            bail!("cannot write {}: there is no folder {}", path.display(), folder.display())
        }
        _ => Ok(()),
    }
}

/// Refuses to replace a file that the user may have written.
pub fn refuse_existing(path: &Path, force: bool) -> Result<()> {
    if !force && path.exists() {
        bail!("{} exists already; --force replaces it", path.display());
    }
    Ok(())
}
