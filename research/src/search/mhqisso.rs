//! MHQISSO: a quantum-inspired swarm with EDF as its heuristic. The paper names it without a source and says no more of
//! it; this is the salp swarm (Mirjalili et al. 2017) over the Q-bits of [`qubits`](super::qubits).
//!
//! Salps form a chain. Those in its first half move about the best order, ever closer as the budget is spent; each of
//! the others follows the one before it. The Q-bits of a salp are observed for its order.

use std::f64::consts::FRAC_PI_2;

use rand::RngExt;
use rand_pcg::Pcg32;

use super::judge::Judge;
use super::qubits::{Chromosome, Observation, bits_of, bounded};

/// Searches until the budget is spent.
pub fn search(judge: &mut Judge<'_>, rng: &mut Pcg32) {
    let (size, jobs) = (judge.population(), judge.dimension());
    let mut salps: Vec<Chromosome> =
        judge.known().iter().take(size).map(|known| Chromosome::near(&bits_of(&known.keys))).collect();
    salps.resize_with(size, || Chromosome::uniform(jobs));
    let mut observed = Observation::default();
    loop {
        for salp in &salps {
            salp.observe(&mut observed, rng);
            if judge.judge(&observed.keys).is_none() {
                return;
            }
        }
        // From 2 to nearly zero: first all of the range is explored, in the end the neighborhood of the best order.
        let reach = 2.0 * (-(4.0 * judge.progress()).powi(2)).exp();
        let food = bits_of(&judge.best().keys);
        for at in 0..size {
            let (before, rest) = salps.split_at_mut(at);
            let angles = &mut rest[0].angles;
            match before.last() {
                Some(before) if at >= size / 2 => {
                    angles.iter_mut().zip(&before.angles).for_each(|(own, its)| *own = (*own + its) / 2.0);
                }
                _ => {
                    for (angle, bit) in angles.iter_mut().zip(&food) {
                        let move_by = reach * FRAC_PI_2 * rng.random::<f64>();
                        let food = if *bit { FRAC_PI_2 } else { 0.0 };
                        *angle = bounded(if rng.random::<bool>() { food + move_by } else { food - move_by });
                    }
                }
            }
        }
    }
}
