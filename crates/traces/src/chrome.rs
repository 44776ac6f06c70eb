//! Chrome's JSON, which ui.perfetto.dev and `chrome://tracing` show, and which `simulate --trace` and `exec --trace` write.
//!
//! The file is taken apart into the objects of `traceEvents`, one at a time, so that it can be of any length.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{TraceError, shown};
use crate::event::{Event, NO_CPU, Names, What};
use crate::source::{Source, Unread};

/// Longest event, in bytes.
const LONGEST: usize = 1 << 20;

/// Events in Chrome's JSON.
pub(crate) struct Chrome {
    file: PathBuf,
    input: BufReader<Box<dyn Read + Send>>,
    offset: u64,
    line: u64,
    state: State,
    object: Vec<u8>,
    unread: Unread,
    /// Names of processes.
    processes: BTreeMap<i64, String>,
    /// Process whose slices are jobs of ours, and how many slices others have.
    jobs_of: Option<i64>,
    other_jobs: u64,
    kernel_slices: u64,
}

enum State {
    Before,
    Within,
    After,
}

impl Chrome {
    pub fn new(file: &Path, input: Box<dyn Read + Send>) -> Chrome {
        Chrome {
            file: file.into(),
            input: BufReader::with_capacity(1 << 16, input),
            offset: 0,
            line: 1,
            state: State::Before,
            object: Vec::new(),
            unread: Unread::default(),
            processes: BTreeMap::new(),
            jobs_of: None,
            other_jobs: 0,
            kernel_slices: 0,
        }
    }

    fn wrong<T>(&self, message: impl Into<String>) -> Result<T, TraceError> {
        Err(TraceError::line(&self.file, self.line, message))
    }

