//! Which format a file has, by its content.

use std::io::{Cursor, Read};
use std::path::Path;

use crate::TaskBy;
use crate::babeltrace_text::{self, BabeltraceText};
use crate::chrome::Chrome;
use crate::ctf::{self, ClockOf};
use crate::error::TraceError;
use crate::files::{About, Disk, Files};
use crate::kernel_text::{self, KernelText};
use crate::lines::Lines;
use crate::source::Source;

/// Bytes by which a format is recognized.
const HEAD: usize = 1 << 16;
/// Most lines of them that are looked at.
const MOST_LINES: usize = 400;

/// Formats of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// Text of `perf script`, ftrace or `trace-cmd report`.
    Kernel,
    /// A folder of CTF.
    Ctf,
    /// Text of `babeltrace2`.
    Babeltrace,
    /// Chrome's JSON, which Perfetto reads.
    Chrome,
}

impl TraceFormat {
    /// Name for messages.
    pub fn name(self) -> &'static str {
        match self {
            TraceFormat::Kernel => "text of perf script or ftrace",
            TraceFormat::Ctf => "CTF",
            TraceFormat::Babeltrace => "text of babeltrace2",
            TraceFormat::Chrome => "Chrome's JSON",
        }
    }
}

/// What was opened.
pub(crate) struct Opened {
    pub format: TraceFormat,
    pub sources: Vec<Box<dyn Source>>,
    pub clocks: Vec<ClockOf>,
    /// What tasks are, as far as the format suggests it.
    pub suggests: TaskBy,
}

/// Opens a file, a folder, or standard input for `-`.
pub(crate) fn open(files: &dyn Files, path: &Path) -> Result<Opened, TraceError> {
    let failed = |error: std::io::Error| TraceError::whole(path, error.to_string());
    if path == Path::new("-") {
        return of_stream(Path::new("standard input"), Box::new(std::io::stdin()));
    }
    if files.about(path).map_err(failed)? == About::Folder {
        if !ctf::is_one(files, path) {
            return Err(TraceError::whole(path, "is a folder without metadata of CTF"));
        }
        let ctf::Opened { sources, clocks, has_callbacks } = ctf::open(files, path)?;
        let suggests = if has_callbacks { TaskBy::Callback } else { TaskBy::Thread };
        return Ok(Opened { format: TraceFormat::Ctf, sources, clocks, suggests });
    }
    of_stream(path, Box::new(files.open(path).map_err(failed)?))
}

fn of_stream(path: &Path, mut input: Box<dyn Read + Send>) -> Result<Opened, TraceError> {
    let mut head = Vec::new();
    input
        .by_ref()
        .take(HEAD as u64)
        .read_to_end(&mut head)
        .map_err(|error| TraceError::whole(path, error.to_string()))?;
    let format = of_head(&head).map_err(|message| TraceError::whole(path, message))?;
    let suggests = match format {
        TraceFormat::Chrome => TaskBy::Marker,
        TraceFormat::Babeltrace if memchr::memmem::find(&head, b" ros2:").is_some() => TaskBy::Callback,
        _ => TaskBy::Thread,
    };
    let input: Box<dyn Read + Send> = Box::new(Cursor::new(head).chain(input));
    let source: Box<dyn Source> = match format {
        TraceFormat::Chrome => Box::new(Chrome::new(path, input)),
        TraceFormat::Babeltrace => Box::new(BabeltraceText::new(Lines::new(path, input))),
        TraceFormat::Kernel | TraceFormat::Ctf => Box::new(KernelText::new(Lines::new(path, input))),
    };
    Ok(Opened { format, sources: vec![source], clocks: Vec::new(), suggests })
}

/// Beginnings of files that other programs can turn into something that is read here.
const OTHERS: [(&[u8], &str); 7] = [
    (b"PERFILE2", "is a recording of perf: `perf script -i FILE > trace.txt` writes it as text"),
    (b"\x17\x08\x44tracing", "is a recording of trace-cmd: `trace-cmd report -i FILE > trace.txt` writes it as text"),
    (b"\x1f\x8b", "is compressed: `zcat FILE | temponet import -` reads it"),
    (b"\x28\xb5\x2f\xfd", "is compressed: `zstdcat FILE | temponet import -` reads it"),
    (b"\xc1\x1f\xfc\xc1", "is a file of a trace of CTF: name the folder that it lies in"),
    (b"\xc1\xfc\x1f\xc1", "is a file of a trace of CTF: name the folder that it lies in"),
    (b"\x0a", "is a recording of Perfetto: `traceconv json FILE trace.json` writes it as JSON"),
];

/// Returns the format of a file that begins so, or what is wrong with it.
fn of_head(head: &[u8]) -> Result<TraceFormat, String> {
    let is_binary = head.contains(&0);
    if head.is_empty() {
        return Err("is empty".into());
    }
    let other = OTHERS.iter().find(|(start, _)| head.starts_with(start) && (is_binary || start.len() > 1));
    if let Some((_, message)) = other {
        return Err((*message).into());
    }
    if head.starts_with(b"/* CTF 1.8") || head.starts_with(&0x75d1_1d57u32.to_le_bytes()) {
        return Err("is the metadata of a trace of CTF: name the folder that it lies in".into());
    }
    let first = head.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    if head[first..].starts_with(b"{") || head[first..].starts_with(b"[{") || is_list(&head[first..]) {
        let says = |text: &[u8]| memchr::memmem::find(head, text).is_some();
        return match says(b"\"traceEvents\"") || says(b"\"ph\"") {
            true => Ok(TraceFormat::Chrome),
            false => Err("is JSON without \"traceEvents\"".into()),
        };
    }
    let mut lines = head.split(|byte| *byte == b'\n').take(MOST_LINES);
    let found = lines.find_map(|line| {
        if babeltrace_text::is_one(line) {
            Some(TraceFormat::Babeltrace)
        } else {
            kernel_text::is_one(line).then_some(TraceFormat::Kernel)
        }
    });
    found.ok_or_else(|| {
        "is no trace: neither text of perf script, ftrace, trace-cmd report or babeltrace2, nor Chrome's JSON, nor a folder of CTF"
            .into()
    })
}

/// Whether a text is a list of objects with spaces between.
fn is_list(text: &[u8]) -> bool {
    text.strip_prefix(b"[").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"{"))
}

/// Whether a file or folder is a trace, by its content. Pipes and devices are not looked into.
pub fn is_trace(path: &Path) -> bool {
    is_trace_in(&Disk, path)
}

/// Whether one of some files or folders is a trace, by its content.
pub fn is_trace_in(files: &dyn Files, path: &Path) -> bool {
    match files.about(path) {
        Ok(About::Folder) => ctf::is_one(files, path),
        Ok(About::File(_)) => {
            let mut head = Vec::new();
            let read = files.open(path).and_then(|file| file.take(HEAD as u64).read_to_end(&mut head));
            read.is_ok() && of_head(&head).is_ok()
        }
        Ok(About::Other) | Err(_) => false,
    }
}
