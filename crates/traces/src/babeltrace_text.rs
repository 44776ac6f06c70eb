//! Text of `babeltrace2`, the way out for traces in formats that are not read here:
//!
//! ```text
//! [20:00:08.318320010] (+0.000000672) host ros2:callback_end: { cpu_id = 1 }, { vtid = 30040 }, { callback = 0x100 }
//! ```

use std::path::Path;

use crate::error::{TraceError, shown};
use crate::event::{Event, NO_CPU, Names};
use crate::lines::Lines;
use crate::named::{Kind, MOST_FIELDS, PROCESS_FIELDS, THREAD_FIELDS, Value};
use crate::number::{integer, seconds, unsigned};
use crate::source::{Source, Unread};

/// Nanoseconds of a day.
const DAY: u64 = 24 * 3600 * 1_000_000_000;

/// Events in the text of babeltrace2.
pub(crate) struct BabeltraceText {
    lines: Lines,
    unread: Unread,
    /// Time of day of the last event, and the days that have passed.
    last: u64,
    days: u64,
}

impl BabeltraceText {
    pub fn new(lines: Lines) -> BabeltraceText {
        BabeltraceText { lines, unread: Unread::default(), last: 0, days: 0 }
    }
}

/// What a line is.
enum Line {
    /// An event, and whether its date is a time of day.
    Event((Event, bool)),
    /// An event of a kind that means nothing here.
    Other,
    /// An event of a kind that means something, without what it needs.
    Unreadable,
    /// No event, with the beginning of the line.
    NotOne(String),
}

impl Source for BabeltraceText {
    fn next(&mut self, names: &mut Names) -> Result<Option<Event>, TraceError> {
        loop {
            let Some(line) = self.lines.next()? else { return Ok(None) };
            if line.trim_ascii().is_empty() {
                continue;
            }
            let parsed = match parse(line, names) {
                Some(parsed) => Line::Event(parsed),
                None => match head(line) {
                    Some((.., name, _)) if Kind::of(name).is_some() => Line::Unreadable,
                    Some(_) => Line::Other,
                    None => Line::NotOne(shown(line)),
                },
            };
            match parsed {
                Line::Event((mut event, is_of_day)) => {
                    if is_of_day {
                        // Midnight: the hours begin anew.
                        if event.time + DAY / 2 < self.last {
                            self.days += 1;
                        }
                        self.last = event.time;
                        event.time = event.time.saturating_add(self.days.saturating_mul(DAY));
                    }
                    return Ok(Some(event));
                }
                Line::Other => {}
                Line::NotOne(example) if !self.lines.is_cut => {
                    let message = format!("{example} is no event of babeltrace2");
                    return Err(TraceError::line(&self.lines.file, self.lines.number, message));
                }
                Line::Unreadable | Line::NotOne(_) => {
                    if self.unread.lines == 0 {
                        self.unread.first_line = self.lines.number;
                    }
                    self.unread.lines += 1;
                }
            }
        }
    }

    fn bytes(&self) -> u64 {
        self.lines.offset
    }

    fn unread(&self) -> Unread {
        self.unread
    }

    fn line(&self) -> Option<u64> {
        Some(self.lines.number)
    }

    fn file(&self) -> &Path {
        &self.lines.file
    }
}

/// Whether a line is an event of babeltrace2, of whatever kind.
pub(crate) fn is_one(line: &[u8]) -> bool {
    head(line).is_some()
}

/// Returns the date, whether it is a time of day, the name of the event, and its fields.
fn head(line: &[u8]) -> Option<(u64, bool, &[u8], &[u8])> {
    let rest = line.trim_ascii().strip_prefix(b"[")?;
    let close = memchr::memchr(b']', rest)?;
    let (time, is_of_day) = date(&rest[..close])?;
    let fields = memchr::memmem::find(rest, b": {")?;
    let before = &rest[..fields];
    let name = &before[memchr::memrchr(b' ', before)? + 1..];
    Some((time, is_of_day, name, &rest[fields + 2..]))
}

/// Reads `hh:mm:ss.fraction`, the same after a date, or `seconds.fraction`.
fn date(text: &[u8]) -> Option<(u64, bool)> {
    let time = &text[memchr::memrchr(b' ', text).map_or(0, |space| space + 1)..];
    let mut parts = time.split(|byte| *byte == b':');
    let (first, second, third) = (parts.next()?, parts.next(), parts.next());
    match (second, third) {
        (None, None) => Some((seconds(first)?, false)),
        (Some(minutes), Some(rest)) => {
            let (minutes, nanoseconds) = (unsigned(minutes)?, seconds(rest)?);
            if minutes >= 60 || nanoseconds >= 61_000_000_000 {
                return None;
            }
            let minutes = unsigned(first)?.checked_mul(60)?.checked_add(minutes)?;
            Some((minutes.checked_mul(60_000_000_000)?.checked_add(nanoseconds)?, true))
        }
        _ => None,
    }
}

