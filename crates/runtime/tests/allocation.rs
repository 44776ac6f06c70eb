//! Contract: after a warm-up, a round of the dispatcher allocates nothing: neither the scheduler's decision, nor
//! releases, completions, charging and records around it. This is a test binary of its own because it counts all
//! allocations.

#[path = "../../infer/tests/allocation/counting.rs"]
mod counting;

use std::sync::{Arc, Mutex};

use counting::allocations;
use temponet_runtime::{Runtime, Scheduler, Time};
use temponet_task::{Assignment, SystemView};

/// Writes down the number of allocations so far at the beginning and at the end of every decision.
struct Watched<S> {
    inner: S,
    seen: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl<S: Scheduler> temponet_task::Wrapper for Watched<S> {
    temponet_task::wraps!(inner: S);

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let begin = allocations();
        self.inner.decide(view, assignment);
        self.seen.lock().unwrap().push((begin, allocations()));
    }
}

#[test]
fn rounds_of_the_dispatcher_do_not_allocate() {
    let ms = Time::from_ms;
    for name in ["edf", "mh-edf", "shield:mh-edf"] {
        let seen = Arc::new(Mutex::new(Vec::with_capacity(100_000)));
        let scheduler = Watched { inner: temponet_sched::build(name).unwrap(), seen: seen.clone() };
        let mut runtime = Runtime::new().scheduler(scheduler);
        for task in 1..=6 {
            runtime = runtime.task(format!("t{task}"), ms(5 + 3 * task), ms(2 + task), |_| {}).bcet(ms(1));
        }
        // Overloaded: jobs are preempted, aborted and never started.
        let report = runtime.run_virtual(ms(4_000), |_, number| ms(2 + number % 5)).unwrap();
        assert!(report.metrics.missed() > 50 && report.metrics.jobs.met > 50);
        let seen = seen.lock().unwrap();
        assert!(seen.len() > 500 && seen[0].0 > 0, "{name}: the counter counts");
        // Where more jobs are ready or leave at once than ever before, lists grow; after three quarters they have met
        // the most.
        let later = &seen[seen.len() / 4 * 3..];
        let around: u64 = later.windows(2).map(|pair| pair[1].0 - pair[0].1).sum();
        let within: u64 = later.iter().map(|(begin, end)| end - begin).sum();
        assert_eq!((around, within), (0, 0), "{name}: {} rounds", later.len());
    }
}
