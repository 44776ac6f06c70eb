//! Clocks. A dispatcher reads one monotonic clock and no other; tests give it one that they move.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A clock that never goes back.
pub trait Clock: Send + Sync + 'static {
    /// Returns the present time.
    fn now(&self) -> Instant;
}

/// The monotonic clock of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }
}

/// A clock that stands still until it is moved. Clones show the same time.
///
/// ```
/// use std::time::Duration;
/// use temponet_dispatch::{Clock, SimulatedClock};
///
/// let clock = SimulatedClock::new();
/// let start = clock.now();
/// clock.advance(Duration::from_millis(5));
/// assert_eq!(clock.now() - start, Duration::from_millis(5));
/// ```
#[derive(Clone, Debug)]
pub struct SimulatedClock {
    start: Instant,
    elapsed: Arc<AtomicU64>,
}

impl SimulatedClock {
    /// Creates a clock.
    pub fn new() -> SimulatedClock {
        SimulatedClock { start: Instant::now(), elapsed: Arc::default() }
    }

    /// Moves the clock forward, at most to five centuries after its start.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        // A clock that wrapped would go back. There is always a next value, so this never fails.
        _ = self.elapsed.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |elapsed| Some(elapsed.saturating_add(by)));
    }
}

impl Default for SimulatedClock {
    fn default() -> SimulatedClock {
        SimulatedClock::new()
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Instant {
        self.start + Duration::from_nanos(self.elapsed.load(Ordering::SeqCst))
    }
}
