//! Registry of all files that a command reads and writes. It prevents an output from overwriting an input, another
//! output, or a file that this program did not write.
//!
//! A process runs one command, so there is one registry. Code that reads a file of the user registers it with
//! [`reads`]. Code that will write a file claims it with [`Output::claim`] before the work begins. Files are identified
//! by device and inode, not by spelling: links, hard links, `./a` and `a` are the same file.

use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};

use crate::output::{NewFile, folder_of, temporary_in};

/// Kind of an output file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Self-contained HTML page.
    Page,
    /// SVG picture.
    Picture,
    /// SVG picture, or an HTML page with one.
    PictureOrPage,
    /// CSV file with one row per job.
    Jobs,
    /// Chrome trace.
    Trace,
    /// CSV file with one row per training phase.
    Log,
    /// TensorBoard event file.
    Events,
    /// CSV file with the rows of a sweep.
    Sweep,
    /// CSV file with the results on many sets.
    Bulk,
    /// Parquet file with the rows of a sweep.
    Parquet,
    /// Model file.
    Model,
    /// Checkpoint from which a training can continue.
    Checkpoint,
    /// Task set in one of our formats.
    TaskSet,
    /// Shell script with settings of Linux.
    Script,
    /// Thread configuration of the callback-isolated executor.
    Threads,
    /// Workload of rt-app.
    Workload,
    /// Recording of the kernel's trace, as text.
    Recording,
    /// Data that `bench … --write` writes for other programs.
    BenchData,
}

/// Number of leading bytes by which the kind of a file is recognized.
const HEAD: u64 = 1 << 16;

impl Kind {
    /// Returns the name used in messages.
    fn name(self) -> &'static str {
        match self {
            Kind::Page => "a page of this program",
            Kind::Picture => "a picture of this program",
            Kind::PictureOrPage => "a picture or page of this program",
            Kind::Jobs => "a list of jobs",
            Kind::Trace => "a trace of this program",
            Kind::Log => "the log of a training",
            Kind::Events => "an event file",
            Kind::Sweep => "the table of a sweep",
            Kind::Bulk => "the table of many sets",
            Kind::Parquet => "a Parquet file",
            Kind::Model => "a model",
            Kind::Checkpoint => "the checkpoint of a training",
            Kind::TaskSet => "a task set",
            Kind::Script => "a shell script",
            Kind::Threads => "a thread configuration",
            Kind::Workload => "a workload of rt-app",
            Kind::Recording => "a recording",
            Kind::BenchData => "data of a benchmark",
        }
    }

    /// Returns the allowed file extensions; empty if any extension is allowed.
    fn endings(self) -> &'static [&'static str] {
        match self {
            Kind::Page => &["html", "htm"],
            Kind::Picture => &["svg"],
            Kind::PictureOrPage => &["svg", "html", "htm"],
            Kind::Jobs | Kind::Log | Kind::Sweep | Kind::Bulk => &["csv"],
            Kind::Trace | Kind::Workload => &["json"],
            Kind::Script => &["sh"],
            Kind::Threads => &["yaml", "yml"],
            Kind::Parquet => &["parquet"],
            Kind::Model => &["safetensors"],
            Kind::TaskSet => &["toml", "csv", "json"],
            Kind::Recording => &["txt"],
            Kind::Events | Kind::Checkpoint | Kind::BenchData => &[],
        }
    }

    /// Whether a file that begins with `head` may be an earlier output of this kind.
    fn begins(self, head: &[u8]) -> bool {
        let starts =
            |text: &str| head.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text.as_bytes()));
        let holds = |text: &str| head.windows(text.len()).any(|window| window == text.as_bytes());
        let is_page = || starts("<!doctype html>") && holds("TempoNet</title>");
        let is_picture = || starts("<svg") && holds("<style>svg{font-family:system-ui,sans-serif}");
        match self {
            Kind::Page => is_page(),
            Kind::Picture => is_picture(),
            Kind::PictureOrPage => is_picture() || is_page(),
            Kind::Jobs => starts("task,job,release_ns,"),
            Kind::Trace => starts("{\"displayTimeUnit\": \"ns\", \"traceEvents\": ["),
            Kind::Log => starts("stage,method,phase,"),
            Kind::Events => holds("brain.Event:2"),
            Kind::Sweep => starts("load,cores,tasks,set,scheduler,") || starts("# temponet sweep:"),
            Kind::Bulk => starts("set,tasks,cores,load,scheduler,"),
            Kind::Parquet => starts("PAR1"),
            Kind::Model => holds("\"format\":\"temponet-model-"),
            Kind::Checkpoint => holds("\"format\":\"temponet-checkpoint-"),
            // Nothing distinguishes our task sets from those that people write, and a recording cannot be made again.
            Kind::TaskSet | Kind::Workload | Kind::Recording => false,
            Kind::Script => starts("#!/bin/sh\n# Settings by temponet advise"),
            Kind::Threads => starts("# Settings by temponet advise"),
            Kind::BenchData => {
                holds("\"time_unit\"") || holds("name,release,execution,deadline") || starts("[{\"count\":")
            }
        }
    }

    fn check_ending(self, path: &Path) -> Result<()> {
        let endings = self.endings();
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        if endings.is_empty() || ending.is_some_and(|ending| endings.contains(&ending.as_str())) {
            return Ok(());
        }
        let all: Vec<String> = endings.iter().map(|ending| format!(".{ending}")).collect();
        let known = match all.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            _ => all.concat(),
        };
        bail!("{}: the name of {} must end in {known}", path.display(), self.name())
    }
}

