//! Buffer of a fixed capacity that keeps the most recent items.

use rand::RngExt;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

/// List that overwrites its oldest item when it is full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RingBuffer<T> {
    capacity: usize,
    list: Vec<T>,
    oldest: usize,
}

impl<T> RingBuffer<T> {
    /// Empty buffer with this capacity, at least 1.
    pub fn new(capacity: usize) -> RingBuffer<T> {
        RingBuffer { capacity: capacity.max(1), list: Vec::new(), oldest: 0 }
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the greatest number of items.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Adds an item, in place of the oldest one if the buffer is full; returns its place.
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

    /// Returns the item at a place.
    pub fn get(&self, place: usize) -> &T {
        &self.list[place]
    }

    /// Iterates over all items, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.list[self.oldest..].iter().chain(&self.list[..self.oldest])
    }

    /// Draws items at random with replacement. Panics if the buffer is empty.
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
