//! CTF 1.8, the binary format of LTTng, babeltrace and `perf data convert`: a folder with `metadata`, which says in a
//! language of its own (TSDL) what the bits of the other files mean.
//!
//! `lexer.rs` and `parser.rs` read the metadata into `types.rs`; `layout.rs` resolves the paths in them; `decode.rs` goes over the bits;
//! `stream.rs` takes a file of packets apart. One packet is in memory at a time.

mod decode;
mod layout;
mod lexer;
mod parser;
mod stream;
mod types;

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use layout::{Found, Layouts, Node};
use stream::StreamFile;
use types::{ByteOrder, Metadata, Type};

use crate::error::TraceError;
use crate::files::{About, Files};
use crate::named::{Kind, PROCESS_FIELDS, THREAD_FIELDS};
use crate::source::Source;

/// Largest metadata file, in bytes.
const MOST_METADATA: u64 = 1 << 26;
/// Deepest folder below the one that the user names.
const DEEPEST: usize = 10;

/// Clock of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClockOf {
    pub name: String,
    /// Identity of the clock: those of one boot of a machine are the same.
    pub uuid: Option<String>,
}

/// What was opened.
pub(crate) struct Opened {
    /// Files of packets.
    pub sources: Vec<Box<dyn Source>>,
    /// Clock of each trace in the folder.
    pub clocks: Vec<ClockOf>,
    /// Whether callbacks of ROS 2 are among the events that it can have.
    pub has_callbacks: bool,
}

/// Opens every trace in a folder.
pub(crate) fn open(files: &dyn Files, folder: &Path) -> Result<Opened, TraceError> {
    let mut traces = Vec::new();
    find(files, folder, DEEPEST, &mut traces)?;
    traces.sort();
    let (mut sources, mut clocks, mut has_callbacks) = (Vec::new(), Vec::new(), false);
    for trace in traces {
        let (plan, clock) = plan(files, &trace.join("metadata"))?;
        clocks.extend(clock);
        has_callbacks |= plan.has_callbacks();
        let plan = Rc::new(plan);
        for file in packet_files(files, &trace)? {
            if let Some(source) = StreamFile::open(files, &file, plan.clone())? {
                sources.push(Box::new(source) as Box<dyn Source>);
            }
        }
    }
    match sources.is_empty() {
        true => Err(TraceError::whole(folder, "has metadata of CTF, and no file with packets beside it")),
        false => Ok(Opened { sources, clocks, has_callbacks }),
    }
}

/// Whether a folder has a trace in it.
pub(crate) fn is_one(files: &dyn Files, folder: &Path) -> bool {
    let mut traces = Vec::new();
    find(files, folder, DEEPEST, &mut traces).is_ok() && !traces.is_empty()
}

fn entries(files: &dyn Files, folder: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let mut all = files.entries(folder).map_err(|error| TraceError::whole(folder, error.to_string()))?;
    all.sort();
    Ok(all)
}

/// Collects the folders with metadata.
fn find(files: &dyn Files, folder: &Path, depth: usize, traces: &mut Vec<PathBuf>) -> Result<(), TraceError> {
    if files.has_file(&folder.join("metadata")) {
        traces.push(folder.into());
        return Ok(());
    }
    for path in entries(files, folder)? {
        if depth > 0 && files.has_folder(&path) {
            find(files, &path, depth - 1, traces)?;
        }
    }
    Ok(())
}

/// Files of packets of a trace.
fn packet_files(files: &dyn Files, trace: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let is_hidden = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let mut all = entries(files, trace)?;
    all.retain(|path| {
        files.has_file(path) && !is_hidden(path) && path.file_name().is_some_and(|name| name != "metadata")
    });
    Ok(all)
}

/// How packets are decoded.
pub(crate) struct Plan {
    packet_header: Option<Node>,
    /// Slots of the header and of the packet contexts.
    magic: Option<Found>,
    stream_id: Option<Found>,
    streams: HashMap<u64, StreamPlan>,
    /// Largest numbers of slots.
    numbers: usize,
    texts: usize,
    /// Ticks of the clock in a second.
    frequency: u64,
}

impl Plan {
    fn has_callbacks(&self) -> bool {
        let is_start = |event: &EventPlan| matches!(event.kind, Some((Kind::CallbackStart, _)));
        self.streams.values().any(|stream| stream.events.values().any(is_start))
    }
}

/// How the packets of a class of streams are decoded.
struct StreamPlan {
    packet_context: Option<Node>,
    event_header: Option<Node>,
    event_context: Option<Node>,
    timestamp_begin: Option<Found>,
    content_size: Option<Found>,
    packet_size: Option<Found>,
    events_discarded: Option<Found>,
    packet_seq_num: Option<Found>,
    cpu: Option<Found>,
    events: HashMap<u64, EventPlan>,
}

/// How events of a class are decoded.
struct EventPlan {
    context: Option<Node>,
    fields: Option<Node>,
    /// What it means, and where the fields are that it wants.
    kind: Option<(Kind, Vec<Option<Found>>)>,
    thread: Option<Found>,
    process: Option<Found>,
}

/// Reads metadata.
fn plan(files: &dyn Files, file: &Path) -> Result<(Plan, Option<ClockOf>), TraceError> {
    let failed = |error: std::io::Error| TraceError::whole(file, error.to_string());
    if matches!(files.about(file).map_err(failed)?, About::File(bytes) if bytes > MOST_METADATA) {
        return Err(TraceError::whole(file, format!("is larger than {} MiB", MOST_METADATA >> 20)));
    }
    let mut bytes = Vec::new();
    files.open(file).and_then(|mut content| content.read_to_end(&mut bytes)).map_err(failed)?;
    let text = text_of(file, &bytes)?;
    let in_line = |(offset, message): parser::Wrong| {
        let line = 1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count();
        TraceError::line(file, line as u64, message)
    };
    let metadata = parser::metadata(&text).map_err(in_line)?;
    let clock = metadata.clocks.first();
    let clock = clock.map(|clock| ClockOf { name: clock.name.clone(), uuid: clock.uuid.clone() });
    let plan = compiled(&metadata).map_err(|message| TraceError::whole(file, message))?;
    Ok((plan, clock))
}

