//! No file makes the importers of traces panic or run without an end. The first byte chooses what it is: a file, the metadata of
//! CTF, or packets beside metadata that are right.
#![no_main]

use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use temponet_traces::{Options, TaskBy, import};

/// Metadata of a stream of switches.
const METADATA: &str = "/* CTF 1.8 */\n\
    trace { major = 1; minor = 8; byte_order = le; packet.header := struct { integer { size = 32; } magic; }; };\n\
    clock { name = mono; freq = 1000000000; };\n\
    stream { packet.context := struct { integer { size = 32; } content_size; integer { size = 32; } packet_size; };\n\
      event.header := struct { enum : integer { size = 5; align = 1; } { compact = 0 ... 30, extended = 31 } id;\n\
        variant <id> { struct { integer { size = 27; align = 1; map = clock.mono.value; } timestamp; } compact;\n\
          struct { integer { size = 32; } id; integer { size = 64; map = clock.mono.value; } timestamp; } extended; } v; } align(8); };\n\
    event { name = \"sched_switch\"; id = 0; fields := struct { string _prev_comm; integer { size = 32; signed = 1; } _prev_tid;\n\
      integer { size = 8; } _prev_state; string _next_comm; integer { size = 32; signed = 1; } _next_tid; }; };\n\
    event { name = \"x\"; id = 1; fields := struct { integer { size = 7; align = 1; } _n; integer { size = 9; align = 1; } _s[_n]; }; };\n";

fuzz_target!(|data: (u8, &[u8])| {
    let folder = std::env::temp_dir().join(format!("temponet-fuzz-traces-{}", std::process::id()));
    let trace = folder.join("ctf");
    std::fs::create_dir_all(&trace).expect("a folder for the files");
    let write = |name: PathBuf, bytes: &[u8]| {
        std::fs::write(&name, bytes).expect("a file");
        name
    };
    let path = match data.0 % 3 {
        0 => write(folder.join("trace"), data.1),
        1 => {
            write(trace.join("metadata"), data.1);
            write(trace.join("stream"), &[0xc1, 0x1f, 0xfc, 0xc1, 0, 0, 0, 0]);
            trace
        }
        _ => {
            write(trace.join("metadata"), METADATA.as_bytes());
            write(trace.join("stream"), data.1);
            trace
        }
    };
    let task_by = [None, Some(TaskBy::Thread), Some(TaskBy::Callback), Some(TaskBy::Marker)][usize::from(data.0 / 3) % 4];
    let _ = import(&[path], &Options { task_by, ..Options::default() }, None, &mut |_| {});
});