    /// Returns the next byte.
    fn byte(&mut self) -> Result<Option<u8>, TraceError> {
        let buffer = match self.input.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) => return Err(TraceError::whole(&self.file, error.to_string())),
        };
        let byte = buffer.first().copied();
        if let Some(byte) = byte {
            self.input.consume(1);
            self.offset += 1;
            self.line += u64::from(byte == b'\n');
        }
        Ok(byte)
    }

    /// Returns the next byte that is not a space.
    fn sign(&mut self) -> Result<Option<u8>, TraceError> {
        loop {
            match self.byte()? {
                Some(byte) if byte.is_ascii_whitespace() => {}
                byte => return Ok(byte),
            }
        }
    }

    /// Reads the rest of a text, behind its first quote.
    fn text(&mut self) -> Result<Vec<u8>, TraceError> {
        let mut text = Vec::new();
        loop {
            match self.byte()? {
                Some(b'"') => return Ok(text),
                Some(b'\\') => {
                    self.byte()?;
                }
                Some(byte) if text.len() < LONGEST => text.push(byte),
                Some(_) => return self.wrong(format!("a text of more than {LONGEST} bytes")),
                None => return self.wrong("the file ends within a text"),
            }
        }
    }

    /// Goes to the first event.
    fn begin(&mut self) -> Result<(), TraceError> {
        match self.sign()? {
            Some(b'[') => return Ok(()),
            Some(b'{') => {}
            _ => return self.wrong("is no JSON of a trace: it begins with neither { nor ["),
        }
        let mut depth = 1;
        let mut last = Vec::new();
        loop {
            match self.sign()? {
                Some(b'"') => last = self.text()?,
                Some(b'[') if depth == 1 && last == b"traceEvents" => return Ok(()),
                Some(b'{' | b'[') => depth += 1,
                Some(b'}' | b']') => depth -= 1,
                Some(_) => {}
                None => return self.wrong("has no \"traceEvents\""),
            }
            if depth == 0 {
                return self.wrong("has no \"traceEvents\"");
            }
        }
    }

    /// Reads the next event into `object`; false behind the last one.
    fn next_object(&mut self) -> Result<bool, TraceError> {
        loop {
            match self.sign()? {
                Some(b',') => {}
                Some(b'{') => break,
                // The end may be missing, if the program that wrote it was stopped.
                Some(b']') | None => return Ok(false),
                Some(byte) => return self.wrong(format!("{:?} where an event should be", char::from(byte))),
            }
        }
        self.object.clear();
        self.object.push(b'{');
        let (mut depth, mut in_text, mut is_escaped) = (1, false, false);
        while depth > 0 {
            let Some(byte) = self.byte()? else { return self.wrong("the file ends within an event") };
            self.object.push(byte);
            if self.object.len() > LONGEST {
                return self.wrong(format!("an event of more than {LONGEST} bytes"));
            }
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if in_text => is_escaped = true,
                b'"' => in_text = !in_text,
                b'{' | b'[' if !in_text => depth += 1,
                b'}' | b']' if !in_text => depth -= 1,
                _ => {}
            }
        }
        Ok(true)
    }

    /// Reads the event in `object`; none if it means nothing here.
    fn event(&mut self, names: &mut Names) -> Result<Option<Event>, TraceError> {
        let object: Value = match serde_json::from_slice(&self.object) {
            Ok(object) => object,
            Err(error) => return self.wrong(format!("{}: {error}", shown(&self.object))),
        };
        let text = |key: &str| object[key].as_str().unwrap_or("");
        let whole =
            |key: &str| object[key].as_i64().or_else(|| object[key].as_str().and_then(|text| text.parse().ok()));
        let (process, thread) = (whole("pid").unwrap_or(-1), whole("tid").unwrap_or(-1));
        let job = object["args"]["job"].as_u64();
        let what = match text("ph") {
            "X" if job.is_some() && text("cat") == "job" => {
                if *self.jobs_of.get_or_insert(process) != process {
                    self.other_jobs += 1;
                    return Ok(None);
                }
                What::Slice {
                    name: names.number(text("name").as_bytes()),
                    job,
                    length: self.nanoseconds(&object["dur"])?,
                }
            }
            "X" if matches!(text("cat"), "section" | "wait" | "sched_switch") => {
                self.kernel_slices += u64::from(text("cat") == "sched_switch");
                return Ok(None);
            }
            "X" => {
                let length = self.nanoseconds(&object["dur"])?;
                What::Slice { name: names.number(text("name").as_bytes()), job: None, length }
            }
            "B" => What::Begin(names.number(text("name").as_bytes())),
            "E" => {
                let name = Some(text("name")).filter(|name| !name.is_empty());
                What::End(name.map(|name| names.number(name.as_bytes())))
            }
            "M" => {
                if let ("process_name", Some(name)) = (text("name"), object["args"]["name"].as_str())
                    && self.processes.len() < 1 << 12
                {
                    self.processes.insert(process, name.into());
                }
                return Ok(None);
            }
            // Missed deadlines of ours, and arrows.
            "s" | "t" | "f" => return Ok(None),
            "i" if text("cat") == "miss" => return Ok(None),
            _ => {
                self.unread.other_markers += 1;
                return Ok(None);
            }
        };
        let time = self.nanoseconds(&object["ts"])?;
        let is_ours = matches!(what, What::Slice { job: Some(_), .. });
        let cpu = if is_ours { u32::try_from(thread).unwrap_or(NO_CPU) } else { NO_CPU };
        let number = |value: i64| i32::try_from(value).unwrap_or(-1);
        Ok(Some(Event { time, cpu, tid: number(thread), pid: number(process), what }))
    }

    /// Reads a time in microseconds.
    fn nanoseconds(&self, value: &Value) -> Result<u64, TraceError> {
        let number = value.as_f64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
        match number.map(|number| (number * 1e3).round()).filter(|ns| (0.0..9e18).contains(ns)) {
            Some(ns) => Ok(ns as u64),
            None => self.wrong(format!("{value} is no time in microseconds, from 0 on")),
        }
    }
}

impl Source for Chrome {
    fn next(&mut self, names: &mut Names) -> Result<Option<Event>, TraceError> {
        loop {
            match self.state {
                State::Before => {
                    self.begin()?;
                    self.state = State::Within;
                }
                State::Within => match self.next_object()? {
                    true => {
                        if let Some(event) = self.event(names)? {
                            return Ok(Some(event));
                        }
                    }
                    false => self.state = State::After,
                },
                State::After => return Ok(None),
            }
        }
    }

    fn bytes(&self) -> u64 {
        self.offset
    }

    fn unread(&self) -> Unread {
        self.unread
    }

    fn file(&self) -> &Path {
        &self.file
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if let (true, Some(process)) = (self.other_jobs > 0, self.jobs_of) {
            let name = self.processes.get(&process).map_or("the first process", String::as_str);
            let others = temponet_wording::counted(self.other_jobs as usize, "slice");
            remarks.push(format!("jobs are those of {name:?}; {others} of other processes are left out"));
        }
        if self.kernel_slices > 0 {
            remarks
                .push("execution times are what jobs noticed themselves, not the kernel's slices beside them".into());
        }
        remarks
    }
}
