//! How long a scheduler itself takes: a wrapper that times every decision of the one inside. Only this reads a clock, and
//! only when asked, so simulations stay deterministic.

use std::time::Instant;

use temponet_sim::Histogram;
use temponet_task::{Assignment, NotApplicable, Scheduler, System, SystemView, TaskSet, Time};

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

    /// The one inside.
    pub fn inner(&self) -> &S {
        &self.inner
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

/// The set with a scheduler's measured median latency charged to each of its decisions, on top of what decisions cost already: a second run on
/// it says what the scheduler is worth when its own thinking takes time. That is as random as the machine it was measured on.
pub fn charged(set: &TaskSet, latencies: &Histogram) -> TaskSet {
    let median = latencies.quantile(0.5).unwrap_or(0).max(0);
    let mut set = set.clone();
    set.costs.decision += Time(median as u64);
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_sim::{Unobserved, simulate};
    use temponet_task::Task;

    /// Latencies were shown beside results that took no notice of them.
    #[test]
    fn a_scheduler_pays_for_its_own_decisions() {
        let ms = Time::from_ms;
        let set = TaskSet::new("s", vec![Task::periodic("a", ms(4), ms(2)), Task::periodic("b", ms(8), ms(4))], 1);
        let met = |set: &TaskSet| {
            let mut edf = temponet_sched::build("edf").unwrap();
            simulate(set, 1, ms(800), &mut *edf, &mut Unobserved).unwrap().jobs.compliance()
        };
        let mut latencies = Histogram::default();
        assert_eq!(charged(&set, &latencies).costs.decision, Time::ZERO);
        for latency in [1_000, 500_000, 90_000_000] {
            latencies.record(latency);
        }
        let charged = charged(&set, &latencies);
        // Histograms keep a few digits.
        assert!((450_000..550_000).contains(&charged.costs.decision.0), "{}", charged.costs.decision);
        assert!(met(&set) == 1.0 && met(&charged) < 0.9, "{}", met(&charged));
    }
}
