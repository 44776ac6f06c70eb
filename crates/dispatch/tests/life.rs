//! Contract of a request's life: it is answered exactly once, whatever its worker and its submitter do.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use temponet_dispatch::{
    BuildError, Builder, Clock, Dispatcher, Estimate, Estimator, Outcome, Policy, Reason, Request, SimulatedClock,
};

const MS: Duration = Duration::from_millis(1);

fn simulated(policy: Policy) -> (Builder<u32>, SimulatedClock) {
    let clock = SimulatedClock::new();
    (Dispatcher::builder().policy(policy).clock(clock.clone()), clock)
}

fn due(clock: &SimulatedClock, ms: u32) -> Request {
    Request::new().due(clock.now() + ms * MS)
}

#[test]
fn a_request_is_met_until_its_due_time_and_late_after_it() {
    let (builder, clock) = simulated(Policy::Fcfs);
    let dispatcher = builder.build().unwrap();
    for (length, expected) in [(5, Outcome::Met), (10, Outcome::Met), (11, Outcome::Late)] {
        let ticket = dispatcher.submit(due(&clock, 10), 0).unwrap();
        let (_, running) = dispatcher.try_next().unwrap();
        assert!(dispatcher.try_next().is_none() && ticket.outcome().is_none());
        clock.advance(length * MS);
        assert_eq!(running.token().is_cancelled(), length >= 10);
        assert_eq!((running.finish(), ticket.wait()), (expected, expected));
    }
}

#[test]
fn what_is_due_in_the_past_is_shed_at_once() {
    let (builder, clock) = simulated(Policy::Edf);
    let dispatcher = builder.build().unwrap();
    clock.advance(5 * MS);
    let long_ago = clock.now().checked_sub(Duration::from_secs(3)).unwrap_or(clock.now());
    for past in [clock.now(), clock.now() - MS, long_ago] {
        let shed = dispatcher.submit(Request::new().due(past), 7).unwrap_err();
        assert_eq!((shed.reason, shed.payload), (Reason::Late, 7));
    }
    assert_eq!(dispatcher.stats().shed(Reason::Late), 3);
}

#[test]
fn tokens_fire_at_due_times_unless_that_is_off() {
    for cancels in [true, false] {
        let (builder, clock) = simulated(Policy::Fcfs);
        let dispatcher = builder.workers(2).cancel_when_due(cancels).build().unwrap();
        let tickets = [10, 20].map(|ms| dispatcher.submit(due(&clock, ms), 0).unwrap());
        let running = [(); 2].map(|()| dispatcher.try_next().unwrap().1);
        let mut waits = std::pin::pin!(running[0].token().cancelled());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(waits.as_mut().poll(&mut context).is_pending());
        clock.advance(10 * MS);
        assert_eq!(dispatcher.tick(), cancels.then_some(10 * MS));
        assert_eq!(waits.as_mut().poll(&mut context).is_ready(), cancels);
        assert_eq!(running[0].token().reason(), cancels.then_some(Reason::Late));
        assert_eq!(running[1].token().reason(), None);
        let [first, second] = running;
        first.give_up();
        tickets[1].cancel();
        assert_eq!(second.token().reason(), Some(Reason::Cancelled), "withdrawn while it ran");
        second.give_up();
        assert_eq!(tickets.map(|ticket| ticket.wait()), [Outcome::Cancelled; 2]);
    }
}

