//! Vectors whose memory starts at a cache line, which makes vector loads and stores faster.

use std::ops::{Deref, DerefMut};

const LINE: usize = 64;

/// Fixed-length vector whose first number is at the start of a cache line.
pub(crate) struct Aligned<T> {
    data: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Copy + Default> Aligned<T> {
    pub(crate) fn new(len: usize) -> Aligned<T> {
        let spare = LINE / size_of::<T>();
        let data = vec![T::default(); len + spare];
        let start = data.as_ptr().align_offset(LINE).min(spare);
        Aligned { data, start, len }
    }

    pub(crate) fn from_slice(values: &[T], len: usize) -> Aligned<T> {
        let mut aligned = Aligned::new(len);
        aligned[..values.len()].copy_from_slice(values);
        aligned
    }
}

impl<T> Default for Aligned<T> {
    fn default() -> Aligned<T> {
        Aligned { data: Vec::new(), start: 0, len: 0 }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.data[self.start..self.start + self.len]
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.data[self.start..self.start + self.len]
    }
}
