//! Transitions to learn from again and again, uniformly or by priority.

use std::sync::Arc;

use rand::RngExt;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use crate::ring_buffer::RingBuffer;
use crate::sample::Sample;

/// From a choice to a later one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transition {
    /// What was seen.
    pub state: Arc<Sample>,
    /// The rows of the jobs that ran.
    pub chosen: Vec<u32>,
    /// What was earned on the way, discounted to the choice.
    pub reward: f32,
    /// The discount at the later choice; nought if none follows.
    pub discount: f32,
    /// What was seen there.
    pub next: Arc<Sample>,
}

/// The last transitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayBuffer {
    transitions: RingBuffer<Transition>,
    /// Exponent of the priorities; nought is uniform.
    exponent: f64,
    /// A binary tree of sums of priorities, leaves last; empty if uniform.
    sums: Vec<f64>,
    greatest: f64,
}

/// Some transitions, and how much each counts.
#[derive(Clone, Debug, Default)]
pub struct ReplayBatch {
    /// Their places.
    pub places: Vec<usize>,
    /// Weights that undo the bias of priorities, the greatest one.
    pub weights: Vec<f32>,
}

impl ReplayBuffer {
    /// An empty ring; priorities are raised to `exponent`, nought for uniform draws.
    pub fn new(capacity: usize, exponent: f64) -> ReplayBuffer {
        let transitions = RingBuffer::new(capacity);
        let leaves = if exponent > 0.0 { 2 * transitions.capacity().next_power_of_two() } else { 0 };
        ReplayBuffer { transitions, exponent, sums: vec![0.0; leaves], greatest: 1.0 }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.transitions.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.transitions.is_empty()
    }

    /// Adds one; the oldest goes if there is no room.
    pub fn push(&mut self, transition: Transition) {
        let place = self.transitions.push(transition);
        self.set_priority(place, self.greatest);
    }

    /// The one at a place.
    pub fn get(&self, place: usize) -> &Transition {
        self.transitions.get(place)
    }

    /// Draws some, with replacement. `correction` is how far the weights undo the priorities' bias, from nought to one.
    pub fn draw(&self, count: usize, correction: f64, rng: &mut Pcg64) -> ReplayBatch {
        let len = self.transitions.len();
        if self.sums.is_empty() {
            let places = (0..count).map(|_| rng.random_range(0..len)).collect();
            return ReplayBatch { places, weights: vec![1.0; count] };
        }
        let mut draw = ReplayBatch::default();
        for _ in 0..count {
            let mut mass = rng.random::<f64>() * self.sums[1];
            let mut node = 1;
            while node < self.sums.len() / 2 {
                node *= 2;
                if mass >= self.sums[node] && self.sums[node + 1] > 0.0 {
                    mass -= self.sums[node];
                    node += 1;
                }
            }
            let place = (node - self.sums.len() / 2).min(len - 1);
            draw.places.push(place);
            let share = self.sums[self.sums.len() / 2 + place] / self.sums[1];
            draw.weights.push((share * len as f64).powf(-correction) as f32);
        }
        let most = draw.weights.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
        draw.weights.iter_mut().for_each(|weight| *weight /= most);
        draw
    }

    /// Says how surprising a transition was.
    pub fn set_td_error(&mut self, place: usize, surprise: f64) {
        let priority = (surprise.abs() + 1e-3).powf(self.exponent);
        self.greatest = self.greatest.max(priority);
        self.set_priority(place, priority);
    }

    fn set_priority(&mut self, place: usize, priority: f64) {
        if self.sums.is_empty() {
            return;
        }
        let mut node = self.sums.len() / 2 + place;
        self.sums[node] = priority;
        while node > 1 {
            node /= 2;
            self.sums[node] = self.sums[2 * node] + self.sums[2 * node + 1];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn transition(reward: f32) -> Transition {
        let (tokens, real, counts) = (vec![], vec![], vec![]);
        let sample = Arc::new(Sample { idle: vec![0, 0], tokens, real, counts, bias: vec![0.0], cores: 1 });
        Transition { state: sample.clone(), chosen: vec![], reward, discount: 0.0, next: sample }
    }

    #[test]
    fn surprising_ones_are_drawn_more_often_and_count_less() {
        let mut replay = ReplayBuffer::new(5, 1.0);
        (0..5).for_each(|k| replay.push(transition(k as f32)));
        (0..5).for_each(|place| replay.set_td_error(place, if place == 2 { 6.0 } else { 1.0 }));
        let draw = replay.draw(10_000, 1.0, &mut Pcg64::seed_from_u64(1));
        let often = draw.places.iter().filter(|place| **place == 2).count();
        assert!((5_800..6_200).contains(&often), "{often}");
        for (place, weight) in draw.places.iter().zip(&draw.weights) {
            assert!((weight - if *place == 2 { 1.0 / 5.996 } else { 1.0 }).abs() < 1e-3, "{weight}");
        }
    }
}
