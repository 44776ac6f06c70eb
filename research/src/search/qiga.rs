//! Quantum-inspired genetic algorithms: HQIGA (Konar et al. 2017) and Mo-QIGA (Konar et al. 2018).
//!
//! Each generation observes every chromosome, judges what was observed, and rotates the chromosome towards an aim.
//! HQIGA's aim is the best order so far. Mo-QIGA judges by two measures, the worth of the jobs in time and the mean
//! time in the system, and aims at a random one of the orders that no other one dominates.
//!
//! The orders known before, EDF among them, are in the first population: the hybrid of the heuristic. HQIGA's trimming
//! by permutation, which keeps the population diverse, is read as: an observation that the population already has is
//! replaced by one with two jobs exchanged.

use std::f64::consts::PI;

use rand::RngExt;
use rand_pcg::Pcg32;

use super::cga::order;
use super::judge::{Judge, Judged, Score};
use super::qubits::{Chromosome, Observation, bits_of};

/// Rotation of a Q-bit in one generation.
const ROTATION: f64 = 0.05 * PI;
/// Largest number of orders that are kept because none dominates them.
const MOST_KEPT: usize = 16;

/// HQIGA: searches until the budget is spent.
pub fn hybrid(judge: &mut Judge<'_>, rng: &mut Pcg32) {
    let mut population = first_population(judge);
    let mut observed = Observation::default();
    let mut seen: Vec<Vec<usize>> = Vec::new();
    loop {
        seen.clear();
        for chromosome in &mut population {
            chromosome.observe(&mut observed, rng);
            let order = order(&observed.keys);
            if seen.contains(&order) {
                let (one, other) = (rng.random_range(0..order.len()), rng.random_range(0..order.len()));
                observed.keys.swap(one, other);
            }
            seen.push(order);
            if judge.judge(&observed.keys).is_none() {
                return;
            }
        }
        let aim = bits_of(&judge.best().keys);
        population.iter_mut().for_each(|chromosome| chromosome.rotate(&aim, ROTATION));
    }
}

/// Mo-QIGA: searches until the budget is spent.
pub fn multi_objective(judge: &mut Judge<'_>, rng: &mut Pcg32) {
    let mut population = first_population(judge);
    let mut observed = Observation::default();
    let mut kept: Vec<Judged> = Vec::new();
    let known = judge.known().to_vec();
    known.iter().for_each(|known| keep(&mut kept, &known.keys, known.score));
    loop {
        for chromosome in &mut population {
            chromosome.observe(&mut observed, rng);
            let Some(score) = judge.judge(&observed.keys) else { return };
            keep(&mut kept, &observed.keys, score);
        }
        for chromosome in &mut population {
            let aim = &kept[rng.random_range(0..kept.len())];
            chromosome.rotate(&bits_of(&aim.keys), ROTATION);
        }
    }
}

/// Returns the known orders as chromosomes, half of the population at most, and uniform ones.
fn first_population(judge: &Judge<'_>) -> Vec<Chromosome> {
    let size = judge.population();
    let known = judge.known().iter().take(size / 2).map(|known| Chromosome::near(&bits_of(&known.keys)));
    let mut population: Vec<Chromosome> = known.collect();
    population.resize_with(size, || Chromosome::uniform(judge.dimension()));
    population
}

/// Keeps an order unless another one dominates it; those that it dominates leave. If there are too many, the least fit
/// leaves.
fn keep(kept: &mut Vec<Judged>, keys: &[f64], score: Score) {
    if kept.iter().any(|one| one.score.dominates(score) || one.score == score) {
        return;
    }
    kept.retain(|one| !score.dominates(one.score));
    kept.push(Judged { keys: keys.to_vec(), score });
    if kept.len() > MOST_KEPT {
        let least = (0..kept.len()).min_by(|a, b| kept[*a].fitness().total_cmp(&kept[*b].fitness()));
        least.map(|least| kept.swap_remove(least));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_orders_that_none_dominates_are_kept() {
        let mut kept = Vec::new();
        for (worth, response) in [(1.0, 0.5), (2.0, 0.6), (1.5, 0.7), (2.0, 0.4), (3.0, 0.9)] {
            keep(&mut kept, &[worth], Score { worth, response });
        }
        let left: Vec<f64> = kept.iter().map(|one| one.score.worth).collect();
        assert_eq!(left, [2.0, 3.0]);
    }
}
