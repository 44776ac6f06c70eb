//! Quantum-inspired chromosomes (Han and Kim 2002): every job has some Q-bits, an observation makes bits of them, and
//! the bits of a job, read as a binary number, are its key (random-key distribution, as in Konar et al. 2017).
//!
//! A Q-bit is an angle from 0 to π/2; it is observed as 1 with the probability sin² of the angle.

use std::f64::consts::FRAC_PI_2;

use rand::RngExt;
use rand_pcg::Pcg32;

/// Number of Q-bits of a job: with 64 levels most jobs of a window have keys of their own.
const BITS: usize = 6;
/// Angles stay this far from certainty, so that no bit is lost for good.
const MARGIN: f64 = 0.05 * FRAC_PI_2;

/// Q-bits of all jobs.
#[derive(Clone, Debug)]
pub struct Chromosome {
    pub angles: Vec<f64>,
}

/// Bits of an observation and the keys that follow from them.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    pub bits: Vec<bool>,
    pub keys: Vec<f64>,
}

impl Chromosome {
    /// A chromosome of which every observation is equally likely.
    pub fn uniform(jobs: usize) -> Chromosome {
        Chromosome { angles: vec![FRAC_PI_2 / 2.0; jobs * BITS] }
    }

    /// A chromosome whose bits are likely to be those of `bits`: each with a probability of 93%.
    pub fn near(bits: &[bool]) -> Chromosome {
        let mut chromosome = Chromosome::uniform(bits.len() / BITS);
        chromosome.rotate(bits, FRAC_PI_2 / 3.0);
        chromosome
    }

    /// Observes the chromosome. Jobs with the same bits are in random order.
    pub fn observe(&self, out: &mut Observation, rng: &mut Pcg32) {
        out.bits.clear();
        out.bits.extend(self.angles.iter().map(|angle| rng.random::<f64>() < angle.sin().powi(2)));
        out.keys.clear();
        out.keys.extend(out.bits.chunks(BITS).map(|bits| {
            let level = bits.iter().fold(0_u32, |number, bit| 2 * number + u32::from(*bit));
            (f64::from(level) + rng.random::<f64>()) / f64::from(1_u32 << BITS)
        }));
    }

    /// Rotates every Q-bit towards a bit by this angle (the rotation gate).
    pub fn rotate(&mut self, towards: &[bool], by: f64) {
        for (angle, bit) in self.angles.iter_mut().zip(towards) {
            *angle = bounded(*angle + if *bit { by } else { -by });
        }
    }
}

/// Returns the nearest angle that a Q-bit may have.
pub fn bounded(angle: f64) -> f64 {
    angle.clamp(MARGIN, FRAC_PI_2 - MARGIN)
}

/// Returns the bits whose observation has these keys.
pub fn bits_of(keys: &[f64]) -> Vec<bool> {
    let levels = f64::from(1_u32 << BITS);
    let bits = |key: &f64| {
        let level = ((key * levels) as u32).min((1 << BITS) - 1);
        (0..BITS).rev().map(move |bit| level >> bit & 1 == 1)
    };
    keys.iter().flat_map(bits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotated_far_enough_a_chromosome_is_observed_as_its_aim() {
        let mut rng = Pcg32::new(1, 1);
        let keys = [0.1, 0.9, 0.4, 0.7];
        let mut chromosome = Chromosome::uniform(keys.len());
        (0..40).for_each(|_| chromosome.rotate(&bits_of(&keys), 0.05));
        let mut observed = Observation::default();
        chromosome.observe(&mut observed, &mut rng);
        assert_eq!(observed.bits, bits_of(&keys));
        assert!(observed.keys.iter().zip(keys).all(|(a, b)| (a - b).abs() <= 1.0 / 64.0));
    }
}
