//! Quantiles of lengths in a stream, with those that were cut off.
//!
//! Counts lie in classes of equal ratio, as in DDSketch (Masson, Rim and Lee, VLDB 2019), so that a quantile has a
//! relative error of at most 2.2%. A request that was cut off at a length says only that it is longer. Two counts per
//! class, completed and cut off, give the product-limit estimator ([`ProductLimit`]); that is why this is not the crate
//! `sketches-ddsketch`, whose counts cannot be read. Old counts fade: at [`MOST`] they are halved, so lengths
//! may drift.

use temponet_task::ProductLimit;

/// Length that stands for 1 in a sketch of ratios.
pub(crate) const UNIT: f64 = (1u64 << 22) as f64;
/// Number of classes to a doubling.
const PER_DOUBLING: f64 = 16.0;
/// Number of classes: up to 2^44 ns, about five hours.
const CLASSES: usize = 44 * 16;
/// Error of a share that is no difference.
const ROUNDING: f64 = 1e-9;
/// Total of counts at which they are halved.
const MOST: f64 = 4096.0;

#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    /// Counts of completed and cut-off lengths; from class `first` on.
    classes: Vec<(f32, f32)>,
    first: usize,
    total: f64,
    completed: f64,
}

impl Sketch {
    pub fn new() -> Sketch {
        Sketch { classes: Vec::new(), first: 0, total: 0.0, completed: 0.0 }
    }

    /// Takes in a length that was complete, or was cut off there.
    pub fn add(&mut self, length: u64, is_complete: bool) {
        let class = class_of(length);
        if self.classes.is_empty() {
            self.first = class;
        }
        if class < self.first {
            let missing = self.first - class;
            self.classes.splice(0..0, std::iter::repeat_n((0.0, 0.0), missing));
            self.first = class;
        }
        if self.classes.len() <= class - self.first {
            self.classes.resize(class - self.first + 1, (0.0, 0.0));
        }
        let (completed, cut_off) = &mut self.classes[class - self.first];
        if is_complete {
            *completed += 1.0;
            self.completed += 1.0;
        } else {
            *cut_off += 1.0;
        }
        self.total += 1.0;
        if self.total >= MOST {
            self.total *= 0.5;
            self.completed *= 0.5;
            self.classes.iter_mut().for_each(|counts| *counts = (counts.0 * 0.5, counts.1 * 0.5));
        }
    }

    /// Number of lengths, of which old ones have faded.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Returns the share of lengths that is greater than this one; 1 if nothing has completed.
    pub fn share_beyond(&self, length: u64) -> f64 {
        let end = (class_of(length) + 1).saturating_sub(self.first).min(self.classes.len());
        let mut limit = ProductLimit::of(self.total);
        // Empty classes change nothing.
        let passed = self.classes[..end].iter().filter(|counts| counts.0 + counts.1 > 0.0);
        let passed = passed.map(|counts| limit.pass(counts.0.into(), counts.1.into()));
        passed.last().unwrap_or(1.0).max(0.0)
    }

    /// Finds the lengths that these shares do not exceed, each as [`Sketch::quantile_beyond`] does, in one pass.
    pub fn quantiles(&self, shares: impl Iterator<Item = f64> + Clone, found: &mut Vec<Option<u64>>) {
        found.clear();
        found.extend(shares.clone().map(|_| None));
        if self.completed <= 0.0 {
            return;
        }
        let mut limit = ProductLimit::of(self.total);
        let mut missing = found.len();
        for (place, (completed, cut_off)) in self.classes.iter().enumerate() {
            // Most classes are empty, and those change nothing.
            if *completed == 0.0 && *cut_off == 0.0 {
                continue;
            }
            let longer = limit.pass((*completed).into(), (*cut_off).into());
            if *completed > 0.0 {
                for (share, found) in shares.clone().zip(found.iter_mut()) {
                    if found.is_none() && longer <= 1.0 - share + ROUNDING {
                        *found = Some(middle_of(self.first + place));
                        missing -= 1;
                    }
                }
                if missing == 0 {
                    return;
                }
            }
        }
        let greatest = middle_of(self.first + self.classes.len() - 1);
        found.iter_mut().for_each(|found| _ = found.get_or_insert(greatest));
    }

