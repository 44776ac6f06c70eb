//! The run of a known set as LTTng's CTF: a small writer that shares nothing with the reader.

use crate::truth::{FIRST_TID, Kernel, Truth, priority};

/// How the trace is written.
#[derive(Clone, Copy)]
pub struct Style {
    pub is_big: bool,
    /// Metadata in packets.
    pub is_packetized: bool,
}

/// Returns the files of a trace: names and contents.
pub fn ctf(truth: &Truth, style: Style) -> Vec<(String, Vec<u8>)> {
    let mut files = vec![("metadata".to_string(), metadata(style))];
    for core in 0..2 {
        let mut stream = Vec::new();
        let mine = truth.events.iter().filter(|(_, event)| match event {
            // Wake-ups are in the stream of the core on which they happen; here that is core 0.
            Kernel::Wake(_) => core == 0,
            Kernel::Switch { core: at, .. } => *at == core,
        });
        let mine: Vec<_> = mine.collect();
        for (number, events) in mine.chunks(400).enumerate() {
            stream.extend(packet(truth, style, core as u32, number as u64, events));
        }
        files.push((format!("channel0_{core}"), stream));
    }
    files
}

/// Bytes of numbers in the order of the trace.
struct Out {
    bytes: Vec<u8>,
    is_big: bool,
}

impl Out {
    fn number(&mut self, value: u64, bytes: usize) {
        let all = if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.bytes.extend(if self.is_big { &all[8 - bytes..] } else { &all[..bytes] });
    }

    fn comm(&mut self, name: &str) {
        let mut comm = [0; 16];
        comm[..name.len()].copy_from_slice(name.as_bytes());
        self.bytes.extend(comm);
    }

    /// Five bits and 27 bits, in the bit order of the trace.
    fn compact(&mut self, id: u32, time: u64) {
        let time = time as u32 & ((1 << 27) - 1);
        let word = if self.is_big { id << 27 | time } else { id | time << 5 };
        self.number(u64::from(word), 4);
    }
}

fn packet(truth: &Truth, style: Style, core: u32, number: u64, events: &[&(u64, Kernel)]) -> Vec<u8> {
    let mut body = Out { bytes: Vec::new(), is_big: style.is_big };
    let mut last = events[0].0;
    let name =
        |task: Option<usize>| task.map_or(format!("swapper/{core}"), |task| truth.set.tasks()[task].name.clone());
    let tid = |task: Option<usize>| task.map_or(0, |task| FIRST_TID + task) as u64;
    // LTTng counts priorities from 100.
    let prio = |task: Option<usize>| (task.map_or(120, priority) - 100) as i64 as u64;
    for (at, (time, kernel)) in events.iter().enumerate() {
        let id = if matches!(kernel, Kernel::Wake(_)) { 1 } else { 0 };
        if at % 50 == 7 || time - last >= 1 << 27 {
            // The extended form: 31, then from the next byte on the number and the whole date.
            body.bytes.push(if style.is_big { 31 << 3 } else { 31 });
            body.number(id, 4);
            body.number(*time, 8);
        } else {
            body.compact(id as u32, *time);
        }
        last = *time;
        match kernel {
            Kernel::Wake(task) => {
                body.comm(&name(Some(*task)));
                body.number(tid(Some(*task)), 4);
                body.number(prio(Some(*task)), 4);
                body.number(1, 4);
            }
            Kernel::Switch { from, is_done, to, .. } => {
                body.comm(&name(*from));
                body.number(tid(*from), 4);
                body.number(prio(*from), 4);
                body.number(if *is_done { 1 } else { 0x100 }, 8);
                body.comm(&name(*to));
                body.number(tid(*to), 4);
                body.number(prio(*to), 4);
                // A sequence that nobody asked for, and a number of three bits.
                body.number(2, 1);
                body.number(7, 2);
                body.number(8, 2);
                body.bytes.push(5);
            }
        }
    }
    let head = 4 + 16 + 4 + 7 * 8 + 4;
    let content = head + body.bytes.len();
    let size = content.next_multiple_of(64);
    // The last byte of a switch has three bits that count.
    let spare = if matches!(events.last(), Some((_, Kernel::Switch { .. }))) { 5 } else { 0 };
    let mut out = Out { bytes: Vec::new(), is_big: style.is_big };
    out.number(0xc1fc_1fc1, 4);
    out.bytes.extend([7; 16]);
    out.number(0, 4);
    for value in [events[0].0, last, 8 * content as u64 - spare, 8 * size as u64, number, 0] {
        out.number(value, 8);
    }
    out.number(0, 8);
    out.number(u64::from(core), 4);
    assert_eq!(out.bytes.len(), head);
    out.bytes.extend(body.bytes);
    out.bytes.resize(size, 0);
    out.bytes
}

