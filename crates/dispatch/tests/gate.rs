//! Contract of the gate: permits follow the policy, and those who go away take nothing with them.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use temponet_dispatch::{Clock, Dispatcher, Gate, Policy, Reason, Request, SimulatedClock};

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn gate(policy: Policy, capacity: usize) -> (Gate, SimulatedClock) {
    let clock = SimulatedClock::new();
    let settings = Dispatcher::builder().policy(policy).capacity(capacity).clock(clock.clone());
    (Gate::new(settings).unwrap(), clock)
}

#[test]
fn permits_are_given_in_the_order_of_the_rule() {
    let (gate, _) = gate(Policy::Lifo, 10);
    let mut first = gate.enter(Request::new());
    let Poll::Ready(Ok(permit)) = poll(&mut first) else { panic!("the gate is free") };
    let [mut second, mut third] = [(); 2].map(|()| gate.enter(Request::new()));
    assert!(poll(&mut second).is_pending() && poll(&mut third).is_pending());
    permit.finish();
    assert!(poll(&mut second).is_pending());
    let Poll::Ready(Ok(permit)) = poll(&mut third) else { panic!("the newest is next") };
    drop(permit);
    assert!(poll(&mut second).is_ready());
    assert_eq!((gate.stats().met, gate.stats().failed), (1, 2));
}

#[test]
fn those_who_go_away_make_way() {
    let (gate, _) = gate(Policy::Fcfs, 10);
    let mut first = gate.enter(Request::new());
    let Poll::Ready(Ok(permit)) = poll(&mut first) else { panic!("the gate is free") };
    let [mut waits, granted] = [(); 2].map(|()| gate.enter(Request::new()));
    let mut last = gate.enter(Request::new());
    assert!(poll(&mut waits).is_pending());
    drop(waits);
    assert_eq!(gate.stats().shed(Reason::Cancelled), 1);
    permit.finish();
    // It has its permit, and goes without having seen it.
    drop(granted);
    assert_eq!((gate.stats().shed(Reason::Cancelled), gate.stats().cancelled), (2, 0), "nobody began it");
    assert!(matches!(poll(&mut last), Poll::Ready(Ok(_))));
}

#[test]
fn those_who_are_shed_are_told_why() {
    let (gate, clock) = gate(Policy::Edf, 1);
    let due = |ms| Request::new().due(clock.now() + Duration::from_millis(ms));
    let mut first = gate.enter(Request::new());
    let Poll::Ready(Ok(_permit)) = poll(&mut first) else { panic!("the gate is free") };
    let mut waits = gate.enter(due(5));
    let reason = |found: Poll<Result<_, temponet_dispatch::Shed<()>>>| match found {
        Poll::Ready(found) => found.map(|_: temponet_dispatch::Permit| ()).map_err(|shed| Some(shed.reason)),
        Poll::Pending => Err(None),
    };
    assert_eq!(reason(poll(&mut gate.enter(due(9)))), Err(Some(Reason::Full)));
    assert_eq!(reason(poll(&mut waits)), Err(None));
    clock.advance(Duration::from_millis(5));
    gate.dispatcher().tick();
    assert_eq!(reason(poll(&mut waits)), Err(Some(Reason::Late)));
    gate.dispatcher().shutdown();
    assert_eq!(reason(poll(&mut gate.enter(due(9)))), Err(Some(Reason::Shutdown)));
}

#[test]
fn those_who_reserve_wait_for_room() {
    let (gate, _) = gate(Policy::Fcfs, 1);
    let mut serve = gate.enter(Request::new());
    let Poll::Ready(Ok(permit)) = poll(&mut serve) else { panic!("the gate is free") };
    let Poll::Ready(place) = poll(&mut gate.reserve()) else { panic!("there is room") };
    let mut more = gate.reserve();
    assert!(poll(&mut more).is_pending());
    let mut waits = gate.enter_reserved(Request::new(), place);
    assert!(poll(&mut waits).is_pending() && poll(&mut more).is_pending());
    permit.finish();
    assert!(poll(&mut more).is_ready(), "what begins leaves its place");
    assert!(matches!(poll(&mut waits), Poll::Ready(Ok(_))));
}

/// Under this rule nobody waits in the queue, so a place is one of those that are served.
#[test]
fn whoever_reserves_a_place_is_not_rejected_for_being_one_too_many() {
    let (gate, _) = gate(Policy::RejectWhenBusy { queue: 0 }, 10);
    let Poll::Ready(place) = poll(&mut gate.reserve()) else { panic!("there is room") };
    let mut first = gate.enter_reserved(Request::new(), place);
    let Poll::Ready(Ok(permit)) = poll(&mut first) else { panic!("the gate is free") };
    let mut reserve = gate.reserve();
    assert!(poll(&mut reserve).is_pending(), "all are busy");
    permit.finish();
    let Poll::Ready(place) = poll(&mut reserve) else { panic!("there is room again") };
    assert!(matches!(poll(&mut gate.enter_reserved(Request::new(), place)), Poll::Ready(Ok(_))));
}

#[test]
fn a_permit_that_is_seen_after_the_due_time_is_none() {
    for cancels in [true, false] {
        let clock = SimulatedClock::new();
        let settings = Dispatcher::builder().policy(Policy::Fcfs).cancel_when_due(cancels).clock(clock.clone());
        let gate = Gate::new(settings).unwrap();
        let mut sleeps = gate.enter(Request::new().due(clock.now() + Duration::from_millis(5)));
        let mut next = gate.enter(Request::new());
        clock.advance(Duration::from_millis(5));
        let Poll::Ready(Err(shed)) = poll(&mut sleeps) else { panic!("it is late") };
        assert_eq!((shed.reason, gate.stats().shed(Reason::Late)), (Reason::Late, 1));
        assert!(matches!(poll(&mut next), Poll::Ready(Ok(_))), "its permit is free");
    }
}
