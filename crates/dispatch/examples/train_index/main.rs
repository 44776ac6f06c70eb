//! Training of the index for requests, and its judgement.
//!
//! `cargo run --release -p temponet-dispatch --example train_index -- train WEIGHTS [SEED [GENERATIONS [THREADS]]]`
//! `cargo run --release -p temponet-dispatch --example train_index -- judge [WEIGHTS [LOADS]]`
//!
//! An evolution strategy with mirrored draws (Salimans et al., "Evolution strategies as a scalable alternative to
//! reinforcement learning", 2017), and Adam. Each pair of weights serves the same loads, so that what one met more than
//! the other is owed to the weights. Loads are drawn anew for each pair. The same seed gives the same weights on any
//! number of threads. The judgement draws kinds of loads that training never does, and prints what each rule meets.

mod judgement;
mod load;
mod server;
mod strategy;

use temponet_dispatch::{IndexWeights, Policy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: u64| arguments.get(place).map_or(Ok(default), |text| text.parse());
    match arguments.first().map(String::as_str) {
        Some("train") => {
            let path = arguments.get(1).ok_or(USAGE)?;
            let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
            let (seed, generations) = (number(2, 1)?, number(3, 700)?);
            let weights = strategy::train(seed, generations, number(4, threads as u64)?.max(1) as usize);
            let head = format!(
                "# Weights of the index for requests. Made by\n\
                 # cargo run --release -p temponet-dispatch --example train_index -- train {path} {seed} {generations}\n"
            );
            std::fs::write(path, format!("{head}{weights}"))?;
        }
        Some("judge") => {
            let policy = match arguments.get(1) {
                Some(path) => Policy::Learned(IndexWeights::parse(&std::fs::read_to_string(path)?)?),
                None => Policy::learned(),
            };
            judgement::print(&policy, number(2, 100)?);
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

const USAGE: &str = "usage: train_index train WEIGHTS [SEED [GENERATIONS [THREADS]]] | judge [WEIGHTS [LOADS]]";
