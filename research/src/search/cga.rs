//! The classical genetic algorithm (Holland 1975, Goldberg 1989) over orders, as the papers on its quantum-inspired
//! forms have it beside them.
//!
//! An individual is a permutation of the jobs. Parents win a tournament of two; a child takes a section of one parent
//! and the rest in the order of the other (order crossover, Davis 1985), and two of its jobs may change places. The
//! best individual survives.

use rand::RngExt;
use rand_pcg::Pcg32;

use super::judge::{Judge, Judged};

/// Probability that a child has two parents rather than one, and that two of its jobs change places.
const CROSSOVER: f64 = 0.9;
const MUTATION: f64 = 0.5;

struct Individual {
    order: Vec<usize>,
    fitness: f64,
}

/// Searches until the budget is spent.
pub fn search(judge: &mut Judge<'_>, rng: &mut Pcg32) {
    let Some(first) = judge.first_population(judge.population(), rng) else { return };
    let individual = |of: Judged| Individual { fitness: of.fitness(), order: order(&of.keys) };
    let mut population: Vec<Individual> = first.into_iter().map(individual).collect();
    let mut keys = vec![0.0; judge.dimension()];
    loop {
        let mut next = Vec::with_capacity(population.len());
        let best = population.iter().max_by(|a, b| a.fitness.total_cmp(&b.fitness));
        next.extend(best.map(|best| Individual { order: best.order.clone(), fitness: best.fitness }));
        while next.len() < population.len() {
            let (mother, father) = (winner(&population, rng), winner(&population, rng));
            let is_crossed = rng.random::<f64>() < CROSSOVER;
            let mut order = if is_crossed { crossed(mother, father, rng) } else { mother.to_vec() };
            if rng.random::<f64>() < MUTATION {
                let (one, other) = (rng.random_range(0..order.len()), rng.random_range(0..order.len()));
                order.swap(one, other);
            }
            fill_keys(&order, &mut keys);
            let Some(score) = judge.judge(&keys) else { return };
            next.push(Individual { order, fitness: score.fitness() });
        }
        population = next;
    }
}

/// Returns the jobs sorted by their keys.
pub(super) fn order(keys: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|a, b| keys[*a].total_cmp(&keys[*b]));
    order
}

/// Writes keys that have this order.
fn fill_keys(order: &[usize], keys: &mut [f64]) {
    order.iter().enumerate().for_each(|(place, job)| keys[*job] = place as f64 / order.len() as f64);
}

/// Returns the better of two random individuals.
fn winner<'a>(population: &'a [Individual], rng: &mut Pcg32) -> &'a [usize] {
    let mut drawn = || &population[rng.random_range(0..population.len())];
    let (one, other) = (drawn(), drawn());
    if one.fitness >= other.fitness { &one.order } else { &other.order }
}

/// Order crossover: a random section of the mother in its place, and the other jobs in the father's order around it.
fn crossed(mother: &[usize], father: &[usize], rng: &mut Pcg32) -> Vec<usize> {
    let (one, other) = (rng.random_range(0..mother.len()), rng.random_range(0..mother.len()));
    let section = one.min(other)..one.max(other) + 1;
    let mut is_taken = vec![false; mother.len()];
    mother[section.clone()].iter().for_each(|job| is_taken[*job] = true);
    let mut rest = father.iter().copied().filter(|job| !is_taken[*job]);
    let mut child = mother.to_vec();
    for (place, job) in child.iter_mut().enumerate() {
        if !section.contains(&place) {
            *job = rest.next().unwrap_or(*job);
        }
    }
    child
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_a_permutation_with_a_section_of_its_mother() {
        let mut rng = Pcg32::new(1, 1);
        let (mother, father): (Vec<usize>, Vec<usize>) = ((0..9).collect(), (0..9).rev().collect());
        for _ in 0..50 {
            let child = crossed(&mother, &father, &mut rng);
            let mut sorted = child.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, mother);
            assert!(child.iter().zip(&mother).any(|(a, b)| a == b));
        }
    }
}
