//! What a request costs with 10 000 waiting: to submit it, take the next one and finish one, by each policy.
//! `cargo run --release -p temponet-dispatch --example latency [POLICY]`

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::{Duration, Instant};

use temponet_dispatch::{Clock, Dispatcher, Estimate, Estimator, Policy, Request, Running, SimulatedClock};

const WAITING: usize = 10_000;
const ROUNDS: usize = 200_000;

fn main() {
    let policies = [
        Policy::Fcfs,
        Policy::Lifo,
        Policy::Edf,
        Policy::EdfShed { q: 0.5 },
        Policy::SjfShed { q: 0.5 },
        Policy::MhEdf { q: 0.9 },
        Policy::Hrrn,
        Policy::learned(),
        Policy::RejectWhenBusy { queue: WAITING + 1 },
        Policy::guarded(),
    ];
    let only = std::env::args().nth(1);
    println!("microseconds a request, {WAITING} waiting: median, 99%, 99.9%, greatest");
    for policy in policies.into_iter().filter(|policy| only.as_ref().is_none_or(|only| policy.to_string() == *only)) {
        for estimator in [Estimator::Given, Estimator::Class, Estimator::Regressor { features: 2 }] {
            let [median, high, higher, most] = measured(policy.clone(), estimator);
            let name = format!("{policy}, {estimator:?}");
            println!("{name:<56} {median:>7.2} {high:>7.2} {higher:>7.2} {most:>8.1}");
        }
    }
}

fn measured(policy: Policy, estimator: Estimator) -> [f64; 4] {
    // Requests take half a second, but nobody has to wait for that here.
    let clock = SimulatedClock::new();
    let settings = Dispatcher::builder().workers(16).capacity(2 * WAITING).policy(policy).estimator(estimator);
    let dispatcher = settings.clock(clock.clone()).timer(true).build().expect("the settings are sound");
    let mut state = 1u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut submit = |number: usize| {
        let length = Duration::from_millis(1 + draw(1_000));
        let request = Request::new()
            .due(clock.now() + Duration::from_secs(10_000 + draw(1_000)))
            .estimate(Estimate::from(length))
            .class(number as u32 % 20)
            .features([length.as_secs_f64(), draw(100) as f64]);
        let start = Instant::now();
        dispatcher.submit(request, length).map(drop).expect("there is room and time");
        start.elapsed()
    };
    (0..WAITING + 16).for_each(|number| _ = submit(number));
    let mut running: HashMap<u64, Running> = HashMap::new();
    let mut ends = BinaryHeap::new();
    let mut times = Vec::with_capacity(ROUNDS);
    for number in 0..ROUNDS + 16 {
        let ended = if number < 16 { None } else { ends.pop() };
        let (submitted, ended) = match ended {
            None => (None, None),
            Some(Reverse((end, number))) => {
                clock.advance(Instant::duration_since(&end, clock.now()));
                (Some(submit(number as usize)), running.remove(&number))
            }
        };
        let start = Instant::now();
        ended.into_iter().for_each(|ended| _ = ended.finish());
        let (length, next) = dispatcher.try_next().expect("many wait");
        times.extend(submitted.map(|submitted| (submitted + start.elapsed()).as_secs_f64() * 1e6));
        ends.push(Reverse((clock.now() + length, next.number())));
        running.insert(next.number(), next);
    }
    assert_eq!(dispatcher.stats().queued, WAITING as u64);
    assert_eq!(dispatcher.stats().met, ROUNDS as u64);
    times.sort_by(f64::total_cmp);
    [0.5, 0.99, 0.999, 1.0].map(|share: f64| times[((share * ROUNDS as f64) as usize).min(ROUNDS - 1)])
}