/// Which existing files an output may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    /// Only empty files.
    Nothing,
    /// Earlier outputs of the same kind.
    Earlier,
    /// Any file, because the user passed `--force`.
    Anything,
}

impl Replace {
    /// Returns the rule for outputs that can be produced again.
    pub fn earlier_or(force: bool) -> Replace {
        if force { Replace::Anything } else { Replace::Earlier }
    }

    /// Returns the rule for files that people write themselves, or that take long to produce.
    pub fn nothing_or(force: bool) -> Replace {
        if force { Replace::Anything } else { Replace::Nothing }
    }
}

/// Identity of a file, independent of the spelling of its path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Identity {
    /// An existing file: device and inode, or the full path on systems without them.
    There(Place),
    /// A file that does not exist yet: its folder and name.
    New(Place, OsString),
}

#[cfg(unix)]
type Place = (u64, u64);
#[cfg(not(unix))]
type Place = PathBuf;

#[cfg(unix)]
fn place(path: &Path) -> std::io::Result<Place> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn place(path: &Path) -> std::io::Result<Place> {
    path.canonicalize()
}

/// A registered file.
struct Taken {
    identity: Identity,
    /// Path as the user spelled it.
    shown: String,
    is_output: bool,
}

static TAKEN: Mutex<Vec<Taken>> = Mutex::new(Vec::new());

fn take(identity: Identity, path: &Path, is_output: bool) -> Result<()> {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let shown = path.display().to_string();
    if let Some(other) = taken.iter().find(|other| other.identity == identity && (other.is_output || is_output)) {
        let (output, lost) = if is_output { (&shown, &other.shown) } else { (&other.shown, &shown) };
        let does = if other.is_output && is_output { "writes" } else { "reads" };
        if output == lost {
            bail!("{output}: would be written over, and this command {does} it as well");
        }
        bail!("{output}: would be written over {lost}, which this command {does} as well");
    }
    taken.push(Taken { identity, shown, is_output });
    Ok(())
}

/// Registers a file that the command reads. A file that does not exist or is not regular cannot be overwritten and is
/// ignored.
pub fn reads(path: &Path) -> Result<()> {
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => take(Identity::There(place(path)?), path, false),
        _ => Ok(()),
    }
}

/// A file that the command will write, checked as far as possible before the work begins.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    /// Path after following links.
    target: PathBuf,
    /// Whether the target is a pipe or a device rather than a regular file.
    is_special: bool,
}

