//! What each ingredient of learning is worth: the same training without it, on three loads, five seeds each.
//!
//!     cargo run --release -p temponet-school --features cuda --example ingredients -- train OUT.jsonl 6 cuda
//!     cargo run --release -p temponet-school --example ingredients -- table OUT.jsonl…
//!
//! `train` carries out as many trainings at once as it is told and leaves out those that the file has already, so that an
//! interrupted one goes on; with a number of seconds after the device it begins none later than that. Each trained network
//! is scored on the sets of the arena's scenario, without portfolio and without shield.

mod ingredient;
mod table;

use std::collections::{HashSet, VecDeque};
use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use temponet_lab::arena::{Scenario, evaluate, scenario};
use temponet_lab::roster::{Roster, UNSHIELDED};
use temponet_sim::statistics::mean;
use temponet_train::{NoObserver, PpoSettings, Recipe, TrainingDevice};

use ingredient::Ingredient;

/// Seeds of each training.
const SEEDS: u64 = 5;

/// A scenario of the arena, and the sets that are drawn for learning.
struct Load {
    scenario: &'static str,
    workload: &'static str,
}

const LOADS: [Load; 3] = [
    Load { scenario: "two-cores-uncertain", workload: "cores = [2]\ntasks_per_core = [4.0, 8.0]\nload = [0.8, 1.4]" },
    Load {
        scenario: "bursts",
        workload: "cores = [4]\ntasks_per_core = [3.0, 6.0]\nload = [0.9, 1.3]\n\
            variety = { bursts = { chance = 1.0, range = [12.0, 12.0] }, execution = [\"uniform\"], spread = [0.2, 0.2] }",
    },
    Load {
        scenario: "dear-costs",
        workload: "cores = [4]\ntasks_per_core = [3.0, 6.0]\nload = [0.5, 1.0]\n\
            variety = { costs = { chance = 1.0, range = [0.5, 0.5] }, execution = [\"uniform\"], spread = [0.2, 0.2] }",
    },
];

/// What all three loads have in common.
const COMMON: &str = "execution = [\"uniform\"]\nbcet = [0.2, 0.2]\nperiods_ms = [10.0, 100.0]\nconstrained = 0.0";

/// Result of one training.
#[derive(Serialize, Deserialize)]
struct Outcome {
    scenario: String,
    without: String,
    seed: u64,
    decisions: u64,
    seconds: f64,
    /// Share of the jobs in time in each set of the scenario.
    shares: Vec<f64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["train", file, at_once, device] => train(file, at_once.parse()?, device, f64::INFINITY),
        ["train", file, at_once, device, seconds] => train(file, at_once.parse()?, device, seconds.parse()?),
        ["table", ref files @ ..] if !files.is_empty() => table::print(files),
        _ => Err("train OUT.jsonl AT_ONCE cpu|cuda [SECONDS], or table OUT.jsonl…".into()),
    }
}

/// Reads the results of a file; none if there is no file.
fn read(file: &str) -> Result<Vec<Outcome>, Box<dyn Error>> {
    let text = match std::fs::read_to_string(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text?,
    };
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// A training: the load, the ingredient that is left out, and the seed.
type Training = (&'static Load, Ingredient, u64);

fn train(file: &str, at_once: usize, device: &str, seconds: f64) -> Result<(), Box<dyn Error>> {
    let done = read(file)?;
    let done: HashSet<_> = done.iter().map(|one| (one.scenario.as_str(), one.without.as_str(), one.seed)).collect();
    let device = Mutex::new(TrainingDevice::open(device)?);
    // All ingredients have their first seed before any has its second.
    let all = (1..=SEEDS).flat_map(|seed| {
        LOADS.iter().flat_map(move |load| Ingredient::ALL.into_iter().map(move |without| (load, without, seed)))
    });
    let missing = |(load, without, seed): &Training| !done.contains(&(load.scenario, without.name(), *seed));
    let queue = Mutex::new(all.filter(missing).collect::<VecDeque<Training>>());
    let begun = Instant::now();
    let worker = || -> Result<(), String> {
        while begun.elapsed().as_secs_f64() < seconds {
            let Some((load, without, seed)) = lock(&queue).pop_front() else { break };
            let device = lock(&device).another();
            let outcome = one(load, without, seed, device).map_err(|error| error.to_string())?;
            // One line at a time.
            let _turn = lock(&queue);
            record(file, &outcome).map_err(|error| error.to_string())?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once.max(1)).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|payload| resume_unwind(payload)))
    })?;
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a result to the file, and says it.
fn record(file: &str, outcome: &Outcome) -> Result<(), Box<dyn Error>> {
    let Outcome { scenario, without, seed, seconds, shares, .. } = outcome;
    eprintln!("{scenario}, {without}, seed {seed}: {:.3}% in {seconds:.0} s", 100.0 * mean(shares));
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    Ok(writeln!(file, "{}", serde_json::to_string(outcome)?)?)
}

/// Policy optimization for twelve million decisions.
fn settings() -> PpoSettings {
    PpoSettings {
        environments: 4096,
        length: 32,
        rounds: 92,
        epochs: 2,
        batch: 4096,
        entropy: 0.002,
        lambda: 0.29,
        value: 1.0,
        value_scale: 1.0,
        ..PpoSettings::default()
    }
}

/// Trains without an ingredient and scores the network.
fn one(load: &Load, without: Ingredient, seed: u64, device: TrainingDevice) -> Result<Outcome, Box<dyn Error>> {
    let text = format!("{}[workload]\n{COMMON}\n{}\n", include_str!("base.toml"), load.workload);
    let mut recipe: Recipe = toml::from_str(&text)?;
    recipe.seed = seed;
    let settings = settings();
    let decisions = settings.rounds * (settings.environments * settings.length) as u64;
    without.leave_out(&mut recipe, settings);
    let begun = Instant::now();
    let mut session = device.session(recipe, None, None);
    session.train(&mut NoObserver)?;
    let seconds = begun.elapsed().as_secs_f64();
    let Scenario { goal: aim, .. } = scenario::find(load.scenario)?;
    let cases = scenario::find(load.scenario)?.cases(false)?;
    let roster = Roster::with(session.model());
    roster.build(UNSHIELDED)?;
    let scores = evaluate(aim, &cases, || roster.build(UNSHIELDED).expect("it was built a moment ago"))?;
    let shares = scores.iter().map(|score| score.score).collect();
    let (scenario, without) = (load.scenario.into(), without.name().into());
    Ok(Outcome { scenario, without, seed, decisions, seconds, shares })
}
