//! Random search: independent uniform candidates, of which the best is taken. It is the yardstick of every other
//! method: what a method gains over it at the same number of evaluations is due to its way of searching.

use rand::RngExt;
use rand_pcg::Pcg32;

use super::judge::{Judge, random_keys};

/// Searches until the budget is spent.
pub fn search(judge: &mut Judge<'_>, rng: &mut Pcg32) {
    let mut keys = random_keys(judge.dimension(), rng);
    while judge.judge(&keys).is_some() {
        keys.iter_mut().for_each(|key| *key = rng.random());
    }
}
