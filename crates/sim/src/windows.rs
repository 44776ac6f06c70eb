//! (m,k)-firm constraints: of any k consecutive jobs of a task, at least m must meet their deadline.
//!
//! Windows are counted as jobs leave, in any order. Memory holds one window and the jobs that left before an older job.

use std::collections::{BTreeMap, VecDeque};

/// Number of windows of k consecutive jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// Complete windows.
    pub all: u64,
    /// Windows in which fewer than m jobs met their deadline.
    pub violated: u64,
}

impl Windows {
    /// Returns the share of windows that keep the constraint, 0 to 1; 1 if there are no windows.
    pub fn kept(&self) -> f64 {
        if self.all == 0 { 1.0 } else { (self.all - self.violated) as f64 / self.all as f64 }
    }

    /// Adds other windows.
    pub fn add(&mut self, other: Windows) {
        self.all += other.all;
        self.violated += other.violated;
    }
}

/// Counts the windows of one task by sliding a window of k jobs over its jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowCounter {
    m: usize,
    k: usize,
    /// Whether each of the last k jobs met its deadline.
    last: VecDeque<bool>,
    /// Number of jobs in `last` that met their deadline.
    met: usize,
    /// Number of the next job to enter the window.
    next: u64,
    /// Jobs that left before an older one, by job number.
    ahead: BTreeMap<u64, bool>,
    /// Windows so far.
    pub counted: Windows,
}

impl WindowCounter {
    /// Creates the counter of an (m,k) constraint.
    pub fn new((m, k): (u32, u32)) -> WindowCounter {
        let (m, k) = (m as usize, k as usize);
        WindowCounter {
            m,
            k,
            last: VecDeque::new(),
            met: 0,
            next: 0,
            ahead: BTreeMap::new(),
            counted: Windows::default(),
        }
    }

    /// Adds a job that left.
    pub fn left(&mut self, number: u64, met: bool) {
        self.ahead.insert(number, met);
        while let Some(met) = self.ahead.remove(&self.next) {
            self.next += 1;
            self.slide(met);
        }
    }

    /// Ends the run. Jobs that were not counted leave gaps, which the windows skip.
    pub fn finish(&mut self) {
        for met in std::mem::take(&mut self.ahead).into_values() {
            self.slide(met);
        }
    }

    fn slide(&mut self, met: bool) {
        self.last.push_back(met);
        self.met += usize::from(met);
        if self.last.len() > self.k {
            self.met -= usize::from(self.last.pop_front() == Some(true));
        }
        if self.last.len() == self.k {
            self.counted.all += 1;
            self.counted.violated += u64::from(self.met < self.m);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_whole_window_is_counted_in_the_order_of_the_jobs() {
        let outcomes = [true, false, true, false, false, true, true];
        // The definition: windows of three jobs of which fewer than two are in time.
        let windows: Vec<&[bool]> = outcomes.windows(3).collect();
        let violated = windows.iter().filter(|window| window.iter().filter(|met| **met).count() < 2).count();
        for order in [[0, 1, 2, 3, 4, 5, 6], [2, 1, 0, 6, 5, 4, 3]] {
            let mut counter = WindowCounter::new((2, 3));
            order.into_iter().for_each(|number| counter.left(number as u64, outcomes[number]));
            counter.finish();
            assert_eq!(counter.counted, Windows { all: 5, violated: violated as u64 });
        }
    }

    #[test]
    fn a_window_longer_than_the_run_keeps_nothing_and_violates_nothing() {
        let mut counter = WindowCounter::new((1, u32::MAX));
        (0..10).for_each(|number| counter.left(number, false));
        assert_eq!((counter.counted, counter.counted.kept()), (Windows::default(), 1.0));
    }
}
