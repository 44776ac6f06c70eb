//! What the lengths of requests that have left say about those of others, beyond what was known of each.
//!
//! The median of the logarithm of a length relative to what was known as its median depends on two things that are known
//! when a request comes: the time that it has, and that median itself. Where due times are set in proportion to lengths,
//! the first tells the length; where they are not, its slope is zero. The second draws rough estimates towards the mean.
//! Old requests fade. Errors weigh by one over their size, so that the fit is that of the least sum of errors
//! (Schlossmacher, Journal of the American Statistical Association 68, 1973), and what was a median to begin with, as by
//! a regression, remains as it is: where lengths are skewed, as where a limit cuts the longest, the mean of the logarithm
//! is far from the median.
//!
//! A request that was cut off counts as long as others like it are beyond where it was cut, in the mean of a log-normal
//! distribution: one that was cut early says next to nothing.

use core::f64::consts::TAU;

use crate::log_normal::upper;

use super::{IndexedRequest, MOST_SPREAD, sound_spread, window};

/// Number of requests after which one counts for 1/e.
const MEMORY: f64 = 400.0;
/// Number of requests that count as much as the belief that nothing more can be known.
const PRIOR: f64 = 20.0;
/// Greatest correction of a logarithm.
const MOST_CORRECTION: f64 = 4.0;
/// Error of a logarithm below which all errors weigh alike, and the same as a share of the standard deviation.
const LEAST_ERROR: (f64, f64) = (0.05, 0.1);

/// What requests that have left tell of the lengths of others, beyond what is known of each: by the time that they have,
/// and by what is known itself. The index of requests corrects lengths by it.
// Means and products of differences from them: of the two logarithms that are known, and of the ratio to explain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lengths {
    count: f64,
    /// Sum of the weights in the means and products.
    weight: f64,
    means: [f64; 3],
    products: [[f64; 3]; 3],
    /// Mean square of what was not explained, and of the spreads that were stated.
    errors: f64,
    stated: f64,
}

impl Lengths {
    /// Learns from a request that was served this long, in nanoseconds, and was complete or not.
    pub fn learn(&mut self, request: &IndexedRequest, executed: u64, is_complete: bool) {
        if request.median == 0 || request.due == u64::MAX {
            return;
        }
        let known = known(request);
        let (predicted, spread) = self.correction(request);
        let taken = libm::log(executed.max(1) as f64 / request.median as f64);
        let (ratio, doubt) = if is_complete { (taken, 0.0) } else { beyond(taken, predicted, spread) };
        let ratio = ratio.clamp(-MOST_CORRECTION, MOST_CORRECTION);
        self.count = (self.count + 1.0).min(MEMORY);
        let fresh = 1.0 / self.count;
        let error = (ratio - predicted) * (ratio - predicted) + doubt;
        self.errors += fresh * (error - self.errors);
        let stated = sound_spread(request.spread);
        self.stated += fresh * (stated * stated - self.stated);
        // A square divided by its root is the size of an error.
        let weight = 1.0 / libm::sqrt(error).max(LEAST_ERROR.0).max(LEAST_ERROR.1 * spread);
        self.weight = (1.0 - fresh) * self.weight + weight;
        let weight = weight / self.weight;
        let values = [known[0], known[1], ratio];
        let differences: [f64; 3] = core::array::from_fn(|at| values[at] - self.means[at]);
        for (row, difference) in differences.iter().enumerate() {
            self.means[row] += weight * difference;
            for (column, other) in differences.iter().enumerate() {
                let product = &mut self.products[row][column];
                *product = (1.0 - weight) * (*product + weight * difference * other);
            }
        }
    }

    /// Returns the logarithm by which the median of a request is beyond what is known as that, and the standard deviation
    /// of what remains.
    pub fn correction(&self, request: &IndexedRequest) -> (f64, f64) {
        let stated = sound_spread(request.spread);
        if self.count < 1.0 || request.median == 0 || request.due == u64::MAX {
            return (0.0, stated);
        }
        let belief = self.count / (self.count + PRIOR);
        // A little more variance keeps slopes small where nothing varies, or little has been seen.
        let ridge = 0.02 + 1.0 / self.count;
        let [[a, b, y], [_, d, z], _] = self.products;
        let (a, d) = (a + ridge, d + ridge);
        let determinant = a * d - b * b;
        let slopes = [(y * d - z * b) / determinant, (z * a - y * b) / determinant];
        let known = known(request);
        let explained: f64 = (0..2).map(|at| slopes[at] * (known[at] - self.means[at])).sum();
        let correction = belief * (self.means[2] + explained);
        // What was stated holds for this request, and by how much it is wrong for all.
        let found =
            if self.stated > 1e-4 { stated * libm::sqrt(self.errors / self.stated) } else { libm::sqrt(self.errors) };
        let spread = (1.0 - belief) * stated + belief * found;
        (correction.clamp(-MOST_CORRECTION, MOST_CORRECTION), spread.min(MOST_SPREAD))
    }
}

/// Mean and variance of a normal distribution beyond a number.
fn beyond(least: f64, mean: f64, deviation: f64) -> (f64, f64) {
    if deviation <= 0.0 {
        return (least.max(mean), 0.0);
    }
    let z = (least - mean) / deviation;
    // Density over what is left: the inverse of Mills' ratio. Far out it is about z.
    let hazard = match z < 6.0 {
        true => libm::exp(-z * z / 2.0) / (libm::sqrt(TAU) * upper(z)),
        false => z + 1.0 / z,
    };
    let variance = (1.0 + z * hazard - hazard * hazard).max(0.0);
    (mean + deviation * hazard, deviation * deviation * variance)
}

/// Logarithms of the time that a request has and of its median.
fn known(request: &IndexedRequest) -> [f64; 2] {
    [libm::log(window(request)), libm::log(request.median.max(1) as f64)]
}
