//! The evolution strategy.

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use temponet_dispatch::{IndexWeights, Policy};

use crate::load::{Draws, Kinds, Load};
use crate::server::share_met;

/// Mirrored pairs of weights in a generation.
const PAIRS: usize = 32;
/// Loads that each pair serves.
const LOADS: usize = 4;
/// Standard deviation of what is added to weights.
const STEP: f64 = 0.1;
/// Rate of Adam at the start; it falls to a tenth.
const RATE: f64 = 0.03;
/// Fading of Adam's means.
const MEANS: [f64; 2] = [0.9, 0.99];
/// Generations between two lines of progress.
const SHOWN: u64 = 10;

/// Learns weights. What is returned is the mean over the last third of the generations, which varies less than the last.
pub fn train(seed: u64, generations: u64, threads: usize) -> IndexWeights {
    let start = Instant::now();
    let mut weights = IndexWeights::plain().numbers().to_vec();
    let (mut first, mut second) = (vec![0.0; weights.len()], vec![0.0; weights.len()]);
    let (mut mean, mut kept) = (vec![0.0; weights.len()], 0.0);
    let mut shown = 0.0;
    for generation in 0..generations {
        let results = parallel(threads, PAIRS, |pair| {
            let mut draws = Draws::new(seed, 1 + generation * PAIRS as u64 + pair as u64);
            let noise: Vec<f64> = weights.iter().map(|_| draws.normal()).collect();
            let policy =
                |sign: f64| policy(weights.iter().zip(&noise).map(|(weight, noise)| weight + sign * STEP * noise));
            let (up, down) = (policy(1.0), policy(-1.0));
            let mut met = [0.0; 2];
            for _ in 0..LOADS {
                let load = Load::draw(&mut draws, Kinds::Training, None);
                met[0] += share_met(&load, &up) / LOADS as f64;
                met[1] += share_met(&load, &down) / LOADS as f64;
            }
            (noise, met)
        });
        shown += results.iter().map(|(_, met)| met[0] + met[1]).sum::<f64>() / (2 * PAIRS) as f64;
        let difference = |met: &[f64; 2]| met[0] - met[1];
        let size = (results.iter().map(|(_, met)| difference(met).powi(2)).sum::<f64>() / PAIRS as f64).sqrt();
        let progress = generation as f64 / generations as f64;
        let rate = RATE * (1.0 - 0.9 * progress);
        for place in 0..weights.len() {
            let slope = results.iter().map(|(noise, met)| noise[place] * difference(met)).sum::<f64>();
            let slope = slope / (PAIRS as f64 * size.max(1e-12));
            first[place] += (1.0 - MEANS[0]) * (slope - first[place]);
            second[place] += (1.0 - MEANS[1]) * (slope * slope - second[place]);
            let age = (generation + 1) as i32;
            let (unbiased, square) =
                (first[place] / (1.0 - MEANS[0].powi(age)), second[place] / (1.0 - MEANS[1].powi(age)));
            weights[place] += rate * unbiased / (square.sqrt() + 1e-8);
        }
        if 3 * (generation + 1) > 2 * generations {
            kept += 1.0;
            mean.iter_mut().zip(&weights).for_each(|(mean, weight)| *mean += (weight - *mean) / kept);
        }
        if (generation + 1).is_multiple_of(SHOWN) {
            eprint!(
                "\rgeneration {} of {generations}, {:.1}% met, {:.0?} ",
                generation + 1,
                100.0 * shown / SHOWN as f64,
                start.elapsed()
            );
            _ = std::io::stderr().flush();
            shown = 0.0;
        }
    }
    eprintln!();
    // As many digits as tell weights apart.
    let rounded: Vec<f64> = mean.iter().map(|number| (number * 1e5).round() / 1e5).collect();
    IndexWeights::new(&rounded).expect("as many numbers as before")
}

fn policy(numbers: impl Iterator<Item = f64>) -> Policy {
    let numbers: Vec<f64> = numbers.collect();
    Policy::Learned(IndexWeights::new(&numbers).expect("as many numbers as before"))
}

/// Results of a function of the numbers below `count`, in their order.
pub fn parallel<T: Send>(threads: usize, count: usize, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let (next, made) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    if place >= count {
                        break;
                    }
                    let result = make(place);
                    made.lock().expect("no thread fails").push((place, result));
                }
            });
        }
    });
    let mut made = made.into_inner().expect("no thread fails");
    made.sort_by_key(|(place, _)| *place);
    made.into_iter().map(|(_, result)| result).collect()
}