fn metadata(style: Style) -> Vec<u8> {
    let order = if style.is_big { "be" } else { "le" };
    let text = METADATA.replace("ORDER", order);
    if !style.is_packetized {
        return text.into_bytes();
    }
    let mut out = Out { bytes: Vec::new(), is_big: style.is_big };
    for part in text.as_bytes().chunks(1000) {
        out.number(0x75d1_1d57, 4);
        out.bytes.extend([7; 16]);
        out.number(0, 4);
        out.number(8 * (37 + part.len() as u64), 4);
        out.number(8 * 1100, 4);
        out.bytes.extend([0, 0, 0, 1, 8]);
        out.bytes.extend(part);
        out.bytes.resize(out.bytes.len().next_multiple_of(1100), 0);
    }
    out.bytes
}

const METADATA: &str = r#"/* CTF 1.8 */

typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = false; } := unsigned long;
typealias integer { size = 5; align = 1; signed = false; } := uint5_t;

trace {
	major = 1;
	minor = 8;
	uuid = "07070707-0707-0707-0707-070707070707";
	byte_order = ORDER;
	packet.header := struct {
		uint32_t magic;
		uint8_t  uuid[16];
		uint32_t stream_id;
	};
};

env { domain = "kernel"; tracer_name = "lttng-modules"; tracer_major = 2; };

clock {
	name = "monotonic";
	uuid = "ad977f06-7b85-4bb5-861c-8dda1fc29ec9";
	description = "Monotonic Clock";
	freq = 1000000000; /* Frequency, in Hz */
	offset = 1795030400058826504;
};

typealias integer { size = 27; align = 1; signed = false; map = clock.monotonic.value; } := uint27_clock_monotonic_t;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := uint64_clock_monotonic_t;

struct packet_context {
	uint64_clock_monotonic_t timestamp_begin;
	uint64_clock_monotonic_t timestamp_end;
	uint64_t content_size;
	uint64_t packet_size;
	uint64_t packet_seq_num;
	unsigned long events_discarded;
	uint64_t unused;
	uint32_t cpu_id;
};

struct event_header_compact {
	enum : uint5_t { compact = 0 ... 30, extended = 31 } id;
	variant <id> {
		struct { uint27_clock_monotonic_t timestamp; } compact;
		struct { uint32_t id; uint64_clock_monotonic_t timestamp; } extended;
	} v;
} align(8);

stream {
	id = 0;
	event.header := struct event_header_compact;
	packet.context := struct packet_context;
};

event {
	name = "sched_switch";
	id = 0;
	stream_id = 0;
	fields := struct {
		integer { size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; } _prev_comm[16];
		integer { size = 32; align = 8; signed = 1; } _prev_tid;
		integer { size = 32; align = 8; signed = 1; } _prev_prio;
		integer { size = 64; align = 8; signed = 1; } _prev_state;
		integer { size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; } _next_comm[16];
		integer { size = 32; align = 8; signed = 1; } _next_tid;
		integer { size = 32; align = 8; signed = 1; } _next_prio;
		uint8_t __more_length;
		uint16_t _more[ __more_length ];
		integer { size = 3; align = 1; signed = false; } _small;
	};
};

event {
	name = "sched_waking";
	id = 1;
	stream_id = 0;
	fields := struct {
		integer { size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; } _comm[16];
		integer { size = 32; align = 8; signed = 1; } _tid;
		integer { size = 32; align = 8; signed = 1; } _prio;
		integer { size = 32; align = 8; signed = 1; } _target_cpu;
	};
};
"#;
