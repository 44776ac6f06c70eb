//! A learned index for requests of a server: one score for each request, given when it comes, by which a heap serves
//! thousands of them.
//!
//! The score has two parts. The *key* is a date, like a deadline: of the waiting requests the one with the earliest key
//! runs. It lies between the order of arrival and that of due times, and requests that are long for their value are put
//! off by as much as the load demands:
//!
//! `key = arrival + urgency * time to due + patience * mean length * ln(relative length / relative value)`
//!
//! The *caution* is the number of standard deviations by which the length of the request is planned, and the *reserve*
//! the share of its time that is planned at least. A request that would be late by that is refused, at once or while it
//! waits: a reserve near 1 serves nothing but what has just come, as is best where a long queue would make everything
//! late. Urgency, patience, caution and reserve are what a small network says of the request and of the traffic
//! ([`Traffic`]), in numbers without units: all times a thousandfold, the order is the same. Lengths are what is known
//! of the request, corrected by what those that have left tell ([`Lengths`]).
//!
//! Keys of different requests remain comparable while the load changes, because all of them are dates. That is why a
//! key need not be computed again, and what the index cannot do: it does not go back on a request when the load that
//! it was scored under has passed, and it cannot put the newest first.
//!
//! The weights come from `cargo run --release -p temponet-dispatch --example train_index`; the first lines of
//! `weights.txt` say how. All arithmetic is that of this crate and of `libm`, so that scores are the same everywhere.

mod lengths;
mod traffic;
mod weights;

pub use lengths::Lengths;
use traffic::Traffic;
pub use weights::{IndexWeights, WeightsProblem};

/// What an index knows of a request when it comes. Times are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IndexedRequest {
    /// Date at which the request came.
    pub arrival: u64,
    /// Date by which it has to be finished; `u64::MAX` if it is never late.
    pub due: u64,
    /// Median of its length; zero if nothing is known.
    pub median: u64,
    /// Standard deviation of the logarithm of its length.
    pub spread: f64,
    /// What it is worth, above zero.
    pub value: f64,
}

/// Score of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// The least is next.
    pub key: u64,
    /// Logarithm of what is planned for the request, relative to its median.
    pub margin: f64,
    /// What is planned at least, in nanoseconds.
    pub least: u64,
}

impl Score {
    /// Returns the length that is planned for a request with this median, in nanoseconds.
    pub fn planned(&self, median: u64) -> u64 {
        // Casting saturates.
        self.least.max((median as f64 * libm::exp(self.margin)) as u64)
    }
}

/// An index with the traffic that it has seen.
#[derive(Clone, Debug)]
pub struct RequestIndex {
    weights: IndexWeights,
    slots: f64,
    cancels: f64,
    traffic: Traffic,
    lengths: Lengths,
}

impl RequestIndex {
    /// Creates an index for a server with this many slots. `cancels` says whether a request ends at its due time.
    pub fn new(weights: IndexWeights, slots: usize, cancels: bool) -> RequestIndex {
        let cancels = if cancels { 1.0 } else { 0.0 };
        RequestIndex {
            weights,
            slots: slots.max(1) as f64,
            cancels,
            traffic: Traffic::new(),
            lengths: Lengths::default(),
        }
    }

    /// Takes note of a request that comes. Every request counts, also one that is refused; they come in the order of
    /// arrival.
    pub fn observe(&mut self, request: &IndexedRequest) {
        let (correction, spread) = self.lengths.correction(request);
        self.traffic.observe(request, correction, spread);
    }

    /// Learns from a request that has left after it was served this long, in nanoseconds, and was complete or not.
    pub fn learn(&mut self, request: &IndexedRequest, executed: u64, is_complete: bool) {
        self.lengths.learn(request, executed, is_complete);
    }

    /// Scores a request while this many others wait. The request itself has been observed.
    pub fn score(&self, request: &IndexedRequest, waiting: usize) -> Score {
        let traffic = &self.traffic;
        let unit = traffic.mean_length();
        let median = match request.median {
            0 => unit,
            median => median as f64,
        };
        let (correction, spread) = self.lengths.correction(request);
        let window = window(request).min(LONGEST_WINDOW * unit);
        let (log_window, log_median) = (libm::log(window / unit), libm::log(median / unit) + correction);
        let log_length = log_median - traffic.log_length.mean();
        let log_value = libm::log(sound_value(request.value)) - traffic.log_value.mean();
        let bounded = |value: f64, scale: f64| (value / scale).clamp(-2.0, 2.0);
        let mut inputs = [
            bounded(libm::log(traffic.load(self.slots)), 0.7),
            bounded(libm::log1p(waiting as f64 / self.slots), 1.5),
            spread,
            bounded(log_window - log_median - 1.5, 1.5),
            bounded(log_window - traffic.log_window.mean(), 1.0),
            bounded(log_length, 1.0),
            bounded(log_value, 1.0),
            bounded(traffic.tightness.mean() - 1.5, 1.5),
            bounded(traffic.tightness.deviation(), 1.0),
            bounded(traffic.log_length.deviation(), 1.0),
            bounded(traffic.log_window.deviation(), 1.0),
            bounded(libm::log(self.slots) - 2.0, 2.0),
            self.cancels,
        ];
        let [urgency, patience, ..] = self.weights.outputs(&inputs);
        // What the time that a request has says of its length is in the correction already. Caution and reserve know the
        // traffic alone, and how vague the length is: else they would take every due time for such evidence.
        inputs[OWN].fill(0.0);
        let [.., caution, reserve] = self.weights.outputs(&inputs);
        let urgency = (1.0 + urgency).clamp(-0.5, 2.0);
        let patience = libm::exp((2.0 * patience).clamp(-6.0, 6.0));
        let caution = (2.0 * caution).clamp(-4.0, 3.0);
        let date = request.arrival as f64 + urgency * window + patience * unit * (log_length - log_value);
        let reserve = (0.3 + reserve).clamp(0.0, MOST_RESERVE);
        Score { key: ordered(date), margin: correction + caution * spread, least: (reserve * window) as u64 }
    }
}

/// Inputs that tell one request from another, apart from the spread of its length.
const OWN: core::ops::Range<usize> = 3..7;

/// Time to the due time that stands for a request that is never late, as a multiple of the mean length.
const LONGEST_WINDOW: f64 = 1e3;

/// Greatest share of the time of a request that is planned at least: a request that comes while all are busy may wait.
const MOST_RESERVE: f64 = 0.98;

/// Greatest standard deviation of a logarithm that is believed.
const MOST_SPREAD: f64 = 2.0;

/// Time that a request has, in nanoseconds.
fn window(request: &IndexedRequest) -> f64 {
    request.due.saturating_sub(request.arrival).max(1) as f64
}

fn sound_spread(spread: f64) -> f64 {
    if spread > 0.0 { spread.min(MOST_SPREAD) } else { 0.0 }
}

fn sound_value(value: f64) -> f64 {
    if value.is_finite() && value > 0.0 { value } else { 1.0 }
}

/// Number in the order of dates, which may be before zero.
fn ordered(date: f64) -> u64 {
    // Casting saturates; flipping the sign sorts negative numbers first.
    (date as i64 as u64) ^ (1 << 63)
}

#[cfg(test)]
mod tests;
