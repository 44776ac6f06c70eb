//! The last so many of a kind.

use rand::RngExt;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

/// A list that forgets its oldest when it is full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RingBuffer<T> {
    capacity: usize,
    list: Vec<T>,
    oldest: usize,
}

impl<T> RingBuffer<T> {
    /// Room for so many, at least one.
    pub fn new(capacity: usize) -> RingBuffer<T> {
        RingBuffer { capacity: capacity.max(1), list: Vec::new(), oldest: 0 }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The most there can be.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Adds one, in the place of the oldest if there is no room; gives its place.
    pub fn push(&mut self, item: T) -> usize {
        if self.list.len() < self.capacity {
            self.list.push(item);
            return self.list.len() - 1;
        }
        let place = self.oldest;
        self.list[place] = item;
        self.oldest = (place + 1) % self.capacity;
        place
    }

    /// The one at a place.
    pub fn get(&self, place: usize) -> &T {
        &self.list[place]
    }

    /// All of them, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.list[self.oldest..].iter().chain(&self.list[..self.oldest])
    }

    /// Some of them at random, with replacement; there must be one.
    pub fn draw(&self, count: usize, rng: &mut Pcg64) -> Vec<&T> {
        (0..count).map(|_| &self.list[rng.random_range(0..self.list.len())]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first() {
        let mut ring = RingBuffer::new(3);
        let places: Vec<usize> = (0..5).map(|k| ring.push(k)).collect();
        assert_eq!(places, [0, 1, 2, 0, 1]);
        assert_eq!(ring.iter().copied().collect::<Vec<i32>>(), [2, 3, 4]);
    }
}
