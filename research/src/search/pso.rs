//! Particle swarm optimization (Kennedy and Eberhart 1995) over random keys: positions are keys, and the jobs sorted by
//! them are the order (the smallest-position-value rule of Tasgetiren et al. 2004).
//!
//! A particle is drawn towards the best place that it has seen itself and towards the best one of the swarm, with the
//! constriction coefficients of Clerc and Kennedy (2002). The known orders are the first particles; the others begin at
//! random places.

use rand::RngExt;
use rand_pcg::Pcg32;

use super::judge::{Judge, Judged};

/// Inertia of a velocity, and pull of each of the two best places.
const INERTIA: f64 = 0.7298;
const PULL: f64 = 1.4962;
/// Greatest velocity, as a share of the range of a key.
const FASTEST: f64 = 0.25;

struct Particle {
    position: Vec<f64>,
    velocity: Vec<f64>,
    best: Judged,
}

/// Searches until the budget is spent.
pub fn search(judge: &mut Judge<'_>, rng: &mut Pcg32) {
    let Some(first) = judge.first_population(judge.population(), rng) else { return };
    let mut particle = |best: Judged| {
        let velocity = best.keys.iter().map(|_| rng.random_range(-FASTEST..FASTEST)).collect();
        Particle { position: best.keys.clone(), velocity, best }
    };
    let mut swarm: Vec<Particle> = first.into_iter().map(&mut particle).collect();
    loop {
        for Particle { position, velocity, best } in &mut swarm {
            let of_swarm = &judge.best().keys;
            for (at, (place, speed)) in position.iter_mut().zip(velocity.iter_mut()).enumerate() {
                let (own, common) = (rng.random::<f64>(), rng.random::<f64>());
                *speed =
                    INERTIA * *speed + PULL * own * (best.keys[at] - *place) + PULL * common * (of_swarm[at] - *place);
                *speed = speed.clamp(-FASTEST, FASTEST);
                *place = (*place + *speed).clamp(0.0, 1.0);
            }
            let Some(score) = judge.judge(position) else { return };
            if score.fitness() > best.fitness() {
                best.keys.copy_from_slice(position);
                best.score = score;
            }
        }
    }
}
