//! A million requests on real threads, or as many as are asked for:
//! `cargo run --release -p temponet-dispatch --example million [REQUESTS]`.

use std::process::ExitCode;

mod traffic;

fn main() -> ExitCode {
    let argument = std::env::args().nth(1).unwrap_or_else(|| "1000000".into());
    let Some(requests) = argument.parse().ok().filter(|requests| *requests >= 5) else {
        eprintln!("error: {argument:?} is no number of requests from 5 on");
        return ExitCode::from(2);
    };
    let start = std::time::Instant::now();
    let traffic::Report { stats, answers, memory } = traffic::run(requests);
    println!("{answers} answers in {:.1} s", start.elapsed().as_secs_f64());
    println!("{stats:?}");
    let memory: Vec<String> = memory.iter().map(|bytes| format!("{:.1}", *bytes as f64 / 1e6)).collect();
    println!("MB resident after each fifth: {}", memory.join(", "));
    ExitCode::SUCCESS
}