impl Output {
    /// Claims an optional output that can be produced again.
    pub fn wanted(path: Option<&Path>, kind: Kind, force: bool) -> Result<Option<Output>> {
        path.map(|path| Output::claim(path, kind, Replace::earlier_or(force))).transpose()
    }

    /// Checks that the file can be written without losing anything, and registers it.
    pub fn claim(path: &Path, kind: Kind, replace: Replace) -> Result<Output> {
        let cannot_write = || format!("cannot write {}", path.display());
        let target = followed(path).with_context(cannot_write)?;
        let old = match target.metadata() {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(cannot_write),
        };
        if old.as_ref().is_some_and(|old| old.is_dir()) {
            bail!("cannot write {}: it is a folder", path.display());
        }
        // A stream that is already open, such as /dev/stdout, is written directly, even if it is a regular file.
        let is_open = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"].iter().any(|folder| path.starts_with(folder));
        if old.as_ref().is_some_and(|old| !old.is_file() || is_open) {
            return Ok(Output { path: path.into(), target: path.into(), is_special: true });
        }
        let folder = folder_of(&target);
        if !folder.is_dir() {
            bail!("cannot write {}: there is no folder {}", path.display(), folder.display());
        }
        let name = target.file_name().with_context(|| format!("{}: is not a file name", path.display()))?;
        let identity = match &old {
            Some(_) => Identity::There(place(&target).with_context(cannot_write)?),
            None => Identity::New(place(folder).with_context(cannot_write)?, name.into()),
        };
        // This check comes first: an input must not be overwritten, not even with --force.
        take(identity, path, true)?;
        kind.check_ending(path)?;
        if let Some(old) = old {
            if old.permissions().readonly() {
                bail!("cannot write {}: it is read-only", path.display());
            }
            refuse_foreign(path, &target, kind, replace)?;
        }
        // A folder that cannot be written should be noticed before hours of work.
        temporary_in(folder).with_context(cannot_write)?;
        Ok(Output { path: path.into(), target, is_special: false })
    }

    /// Whether the file is a page, by its ending.
    pub fn is_page(&self) -> bool {
        Kind::Page.check_ending(&self.path).is_ok()
    }

    /// Returns the path as the user gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path after following links; none if the target is not a regular file and cannot be read back.
    pub fn ordinary(&self) -> Option<&Path> {
        (!self.is_special).then_some(&self.target)
    }

    /// Opens the file for incremental writing.
    pub fn open(&self) -> Result<NewFile> {
        NewFile::create(&self.target, self.is_special)
    }

    /// Writes the file, completely or not at all.
    pub fn write(&self, content: impl AsRef<[u8]>) -> Result<()> {
        self.open()?.write(content.as_ref())
    }
}

/// Refuses to replace a file that the rule protects.
fn refuse_foreign(path: &Path, target: &Path, kind: Kind, replace: Replace) -> Result<()> {
    if replace == Replace::Anything {
        return Ok(());
    }
    let mut head = Vec::new();
    let file = std::fs::File::open(target).with_context(|| format!("cannot write {}", path.display()))?;
    file.take(HEAD).read_to_end(&mut head).with_context(|| format!("cannot write {}", path.display()))?;
    match replace {
        _ if head.is_empty() => Ok(()),
        Replace::Earlier if kind.begins(&head) => Ok(()),
        Replace::Earlier => bail!("{} exists and is not {}; --force replaces it", path.display(), kind.name()),
        _ => bail!("{} exists already; --force replaces it", path.display()),
    }
}

/// Follows links, also to a file that does not exist yet.
fn followed(path: &Path) -> std::io::Result<PathBuf> {
    const MOST_LINKS: usize = 40;
    let mut at = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match at.symlink_metadata() {
            // A link of the system to an open stream has no path that could be followed.
            Ok(metadata) if metadata.is_symlink() && at.metadata().is_ok_and(|metadata| !metadata.is_file()) => {
                return Ok(at);
            }
            Ok(metadata) if metadata.is_symlink() => at = folder_of(&at).join(at.read_link()?),
            Ok(_) => return Ok(at),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(at),
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::other("too many links, one to the next"))
}
