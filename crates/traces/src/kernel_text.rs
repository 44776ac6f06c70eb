//! Text of `perf script`, of ftrace (`trace`, `trace_pipe`) and of `trace-cmd report`.
//!
//! All of them are a line an event: who ran, on which processor, when, and what happened. They differ in the columns
//! before the event, so that a line is read from the name of the event to the left and to the right. Nothing is
//! allocated for a line.

mod fields;

use std::path::Path;

use memchr::memmem::Finder;

use crate::error::{TraceError, shown};
use crate::event::{Event, NO_CPU, Names, What};
use crate::lines::Lines;
use crate::number::{integer, seconds, unsigned};
use crate::source::{Source, Unread};

/// Events in the text of the kernel's tracers.
pub(crate) struct KernelText {
    lines: Lines,
    sched: Finder<'static>,
    arrow: Finder<'static>,
    mark: Finder<'static>,
    print: Finder<'static>,
    unread: Unread,
    /// First line that could not be read, for the error when none could.
    example: Option<String>,
    events: u64,
    /// Losses whose end is the next event of their processor.
    losses: Vec<(u32, Option<u64>)>,
    pending: Option<Event>,
    recorded: Option<Vec<i32>>,
}

/// Beginning of a line of a recording of some threads alone, as `temponet record` writes it. Their ids follow.
const PARTIAL: &[u8] = b"# only some threads";

/// What stands before the name of the event.
struct Head<'a> {
    time: u64,
    cpu: u32,
    /// Columns with the name and number of the thread.
    thread: &'a [u8],
}

impl KernelText {
    pub fn new(lines: Lines) -> KernelText {
        KernelText {
            lines,
            sched: Finder::new(b"sched_"),
            arrow: Finder::new(b" ==> "),
            mark: Finder::new(b"tracing_mark_write: "),
            print: Finder::new(b"print: "),
            unread: Unread::default(),
            example: None,
            events: 0,
            losses: Vec::new(),
            pending: None,
            recorded: None,
        }
    }

    /// Returns the event with the loss that it ends before it, if there is one.
    fn after_losses(&mut self, event: Event) -> Event {
        self.events += 1;
        let Event { time, cpu, .. } = event;
        if self.losses.is_empty() {
            return event;
        }
        let Some(at) = self.losses.iter().position(|(of, _)| *of == cpu || *of == NO_CPU || cpu == NO_CPU) else {
            return event;
        };
        let (of, count) = self.losses.swap_remove(at);
        self.pending = Some(event);
        Event { time, cpu: of, tid: -1, pid: -1, what: What::Lost { count } }
    }
}

/// Event of the scheduler.
enum Kind {
    Switch,
    Wake { is_new: bool },
    Fork,
}

/// What a line is.
enum Line {
    Event(Event),
    Lost(u32, Option<u64>),
    OtherMarker,
    Unreadable,
    /// It has the name of such an event, but neither a date nor a processor before it.
    Headless,
    Nothing,
}

