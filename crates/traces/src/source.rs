//! Sources of events, and several of them as one stream in the order of time.

use std::collections::HashSet;

use crate::error::TraceError;
use crate::event::{Event, Names, What};

/// What a source could not use. Counted, so that the notes can say it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unread {
    /// Lines that look like events of the scheduler and cannot be read.
    pub lines: u64,
    /// First of them.
    pub first_line: u64,
    /// Markers of kinds that are not pairs: instants, counters, asynchronous ones.
    pub other_markers: u64,
    /// Events that came before one of an earlier date, by less than is refused.
    pub out_of_order: u64,
}

/// A stream of events.
pub(crate) trait Source {
    /// Returns the next event.
    fn next(&mut self, names: &mut Names) -> Result<Option<Event>, TraceError>;
    /// Bytes read so far.
    fn bytes(&self) -> u64;
    fn unread(&self) -> Unread {
        Unread::default()
    }
    /// Number of the line that was read last, where there are lines.
    fn line(&self) -> Option<u64> {
        None
    }
    /// Name for messages.
    fn file(&self) -> &std::path::Path;
    /// Folder whose files are one trace, with one clock.
    fn folder(&self) -> Option<&std::path::Path> {
        None
    }
    /// Threads that were recorded from the beginning, if only some were. Known from the first event on.
    fn recorded(&self) -> Option<&[i32]> {
        None
    }
    /// What only this source can say about the trace, for the notes.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Longest time by which an event may come after a later one, in nanoseconds. Buffers of several processors are put
/// together with such errors; more is another clock, or two traces in one file.
const MOST_BACK: u64 = 1_000_000_000;

/// One source with its next event.
struct Ahead {
    source: Box<dyn Source>,
    next: Option<Event>,
    /// Dates of the first event and of the last one so far.
    span: Option<(u64, u64)>,
    /// Date and line of the last event so far that has to be in the order of time.
    latest: (u64, Option<u64>),
    out_of_order: u64,
}

impl Ahead {
    fn advance(&mut self, names: &mut Names) -> Result<(), TraceError> {
        self.next = self.source.next(names)?;
        let Some(event) = &mut self.next else { return Ok(()) };
        // Slices of a program are written when they begin or when they end.
        if !matches!(event.what, What::Slice { .. }) {
            let (last, line) = self.latest;
            if event.time < last {
                self.out_of_order += 1;
                if last - event.time > MOST_BACK {
                    let back = temponet_task::Time(last - event.time);
                    let from = line.map_or_else(String::new, |line| format!(" from that of line {line}"));
                    let message = format!(
                        "the dates go back by {back}{from}: two traces in one file, two clocks, or a wrong date"
                    );
                    let file = self.source.file();
                    return Err(match self.source.line() {
                        Some(line) => TraceError::line(file, line, message),
                        None => TraceError::whole(file, message),
                    });
                }
                event.time = last;
            } else {
                self.latest = (event.time, self.source.line());
            }
        }
        let (first, last) = self.span.unwrap_or((event.time, event.time));
        self.span = Some((first.min(event.time), event.time.max(last)));
        Ok(())
    }
}

/// Several sources as one stream.
pub(crate) struct Merged {
    sources: Vec<Ahead>,
}

impl Merged {
    pub fn new(sources: Vec<Box<dyn Source>>, names: &mut Names) -> Result<Merged, TraceError> {
        let ahead = |source| Ahead { source, next: None, span: None, latest: (0, None), out_of_order: 0 };
        let mut sources: Vec<Ahead> = sources.into_iter().map(ahead).collect();
        sources.iter_mut().try_for_each(|source| source.advance(names))?;
        Ok(Merged { sources })
    }

    /// Returns the earliest of the next events; of several at one date that of the first source.
    pub fn next(&mut self, names: &mut Names) -> Result<Option<Event>, TraceError> {
        let dated = self.sources.iter().enumerate();
        let earliest = dated.filter_map(|(at, source)| Some((source.next.as_ref()?.time, at))).min();
        let Some((_, at)) = earliest else { return Ok(None) };
        let event = self.sources[at].next.take();
        self.sources[at].advance(names)?;
        Ok(event)
    }

    /// Threads that were recorded from the beginning, if only some were.
    pub fn recorded(&self) -> Option<HashSet<i32>> {
        let lists = self.sources.iter().filter_map(|source| source.source.recorded());
        lists.fold(None, |all, threads| {
            let mut all: HashSet<i32> = all.unwrap_or_default();
            all.extend(threads);
            Some(all)
        })
    }

    pub fn bytes(&self) -> u64 {
        self.sources.iter().map(|source| source.source.bytes()).sum()
    }

    /// What could not be used, over all sources.
    pub fn unread(&self) -> Unread {
        self.sources.iter().fold(Unread::default(), |sum, source| {
            let one = source.source.unread();
            Unread {
                lines: sum.lines + one.lines,
                first_line: if sum.lines == 0 { one.first_line } else { sum.first_line },
                other_markers: sum.other_markers + one.other_markers,
                out_of_order: sum.out_of_order + one.out_of_order + source.out_of_order,
            }
        })
    }

    pub fn remarks(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for remark in self.sources.iter().flat_map(|source| source.source.remarks()) {
            if !all.contains(&remark) {
                all.push(remark);
            }
        }
        all
    }

    /// Refuses files whose times do not overlap: their clocks are not the same.
    pub fn check_clocks(&self) -> Result<(), TraceError> {
        let spans: Vec<_> = self.sources.iter().filter_map(|source| Some((&source.source, source.span?))).collect();
        for (at, (source, (start, end))) in spans.iter().enumerate() {
            for (other, (first, last)) in &spans[..at] {
                let is_one_trace = source.folder().is_some() && source.folder() == other.folder();
                if !is_one_trace && (start > last || first > end) {
                    let [start, end, first, last] = [start, end, first, last].map(|time| *time as f64 / 1e9);
                    let message = format!(
                        "runs from {start:.6} s to {end:.6} s, and {} from {first:.6} s to {last:.6} s: their clocks do not match",
                        other.file().display()
                    );
                    return Err(TraceError::whole(source.file(), message));
                }
            }
        }
        Ok(())
    }
}
