//! The log-normal distribution: times that come about as products of many factors, such as those of data-dependent
//! programs.
//!
//! Values beyond the bounds are moved to the bounds, where they have a probability of their own. The mean and the tail
//! are exact, by the error function.

#[cfg(not(feature = "std"))]
use crate::float::Float as _;
use core::f64::consts::SQRT_2;

/// Log-normal distribution whose values are moved into a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogNormal {
    median: f64,
    /// Standard deviation of the logarithm.
    sigma: f64,
    least: f64,
    most: f64,
}

impl LogNormal {
    /// Creates the distribution with this median, which is greater than zero, and this standard deviation of the
    /// logarithm, with values from `least` to `most`.
    pub fn new(median: f64, sigma: f64, [least, most]: [f64; 2]) -> LogNormal {
        LogNormal { median: median.max(f64::MIN_POSITIVE), sigma, least, most: most.max(least) }
    }

    /// Returns the number of standard deviations from the mean of a normal distribution that this share of it lies
    /// below, 0 to 1; at most 40 in magnitude.
    pub fn deviations_at(share: f64) -> f64 {
        let (mut below, mut above) = (-40.0, 40.0);
        for _ in 0..64 {
            let middle = (below + above) / 2.0;
            if upper(-middle) < share { below = middle } else { above = middle }
        }
        above
    }

    /// Returns the value at this number of standard deviations of the logarithm above the median.
    pub fn at(&self, deviations: f64) -> f64 {
        (self.median * (self.sigma * deviations).exp()).clamp(self.least, self.most)
    }

    /// Returns the number of standard deviations of the logarithm from the median to a value: infinite if nothing
    /// spreads.
    pub fn deviations(&self, value: f64) -> f64 {
        match (value / self.median).ln() {
            0.0 => 0.0,
            logarithm => logarithm / self.sigma,
        }
    }

    /// Returns the mean.
    pub fn mean(&self) -> f64 {
        self.mean_beyond(f64::NEG_INFINITY).unwrap_or(self.most)
    }

    /// Returns the probability of a value greater than `value`.
    pub fn beyond(&self, value: f64) -> f64 {
        match value {
            value if value < self.least => 1.0,
            value if value >= self.most => 0.0,
            value if self.sigma <= 0.0 => f64::from(u8::from(self.median > value)),
            value => upper(self.deviations(value)),
        }
    }

    /// Returns the mean of the values greater than `value`; `None` if there are none.
    pub fn mean_beyond(&self, value: f64) -> Option<f64> {
        let probability = self.beyond(value);
        if probability <= 0.0 {
            return None;
        }
        if self.sigma <= 0.0 {
            return Some(self.at(0.0));
        }
        let (first, last) = (self.deviations(self.least.max(value)), self.deviations(self.most));
        let below = if value < self.least { self.least * upper(-first) } else { 0.0 };
        let (first_part, last_part) = (upper(first - self.sigma), upper(last - self.sigma));
        let within = self.median * (self.sigma * self.sigma / 2.0).exp() * (first_part - last_part);
        let mean = (below + within + self.most * upper(last)) / probability;
        // Rounding must not lead out of the range.
        Some(mean.clamp(self.least.max(value), self.most))
    }
}

/// Probability that a standard normal number is greater than `z`.
pub(crate) fn upper(z: f64) -> f64 {
    libm::erfc(z / SQRT_2) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean of the values beyond a point and their share, by summing over a fine grid of the normal distribution.
    fn summed(law: &LogNormal, beyond: f64) -> (f64, f64) {
        let (mut share, mut sum) = (0.0, 0.0);
        let (steps, width) = (200_000, 20.0);
        for step in 0..steps {
            let z = -width / 2.0 + width * (f64::from(step) + 0.5) / f64::from(steps);
            let density = (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * width / f64::from(steps);
            let value = law.at(z);
            if value > beyond {
                (share, sum) = (share + density, sum + density * value);
            }
        }
        (share, sum / share)
    }

    #[test]
    fn mean_and_tail_are_those_of_a_sum_over_the_distribution() {
        for (median, sigma, bounds) in [
            (100.0, 0.5, [1.0, 1e6]),
            (100.0, 0.5, [80.0, 150.0]),
            (100.0, 2.0, [10.0, 1_000.0]),
            (5.0, 1.0, [10.0, 1_000.0]),
            (5_000.0, 0.3, [10.0, 1_000.0]),
        ] {
            let law = LogNormal::new(median, sigma, bounds);
            assert!((law.mean() / summed(&law, f64::NEG_INFINITY).1 - 1.0).abs() < 1e-4, "{law:?}");
            for value in [9.0, 60.0, 100.0, 140.0, 700.0] {
                let (share, mean) = summed(&law, value);
                assert!((law.beyond(value) - share).abs() < 1e-3, "{law:?} beyond {value}");
                if share > 1e-3 {
                    let found = law.mean_beyond(value).unwrap();
                    assert!((found / mean - 1.0).abs() < 1e-2, "{law:?} beyond {value}: {found}, not {mean}");
                }
            }
        }
    }

    #[test]
    fn without_spread_everything_is_at_the_median() {
        let law = LogNormal::new(100.0, 0.0, [10.0, 1_000.0]);
        assert_eq!((law.mean(), law.at(3.0), law.beyond(99.0), law.beyond(100.0)), (100.0, 100.0, 1.0, 0.0));
        assert_eq!((law.mean_beyond(50.0), law.mean_beyond(100.0)), (Some(100.0), None));
    }
}
