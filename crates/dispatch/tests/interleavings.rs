//! Contract of the locks and wakers: in any interleaving of threads, every request is answered exactly once, nobody
//! waits for ever, and no more requests run than there are workers.
//!
//! The dispatcher's own sources are compiled here over shuttle's locks and threads, which try many interleavings.

#![allow(dead_code, unused_imports, missing_docs)]

#[path = "../src/builder.rs"]
mod builder;
#[path = "../src/clock.rs"]
mod clock;
#[path = "../src/contest.rs"]
mod contest;
#[path = "../src/dispatcher.rs"]
mod dispatcher;
#[path = "../src/estimator.rs"]
mod estimator;
#[path = "../src/gate.rs"]
mod gate;
#[path = "../src/guard.rs"]
mod guard;
#[path = "../src/handles.rs"]
mod handles;
#[path = "../src/plan.rs"]
mod plan;
#[path = "../src/policy.rs"]
mod policy;
#[path = "../src/queue.rs"]
mod queue;
#[path = "../src/regressor.rs"]
mod regressor;
#[path = "../src/request.rs"]
mod request;
#[path = "../src/sketch.rs"]
mod sketch;
#[path = "../src/state.rs"]
mod state;
#[path = "../src/stats.rs"]
mod stats;
#[path = "../src/timer.rs"]
mod timer;
#[path = "../src/waiters.rs"]
mod waiters;

/// Takes the place of the module of this name.
mod sync {
    pub(crate) use shuttle::sync::{Mutex, MutexGuard};
    pub(crate) use thread::Thread;

    /// Parked threads that never wake by themselves: shuttle's own ones may, and would hide a wake-up that is lost.
    pub(crate) mod thread {
        use std::sync::Arc;

        use shuttle::sync::{Condvar, Mutex};

        #[derive(Clone, Default)]
        pub(crate) struct Thread(Arc<(Mutex<bool>, Condvar)>);

        shuttle::thread_local! {
            static CURRENT: Thread = Thread::default();
        }

        impl Thread {
            pub fn unpark(&self) {
                *self.0.0.lock().unwrap() = true;
                self.0.1.notify_one();
            }
        }

        pub(crate) fn current() -> Thread {
            CURRENT.with(Thread::clone)
        }

        pub(crate) fn park() {
            let Thread(token) = current();
            let mut is_woken = token.0.lock().unwrap();
            while !*is_woken {
                is_woken = token.1.wait(is_woken).unwrap();
            }
            *is_woken = false;
        }
    }
}

use builder::{BuildError, Builder};
use clock::{Clock, SimulatedClock, SystemClock};
use dispatcher::Dispatcher;
use estimator::Estimator;
use gate::Gate;
use guard::Switch;
use handles::{Running, Ticket, Token};
use policy::Policy;
use request::{Estimate, Outcome, Reason, Request, Shed};
use stats::Stats;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shuttle::thread;

const INTERLEAVINGS: usize = 2_000;

fn dispatcher(workers: usize, capacity: usize) -> (Dispatcher<usize>, SimulatedClock) {
    let clock = SimulatedClock::new();
    let settings = Dispatcher::builder().workers(workers).capacity(capacity).policy(Policy::Edf).clock(clock.clone());
    (settings.build().unwrap(), clock)
}

#[test]
fn workers_and_submitters_answer_every_request_once() {
    shuttle::check_random(
        || {
            let (dispatcher, _) = dispatcher(2, 10);
            let busy = Arc::new(AtomicUsize::new(0));
            let workers: Vec<_> = (0..3)
                .map(|worker| {
                    let (dispatcher, busy) = (dispatcher.clone(), busy.clone());
                    thread::spawn(move || {
                        let mut served = Vec::new();
                        while let Some((payload, running)) = dispatcher.next_blocking() {
                            assert!(busy.fetch_add(1, Ordering::SeqCst) < 2, "more run than there are workers");
                            served.push(payload);
                            busy.fetch_sub(1, Ordering::SeqCst);
                            if worker == 0 { drop(running) } else { _ = running.finish() }
                        }
                        served
                    })
                })
                .collect();
            let submitters: Vec<_> = (0..2)
                .map(|submitter| {
                    let dispatcher = dispatcher.clone();
                    thread::spawn(move || {
                        let tickets =
                            (0..2).map(|number| dispatcher.submit(Request::new(), 2 * submitter + number).unwrap());
                        tickets.collect::<Vec<_>>().into_iter().map(Ticket::wait).collect::<Vec<Outcome>>()
                    })
                })
                .collect();
            for submitter in submitters {
                let outcomes = submitter.join().unwrap();
                assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Met | Outcome::Failed)));
            }
            dispatcher.shutdown();
            dispatcher.wait_drained();
            let mut served: Vec<usize> = workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect();
            served.sort_unstable();
            assert_eq!(served, [0, 1, 2, 3]);
        },
        INTERLEAVINGS,
    );
}