const PACKET_MAGIC: [u8; 4] = 0x75d1_1d57u32.to_le_bytes();
/// Size of the header of a packet of metadata, in bytes.
const METADATA_HEADER: usize = 37;

/// Returns the text of metadata, which can be in packets.
fn text_of(file: &Path, bytes: &[u8]) -> Result<String, TraceError> {
    let big: [u8; 4] = 0x75d1_1d57u32.to_be_bytes();
    let order = match bytes.get(..4) {
        Some(magic) if magic == PACKET_MAGIC => ByteOrder::Little,
        Some(magic) if magic == big => ByteOrder::Big,
        _ => {
            return String::from_utf8(bytes.to_vec()).map_err(|error| {
                let at = error.utf8_error().valid_up_to() as u64;
                TraceError::offset(file, at, "is neither text nor a packet of metadata")
            });
        }
    };
    let mut text = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let truncated = || TraceError::offset(file, at as u64, "a packet of metadata is cut off");
        let header = bytes.get(at..at + METADATA_HEADER).ok_or_else(truncated)?;
        let number = |from: usize| {
            let four = [header[from], header[from + 1], header[from + 2], header[from + 3]];
            match order {
                ByteOrder::Little => u32::from_le_bytes(four),
                ByteOrder::Big => u32::from_be_bytes(four),
            }
        };
        let (content, packet) = (number(24) as usize / 8, number(28) as usize / 8);
        if number(0) != 0x75d1_1d57 || header[32] != 0 || header[33] != 0 {
            let message = "is no packet of metadata without compression and encryption";
            return Err(TraceError::offset(file, at as u64, message));
        }
        if content < METADATA_HEADER || packet < content {
            let message = format!("a packet of metadata with {content} bytes of content in {packet} bytes");
            return Err(TraceError::offset(file, at as u64, message));
        }
        text.extend_from_slice(bytes.get(at + METADATA_HEADER..at + content).ok_or_else(truncated)?);
        at += packet;
    }
    String::from_utf8(text).map_err(|_| TraceError::whole(file, "the text of its packets is not UTF-8"))
}

fn compiled(metadata: &Metadata) -> Result<Plan, String> {
    let mut base = Layouts::new();
    let add = |layouts: &mut Layouts, scope: &str, of: &Option<Type>| {
        of.as_ref().map(|of| layouts.add(scope, of)).transpose()
    };
    let packet_header = add(&mut base, "trace.packet.header", &metadata.packet_header)?;
    let in_header = |name: &str| base.find("trace.packet.header", name);
    let (magic, stream_id) = (in_header("magic"), in_header("stream_id"));
    let (mut numbers, mut texts) = base.sizes();
    let mut streams = HashMap::new();
    // A trace can do without a block of streams.
    let implied = [types::StreamClass::default()];
    let classes = if metadata.streams.is_empty() { &implied[..] } else { &metadata.streams[..] };
    for class in classes {
        let mut layouts = base.clone();
        let packet_context = add(&mut layouts, "stream.packet.context", &class.packet_context)?;
        let event_header = add(&mut layouts, "stream.event.header", &class.event_header)?;
        let event_context = add(&mut layouts, "stream.event.context", &class.event_context)?;
        let mut events = HashMap::new();
        for event in metadata.events.iter().filter(|event| event.stream == class.id) {
            let mut layouts = layouts.clone();
            let context = add(&mut layouts, "event.context", &event.context)?;
            let fields = add(&mut layouts, "event.fields", &event.fields)?;
            let kind = Kind::of(event.name.as_bytes())
                .map(|kind| (kind, kind.fields().iter().map(|name| layouts.find("event.fields", name)).collect()));
            // perf puts the thread among the fields, under names of its own.
            let in_contexts = |names: [&str; 3]| {
                let scopes = ["stream.event.context", "event.context"];
                let own = names.iter().find_map(|name| scopes.iter().find_map(|scope| layouts.find(scope, name)));
                own.or_else(|| layouts.find("event.fields", names[2]))
            };
            let (thread, process) = (in_contexts(THREAD_FIELDS), in_contexts(PROCESS_FIELDS));
            let sizes = layouts.sizes();
            (numbers, texts) = (numbers.max(sizes.0), texts.max(sizes.1));
            events.insert(event.id, EventPlan { context, fields, kind, thread, process });
        }
        let sizes = layouts.sizes();
        (numbers, texts) = (numbers.max(sizes.0), texts.max(sizes.1));
        let in_context = |name: &str| layouts.find("stream.packet.context", name);
        let plan = StreamPlan {
            timestamp_begin: in_context("timestamp_begin"),
            content_size: in_context("content_size"),
            packet_size: in_context("packet_size"),
            events_discarded: in_context("events_discarded"),
            packet_seq_num: in_context("packet_seq_num"),
            cpu: in_context("cpu_id"),
            packet_context,
            event_header,
            event_context,
            events,
        };
        streams.insert(class.id, plan);
    }
    let frequency = metadata.clocks.first().map_or(1_000_000_000, |clock| clock.frequency);
    Ok(Plan { packet_header, magic, stream_id, streams, numbers, texts, frequency })
}
