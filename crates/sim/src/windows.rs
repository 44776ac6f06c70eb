//! (m,k)-firm constraints: in any k consecutive jobs of a task, at least m must be in time. Counted job by job as they leave, in whatever
//! order that is, with memory for one window and the jobs that left ahead of an older one.

use std::collections::{BTreeMap, VecDeque};

/// Windows of k consecutive jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// Whole windows.
    pub all: u64,
    /// Those with fewer than m jobs in time.
    pub violated: u64,
}

impl Windows {
    /// Share of windows that keep the constraint; 1 if there is none.
    pub fn kept(&self) -> f64 {
        if self.all == 0 { 1.0 } else { (self.all - self.violated) as f64 / self.all as f64 }
    }

    pub(crate) fn add(&mut self, other: Windows) {
        self.all += other.all;
        self.violated += other.violated;
    }
}

/// Slides the window over one task's jobs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WindowCounter {
    m: usize,
    k: usize,
    last: VecDeque<bool>,
    met: usize,
    next: u64,
    /// Jobs that left before an older one, by number.
    ahead: BTreeMap<u64, bool>,
    pub counted: Windows,
}

impl WindowCounter {
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

    /// A job left.
    pub fn left(&mut self, number: u64, met: bool) {
        self.ahead.insert(number, met);
        while let Some(met) = self.ahead.remove(&self.next) {
            self.next += 1;
            self.slide(met);
        }
    }

    /// The run is over: jobs that never counted leave a gap, which windows step over.
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
        // By definition: windows of three with fewer than two in time.
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
