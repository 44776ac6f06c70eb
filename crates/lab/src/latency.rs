//! How long a scheduler itself takes: a wrapper that times every decision of the one inside. Only this reads a clock, and
//! only when asked, so simulations stay deterministic.

use std::time::Instant;

use temponet_sim::Histogram;
use temponet_task::{Assignment, NotApplicable, Scheduler, System, SystemView};

/// Times the decisions of `inner`.
pub struct Timed<S> {
    inner: S,
    /// Decision latencies in ns.
    pub latencies: Histogram,
}

impl<S: Scheduler> Timed<S> {
    /// Around `inner`, with no decision timed yet.
    pub fn new(inner: S) -> Timed<S> {
        Timed { inner, latencies: Histogram::default() }
    }
}

impl<S: Scheduler> Scheduler for Timed<S> {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.inner.start(system)
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let begin = Instant::now();
        self.inner.decide(view, assignment);
        self.latencies.record(begin.elapsed().as_nanos() as i64);
    }

    fn most_ready(&self) -> usize {
        self.inner.most_ready()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.inner.counters()
    }
}
