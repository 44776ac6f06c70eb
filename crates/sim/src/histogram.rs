//! A histogram of signed values in bounded memory. Quantiles are accurate to 1/64 of the value, however long the run.

/// Number of equally wide buckets per power of two.
const STEPS: usize = 64;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Number of buckets for the magnitudes of one sign. Values below `STEPS` have a bucket each.
const BUCKETS: usize = (64 - STEP_BITS as usize + 1) * STEPS;

/// Counts of values in logarithmic buckets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Counts of the values from zero on, up to the largest bucket in use.
    positive: Vec<u64>,
    /// Counts of the values below zero, by magnitude.
    negative: Vec<u64>,
    count: u64,
    sum: i128,
    max: Option<i64>,
}

impl Histogram {
    /// Adds a value.
    #[inline]
    pub fn record(&mut self, value: i64) {
        let bucket = bucket_of(value.unsigned_abs());
        let side = if value < 0 { &mut self.negative } else { &mut self.positive };
        if bucket >= side.len() {
            side.resize((bucket + 1).next_multiple_of(STEPS).min(BUCKETS), 0);
        }
        side[bucket] += 1;
        self.count += 1;
        self.sum += i128::from(value);
        self.max = Some(self.max.map_or(value, |max| max.max(value)));
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        for (side, added) in [(&mut self.positive, &other.positive), (&mut self.negative, &other.negative)] {
            if side.len() < added.len() {
                side.resize(added.len(), 0);
            }
            for (count, more) in side.iter_mut().zip(added) {
                *count += more;
            }
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the exact mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Returns the exact maximum; `None` without values.
    pub fn max(&self) -> Option<i64> {
        self.max
    }

    /// Returns the `q`-quantile: the smallest value that a share of at least `q` (0 to 1) of the values do not exceed,
    /// accurate to one bucket.
    pub fn quantile(&self, q: f64) -> Option<i64> {
        let wanted = ((q * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (value, count) in self.buckets() {
            seen += count;
            if seen >= wanted {
                return Some(value.min(self.max?));
            }
        }
        None
    }

    /// Iterates over the non-empty buckets in ascending order, as pairs of largest value and count.
    pub fn buckets(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        let below = self.negative.iter().enumerate().rev().map(|(bucket, count)| (-(least_of(bucket) as i64), *count));
        let above = self.positive.iter().enumerate();
        let above = above.map(|(bucket, count)| ((least_of(bucket + 1) - 1).min(i64::MAX as u64) as i64, *count));
        below.chain(above).filter(|(_, count)| *count > 0)
    }
}

/// Returns the bucket of a magnitude. Below `STEPS` it is the magnitude itself; above, it consists of the exponent and
/// the bits after the leading one.
fn bucket_of(magnitude: u64) -> usize {
    if magnitude < STEPS as u64 {
        return magnitude as usize;
    }
    let exponent = magnitude.ilog2();
    let step = (magnitude >> (exponent - STEP_BITS)) as usize - STEPS;
    (exponent - STEP_BITS + 1) as usize * STEPS + step
}

/// Returns the smallest magnitude of a bucket.
fn least_of(bucket: usize) -> u64 {
    let (row, step) = (bucket / STEPS, bucket % STEPS);
    match row {
        0 => step as u64,
        _ => ((STEPS + step) as u64).checked_shl(row as u32 - 1).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_tile_the_range() {
        for magnitude in (0..200).chain([1_000, 65_535, 65_536, 123_456_789, i64::MAX as u64]) {
            let bucket = bucket_of(magnitude);
            assert!(least_of(bucket) <= magnitude && magnitude < least_of(bucket + 1), "{magnitude}");
            assert!(bucket < BUCKETS);
        }
    }

    #[test]
    fn quantiles_are_close_to_the_sorted_values() {
        let values: Vec<i64> = (0..10_000).map(|i: i64| (i * 7_919 % 10_007) * 1_000 - 3_000_000).collect();
        let mut histogram = Histogram::default();
        values.iter().for_each(|value| histogram.record(*value));
        let mut sorted = values.clone();
        sorted.sort();
        for q in [0.01, 0.25, 0.5, 0.95, 0.99, 1.0] {
            let exact = sorted[((q * 10_000.0) as usize).max(1) - 1];
            let found = histogram.quantile(q).unwrap();
            assert!((found - exact).abs() as f64 <= exact.abs() as f64 / 64.0 + 1.0, "{q}: {found} for {exact}");
        }
        assert_eq!(histogram.max(), sorted.last().copied());
        assert_eq!(histogram.mean(), Some(sorted.iter().sum::<i64>() as f64 / 10_000.0));
    }

    #[test]
    fn merging_is_recording_all() {
        let (mut left, mut right, mut all) = (Histogram::default(), Histogram::default(), Histogram::default());
        for value in [-5, 100, 3_000_000] {
            left.record(value);
            all.record(value);
        }
        for value in [-1_000_000, 7] {
            right.record(value);
            all.record(value);
        }
        left.merge(&right);
        assert_eq!(left.buckets().collect::<Vec<_>>(), all.buckets().collect::<Vec<_>>());
        assert_eq!((left.mean(), left.max(), left.count()), (all.mean(), all.max(), all.count()));
    }
}
