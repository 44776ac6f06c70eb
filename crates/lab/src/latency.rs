//! The latency of a scheduler: a wrapper that times every decision of the scheduler inside.
//!
//! During a simulation only this wrapper reads a clock, and only if the user asks for it, so simulations stay
//! deterministic.

use std::time::Instant;

use temponet_sim::Histogram;
use temponet_task::{Assignment, Costs, Scheduler, SystemView, TaskSet, Time};

/// Wraps a scheduler and times its decisions.
pub struct Timed<S> {
    inner: S,
    /// Decision latencies, in nanoseconds.
    pub latencies: Histogram,
}

impl<S: Scheduler> Timed<S> {
    /// Wraps `inner`, with no decision timed yet.
    pub fn new(inner: S) -> Timed<S> {
        Timed { inner, latencies: Histogram::default() }
    }

    /// Returns the wrapped scheduler.
    pub fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S: Scheduler> temponet_task::Wrapper for Timed<S> {
    temponet_task::wraps!(inner: S);

    /// Times the decision. Watching is not timed: it takes no decision.
    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let begin = Instant::now();
        self.inner.decide(view, assignment);
        self.latencies.record(begin.elapsed().as_nanos() as i64);
    }
}

/// Returns the set with a scheduler's median latency added to the cost of each decision. A second run on it shows what
/// the scheduler is worth when its own decisions take time. The result is as random as the machine on which the latency
/// was measured.
pub fn charged(set: &TaskSet, latencies: &Histogram) -> TaskSet {
    let median = latencies.quantile(0.5).unwrap_or(0).max(0);
    let mut set = set.clone();
    set.system.set_costs(Costs { decision: set.costs().decision + Time(median as u64), ..*set.costs() });
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_sim::{Unobserved, simulate};
    use temponet_task::Task;

    /// Latencies must not merely stand beside results that ignore them.
    #[test]
    fn a_scheduler_pays_for_its_own_decisions() {
        let ms = Time::from_ms;
        let set = TaskSet::new("s", vec![Task::periodic("a", ms(4), ms(2)), Task::periodic("b", ms(8), ms(4))], 1);
        let met = |set: &TaskSet| {
            let mut edf = temponet_sched::build("edf").unwrap();
            simulate(set, 1, ms(800), &mut *edf, &mut Unobserved).unwrap().jobs.compliance()
        };
        let mut latencies = Histogram::default();
        assert_eq!(charged(&set, &latencies).costs().decision, Time::ZERO);
        for latency in [1_000, 500_000, 90_000_000] {
            latencies.record(latency);
        }
        let charged = charged(&set, &latencies);
        // Histograms keep only a few digits.
        assert!((450_000..550_000).contains(&charged.costs().decision.0), "{}", charged.costs().decision);
        assert!(met(&set) == 1.0 && met(&charged) < 0.9, "{}", met(&charged));
    }
}