    /// Returns the length that this share does not exceed, among lengths greater than `beyond`, which is also the least
    /// that is returned; of those beyond all completed ones, the greatest seen. None if nothing has completed.
    pub fn quantile_beyond(&self, beyond: u64, share: f64) -> Option<u64> {
        if self.completed <= 0.0 {
            return None;
        }
        let start = if beyond == 0 { 0 } else { class_of(beyond) + 1 };
        // Those that ended before `start` are left out, as if they had never been.
        let (before, after) = self.classes.split_at(start.saturating_sub(self.first).min(self.classes.len()));
        let short: f64 = before.iter().map(|(completed, cut_off)| f64::from(completed + cut_off)).sum();
        let mut limit = ProductLimit::of(self.total - short);
        for (place, (completed, cut_off)) in after.iter().enumerate() {
            // Most classes are empty, and those change nothing.
            if *completed == 0.0 && *cut_off == 0.0 {
                continue;
            }
            let longer = limit.pass((*completed).into(), (*cut_off).into());
            if *completed > 0.0 && longer <= 1.0 - share + ROUNDING {
                return Some(middle_of(self.first + before.len() + place).max(beyond));
            }
        }
        Some(middle_of(self.first + self.classes.len() - 1).max(beyond))
    }
}

fn class_of(length: u64) -> usize {
    ((PER_DOUBLING * (length.max(1) as f64).log2()) as usize).min(CLASSES - 1)
}

/// Returns the geometric middle of a class.
fn middle_of(class: usize) -> u64 {
    ((class as f64 + 0.5) / PER_DOUBLING).exp2() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Sketch {
        fn quantile(&self, share: f64) -> Option<u64> {
            self.quantile_beyond(0, share)
        }
    }

    fn is_close(found: Option<u64>, expected: f64) -> bool {
        found.is_some_and(|found| (found as f64 / expected).ln().abs() < 0.045)
    }

    #[test]
    fn quantiles_of_complete_lengths_are_those_of_the_list() {
        let mut sketch = Sketch::new();
        assert_eq!(sketch.quantile(0.5), None);
        for length in (1..=1000).rev() {
            sketch.add(length * 1_000_000, true);
        }
        for share in [0.1, 0.5, 0.9, 0.99] {
            assert!(is_close(sketch.quantile(share), share * 1e9), "{share}: {:?}", sketch.quantile(share));
        }
        assert!(is_close(sketch.quantile_beyond(500_000_000, 0.5), 750e6));
        assert!(sketch.quantile_beyond(990_000_000, 0.0) >= Some(990_000_000));
    }

    /// Half of the requests are cut off at a quarter of the range. Leaving them out, or counting them as complete,
    /// would halve the median.
    #[test]
    fn what_was_cut_off_is_longer_than_where_it_was_cut() {
        let mut sketch = Sketch::new();
        for length in 1..=1000u64 {
            sketch.add(length * 1_000_000, true);
            sketch.add(length.min(250) * 1_000_000, length <= 250);
        }
        assert!(is_close(sketch.quantile(0.5), 500e6), "{:?}", sketch.quantile(0.5));
        assert!(is_close(sketch.quantile(0.9), 900e6), "{:?}", sketch.quantile(0.9));
        assert!((sketch.share_beyond(700_000_000) - 0.3).abs() < 0.03, "{}", sketch.share_beyond(700_000_000));
        let mut only_cut = Sketch::new();
        only_cut.add(7, false);
        assert_eq!(only_cut.quantile(0.5), None);
        only_cut.add(5_000, true);
        only_cut.add(9_000_000, false);
        only_cut.add(9_000_000, false);
        assert!(is_close(only_cut.quantile(0.9), 9e6), "the greatest seen");
    }

    #[test]
    fn quantiles_at_one_time_are_those_one_by_one() {
        let mut sketch = Sketch::new();
        let (mut state, mut found) = (1u64, Vec::new());
        let shares = [0.5, 0.9, 0.01, 0.5, 0.999];
        for count in 0..6_000 {
            sketch.quantiles(shares.into_iter(), &mut found);
            assert_eq!(found, shares.map(|share| sketch.quantile(share)), "after {count}");
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // The first ones and the longest ones are cut off.
            let length = 1 + (state >> 33) % 1_000_000;
            sketch.add(length.min(700_000), count > 3 && length < 700_000);
        }
    }

    #[test]
    fn old_lengths_fade_and_memory_stays() {
        let mut sketch = Sketch::new();
        (0..10_000).for_each(|_| sketch.add(1_000, true));
        (0..10_000).for_each(|_| sketch.add(1_000_000, true));
        assert!(is_close(sketch.quantile(0.5), 1e6));
        [0, 1, u64::MAX].into_iter().for_each(|length| sketch.add(length, true));
        assert!(sketch.classes.len() <= CLASSES);
    }
}
