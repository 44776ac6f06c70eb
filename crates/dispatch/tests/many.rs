//! Contract of bounded memory and of counts: 100 000 requests on real threads, some cancelled, some lost, some too many;
//! every one is answered once, and memory does not grow. `examples/million` does the same with a million.

#[path = "../examples/million/traffic.rs"]
mod traffic;

use std::sync::{Mutex, PoisonError};

use temponet_dispatch::{Dispatcher, Estimator, Policy, Request};

/// The tests measure the memory of one program, so one runs at a time.
static MEMORY: Mutex<()> = Mutex::new(());

/// 160 MB of them, of which the regression reads two in each request.
#[test]
fn features_that_nobody_reads_are_not_kept_while_requests_wait() {
    let _alone = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    for estimator in [Estimator::Given, Estimator::Regressor { features: 2 }] {
        let dispatcher = Dispatcher::builder().policy(Policy::Fcfs).estimator(estimator).build().unwrap();
        let before = traffic::resident();
        (0..2_000).for_each(|number| {
            let request = Request::new().features(vec![1.5; 10_000]);
            dispatcher.submit(request, number).unwrap();
        });
        assert_eq!(dispatcher.stats().queued, 2_000);
        if let Some((before, after)) = before.zip(traffic::resident()) {
            assert!(after < before + (40 << 20), "{estimator:?}: {before} bytes, then {after}");
        }
    }
}

#[test]
fn a_hundred_thousand_requests_are_answered_once_in_bounded_memory() {
    let _alone = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let traffic::Report { stats, answers, memory } = traffic::run(100_000);
    assert_eq!(answers, 100_000);
    assert_eq!(stats.submitted, 100_000);
    assert_eq!((stats.queued, stats.running), (0, 0));
    let outcomes = stats.met + stats.late + stats.failed + stats.cancelled + stats.all_shed();
    assert_eq!(outcomes, 100_000);
    assert!(stats.met > 1_000 && stats.failed > 100 && stats.all_shed() > 100, "{stats:?}");
    if let [early, .., end] = memory[..] {
        assert!(end < early + (8 << 20), "{memory:?} bytes");
    }
}