impl Source for KernelText {
    fn next(&mut self, names: &mut Names) -> Result<Option<Event>, TraceError> {
        if let Some(event) = self.pending.take() {
            return Ok(Some(event));
        }
        loop {
            let finders = [&self.sched, &self.arrow, &self.mark, &self.print];
            let Some(line) = self.lines.next()? else { break };
            match parse(line, finders, names) {
                Line::Event(event) => return Ok(Some(self.after_losses(event))),
                Line::Lost(cpu, count) => self.losses.push((cpu, count)),
                Line::OtherMarker => self.unread.other_markers += 1,
                Line::Nothing => {
                    if let Some(threads) = line.strip_prefix(PARTIAL) {
                        let Some(threads) = recorded(threads) else {
                            let text = "which threads? Their ids belong behind it: # only some threads: 4711 4712";
                            return Err(TraceError::line(&self.lines.file, self.lines.number, text));
                        };
                        self.recorded.get_or_insert_default().extend(threads);
                    }
                }
                Line::Headless if line.starts_with(b"#") => {}
                Line::Unreadable | Line::Headless => {
                    if self.example.is_none() {
                        self.example = Some(shown(line));
                    }
                    if self.unread.lines == 0 {
                        self.unread.first_line = self.lines.number;
                    }
                    self.unread.lines += 1;
                    // What it said is lost; its processor is not known.
                    let is_end_of_file = self.lines.is_cut;
                    if !is_end_of_file {
                        self.losses.push((NO_CPU, Some(1)));
                    }
                }
            }
        }
        match &self.example {
            Some(example) if self.events == 0 => {
                let message = format!("{example} is no event that can be read, and neither is any other line");
                Err(TraceError::line(&self.lines.file, self.unread.first_line, message))
            }
            _ => Ok(None),
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

    fn recorded(&self) -> Option<&[i32]> {
        self.recorded.as_deref()
    }
}

/// Reads the ids of the threads that were recorded.
fn recorded(text: &[u8]) -> Option<Vec<i32>> {
    let words = text.strip_prefix(b":")?.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let threads: Vec<i32> = words.map(|word| i32::try_from(unsigned(word)?).ok()).collect::<Option<_>>()?;
    (!threads.is_empty()).then_some(threads)
}

/// Reads a line.
fn parse(line: &[u8], [sched, arrow, mark, print]: [&Finder<'_>; 4], names: &mut Names) -> Line {
    let (mut looks_like_one, mut is_named) = (false, false);
    let mut from = 0;
    while let Some(found) = sched.find(&line[from..]) {
        let at = from + found;
        from = at + b"sched_".len();
        let rest = &line[from..];
        let (kind, word) = match rest {
            [b's', b'w', b'i', b't', b'c', b'h', b':', ..] => (Kind::Switch, 7),
            [b'w', b'a', b'k', b'i', b'n', b'g', b':', ..] => (Kind::Wake { is_new: false }, 7),
            [b'w', b'a', b'k', b'e', b'u', b'p', b':', ..] => (Kind::Wake { is_new: false }, 7),
            [b'w', b'a', b'k', b'e', b'u', b'p', b'_', b'n', b'e', b'w', b':', ..] => (Kind::Wake { is_new: true }, 11),
            _ if rest.starts_with(b"process_fork:") => (Kind::Fork, 13),
            _ => continue,
        };
        let before = line[..at].strip_suffix(b"sched:").unwrap_or(&line[..at]);
        is_named = true;
        let Some(head) = head(before) else { continue };
        looks_like_one = true;
        let fields = rest[word..].trim_ascii();
        let what = match kind {
            Kind::Switch => fields::switch(fields, arrow, names),
            Kind::Fork => fields::fork(fields).map(What::Start),
            Kind::Wake { is_new } => match fields::wake(fields, names) {
                // A wake-up that found its thread awake.
                Some((_, false)) => return Line::Nothing,
                Some((who, true)) => Some(What::Wake { who, is_new }),
                None => None,
            },
        };
        if let Some(what) = what {
            let tid = match what {
                What::Switch { from, .. } => from.tid,
                _ => -1,
            };
            return Line::Event(Event { time: head.time, cpu: head.cpu, tid, pid: -1, what });
        }
    }
    if looks_like_one {
        return Line::Unreadable;
    }
    for (finder, length) in [(mark, 20), (print, 7)] {
        if let Some(at) = finder.find(line) {
            let before = line[..at].strip_suffix(b"ftrace:").unwrap_or(&line[..at]);
            if let Some(head) = head(before) {
                return marker(&line[at + length..], &head, names);
            }
        }
    }
    if is_named { Line::Headless } else { lost(line) }
}

/// Reads what stands before the name of the event: `comm tid [cpu] time:` or `comm-tid [cpu] flags time:`, with or
/// without most of that, and perhaps a period behind it.
fn head(text: &[u8]) -> Option<Head<'_>> {
    let mut text = text.trim_ascii_end();
    if !text.ends_with(b":") {
        // The period of a sample, or a function (`bprint`).
        text = text[..memchr::memrchr(b' ', text)?].trim_ascii_end();
    }
    let text = text.strip_suffix(b":")?;
    let (before, date) = match memchr::memrchr(b' ', text) {
        Some(space) => (&text[..space], &text[space + 1..]),
        None => (&text[..0], text),
    };
    let time = seconds(date)?;
    let mut cpu = NO_CPU;
    let mut thread = before;
    let mut end = before.len();
    while let Some(close) = memchr::memrchr(b']', &before[..end]) {
        let open = memchr::memrchr(b'[', &before[..close])?;
        if let Some(number) = unsigned(before[open + 1..close].trim_ascii()).filter(|number| *number < 1 << 16) {
            cpu = number as u32;
            thread = &before[..open];
            break;
        }
        end = open;
    }
    Some(Head { time, cpu, thread: thread.trim_ascii_end() })
}

/// Reads the thread of a head: `comm-tid`, `comm tid` or `comm pid/tid`, and ftrace's `(tgid)`. Returns the thread and the
/// process.
fn thread(text: &[u8]) -> Option<(i32, i32)> {
    let mut process = -1;
    let mut text = text;
    if let Some(inner) = text.strip_suffix(b")") {
        let open = memchr::memrchr(b'(', inner)?;
        process = unsigned(inner[open + 1..].trim_ascii()).map_or(-1, |number| number as i32);
        text = text[..open].trim_ascii_end();
    }
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let start = text.len() - digits;
    let tid = i32::try_from(unsigned(&text[start..])?).ok()?;
    match text[..start].last() {
        Some(b'-') if text[..start - 1].ends_with(b" ") => None,
        Some(b'/') => {
            let before = &text[..start - 1];
            let pid = &before[memchr::memrchr(b' ', before).map_or(0, |space| space + 1)..];
            Some((tid, integer(pid)? as i32))
        }
        _ => Some((tid, process)),
    }
}

/// Reads a marker, as programs write it to `trace_marker`: `B|process|name`, `E|process` or `E`.
fn marker(text: &[u8], head: &Head<'_>, names: &mut Names) -> Line {
    let mut text = text.trim_ascii();
    // Kernels and tools put an address or a function before the text.
    for _ in 0..2 {
        if is_marker(text) {
            break;
        }
        let Some(space) = memchr::memchr(b' ', text) else { break };
        text = text[space + 1..].trim_ascii_start();
    }
    if !is_marker(text) {
        return Line::Nothing;
    }
    let what = match text[0] {
        b'B' => match memchr::memchr(b'|', &text[2..]) {
            Some(bar) => What::Begin(names.number(&text[2 + bar + 1..])),
            None => return Line::OtherMarker,
        },
        b'E' => What::End(None),
        _ => return Line::OtherMarker,
    };
    let Some((tid, pid)) = thread(head.thread) else { return Line::Unreadable };
    Line::Event(Event { time: head.time, cpu: head.cpu, tid, pid, what })
}

fn is_marker(text: &[u8]) -> bool {
    matches!(text, [b'E']) || matches!(text, [b'B' | b'E' | b'S' | b'F' | b'C' | b'I' | b'G' | b'H' | b'N', b'|', ..])
}

/// Reads lines on lost events: `CPU:1 [LOST 12 EVENTS]`, `CPU:1 [12 EVENTS DROPPED]`, `… PERF_RECORD_LOST lost 12`.
fn lost(line: &[u8]) -> Line {
    let text = line.trim_ascii();
    let number_in = |text: &[u8]| text.split(|byte| !byte.is_ascii_digit()).find_map(unsigned);
    if let Some(rest) = text.strip_prefix(b"CPU:") {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let says_so = rest.ends_with(b"EVENTS]") || rest.ends_with(b"DROPPED]");
        if let (true, Some(cpu)) = (says_so, unsigned(&rest[..digits])) {
            return Line::Lost(cpu.min(u64::from(NO_CPU)) as u32, number_in(&rest[digits..]));
        }
    }
    if let Some(at) = memchr::memmem::find(text, b"PERF_RECORD_LOST") {
        return Line::Lost(NO_CPU, number_in(&text[at + 16..]));
    }
    Line::Nothing
}

/// Whether a line is an event of the kernel's tracers, or the heading of a file of them.
pub(crate) fn is_one(line: &[u8]) -> bool {
    let finders =
        [Finder::new(b"sched_"), Finder::new(b" ==> "), Finder::new(b"tracing_mark_write: "), Finder::new(b"print: ")];
    let [sched, arrow, mark, print] = &finders;
    match parse(line, [sched, arrow, mark, print], &mut Names::new()) {
        Line::Nothing | Line::Headless => {
            line.starts_with(b"# tracer:") || line.starts_with(b"cpus=") || is_event(line)
        }
        _ => true,
    }
}

/// Whether a line is any event of these tools: `… 12.345678: name: …`.
fn is_event(line: &[u8]) -> bool {
    let mut from = 0;
    while let Some(at) = memchr::memmem::find(&line[from..], b": ") {
        if head(&line[..from + at + 1]).is_some_and(|head| !head.thread.is_empty()) {
            return true;
        }
        from += at + 2;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Leaving, Party};

    fn read(text: &str) -> (Vec<Event>, Names, Unread) {
        let mut names = Names::new();
        let lines = Lines::new(Path::new("t"), Box::new(std::io::Cursor::new(text.to_string().into_bytes())));
        let mut source = KernelText::new(lines);
        let mut events = Vec::new();
        while let Some(event) = source.next(&mut names).unwrap() {
            events.push(event);
        }
        (events, names, source.unread)
    }

    /// Layouts that tools have printed over the years, each with the same switch.
    const SWITCHES: [&str; 9] = [
        "   my app 14692 [001]   794.560844:       sched:sched_switch: prev_comm=my app prev_pid=14692 prev_prio=69 prev_state=R+ ==> next_comm=migration/0 next_pid=18 next_prio=0",
        "   my app 14690/14692 [001]   794.560844000:  1  sched:sched_switch: prev_comm=my app prev_pid=14692 prev_prio=69 prev_state=R+ ==> next_comm=migration/0 next_pid=18 next_prio=0",
        "   my app 14692 [001]   794.560844: sched:sched_switch: my app:14692 [69] R+ ==> migration/0:18 [0]",
        "   my app 14692   [001]   794.560844: sched:sched_switch: my app:14692 [69] R ==> migration/0:18 [0]",
        "   my app-14692   [001] d..2.   794.560844: sched_switch: prev_comm=my app prev_pid=14692 prev_prio=69 prev_state=R ==> next_comm=migration/0 next_pid=18 next_prio=0",
        "   my app-14692   (  14690) [001] d..2.   794.560844: sched_switch: prev_comm=my app prev_pid=14692 prev_prio=69 prev_state=0x100 ==> next_comm=migration/0 next_pid=18 next_prio=0",
        "   my app-14692   [001]   794.560844: sched_switch:         my app:14692 [69] R ==> migration/0:18 [0]",
        "sched_switch: x 14692 [001] 794.560844: sched:sched_switch: prev_comm=my app prev_pid=14692 prev_prio=69 prev_state=R+ ==> next_comm=migration/0 next_pid=18 next_prio=0",
        "   my app 14692 [001] d..   794.560844: sched_switch: prev_comm=my app prev_pid=14692 prev_prio=69 prev_state=R ==> next_comm=migration/0 next_pid=18 next_prio=0 extra=1",
    ];

    #[test]
    fn every_layout_says_the_same() {
        for line in SWITCHES {
            let (events, mut names, _) = read(line);
            let from = Party { tid: 14692, name: names.number(b"my app"), priority: 69 };
            let to = Party { tid: 18, name: names.number(b"migration/0"), priority: 0 };
            let [Event { time: 794_560_844_000, cpu: 1, what, .. }] = &events[..] else { panic!("{line}: {events:?}") };
            match what {
                What::Switch { from: a, leaving: Leaving::Preempted, to: b } => {
                    assert_eq!((a, b), (&from, &to), "{line}")
                }
                other => panic!("{line}: {other:?}"),
            }
        }
        let (events, ..) = read("a 1  5.5: sched:sched_switch: a:1 [69] S ==> b:18 [0]");
        assert!(matches!(events[0], Event { cpu: NO_CPU, time: 5_500_000_000, .. }), "{events:?}");
    }

    #[test]
    fn wake_ups_of_every_layout() {
        let lines = "x 1 [000] 1.000001: sched:sched_wakeup: comm=a b pid=7 prio=120 target_cpu=001\n\
            x 1 [000] 1.000001: sched:sched_wakeup: comm=a b pid=7 prio=120 success=1 target_cpu=001\n\
            x 1 [000] 1.000001: sched:sched_waking: a b:7 [120] CPU:001\n\
            x-1 [000] 1.000001: sched_wakeup: a b:7 [120] success=1 CPU:001\n\
            x-1 [000] dN.. 1.000001: sched_wakeup: a b:7 [120]<CANT FIND FIELD success> CPU:001\n\
            x-1 [000] dN.. 1.000001: sched_wakeup: comm=a b pid=7 prio=120 success=0 target_cpu=001\n\
            x-1 [000] 1.000001: sched_wakeup_new: comm=a b pid=7 prio=120 target_cpu=001\n";
        let (events, mut names, unread) = read(lines);
        assert_eq!((events.len(), unread.lines), (6, 0), "{events:?}");
        let expected = Party { tid: 7, name: names.number(b"a b"), priority: 120 };
        for (at, event) in events.iter().enumerate() {
            let What::Wake { who, is_new } = event.what else { panic!("{event:?}") };
            assert_eq!((who, is_new), (expected, at == 5));
        }
    }

    #[test]
    fn markers_and_losses() {
        let text = "app-12 [000] ..... 5.1: tracing_mark_write: B|12|draw frame\n\
            app 10/12 [000] 5.2: ftrace:print: 0xffff81f: E|10\n\
            app-12 [000] ..... 5.25: print: tracing_mark_write: C|12|queue|3\n\
            CPU:1 [LOST 12 EVENTS]\n\
            app-12 [000] 5.3: sched_waking: comm=a pid=7 prio=120 target_cpu=001\n\
            app-12 [001] 5.4: sched_waking: comm=a pid=7 prio=120 target_cpu=001\n\
            app-12 [001] 5.5: sched_switch: nonsense\n\
            app-12 [001] 5.6: sched_waking: comm=a pid=7 prio=120 target_cpu=001\n";
        let (events, mut names, unread) = read(text);
        let draw = names.number(b"draw frame");
        assert!(matches!(events[0].what, What::Begin(name) if name == draw), "{events:?}");
        assert!(matches!(events[1], Event { tid: 12, pid: 10, what: What::End(None), .. }), "{events:?}");
        assert!(matches!(events[3], Event { cpu: 1, what: What::Lost { count: Some(12) }, .. }), "{events:?}");
        assert!(matches!(events[5], Event { cpu: NO_CPU, what: What::Lost { .. }, .. }), "{events:?}");
        assert_eq!((events.len(), unread.lines, unread.first_line, unread.other_markers), (7, 1, 7, 1));
    }
}
