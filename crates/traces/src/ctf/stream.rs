//! Files of packets of CTF, a packet at a time.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::decode::{Bits, Broken, Slots};
use super::layout::{EVENT_ID, Found, Node};
use super::{EventPlan, Plan, StreamPlan};
use crate::error::TraceError;
use crate::event::{Event, NO_CPU, Names, What};
use crate::files::{About, Content, Files};
use crate::named::{MOST_FIELDS, Value};
use crate::source::{Source, Unread};

/// First number of a packet.
const MAGIC: i64 = 0xc1fc_1fc1;
/// Bytes that hold the header and the context of any packet.
const HEAD: usize = 1 << 13;
/// Largest packet, in bytes.
const MOST_PACKET: u64 = 1 << 28;

/// A file of packets.
pub(crate) struct StreamFile {
    file: PathBuf,
    input: Box<dyn Content>,
    length: u64,
    plan: Rc<Plan>,
    slots: Slots,
    packet: Vec<u8>,
    /// Offset of the packet in the file, and of the next one.
    offset: u64,
    next_offset: u64,
    /// Next bit of the packet, and the bit after its last one.
    at: u64,
    end: u64,
    class: u64,
    cpu: u32,
    /// Counter of lost events and number of the packet before, and of this one.
    before: Option<(Option<u64>, Option<u64>)>,
    now: (Option<u64>, Option<u64>),
    pending: Option<Event>,
    unread: Unread,
}

impl StreamFile {
    /// Opens a file; none if it is empty.
    pub fn open(files: &dyn Files, file: &Path, plan: Rc<Plan>) -> Result<Option<StreamFile>, TraceError> {
        let failed = |error: std::io::Error| TraceError::whole(file, error.to_string());
        let About::File(length) = files.about(file).map_err(failed)? else { return Ok(None) };
        let input = files.open(file).map_err(failed)?;
        let slots = Slots { numbers: vec![0; plan.numbers], texts: vec![(0, 0); plan.texts], clock: 0 };
        let stream = StreamFile {
            file: file.into(),
            input,
            length,
            plan,
            slots,
            packet: Vec::new(),
            offset: 0,
            next_offset: 0,
            at: 0,
            end: 0,
            class: 0,
            cpu: NO_CPU,
            before: None,
            now: (None, None),
            pending: None,
            unread: Unread::default(),
        };
        Ok((length > 0).then_some(stream))
    }

    fn wrong<T>(&self, offset: u64, message: impl Into<String>) -> Result<T, TraceError> {
        Err(TraceError::offset(&self.file, offset, message))
    }

    /// Decodes a node at the place in the packet.
    fn decode(&mut self, node: Option<&Node>) -> Result<(), TraceError> {
        let Some(node) = node else { return Ok(()) };
        let mut bits = Bits { data: &self.packet, at: self.at, end: self.end };
        let result = bits.decode(node, &mut self.slots);
        self.at = bits.at;
        let offset = self.offset + self.at / 8;
        match result {
            Ok(()) => Ok(()),
            Err(Broken::Ends) => self.wrong(offset, "an event goes on where its packet ends"),
            Err(Broken::NoOption(value)) => self.wrong(offset, format!("no type for the value {value} of a tag")),
        }
    }

    fn number(&self, found: Option<Found>) -> Option<i64> {
        match found? {
            Found::Number(slot) => Some(self.slots.numbers[slot]),
            Found::Text(_) => None,
        }
    }

    /// Reads the next packet; false at the end of the file.
    fn next_packet(&mut self) -> Result<bool, TraceError> {
        self.offset = self.next_offset;
        let rest = self.length.saturating_sub(self.offset);
        if rest == 0 {
            return Ok(false);
        }
        self.read(rest.min(HEAD as u64) as usize)?;
        let plan = self.plan.clone();
        self.decode(plan.packet_header.as_ref())?;
        if let Some(magic) = self.number(plan.magic).filter(|magic| *magic & 0xffff_ffff != MAGIC) {
            return self
                .wrong(self.offset, format!("a packet begins with {:#x} instead of {MAGIC:#x}", magic & 0xffff_ffff));
        }
        let only = plan.streams.keys().next().copied().filter(|_| plan.streams.len() == 1);
        let class = self.number(plan.stream_id).map(|id| id as u64).or(only).unwrap_or(0);
        let Some(stream) = plan.streams.get(&class) else {
            return self.wrong(self.offset, format!("the metadata has no stream {class}"));
        };
        self.class = class;
        self.decode(stream.packet_context.as_ref())?;
        self.check_size(stream, rest)?;
        self.slots.clock = self.number(stream.timestamp_begin).map_or(self.slots.clock, |begin| begin as u64);
        self.cpu = self.number(stream.cpu).and_then(|cpu| u32::try_from(cpu).ok()).unwrap_or(NO_CPU);
        self.note_losses(stream);
        Ok(true)
    }

    /// Reads this much of the packet, and decodes from its beginning.
    fn read(&mut self, bytes: usize) -> Result<(), TraceError> {
        self.packet.resize(bytes, 0);
        let read = self.input.seek(SeekFrom::Start(self.offset)).and_then(|_| self.input.read_exact(&mut self.packet));
        read.map_err(|error| TraceError::offset(&self.file, self.offset, error.to_string()))?;
        (self.at, self.end) = (0, 8 * bytes as u64);
        Ok(())
    }

