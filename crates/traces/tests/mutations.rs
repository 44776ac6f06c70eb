//! Contract: no file makes the importers panic or run without an end. `TEMPONET_MUTATIONS` states how many files are tried of
//! each format; `fuzz/fuzz_targets/traces.rs` goes on from there.

use temponet_traces::{Options, TaskBy};

use crate::truth::truth;
use crate::write_ctf::{Style, ctf};
use crate::write_text::{Layout, text};
use crate::{Folder, Random, read};

fn count() -> usize {
    std::env::var("TEMPONET_MUTATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(3000)
}

/// Changes a few places: bytes, numbers, stretches that are doubled, moved or gone, and the end.
fn mutated(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..=random.below(4) {
        let (at, length) = (random.below(out.len()), 1 + random.below(40));
        let end = (at + length).min(out.len());
        match random.below(8) {
            0 => out.truncate(at),
            1 => drop(out.drain(at..end)),
            2 => {
                let part = out[at..end].to_vec();
                let to = random.below(out.len());
                out.splice(to..to, part);
            }
            3 => out[at..end].fill(if random.below(2) == 0 { 0xff } else { 0 }),
            4 => {
                let digits = [b"0".as_slice(), b"-1", b"18446744073709551615", b"99999999999999999999", b"4096"];
                out.splice(at..at, digits[random.below(5)].iter().copied());
            }
            5 => {
                // A number where there is one.
                if let Some(digit) = out[at..].iter().position(u8::is_ascii_digit) {
                    out[at + digit] = b'0' + random.below(10) as u8;
                }
            }
            _ => {
                if let Some(byte) = out.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
        if out.is_empty() {
            break;
        }
    }
    out
}

fn beginning(text: String, lines: usize) -> Vec<u8> {
    text.lines().take(lines).flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
}

#[test]
fn no_mutated_text_panics_or_runs_on() {
    let (truth, folder) = (truth(), Folder::new("mutated"));
    let chrome = (0..20).map(|k| {
        format!("{{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"cat\":\"job\",\"name\":\"f\",\"ts\":{},\"dur\":5.5,\"args\":{{\"job\":{k}}}}}", 100 * k)
    });
    let chrome = format!("{{\"traceEvents\":[{}]}}", chrome.collect::<Vec<_>>().join(",\n"));
    let babeltrace = (0..20).map(|k| {
        let (start, end) = (1_000 + k, 1_001 + k);
        format!(
            "[{start}.5] (+0.1) vm ros2:callback_start: {{ cpu_id = 1 }}, {{ vpid = 5, vtid = 6 }}, {{ callback = 0x100 }}\n\
             [{end}.0] (+0.1) vm ros2:callback_end: {{ cpu_id = 1 }}, {{ vpid = 5, vtid = 6 }}, {{ callback = 0x100 }}\n"
        )
    });
    let samples = [
        beginning(text(&truth, Layout::Perf), 60),
        beginning(text(&truth, Layout::TraceCmd), 60),
        beginning(text(&truth, Layout::Ftrace), 60),
        chrome.into_bytes(),
        babeltrace.collect::<String>().into_bytes(),
    ];
    let mut random = Random(77);
    let mut read_well = 0;
    for sample in &samples {
        for round in 0..count() {
            let path = folder.write("trace", mutated(sample, &mut random));
            let task_by = [None, Some(TaskBy::Thread), Some(TaskBy::Callback), Some(TaskBy::Marker)][round % 4];
            match read(&[path], &Options { task_by, ..Options::default() }) {
                Ok(import) => {
                    read_well += 1;
                    let path = std::path::Path::new("set.toml");
                    temponet_formats::parse(&import.toml, temponet_formats::Format::Toml, path).expect(&import.toml);
                }
                Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
            }
        }
    }
    assert!(read_well > count() / 2, "{read_well}: what is changed this much is worth nothing");
}

#[test]
fn no_mutated_ctf_panics_or_runs_on() {
    let (mut truth, folder) = (truth(), Folder::new("mutated-ctf"));
    truth.events.truncate(120);
    let mut random = Random(99);
    let mut read_well = 0;
    for is_big in [false, true] {
        let files = ctf(&truth, Style { is_big, is_packetized: false });
        files.iter().for_each(|(name, bytes)| drop(folder.write(name, bytes)));
        for _ in 0..count() {
            let (name, bytes) = &files[random.below(files.len())];
            folder.write(name, mutated(bytes, &mut random));
            read_well += usize::from(read(std::slice::from_ref(&folder.0), &Options::default()).is_ok());
            folder.write(name, bytes);
        }
    }
    assert!(read_well > count() / 20, "{read_well}: what is changed this much is worth nothing");
}