#[test]
fn cancellation_shutdown_and_due_times_race_with_workers() {
    shuttle::check_random(
        || {
            let (dispatcher, clock) = dispatcher(1, 2);
            let worker = thread::spawn({
                let dispatcher = dispatcher.clone();
                move || {
                    let mut served = 0;
                    while let Some((_, running)) = dispatcher.next_blocking() {
                        if running.token().is_cancelled() {
                            running.give_up();
                        } else {
                            running.finish();
                        }
                        served += 1;
                    }
                    served
                }
            });
            let due = clock.now() + Duration::from_millis(5);
            let tickets: Vec<_> =
                (0..4).filter_map(|payload| dispatcher.submit(Request::new().due(due), payload).ok()).collect();
            let other = thread::spawn({
                let (dispatcher, clock) = (dispatcher.clone(), clock.clone());
                move || {
                    clock.advance(Duration::from_millis(5));
                    dispatcher.tick();
                    dispatcher.shutdown();
                }
            });
            tickets.iter().for_each(Ticket::cancel);
            let outcomes: Vec<Outcome> = tickets.into_iter().map(Ticket::wait).collect();
            other.join().unwrap();
            let served = worker.join().unwrap();
            let shed = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Shed(_))).count();
            assert_eq!(outcomes.len(), shed + served);
            let stats = dispatcher.stats();
            assert_eq!(stats.submitted, stats.met + stats.late + stats.cancelled + stats.all_shed());
        },
        INTERLEAVINGS,
    );
}

/// A worker that has been woken and goes away hands its turn on.
#[test]
fn a_wake_up_is_not_lost_with_whom_it_woke() {
    shuttle::check_random(
        || {
            let (dispatcher, _) = dispatcher(1, 10);
            let patient = thread::spawn({
                let dispatcher = dispatcher.clone();
                move || dispatcher.next_blocking().map(|(payload, running)| (payload, running.finish()))
            });
            let fickle = thread::spawn({
                let dispatcher = dispatcher.clone();
                move || {
                    let mut next = std::pin::pin!(dispatcher.next());
                    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                    match next.as_mut().poll(&mut context) {
                        std::task::Poll::Ready(Some((payload, running))) => Some((payload, running.finish())),
                        _ => None,
                    }
                }
            });
            let ticket = dispatcher.submit(Request::new(), 7).unwrap();
            let was_fickle = fickle.join().unwrap().is_some();
            assert_eq!(ticket.wait(), Outcome::Met);
            dispatcher.shutdown();
            assert_eq!(patient.join().unwrap().is_some(), !was_fickle);
        },
        INTERLEAVINGS,
    );
}

#[test]
fn permits_are_neither_lost_nor_given_twice() {
    shuttle::check_random(
        || {
            let clock = SimulatedClock::new();
            let gate = Gate::new(Dispatcher::builder().workers(1).policy(Policy::Lifo).clock(clock)).unwrap();
            let inside = Arc::new(AtomicUsize::new(0));
            let guests: Vec<_> = (0..4)
                .map(|guest| {
                    let (gate, inside) = (gate.clone(), inside.clone());
                    thread::spawn(move || {
                        let enter = gate.enter(Request::new());
                        if guest == 0 {
                            return drop(enter);
                        }
                        let permit = waiters::block_on(enter).map_err(|shed| shed.reason).unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two inside");
                        inside.fetch_sub(1, Ordering::SeqCst);
                        if guest == 1 { drop(permit) } else { _ = permit.finish() }
                    })
                })
                .collect();
            guests.into_iter().for_each(|guest| guest.join().unwrap());
            let stats = gate.stats();
            assert_eq!((stats.met, stats.failed, stats.running, stats.queued), (2, 1, 0, 0));
            assert_eq!(stats.cancelled + stats.all_shed(), 1);
        },
        INTERLEAVINGS,
    );
}

#[test]
fn places_in_the_queue_are_handed_on() {
    shuttle::check_random(
        || {
            let gate = Gate::new(Dispatcher::builder().capacity(1).clock(SimulatedClock::new())).unwrap();
            let guests: Vec<_> = (0..3)
                .map(|_| {
                    let gate = gate.clone();
                    thread::spawn(move || {
                        let place = waiters::block_on(gate.reserve());
                        let permit = waiters::block_on(gate.enter_reserved(Request::new(), place));
                        permit.map_err(|shed| shed.reason).unwrap().finish();
                    })
                })
                .collect();
            guests.into_iter().for_each(|guest| guest.join().unwrap());
            assert_eq!(gate.stats().met, 3);
        },
        INTERLEAVINGS,
    );
}
