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
    temporary: PathBuf,
    /// What to write to.
    pub out: BufWriter<File>,
}

impl NewFile {
    /// Opens the temporary file.
    pub fn create(path: &Path) -> Result<NewFile> {
        let name = path.file_name().with_context(|| format!("{}: is not a file name", path.display()))?;
        let temporary = path.with_file_name(format!(".{}.{}.partial", name.to_string_lossy(), std::process::id()));
        let file = File::create(&temporary).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(NewFile { path: path.into(), temporary, out: BufWriter::new(file) })
    }

    /// Completes the file.
    pub fn finish(mut self) -> Result<()> {
        let written = self.out.flush().and_then(|()| std::fs::rename(&self.temporary, &self.path));
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After `finish` it has moved away and this finds nothing.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

/// Writes a whole text to a file, completely or not at all.
pub fn write_file(path: &Path, text: &str) -> Result<()> {
    let mut file = NewFile::create(path)?;
    file.out.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    file.finish()
}

/// Refuses to replace a file that the user may have written.
pub fn refuse_existing(path: &Path, force: bool) -> Result<()> {
    if !force && path.exists() {
        bail!("{} exists already; --force replaces it", path.display());
    }
    Ok(())
}
