//! Contract of bounded memory and of counts: 100 000 requests on real threads, some cancelled, some lost, some too many;
//! every one is answered once, and memory does not grow. `examples/million` does the same with a million.

#[path = "../examples/million/traffic.rs"]
mod traffic;

#[test]
fn a_hundred_thousand_requests_are_answered_once_in_bounded_memory() {
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