#[test]
fn a_worker_that_panics_or_is_lost_frees_its_place() {
    let (builder, _) = simulated(Policy::Fcfs);
    let dispatcher = builder.build().unwrap();
    let tickets = [1, 2, 3].map(|payload| dispatcher.submit(Request::new(), payload).unwrap());
    let panics = catch_unwind(AssertUnwindSafe(|| {
        let _running = dispatcher.try_next().unwrap();
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(panics.is_err());
    drop(dispatcher.try_next().unwrap());
    dispatcher.try_next().unwrap().1.fail();
    assert_eq!(tickets.map(|ticket| ticket.wait()), [Outcome::Failed; 3]);
    assert_eq!((dispatcher.stats().failed, dispatcher.stats().running), (3, 0));
}

#[test]
fn estimates_may_change_while_a_request_waits_or_runs() {
    let (builder, clock) = simulated(Policy::EdfShed { q: 0.5 });
    let dispatcher = builder.build().unwrap();
    let short = Estimate::from(2 * MS);
    let running = dispatcher.submit(due(&clock, 10).estimate(short), 0).unwrap();
    let waiting = dispatcher.submit(due(&clock, 20).estimate(short), 1).unwrap();
    let (_, first) = dispatcher.try_next().unwrap();
    waiting.update_estimate(Estimate::from(30 * MS));
    assert_eq!(waiting.outcome(), Some(Outcome::Shed(Reason::PredictedLate)));
    first.update_estimate(Estimate::from(9 * MS));
    assert!(!first.token().is_cancelled());
    running.update_estimate(Estimate::from(11 * MS));
    assert_eq!(first.token().reason(), Some(Reason::PredictedLate));
    first.give_up();
    waiting.update_estimate(short);
    running.update_estimate(short);
    assert_eq!(running.wait(), Outcome::Cancelled);
}

#[test]
fn lengths_of_a_class_are_learned_and_those_cut_off_are_not_forgotten() {
    let (builder, clock) = simulated(Policy::EdfShed { q: 0.5 });
    let dispatcher = builder.estimator(Estimator::Class).build().unwrap();
    // Two of three are withdrawn after 20 ms, and not done by then.
    for number in 0..30 {
        let ticket = dispatcher.submit(due(&clock, 1_000).class(3), 0).unwrap();
        let (_, running) = dispatcher.try_next().unwrap();
        clock.advance(if number % 3 == 0 { 4 * MS } else { 20 * MS });
        if number % 3 != 0 {
            ticket.cancel();
        }
        if running.token().is_cancelled() { running.give_up() } else { _ = running.finish() }
    }
    let refused = dispatcher.submit(due(&clock, 10).class(3), 0).unwrap_err();
    assert_eq!(refused.reason, Reason::PredictedLate);
    for odd in [f64::NAN, f64::INFINITY, 0.0, -4.0] {
        let request = due(&clock, 10).class(3).estimate(Estimate::seconds(odd)).value(odd);
        assert_eq!(dispatcher.submit(request, 0).unwrap_err().reason, Reason::PredictedLate, "{odd}");
    }
    // Now and then one is let through, to see whether that is still so.
    let through = (0..64).filter(|_| dispatcher.submit(due(&clock, 10).class(3), 0).is_ok()).count();
    assert_eq!(through, 2);
}

#[test]
fn a_full_queue_says_so_and_keeps_whom_it_would_serve_first() {
    let shed: Arc<Mutex<Vec<u32>>> = Arc::default();
    let (builder, clock) = simulated(Policy::Lifo);
    let told = shed.clone();
    let dispatcher = builder.capacity(2).on_shed(move |shed| told.lock().unwrap().push(shed.payload)).build().unwrap();
    (0..4).for_each(|payload| _ = dispatcher.submit(due(&clock, 100), payload).unwrap());
    assert_eq!(*shed.lock().unwrap(), [0, 1], "the oldest would be served last");
    let (builder, clock) = simulated(Policy::Edf);
    let dispatcher = builder.capacity(2).build().unwrap();
    (0..2).for_each(|payload| _ = dispatcher.submit(due(&clock, 10), payload).unwrap());
    let refused = dispatcher.submit(due(&clock, 100).estimate(Estimate::seconds(1.0)), 2).unwrap_err();
    assert_eq!((refused.reason, refused.payload), (Reason::Full, 2));
    assert_eq!(dispatcher.stats().shed(Reason::Full), 1);
}

#[test]
fn after_shutdown_what_runs_finishes_and_the_rest_is_answered() {
    let (builder, clock) = simulated(Policy::Fcfs);
    let dispatcher = builder.build().unwrap();
    let tickets = [0, 1].map(|payload| dispatcher.submit(due(&clock, 100), payload).unwrap());
    let (_, running) = dispatcher.try_next().unwrap();
    let waits = std::thread::spawn({
        let dispatcher = dispatcher.clone();
        move || dispatcher.next_blocking().is_none()
    });
    dispatcher.shutdown();
    assert!(waits.join().unwrap(), "whoever waits for work is told");
    assert_eq!(dispatcher.submit(due(&clock, 100), 2).unwrap_err().reason, Reason::Shutdown);
    assert!(!running.token().is_cancelled());
    let drained = std::thread::spawn({
        let dispatcher = dispatcher.clone();
        move || dispatcher.wait_drained()
    });
    running.finish();
    drained.join().unwrap();
    assert_eq!(tickets.map(|ticket| ticket.wait()), [Outcome::Met, Outcome::Shed(Reason::Shutdown)]);
}

/// With the clock of the system, a thread watches due times: nobody calls the dispatcher.
#[test]
fn due_times_pass_by_themselves() {
    let dispatcher: Dispatcher<()> = Dispatcher::builder().policy(Policy::Fcfs).build().unwrap();
    let soon = || Request::new().due(Instant::now() + 20 * MS);
    let ran = dispatcher.submit(soon(), ()).unwrap();
    let waited = dispatcher.submit(soon(), ()).unwrap();
    let worker = std::thread::spawn({
        let dispatcher = dispatcher.clone();
        move || {
            let (_, running) = dispatcher.next_blocking().unwrap();
            while !running.token().is_cancelled() {
                std::thread::yield_now();
            }
            running.give_up();
        }
    });
    assert_eq!(waited.wait(), Outcome::Shed(Reason::Late));
    assert_eq!(ran.wait(), Outcome::Cancelled);
    worker.join().unwrap();
}

#[test]
fn settings_that_cannot_be_are_errors() {
    let builder = || Dispatcher::<()>::builder();
    for workers in [0, usize::MAX, u32::MAX as usize] {
        assert!(matches!(builder().workers(workers).build().map(drop), Err(BuildError::Workers(_))), "{workers}");
    }
    assert!(matches!(builder().capacity(0).build().map(drop), Err(BuildError::Capacity(0))));
    for q in [0.0, 1.0, -0.5, f64::NAN, f64::INFINITY] {
        assert!(matches!(builder().policy(Policy::SjfShed { q }).build().map(drop), Err(BuildError::Quantile(_))));
    }
    let policy = |rules: Vec<Policy>| builder().policy(Policy::Guarded(rules)).build().map(drop);
    for features in [1_001, usize::MAX] {
        let estimator = Estimator::Regressor { features };
        assert!(matches!(builder().estimator(estimator).build().map(drop), Err(BuildError::Features(_))), "{features}");
    }
    assert!(matches!(policy(vec![]), Err(BuildError::Candidates(0))));
    assert!(matches!(policy(vec![Policy::guarded()]), Err(BuildError::Nested)));
    assert!(policy(vec![Policy::Lifo]).is_ok());
}

/// Due times and estimates of any size are taken as they are.
#[test]
fn the_greatest_numbers_do_no_harm() {
    for policy in [Policy::MhEdf { q: 0.9 }, Policy::SjfShed { q: 0.9 }, Policy::Hrrn, Policy::guarded()] {
        let (builder, clock) = simulated(policy);
        let dispatcher = builder.workers(3).build().unwrap();
        let far = clock.now().checked_add(Duration::from_secs(u64::MAX / 4)).unwrap_or(clock.now() + MS);
        for number in 0..600 {
            let seconds = [f64::MAX, 1e300, 1e-300, 0.0][number % 4];
            let estimate = Estimate::seconds(seconds).ninth_decile(f64::MAX);
            let mut request = Request::new().estimate(estimate).value([1e300, 1e-300][number % 2]);
            request.due = [None, Some(far), Some(clock.now() + MS)][number % 3];
            _ = dispatcher.submit(request, 0);
            if let Some((_, running)) = dispatcher.try_next() {
                clock.advance(MS);
                running.update_estimate(estimate);
                if number % 5 == 0 { running.give_up() } else { _ = running.finish() }
            }
        }
        let stats = dispatcher.stats();
        let left = stats.met + stats.late + stats.cancelled + stats.all_shed();
        assert_eq!(stats.submitted, left + stats.queued + stats.running);
    }
}

#[test]
fn work_that_was_handed_on_learns_that_its_request_has_gone() {
    let (builder, _) = simulated(Policy::Fcfs);
    let dispatcher = builder.workers(3).build().unwrap();
    let tickets: Vec<_> = (0..3).map(|k| dispatcher.submit(Request::new(), k).unwrap()).collect();
    let mut running: Vec<_> = (0..3).map(|_| dispatcher.try_next().unwrap().1).collect();
    let tokens: Vec<_> = running.iter().map(|running| running.token().clone()).collect();
    let (finished, given_up, dropped) = (running.pop().unwrap(), running.pop().unwrap(), running.pop().unwrap());
    finished.finish();
    given_up.give_up();
    drop(dropped);
    assert_eq!(tokens.iter().map(|token| token.is_cancelled()).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(tickets.iter().filter(|ticket| ticket.outcome() == Some(Outcome::Failed)).count(), 1);
}

#[test]
fn a_listener_that_panics_costs_no_worker_and_no_answer() {
    let (builder, clock) = simulated(Policy::Fcfs);
    let dispatcher = builder.on_shed(|_| panic!("listener")).build().unwrap();
    let late = [1, 2].map(|ms| dispatcher.submit(due(&clock, ms), 0).unwrap());
    let last = dispatcher.submit(due(&clock, 100), 9).unwrap();
    clock.advance(5 * MS);
    // Two are shed and the third one is started by the same call.
    assert!(catch_unwind(AssertUnwindSafe(|| dispatcher.try_next())).is_err());
    assert_eq!(late.map(|ticket| ticket.outcome()), [Some(Outcome::Shed(Reason::Late)); 2]);
    assert_eq!(last.outcome(), Some(Outcome::Failed), "its worker has gone");
    dispatcher.submit(due(&clock, 100), 10).unwrap();
    assert_eq!(dispatcher.try_next().map(|(payload, _)| payload), Some(10), "the place is free");
}

#[test]
fn numbers_beyond_all_bounds_are_no_lengths_and_spoil_nothing() {
    let (builder, clock) = simulated(Policy::SjfShed { q: 0.5 });
    let dispatcher = builder.estimator(Estimator::Regressor { features: 1 }).build().unwrap();
    let serve = |request: Request, ms: u32| {
        let ticket = dispatcher.submit(request, 0).unwrap();
        let (_, running) = dispatcher.try_next().unwrap();
        clock.advance(ms * MS);
        running.finish();
        ticket.wait()
    };
    for far in [1e300, f64::MAX] {
        serve(Request::new().estimate(Estimate::seconds(far)).features([far]).value(far), 10);
    }
    let stated = |request: Request, ms: u32| request.estimate(Estimate::from(ms * MS)).features([1.0]);
    for ms in [10, 100].into_iter().cycle().take(600) {
        serve(stated(Request::new(), ms), ms);
    }
    // Of what is due in 40 ms, what says that it is short is served, and what says that it is long is not.
    assert_eq!(serve(stated(due(&clock, 40), 10), 10), Outcome::Met);
    let long = || dispatcher.submit(stated(due(&clock, 40), 100), 0);
    let shed = (0..10).filter(|_| long().is_err_and(|shed| shed.reason == Reason::PredictedLate));
    assert!(shed.count() >= 8, "what is stated still counts");
}

#[test]
fn the_estimate_of_a_probe_may_change() {
    let (builder, clock) = simulated(Policy::EdfShed { q: 0.5 });
    let dispatcher = builder.estimator(Estimator::Class).build().unwrap();
    dispatcher.submit(due(&clock, 1_000), 0).unwrap();
    let (_, running) = dispatcher.try_next().unwrap();
    clock.advance(100 * MS);
    running.finish();
    // All take 100 ms as far as is known, and this one is let through to see whether that is so.
    let probe = (0..32).find_map(|_| dispatcher.submit(due(&clock, 50), 0).ok()).unwrap();
    probe.update_estimate(Estimate::from(90 * MS));
    assert_eq!(probe.outcome(), None, "it still waits");
    let (_, running) = dispatcher.try_next().unwrap();
    running.update_estimate(Estimate::from(80 * MS));
    assert!(!running.token().is_cancelled());
    clock.advance(20 * MS);
    assert_eq!((running.finish(), probe.wait()), (Outcome::Met, Outcome::Met));
}

/// Requests of two classes come in turn. Counted together, every 32nd refused one would be of the same class.
#[test]
fn every_class_is_probed() {
    let (builder, clock) = simulated(Policy::EdfShed { q: 0.5 });
    let dispatcher = builder.estimator(Estimator::Class).build().unwrap();
    for class in [0, 1] {
        dispatcher.submit(due(&clock, 1_000).class(class), 0).unwrap();
        let (_, running) = dispatcher.try_next().unwrap();
        clock.advance(100 * MS);
        running.finish();
    }
    let mut probes = [0; 2];
    for number in 0..640 {
        let class = number % 2;
        probes[class] += usize::from(dispatcher.submit(due(&clock, 50).class(class as u32), 0).is_ok());
    }
    assert_eq!(probes, [10, 10]);
}

#[test]
fn whoever_watches_a_token_is_told_that_its_request_is_finished() {
    let (builder, clock) = simulated(Policy::Fcfs);
    let dispatcher = builder.build().unwrap();
    dispatcher.submit(due(&clock, 10), 0).unwrap();
    let (_, running) = dispatcher.try_next().unwrap();
    let token = running.token().clone();
    let watch = std::thread::spawn({
        let mut waits = Box::pin(token.cancelled());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(waits.as_mut().poll(&mut context).is_pending());
        move || pollster(waits)
    });
    running.finish();
    assert_eq!(watch.join().unwrap(), None);
    clock.advance(20 * MS);
    assert!(!token.is_cancelled(), "there is nothing left to end");
    assert_eq!(pollster(Box::pin(token.cancelled())), None);
}

/// Waits for a future on this thread.
fn pollster<F: Future + Unpin>(mut future: F) -> F::Output {
    struct Unparks(std::thread::Thread);
    impl std::task::Wake for Unparks {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::task::Waker::from(Arc::new(Unparks(std::thread::current())));
    let mut context = std::task::Context::from_waker(&waker);
    let give_up = Instant::now() + Duration::from_secs(20);
    loop {
        if let std::task::Poll::Ready(found) = std::pin::Pin::new(&mut future).poll(&mut context) {
            return found;
        }
        assert!(Instant::now() < give_up, "nobody wakes it");
        std::thread::park_timeout(Duration::from_secs(1));
    }
}

#[test]
fn what_waits_is_told_to_the_listener_before_the_dispatcher_is_drained() {
    let told: Arc<Mutex<Vec<u32>>> = Arc::default();
    let (builder, clock) = simulated(Policy::Fcfs);
    let (enter, entered) = std::sync::mpsc::channel();
    let enter = Mutex::new(enter);
    let dispatcher = builder
        .on_shed({
            let told = told.clone();
            move |shed| {
                enter.lock().unwrap().send(()).unwrap();
                std::thread::sleep(50 * MS);
                told.lock().unwrap().push(shed.payload);
            }
        })
        .build()
        .unwrap();
    dispatcher.submit(due(&clock, 100), 7).unwrap();
    let shuts_down = std::thread::spawn({
        let dispatcher = dispatcher.clone();
        move || dispatcher.shutdown()
    });
    entered.recv().unwrap();
    dispatcher.wait_drained();
    assert_eq!(*told.lock().unwrap(), [7]);
    shuts_down.join().unwrap();
}

/// An hour ahead of the system's clock.
struct Ahead;

impl Clock for Ahead {
    fn now(&self) -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }
}

#[test]
fn the_timer_goes_by_the_clock_of_the_dispatcher() {
    let dispatcher: Dispatcher<()> =
        Dispatcher::builder().policy(Policy::Fcfs).clock(Ahead).timer(true).build().unwrap();
    let ticket = dispatcher.submit(Request::new().due(Ahead.now() + 20 * MS), ()).unwrap();
    assert_eq!(pollster(ticket), Outcome::Shed(Reason::Late));
}

#[test]
fn the_last_dispatcher_to_go_answers_what_waits() {
    let (builder, clock) = simulated(Policy::Fcfs);
    let dispatcher = builder.build().unwrap();
    let [runs, waits] = [0, 1].map(|payload| dispatcher.submit(due(&clock, 100), payload).unwrap());
    let (_, running) = dispatcher.try_next().unwrap();
    let next = dispatcher.next();
    let other = dispatcher.clone();
    drop(dispatcher);
    assert_eq!(waits.outcome(), None, "there is another one");
    drop(other);
    assert_eq!(waits.outcome(), Some(Outcome::Shed(Reason::Shutdown)));
    assert!(pollster(next).is_none());
    assert_eq!((running.finish(), runs.wait()), (Outcome::Met, Outcome::Met));
}

/// What waits is gone by its due times, however long it says that it takes; sums of lengths do not overflow.
#[test]
fn the_time_to_come_back_is_at_most_until_the_last_due_time() {
    let (builder, clock) = simulated(Policy::Fcfs);
    let dispatcher = builder.capacity(20).build().unwrap();
    let century = Estimate::seconds(3.1e9);
    let retry_after = |request: Request| dispatcher.submit(request, 0).unwrap_err().retry_after;
    (0..20).for_each(|_| _ = dispatcher.submit(due(&clock, 500).estimate(century), 0).unwrap());
    assert_eq!(retry_after(due(&clock, 900).estimate(century)), 500 * MS);
    clock.advance(500 * MS);
    (0..20).for_each(|_| _ = dispatcher.submit(Request::new().estimate(century), 0).unwrap());
    assert_eq!(retry_after(Request::new()), Duration::from_nanos(u64::MAX), "as long as can be said");
}

/// What is late leaves by the very call that asks for the counts.
#[test]
fn counts_add_up_also_when_asking_for_them_sheds_requests() {
    let (builder, clock) = simulated(Policy::Fcfs);
    let dispatcher = builder.build().unwrap();
    (0..3).for_each(|payload| _ = dispatcher.submit(due(&clock, 10), payload).unwrap());
    clock.advance(10 * MS);
    let stats = dispatcher.stats();
    assert_eq!((stats.submitted, stats.queued, stats.shed(Reason::Late)), (3, 0, 3));
    assert_eq!(dispatcher.stats(), stats, "they are counted once");
}

#[test]
fn a_simulated_clock_does_not_go_back_however_far_it_is_moved() {
    let (builder, clock) = simulated(Policy::Edf);
    let dispatcher = builder.build().unwrap();
    let ticket = dispatcher.submit(due(&clock, 10), 0).unwrap();
    let mut before = clock.now();
    // Two times four centuries are more nanoseconds than 64 bits hold, and the last step is more by itself.
    let four_centuries = Duration::from_secs(400 * 365 * 24 * 3600);
    for step in [four_centuries, four_centuries, Duration::MAX] {
        clock.advance(step);
        assert!(clock.now() >= before, "{step:?}");
        before = clock.now();
        dispatcher.tick();
        assert_eq!(ticket.outcome(), Some(Outcome::Shed(Reason::Late)));
    }
}
