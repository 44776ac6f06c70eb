//! Time that the choice at the start takes, and what is chosen, on drawn task sets and on the built-in ones.
//!
//! `cargo run --release -p temponet --example tuning`

use std::time::Instant;

use temponet::{Scheduler, TaskSet, Temponet};
use temponet_formats::builtin;
use temponet_sim::generate::{Spec, generate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (tasks, cores) in [(12, 1), (12, 4), (40, 1), (40, 4), (160, 4), (160, 16), (600, 16)] {
        let set = generate(&Spec::new(tasks, cores, 1.3 * cores as f64), 5)?;
        report(&format!("{tasks} tasks on {cores} cores"), &set)?;
    }
    for builtin in builtin::ALL {
        report(builtin.name, &builtin.load()?.set)?;
    }
    Ok(())
}

fn report(name: &str, set: &TaskSet) -> Result<(), Box<dyn std::error::Error>> {
    let mut scheduler = Temponet::built_in()?;
    let begin = Instant::now();
    scheduler.start(&set.system)?;
    let took = begin.elapsed().as_millis();
    let choice = scheduler.choice().ok_or("the scheduler has been started")?;
    println!("{name:<24} {took:>5} ms {:>6} jobs  {choice}", choice.jobs);
    Ok(())
}
