//! What is known of a request when it comes, and what becomes of it.

use std::time::{Duration, Instant};

use thiserror::Error;

/// A request, as far as the dispatcher is concerned.
///
/// ```
/// use std::time::{Duration, Instant};
/// use temponet_dispatch::{Estimate, Request};
///
/// let request = Request::new().due(Instant::now() + Duration::from_secs(2)).estimate(Estimate::seconds(0.3)).class(4);
/// assert_eq!(request.value, 1.0);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Request {
    /// Time by which the request has to be finished; `None` if it is never late.
    pub due: Option<Instant>,
    /// What is said of its length. One that is not finite or not positive is as good as none.
    pub estimate: Option<Estimate>,
    /// What it is worth to finish in time, above 0. Anything else counts as 1.
    pub value: f64,
    /// Requests of one class are expected to be alike in length: a route, a tenant, a model.
    pub class: u32,
    /// Numbers that tell something about the length, such as prompt tokens or bytes; the same number of them for each
    /// request. Only [`Estimator::Regressor`](crate::Estimator::Regressor) reads them.
    pub features: Vec<f64>,
}

impl Request {
    /// Creates a request that is never due, of value 1, of class 0, of which nothing else is known.
    pub fn new() -> Request {
        Request { due: None, estimate: None, value: 1.0, class: 0, features: Vec::new() }
    }

    /// Sets the time by which the request has to be finished.
    pub fn due(self, due: Instant) -> Request {
        Request { due: Some(due), ..self }
    }

    /// Sets what is said of its length.
    pub fn estimate(self, estimate: Estimate) -> Request {
        Request { estimate: Some(estimate), ..self }
    }

    /// Sets what it is worth to finish in time.
    pub fn value(self, value: f64) -> Request {
        Request { value, ..self }
    }

    /// Sets the class.
    pub fn class(self, class: u32) -> Request {
        Request { class, ..self }
    }

    /// Sets the numbers that tell something about the length.
    pub fn features(self, features: impl Into<Vec<f64>>) -> Request {
        Request { features: features.into(), ..self }
    }
}

impl Default for Request {
    fn default() -> Request {
        Request::new()
    }
}

/// Estimate of a request's length: the log-normal distribution with these two quantiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    median: f64,
    ninth_decile: f64,
}

impl Estimate {
    /// Creates an estimate from a median in seconds, with nothing said of its error.
    pub fn seconds(median: f64) -> Estimate {
        Estimate { median, ninth_decile: median }
    }

    /// Sets the length in seconds that one request in ten exceeds. One below the median says nothing of the error.
    pub fn ninth_decile(self, seconds: f64) -> Estimate {
        Estimate { ninth_decile: seconds, ..self }
    }

    /// Returns the median in nanoseconds and the standard deviation of the logarithm, or none if that is no length.
    pub(crate) fn parameters(self) -> Option<(f64, f64)> {
        let is_length = |seconds: f64| seconds > 0.0 && seconds < LONGEST;
        if !is_length(self.median) {
            return None;
        }
        let spread = (self.ninth_decile / self.median).ln() / NINTH_DECILE;
        Some((self.median * 1e9, if is_length(self.ninth_decile) { spread.max(0.0) } else { 0.0 }))
    }
}

impl From<Duration> for Estimate {
    fn from(median: Duration) -> Estimate {
        Estimate::seconds(median.as_secs_f64())
    }
}

/// Longest length that is believed: a century, in seconds.
const LONGEST: f64 = 3.2e9;

/// Number of standard deviations from the median to the ninth decile of a normal distribution.
const NINTH_DECILE: f64 = 1.281_551_565_544_600_4;

/// Why a request was not served, or why one that runs should end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reason {
    /// Its due time has passed.
    Late,
    /// By its estimate it would be late.
    PredictedLate,
    /// There is no room for it.
    Full,
    /// Whoever asked has gone.
    Cancelled,
    /// The dispatcher is shutting down.
    Shutdown,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 5] =
        [Reason::Late, Reason::PredictedLate, Reason::Full, Reason::Cancelled, Reason::Shutdown];

    /// Returns the reason in one word, for metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Late => "late",
            Reason::PredictedLate => "predicted-late",
            Reason::Full => "full",
            Reason::Cancelled => "cancelled",
            Reason::Shutdown => "shutdown",
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A request that is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the request is not served: {reason}")]
#[non_exhaustive]
pub struct Shed<T> {
    /// Why.
    pub reason: Reason,
    /// Time in which what waits now can be served, or has left because of its due time.
    pub retry_after: Duration,
    /// What was submitted with the request.
    pub payload: T,
}

/// What became of a request. Every request has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// Finished by its due time.
    Met,
    /// Finished after its due time.
    Late,
    /// Its worker panicked, was lost, or reported a failure.
    Failed,
    /// Ended by its worker because of the cancellation token.
    Cancelled,
    /// Never begun.
    Shed(Reason),
}
