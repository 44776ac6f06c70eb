//! Writes a known set's run of ten seconds in every format of the tests into a folder, for tests of other programs that read
//! traces.
//!
//! ```sh
//! cargo run -p temponet-traces --example known_traces -- folder
//! ```

#[path = "../tests/truth.rs"]
mod truth;
#[path = "../tests/write_ctf.rs"]
mod write_ctf;
#[path = "../tests/write_text.rs"]
mod write_text;

use std::path::PathBuf;

use truth::truth;
use write_ctf::{Style, ctf};
use write_text::{Layout, text};

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: known_traces FOLDER");
        std::process::exit(2);
    };
    let truth = truth();
    let session = folder.join("session/kernel");
    std::fs::create_dir_all(&session)?;
    for (file, bytes) in ctf(&truth, Style { is_big: false, is_packetized: true }) {
        std::fs::write(session.join(file), bytes)?;
    }
    let layouts = [
        (Layout::Perf, "perf.txt"),
        (Layout::PerfShort, "perf-short.txt"),
        (Layout::Ftrace, "trace"),
        (Layout::TraceCmd, "report.log"),
    ];
    for (layout, name) in layouts {
        std::fs::write(folder.join(name), text(&truth, layout))?;
    }
    println!("{} jobs, {} events in {}", truth.jobs.len(), truth.events.len(), folder.display());
    Ok(())
}