/// Reads an event of a kind that means something.
fn parse(line: &[u8], names: &mut Names) -> Option<(Event, bool)> {
    let (time, is_of_day, name, fields) = head(line)?;
    let kind = Kind::of(name)?;
    let wanted = kind.fields();
    let mut values = [Value::Absent; MOST_FIELDS];
    let (mut cpu, mut tid, mut pid) = (NO_CPU, -1, -1);
    let mut rest = fields;
    while let Some((key, value, after, is_last_group)) = field(rest) {
        rest = after;
        // The last group has the fields of the event, the others the contexts. Some tracers put the thread into the
        // event, under names of their own.
        if let (true, Some(at)) = (is_last_group, wanted.iter().position(|name| name.as_bytes() == key)) {
            values[at] = value;
        } else if let Value::Number(number) = value {
            let is_one_of = |names: &[&str]| names.iter().any(|name| name.as_bytes() == key);
            let number32 = i32::try_from(number).unwrap_or(-1);
            match key {
                b"cpu_id" => cpu = u32::try_from(number).unwrap_or(NO_CPU),
                _ if is_one_of(&THREAD_FIELDS) => tid = number32,
                _ if is_one_of(&PROCESS_FIELDS) => pid = number32,
                _ => {}
            }
        }
    }
    let what = kind.event(&values, names)?;
    Some((Event { time, cpu, tid, pid, what }, is_of_day))
}

/// Splits off the first field: its name, its value, what is behind it, and whether no further group follows.
fn field(text: &[u8]) -> Option<(&[u8], Value<'_>, &[u8], bool)> {
    let equals = memchr::memmem::find(text, b" = ")?;
    let before = &text[..equals];
    let start = before.iter().rposition(|byte| matches!(byte, b' ' | b'{' | b','));
    let key = &before[start.map_or(0, |at| at + 1)..];
    let rest = &text[equals + 3..];
    let (value, length) = match rest.first()? {
        b'"' => {
            let mut end = 1;
            while end < rest.len() && rest[end] != b'"' {
                end += if rest[end] == b'\\' { 2 } else { 1 };
            }
            let end = end.min(rest.len());
            (Value::Text(&rest[1..end]), (end + 1).min(rest.len()))
        }
        // An enumeration: ( "S" : container = 1 )
        b'(' => {
            let close = memchr::memchr(b')', rest)?;
            let inner = &rest[1..close];
            let number = memchr::memrchr(b' ', inner.trim_ascii_end()).map(|at| inner[at + 1..].trim_ascii());
            (number.and_then(integer).map_or(Value::Absent, Value::Number), close + 1)
        }
        b'{' | b'[' => (Value::Absent, 1),
        _ => {
            let end = rest.iter().position(|byte| matches!(byte, b' ' | b',' | b'}')).unwrap_or(rest.len());
            (integer(&rest[..end]).map_or(Value::Absent, Value::Number), end)
        }
    };
    let after = &rest[length..];
    Some((key, value, after, memchr::memmem::find(after, b"}, {").is_none()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Leaving, What};

    #[test]
    fn events_of_babeltrace2() {
        let mut names = Names::new();
        let line = br#"[20:00:08.336361843] (+0.013013197) vm ros2:callback_start: { cpu_id = 1 }, { vpid = 30036, vtid = 30040, procname = "cam \"x\" }, {" }, { callback = 0x100, is_intra_process = 0 }"#;
        let (event, is_of_day) = parse(line, &mut names).unwrap();
        assert!(is_of_day && matches!(event.what, What::CallbackStart(0x100)), "{event:?}");
        assert_eq!((event.cpu, event.tid, event.pid), (1, 30040, 30036));
        assert_eq!(event.time, (20 * 3600 + 8) * 1_000_000_000 + 336_361_843);
        let line = br#"[1187.638242210] (+0.000001837) sched:sched_switch: { cpu_id = 0 }, { perf_tid = 5, perf_pid = 4, prev_comm = "perf", prev_pid = 5, prev_prio = 120, prev_state = 2, next_comm = "migration/0", next_pid = 18, next_prio = 0 }"#;
        let (event, is_of_day) = parse(line, &mut names).unwrap();
        assert_eq!((is_of_day, event.time, event.tid, event.pid), (false, 1_187_638_242_210, 5, 4));
        let What::Switch { from, leaving: Leaving::Waits, to } = event.what else { panic!("{event:?}") };
        assert_eq!(
            (names.text(from.name), from.priority, names.text(to.name), to.tid),
            ("perf", 120, "migration/0", 18)
        );
        assert!(is_one(b"[20:00:08.3] (+0.1) vm other: { cpu_id = 1 }, { x = 1 }"));
        assert!(!is_one(b"[x] other: { cpu_id = 1 }"));
    }
}
