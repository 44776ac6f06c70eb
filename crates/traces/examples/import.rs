//! Imports the traces that it is called with and prints the file of the set, and how fast it was read.
//!
//! ```sh
//! cargo run --release -p temponet-traces --example import -- trace.txt > mytasks.toml
//! ```

use std::path::PathBuf;
use std::time::Instant;

use temponet_traces::{Options, import};

fn main() {
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let start = Instant::now();
    match import(&files, &Options::default(), None, &mut |_| {}) {
        Ok(found) => {
            print!("{}", found.toml);
            let seconds = start.elapsed().as_secs_f64();
            eprintln!("{} bytes, {} events, {} jobs in {seconds:.3} s", found.bytes, found.events, found.jobs);
        }
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(2);
        }
    }
}
