//! Statistics gathered value by value, in memory that does not grow with the number of values.

use serde::Serialize;

/// Mean and standard deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Mean; zero if there are no values.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
}

/// Gathers a [`Spread`] by Welford's algorithm.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let gap = value - self.mean;
        self.mean += gap / self.count as f64;
        self.squares += gap * (value - self.mean);
    }

    pub fn spread(&self) -> Spread {
        Spread { mean: self.mean, deviation: (self.squares / self.count.max(1) as f64).sqrt() }
    }
}

/// Gathers Pearson's correlation coefficient.
#[derive(Clone, Debug, Default)]
pub(crate) struct Correlation {
    count: f64,
    mean: [f64; 2],
    squares: [f64; 2],
    products: f64,
}

impl Correlation {
    pub fn add(&mut self, pair: [f64; 2]) {
        self.count += 1.0;
        let before = [pair[0] - self.mean[0], pair[1] - self.mean[1]];
        for of in [0, 1] {
            self.mean[of] += before[of] / self.count;
            self.squares[of] += before[of] * (pair[of] - self.mean[of]);
        }
        self.products += before[0] * (pair[1] - self.mean[1]);
    }

    /// Returns the coefficient; `None` if one of the two never varies.
    pub fn coefficient(&self) -> Option<f64> {
        let scale = (self.squares[0] * self.squares[1]).sqrt();
        (scale > 1e-12 * self.count).then(|| self.products / scale)
    }
}

/// Greatest number of values that a sample keeps.
const KEPT: usize = 1 << 16;

/// An even sample of many values: all of them, then every second one, then every fourth, and so on.
#[derive(Clone, Debug, Default)]
pub(crate) struct EvenSample {
    values: Vec<f32>,
    seen: u64,
    doublings: u32,
}

impl EvenSample {
    pub fn add(&mut self, value: f32) {
        if self.seen.is_multiple_of(1 << self.doublings) {
            if self.values.len() == KEPT {
                let mut place = 0;
                self.values.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.doublings += 1;
            }
            self.values.push(value);
        }
        self.seen += 1;
    }

    /// Returns the number of all values.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Returns the kept values in ascending order.
    pub fn sorted(&self) -> Vec<f32> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f32::total_cmp);
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_and_correlation_are_those_of_the_definition() {
        let pairs: Vec<[f64; 2]> = (0..50).map(|k| [f64::from(k * k % 23), f64::from(k * 7 % 11) - 2.0]).collect();
        let (mut moments, mut correlation) = (Moments::default(), Correlation::default());
        pairs.iter().for_each(|pair| {
            moments.add(pair[0]);
            correlation.add(*pair);
        });
        let mean = [0, 1].map(|of| pairs.iter().map(|pair| pair[of]).sum::<f64>() / 50.0);
        let product =
            |a: usize, b: usize| pairs.iter().map(|pair| (pair[a] - mean[a]) * (pair[b] - mean[b])).sum::<f64>() / 50.0;
        let spread = moments.spread();
        assert!((spread.mean - mean[0]).abs() < 1e-9 && (spread.deviation - product(0, 0).sqrt()).abs() < 1e-9);
        let expected = product(0, 1) / (product(0, 0) * product(1, 1)).sqrt();
        assert!((correlation.coefficient().unwrap() - expected).abs() < 1e-9);
        let mut constant = Correlation::default();
        (0..9).for_each(|k| constant.add([f64::from(k), 0.3]));
        assert_eq!(constant.coefficient(), None);
    }

    #[test]
    fn a_sample_is_even_and_does_not_grow() {
        let mut sample = EvenSample::default();
        let count = 5 * KEPT;
        (0..count).for_each(|value| sample.add(value as f32));
        let kept = sample.sorted();
        assert!(kept.len() <= KEPT && sample.seen() == count as u64, "{}", kept.len());
        assert!(kept.windows(2).all(|pair| pair[1] - pair[0] == 8.0), "every eighth");
        let middle = kept[kept.len() / 2];
        assert!((middle - count as f32 / 2.0).abs() < 20.0, "{middle}");
    }
}
