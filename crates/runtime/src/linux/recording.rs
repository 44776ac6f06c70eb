//! A recording of a system: switches and wake-ups as the kernel's own text, read while they happen from an instance of
//! tracefs that belongs to this recording alone.
//!
//! Older events are overwritten if nobody reads for long enough; the kernel then says in the text how many.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// First lines of a recording, which are comments.
const HEAD: &str = "# tracer: nop\n# recorded by temponet, on the monotonic clock\n";
/// Beginning of a further one if only some threads are recorded, with their ids: switches between others are then missing,
/// and not lost.
const PARTIAL: &str = "# only some threads:";

/// Events that are recorded.
const EVENTS: [&str; 2] = ["sched/sched_switch", "sched/sched_waking"];
/// A further one if only some threads are recorded: it says which threads belong to them from then on.
const FORK: &str = "sched/sched_process_fork";

/// Room for the events of each processor between two reads, in KiB.
const BUFFER: &str = "16384";

/// Largest read.
const CHUNK: usize = 1 << 16;

/// A recording that goes on.
pub struct Recording {
    instance: PathBuf,
    pipe: File,
    buffer: Vec<u8>,
    bytes: u64,
    /// Line that has not ended yet.
    rest: Vec<u8>,
    lines: u64,
    is_partial: bool,
}

/// What was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Lines of events.
    pub events: u64,
    /// Bytes of text.
    pub bytes: u64,
}

impl Recording {
    /// Prepares an instance. If threads are named, only their events are recorded, and those of threads that they start
    /// from now on. Nothing is recorded yet.
    pub fn prepare(instance: &Path, threads: Option<&[i32]>) -> std::io::Result<Recording> {
        let set = |file: &str, text: &str| {
            let cannot = |error: std::io::Error| std::io::Error::new(error.kind(), format!("{file}: {error}"));
            fs::write(instance.join(file), text).map_err(cannot)
        };
        set("tracing_on", "0")?;
        set("trace_clock", "mono")?;
        set("options/overwrite", "1")?;
        set("buffer_size_kb", BUFFER)?;
        set("trace", "")?;
        if let Some(threads) = threads {
            set("options/event-fork", "1")?;
            let ids: Vec<String> = threads.iter().map(i32::to_string).collect();
            set("set_event_pid", &ids.join(" "))?;
        }
        for event in EVENTS.into_iter().chain(threads.map(|_| FORK)) {
            set(&format!("events/{event}/enable"), "1")?;
        }
        let pipe = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(instance.join("trace_pipe"))?;
        let buffer = vec![0; CHUNK];
        let is_partial = threads.is_some();
        Ok(Recording { instance: instance.into(), pipe, buffer, bytes: 0, rest: Vec::new(), lines: 0, is_partial })
    }

    /// Records from now on.
    pub fn begin(&mut self, out: &mut dyn Write) -> std::io::Result<()> {
        fs::write(self.instance.join("tracing_on"), "1")?;
        let mut head = HEAD.to_string();
        if self.is_partial {
            // Read once events are recorded: what is started later has an event.
            let threads = fs::read_to_string(self.instance.join("set_event_pid"))?;
            head += PARTIAL;
            threads.split_ascii_whitespace().for_each(|thread| head.extend([" ", thread]));
            head += "\n";
        }
        self.bytes += head.len() as u64;
        out.write_all(head.as_bytes())
    }

    /// Writes what has been recorded since the last call. Returns whether there was anything.
    pub fn drain(&mut self, out: &mut dyn Write) -> std::io::Result<bool> {
        let before = self.bytes + self.rest.len() as u64;
        loop {
            match self.pipe.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(length) => self.write(length, out)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.bytes + self.rest.len() as u64 > before)
    }

    /// Writes whole lines, so that a recording never ends in the middle of one.
    fn write(&mut self, length: usize, out: &mut dyn Write) -> std::io::Result<()> {
        self.rest.extend_from_slice(&self.buffer[..length]);
        let Some(last) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let whole = &self.rest[..=last];
        out.write_all(whole)?;
        self.lines += whole.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.bytes += whole.len() as u64;
        self.rest.drain(..=last);
        Ok(())
    }

    /// Stops recording and writes what is left.
    pub fn end(mut self, out: &mut dyn Write) -> std::io::Result<Recorded> {
        fs::write(self.instance.join("tracing_on"), "0")?;
        while self.drain(out)? {}
        Ok(Recorded { events: self.lines, bytes: self.bytes })
    }
}

/// The threads of a process.
pub fn threads_of(process: i32) -> std::io::Result<Vec<i32>> {
    let entries = fs::read_dir(format!("/proc/{process}/task"))?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// The kernel's id of the calling thread.
pub fn this_thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}