    /// Reads the whole packet, by the sizes in its context.
    fn check_size(&mut self, stream: &StreamPlan, rest: u64) -> Result<(), TraceError> {
        let bits = |found| self.number(found).map(|bits| bits as u64);
        let packet = bits(stream.packet_size).or(bits(stream.content_size)).unwrap_or(8 * rest);
        let content = bits(stream.content_size).unwrap_or(packet);
        let head = self.at;
        if packet % 8 != 0 || content > packet || content < head {
            let message =
                format!("a packet of {packet} bits with {content} bits of content, of which {head} are its header");
            return self.wrong(self.offset, message);
        }
        if packet / 8 > rest {
            let message = format!("a packet of {} bytes is cut off after {rest}: the file ends", packet / 8);
            return self.wrong(self.offset, message);
        }
        if packet / 8 > MOST_PACKET {
            return self
                .wrong(self.offset, format!("a packet of {} bytes: at most {MOST_PACKET} are read", packet / 8));
        }
        if packet == 0 {
            return self.wrong(self.offset, "a packet without a size");
        }
        self.next_offset = self.offset + packet / 8;
        if packet / 8 > self.packet.len() as u64 {
            self.read((packet / 8) as usize)?;
        }
        (self.at, self.end) = (head, content);
        Ok(())
    }

    /// Compares the counters of lost events and of packets with those of the packet before. LTTng loses events where all
    /// buffers are full, so between the end of one packet and the beginning of the next.
    fn note_losses(&mut self, stream: &StreamPlan) {
        let begin = self.ns(self.slots.clock);
        let discarded = self.number(stream.events_discarded).map(|count| count as u64);
        let number = self.number(stream.packet_seq_num).map(|number| number as u64);
        self.now = (discarded, number);
        let Some((discarded_before, number_before)) = self.before else {
            if let Some(count) = discarded.filter(|count| *count > 0) {
                self.lose(begin, Some(count));
            }
            return;
        };
        let lost = discarded.zip(discarded_before).map_or(0, |(now, before)| now.saturating_sub(before));
        let skipped = number.zip(number_before).is_some_and(|(now, before)| now > before.saturating_add(1));
        if lost > 0 || skipped {
            self.lose(begin, (lost > 0).then_some(lost));
        }
    }

    fn lose(&mut self, time: u64, count: Option<u64>) {
        self.pending = Some(Event { time, cpu: self.cpu, tid: -1, pid: -1, what: What::Lost { count } });
    }

    /// Converts ticks to nanoseconds.
    fn ns(&self, ticks: u64) -> u64 {
        match self.plan.frequency {
            1_000_000_000 => ticks,
            frequency => (u128::from(ticks) * 1_000_000_000 / u128::from(frequency)).min(u128::from(u64::MAX)) as u64,
        }
    }

    /// Decodes the next event of the packet; none if it means nothing here.
    fn event(&mut self, names: &mut Names) -> Result<Option<Event>, TraceError> {
        let plan = self.plan.clone();
        let start = self.at;
        // The packet was taken for one of this class, which exists.
        let Some(stream) = plan.streams.get(&self.class) else { return Ok(None) };
        // A stream with a single class of events need not number them.
        self.slots.numbers[EVENT_ID] = 0;
        self.decode(stream.event_header.as_ref())?;
        let id = self.slots.numbers[EVENT_ID] as u64;
        let Some(event) = stream.events.get(&id) else {
            return self
                .wrong(self.offset + start / 8, format!("the metadata has no event {id} of stream {}", self.class));
        };
        self.decode(stream.event_context.as_ref())?;
        self.decode(event.context.as_ref())?;
        self.decode(event.fields.as_ref())?;
        if self.at == start {
            return self.wrong(self.offset + start / 8, "an event without a size");
        }
        Ok(self.translated(event, names))
    }

    fn translated(&mut self, event: &EventPlan, names: &mut Names) -> Option<Event> {
        let (kind, wanted) = event.kind.as_ref()?;
        let mut values = [Value::Absent; MOST_FIELDS];
        for (value, found) in values.iter_mut().zip(wanted) {
            *value = match found {
                Some(Found::Number(slot)) => Value::Number(self.slots.numbers[*slot]),
                Some(Found::Text(slot)) => {
                    let (start, end) = self.slots.texts[*slot];
                    self.packet.get(start..end).map_or(Value::Absent, Value::Text)
                }
                None => Value::Absent,
            };
        }
        let thread = |found| self.number(found).and_then(|number| i32::try_from(number).ok()).unwrap_or(-1);
        let (tid, pid) = (thread(event.thread), thread(event.process));
        let time = self.ns(self.slots.clock);
        match kind.event(&values, names) {
            Some(what) => Some(Event { time, cpu: self.cpu, tid, pid, what }),
            None => {
                self.unread.lines += 1;
                None
            }
        }
    }
}

impl Source for StreamFile {
    fn next(&mut self, names: &mut Names) -> Result<Option<Event>, TraceError> {
        loop {
            if let Some(event) = self.pending.take() {
                return Ok(Some(event));
            }
            if self.at < self.end {
                if let Some(event) = self.event(names)? {
                    return Ok(Some(event));
                }
                continue;
            }
            if self.next_offset > 0 {
                self.before = Some(self.now);
            }
            if !self.next_packet()? {
                return Ok(None);
            }
        }
    }

    fn bytes(&self) -> u64 {
        self.offset + self.at / 8
    }

    fn unread(&self) -> Unread {
        self.unread
    }

    fn folder(&self) -> Option<&Path> {
        self.file.parent()
    }

    fn file(&self) -> &Path {
        &self.file
    }
}
