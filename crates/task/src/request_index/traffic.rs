//! What a server's traffic is like of late, as far as an index reads it.

use super::{IndexedRequest, sound_value, window};

/// Number of requests after which one counts for 1/e.
const MEMORY: f64 = 200.0;
/// The same for the load, which changes faster.
const MEMORY_OF_LOAD: f64 = 64.0;

/// Fading means of the last requests. Times are nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    last_arrival: Option<u64>,
    /// Time between two arrivals.
    gap: Fading,
    /// Length to expect of a request, by the same memory as the time between two.
    work: Fading,
    length: Fading,
    pub log_length: Fading,
    pub log_window: Fading,
    pub log_value: Fading,
    /// Logarithm of the time to the due time relative to the length.
    pub tightness: Fading,
}

impl Traffic {
    pub fn new() -> Traffic {
        let fading = Fading::new(MEMORY);
        Traffic {
            last_arrival: None,
            gap: Fading::new(MEMORY_OF_LOAD),
            work: Fading::new(MEMORY_OF_LOAD),
            length: fading,
            log_length: fading,
            log_window: fading,
            log_value: fading,
            tightness: fading,
        }
    }

    /// Takes note of a request whose length is expected to have this correction of its logarithm, and this spread.
    pub fn observe(&mut self, request: &IndexedRequest, correction: f64, spread: f64) {
        if let Some(last) = self.last_arrival {
            self.gap.add(request.arrival.saturating_sub(last) as f64);
        }
        self.last_arrival = Some(request.arrival);
        self.log_value.add(libm::log(sound_value(request.value)));
        let has_due = request.due < u64::MAX;
        if request.median > 0 {
            let median = request.median as f64 * libm::exp(correction);
            let expected = median * libm::exp(spread * spread / 2.0);
            self.work.add(expected);
            self.length.add(expected);
            if has_due {
                self.tightness.add(libm::log(window(request) / median));
            }
        }
        // Logarithms of ratios to the mean length, which changes slowly.
        let unit = self.mean_length();
        if request.median > 0 {
            self.log_length.add(libm::log(request.median as f64 / unit) + correction);
        }
        if has_due {
            self.log_window.add(libm::log(window(request) / unit));
        }
    }

    /// Mean length to expect, in nanoseconds; a second while nothing is known.
    pub fn mean_length(&self) -> f64 {
        if self.length.count > 0.0 { self.length.mean.max(1.0) } else { 1e9 }
    }

    /// Work that comes per time and slot; 1 while nothing is known.
    pub fn load(&self, slots: f64) -> f64 {
        let is_known = self.work.count > 0.0 && self.gap.mean > 0.0;
        if is_known { (self.work.mean / (self.gap.mean * slots)).clamp(1e-3, 1e3) } else { 1.0 }
    }
}

/// Mean and standard deviation of numbers, of which old ones fade.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fading {
    memory: f64,
    count: f64,
    mean: f64,
    variance: f64,
}

impl Fading {
    fn new(memory: f64) -> Fading {
        Fading { memory, count: 0.0, mean: 0.0, variance: 0.0 }
    }

    fn add(&mut self, value: f64) {
        self.count = (self.count + 1.0).min(self.memory);
        let weight = 1.0 / self.count;
        let difference = value - self.mean;
        self.mean += weight * difference;
        self.variance = (1.0 - weight) * (self.variance + weight * difference * difference);
    }

    pub fn mean(&self) -> f64 {
        self.mean
    }

    pub fn deviation(&self) -> f64 {
        libm::sqrt(self.variance)
    }
}
