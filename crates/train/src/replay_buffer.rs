//! Replay buffer: transitions that are learned from many times, drawn uniformly or by priority (Schaul et al.,
//! "Prioritized Experience Replay", 2016).

use std::sync::Arc;

use rand::RngExt;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use crate::ring_buffer::RingBuffer;
use crate::sample::Sample;

/// A choice and its result, up to a later choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transition {
    /// State of the choice.
    pub state: Arc<Sample>,
    /// Rows of the jobs that ran.
    pub chosen: Vec<u32>,
    /// Speed of each of them, 0 for full speed; empty if no speeds are chosen.
    pub speeds: Vec<u8>,
    /// Reward until the later choice, discounted to the first one.
    pub reward: f32,
    /// Discount factor at the later choice; 0 if the episode terminated.
    pub discount: f32,
    /// State of the later choice.
    pub next: Arc<Sample>,
}

/// The most recent transitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayBuffer {
    transitions: RingBuffer<Transition>,
    /// Exponent of the priorities; 0 draws uniformly.
    exponent: f64,
    /// Binary tree of sums of priorities, with the leaves last; empty if draws are uniform.
    sums: Vec<f64>,
    greatest: f64,
}

/// Transitions drawn from the buffer.
#[derive(Clone, Debug, Default)]
pub struct ReplayBatch {
    /// Places of the transitions in the buffer.
    pub places: Vec<usize>,
    /// Importance weights, which correct the bias of drawing by priority; the greatest is 1.
    pub weights: Vec<f32>,
}

impl ReplayBuffer {
    /// Empty buffer. Priorities are raised to `exponent`; 0 draws uniformly.
    pub fn new(capacity: usize, exponent: f64) -> ReplayBuffer {
        let transitions = RingBuffer::new(capacity);
        let leaves = if exponent > 0.0 { 2 * transitions.capacity().next_power_of_two() } else { 0 };
        ReplayBuffer { transitions, exponent, sums: vec![0.0; leaves], greatest: 1.0 }
    }

    /// Returns the number of transitions.
    pub fn len(&self) -> usize {
        self.transitions.len()
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.transitions.is_empty()
    }

    /// Adds a transition with the greatest priority so far. If the buffer is full, it replaces the oldest one.
    pub fn push(&mut self, transition: Transition) {
        let place = self.transitions.push(transition);
        self.set_priority(place, self.greatest);
    }

    /// Returns the transition at a place.
    pub fn get(&self, place: usize) -> &Transition {
        self.transitions.get(place)
    }

    /// Draws transitions with replacement. `correction`, 0 to 1, says how much of the bias the importance weights
    /// correct.
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

    /// Sets the priority of a transition from its temporal-difference error.
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
        let sample = Arc::new(Sample { idle: vec![0, 0], tokens, real, counts, bias: vec![0.0], cores: 1, past: None });
        Transition { state: sample.clone(), chosen: vec![], speeds: vec![], reward, discount: 0.0, next: sample }
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
