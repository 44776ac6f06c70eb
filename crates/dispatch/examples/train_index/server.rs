//! A server in simulated time around a dispatcher.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use temponet_dispatch::{Clock, Dispatcher, Estimate, Estimator, Policy, Request, Running, SimulatedClock};

use crate::load::Load;

/// Returns the share of the value of all requests that are finished in time under a policy.
pub fn share_met(load: &Load, policy: &Policy) -> f64 {
    let clock = SimulatedClock::new();
    let settings = Dispatcher::builder().workers(load.slots).policy(policy.clone()).cancel_when_due(load.cancels);
    let has_features = load.requests.iter().any(|asked| asked.feature.is_some());
    let estimator = if has_features { Estimator::Regressor { features: 1 } } else { Estimator::Given };
    let dispatcher = settings.estimator(estimator).clock(clock.clone()).build().expect("the settings are sound");
    let start = clock.now();
    let nanoseconds = |seconds: f64| (seconds * 1e9) as u64;
    let mut running: Vec<Option<Running>> = Vec::new();
    // Ends, places in `running`, and the value that is met if the request is done by then.
    let mut ends: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut outcomes: Vec<(bool, f64)> = Vec::new();
    let (mut coming, mut met) = (load.requests.iter().peekable(), 0.0);
    loop {
        let arrival = coming.peek().map(|asked| nanoseconds(asked.arrival));
        let end = ends.peek().map(|Reverse((end, _))| *end);
        let Some(now) = arrival.into_iter().chain(end).min() else { break };
        clock.advance((start + Duration::from_nanos(now)).saturating_duration_since(clock.now()));
        if end == Some(now) {
            let Some(Reverse((_, place))) = ends.pop() else { break };
            let (is_done, value) = outcomes[place];
            let ended = running[place].take().expect("it ends once");
            if is_done {
                _ = ended.finish()
            } else {
                ended.give_up()
            }
            met += value;
        } else if let Some(asked) = coming.next() {
            let due = now + nanoseconds(asked.window);
            let mut request =
                Request::new().due(start + Duration::from_nanos(due)).value(asked.value).class(asked.class);
            if let Some([median, ninth_decile]) = asked.estimate {
                request = request.estimate(Estimate::seconds(median).ninth_decile(ninth_decile));
            }
            if let Some(feature) = asked.feature {
                request = request.features([feature]);
            }
            _ = dispatcher.submit(request, (nanoseconds(asked.length), due, asked.value));
        }
        while let Some(((length, due, value), begun)) = dispatcher.try_next() {
            let end = now + length;
            let is_met = end <= due;
            let is_done = is_met || !load.cancels;
            ends.push(Reverse((if is_done { end } else { due }, running.len())));
            outcomes.push((is_done, if is_met { value } else { 0.0 }));
            running.push(Some(begun));
        }
    }
    met / load.requests.iter().map(|asked| asked.value).sum::<f64>()
}
