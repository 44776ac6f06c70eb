//! What nobody can exceed who knows no more of lengths than is said.
//!
//! A request that is begun takes time, and is met with some probability. Whatever the order, all requests together take no
//! more than the workers have until the last due time. So the greatest number met is at most that of a knapsack: the
//! requests with the most probability for their time, each as if it began when it came. That is more than any order can
//! do, because requests wait. A length is taken to be drawn from all lengths of the trace, independently of the others: a rule
//! that notices that long ones come in spells knows more than that.

use crate::{Asked, Known, WORKERS};

/// Number of lengths that stand for all of them.
const DRAWS: usize = 500;
/// Bisections of the price of a second.
const BISECTIONS: usize = 60;

/// A request as a gamble: the probability that it is in time if it begins at once, and the mean time that it then takes.
struct Gamble {
    chance: f64,
    time: f64,
}

/// Returns the greatest share of requests in time, `None` where what is known is no distribution of lengths.
/// `cancels` says whether a request ends at its due time.
pub fn bound(trace: &[Asked], load: f64, known: Known, cancels: bool) -> Option<f64> {
    if matches!(known, Known::Prompt | Known::Both { .. }) {
        return None;
    }
    let mut lengths: Vec<f64> = trace.iter().map(|asked| asked.length).collect();
    lengths.sort_by(f64::total_cmp);
    let count = DRAWS.min(lengths.len());
    let drawn: Vec<f64> = (0..count).map(|place| lengths[(2 * place + 1) * lengths.len() / (2 * count)]).collect();
    let gamble = |asked: &Asked| {
        let weight = |length: &f64| match known {
            Known::Estimate { error } if error > 0.0 => {
                let deviations = (asked.length / length).ln() / error + asked.error;
                (-deviations * deviations / 2.0).exp()
            }
            _ => 1.0,
        };
        let own = [asked.length];
        let lengths = if known == (Known::Estimate { error: 0.0 }) { &own[..] } else { &drawn[..] };
        let (mut all, mut chance, mut time) = (0.0, 0.0, 0.0);
        for length in lengths {
            let weight = weight(length);
            all += weight;
            chance += if *length <= asked.window { weight } else { 0.0 };
            time += weight * if cancels { length.min(asked.window) } else { *length };
        }
        Gamble { chance: chance / all, time: time / all }
    };
    let gambles: Vec<Gamble> = trace.iter().map(gamble).collect();
    let work: f64 = lengths.iter().sum();
    let longest = trace.iter().map(|asked| asked.window).fold(0.0, f64::max);
    let left = work / load + WORKERS as f64 * longest;
    // By duality any price of a second gives a bound; the best one sells all of them.
    let (mut low, mut high) = (0.0, 1e3);
    for _ in 0..BISECTIONS {
        let price = (low + high) / 2.0;
        let taken = gambles.iter().filter(|gamble| gamble.chance > price * gamble.time);
        let is_too_cheap = taken.map(|gamble| gamble.time).sum::<f64>() > left;
        if is_too_cheap { low = price } else { high = price }
    }
    let gained: f64 = gambles.iter().map(|gamble| (gamble.chance - high * gamble.time).max(0.0)).sum();
    Some((high * left + gained) / trace.len() as f64)
}
